//! The times of a schedule, and what is due by them: pure functions of what is recorded and of the present time.

use std::time::Duration;

use jiff::Timestamp;
use okt_wire::request::{CatchUp, ScheduleStatus};

use crate::calendar::Calendar;

/// How late a time may be noticed and still count as on time.
const ON_TIME: Duration = Duration::from_mins(1);

/// The times of a schedule.
#[derive(Clone, Debug)]
pub(super) struct ScheduleTimes {
    calendar: Calendar,
    /// The text by which a change is noticed.
    text: String,
    is_suspended: bool,
}

/// What a schedule does about missed times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed {
    pub(super) catch_up: CatchUp,
    /// The age up to which a missed time is made up for.
    pub(super) start_within: Duration,
}

/// What is due.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct DueRequest {
    /// The time for which a request is made before the status is written.
    pub(super) make: Option<Timestamp>,
    pub(super) status: ScheduleStatus,
}

impl ScheduleTimes {
    /// Reads five fields and a time zone.
    ///
    /// # Errors
    ///
    /// Why they name no times. A retry does not help.
    pub(super) fn of(schedule: &str, zone: &str, is_suspended: bool) -> Result<Self, String> {
        Ok(Self {
            calendar: Calendar::of("schedule", schedule, zone)?,
            text: format!("{schedule} {zone}"),
            is_suspended,
        })
    }

    /// Returns what is due. `is_busy`: the request before has no outcome.
    pub(super) fn due(
        &self,
        status: &ScheduleStatus,
        missed: Missed,
        is_busy: bool,
        now: Timestamp,
    ) -> DueRequest {
        let next = self.calendar.next(now).filter(|_| !self.is_suspended);
        let problem = if next.is_none() && !self.is_suspended {
            format!("`{}` names no time to come", self.text)
        } else {
            String::new()
        };
        let known = status.calendar.as_deref() == Some(self.text.as_str());
        let base = status.base.filter(|_| known && !status.suspended);
        let Some(base) = base.filter(|_| !self.is_suspended) else {
            // New, changed, or suspended until now: nothing is made up for.
            let stays = self.is_suspended && known && status.suspended;
            return DueRequest {
                make: None,
                status: ScheduleStatus {
                    base: if stays { status.base } else { Some(now) },
                    next,
                    suspended: self.is_suspended,
                    calendar: Some(self.text.clone()),
                    problem,
                    ..status.clone()
                },
            };
        };
        let since = status.last.map_or(base, |last| last.max(base));
        let due = self.calendar.last(now).filter(|due| *due > since);
        let age = |due: Timestamp| now.duration_since(due).try_into().unwrap_or(Duration::ZERO);
        let within = match missed.catch_up {
            CatchUp::Latest => ON_TIME.max(missed.start_within),
            CatchUp::None => ON_TIME,
        };
        let is_young = due.is_some_and(|due| age(due) <= within);
        let is_skipped = is_young && is_busy;
        DueRequest {
            make: due.filter(|_| is_young && !is_busy),
            status: ScheduleStatus {
                last: due.or(status.last),
                next,
                problem,
                skipped: status.skipped.saturating_add(u32::from(is_skipped)),
                ..status.clone()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATEST: Missed = Missed {
        catch_up: CatchUp::Latest,
        start_within: Duration::from_hours(1),
    };

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn hourly(is_suspended: bool) -> ScheduleTimes {
        ScheduleTimes::of("0 * * * *", "Etc/UTC", is_suspended).expect("five fields")
    }

    /// Returns the status of a schedule that is followed since this time.
    fn since(time: &str) -> ScheduleStatus {
        hourly(false)
            .due(&ScheduleStatus::default(), LATEST, false, at(time))
            .status
    }

    #[test]
    fn only_five_fields_and_a_zone_that_exists_are_a_schedule() {
        let refused = |schedule: &str, zone: &str| ScheduleTimes::of(schedule, zone, false).err();
        assert_eq!(refused("0 2 * * 6", "Europe/Berlin"), None);
        for schedule in [
            "",
            "* * * *",
            "0 0 2 * * 6",
            "0 25 * * *",
            "0 0 2 * * 6 2027",
        ] {
            let why = refused(schedule, "Etc/UTC").expect(schedule);
            assert!(why.contains(schedule), "{why}");
        }
        let why = refused("0 2 * * *", "Europe/Berlni").expect("no zone");
        assert_eq!(why, "there is no time zone `Europe/Berlni`");
    }

    #[test]
    fn a_new_and_a_changed_schedule_make_nothing_at_once() {
        let status = since("2026-11-26T10:30:00Z");
        assert_eq!(status.next, Some(at("2026-11-26T11:00:00Z")));
        let daily = ScheduleTimes::of("30 10 * * *", "Etc/UTC", false).expect("five fields");
        let due = daily.due(&status, LATEST, false, at("2026-11-26T10:45:00Z"));
        assert_eq!(
            (due.make, due.status.base),
            (None, Some(at("2026-11-26T10:45:00Z")))
        );
    }

    #[test]
    fn one_request_is_made_per_time_and_one_for_many_missed_times() {
        let status = since("2026-11-26T10:30:00Z");
        let due =
            |status: &ScheduleStatus, now: &str| hourly(false).due(status, LATEST, false, at(now));
        assert_eq!(due(&status, "2026-11-26T10:59:59Z").make, None);
        let made = due(&status, "2026-11-26T11:00:01Z");
        assert_eq!(made.make, Some(at("2026-11-26T11:00:00Z")));
        assert_eq!(due(&made.status, "2026-11-26T11:59:00Z").make, None);
        // The operator was down for five hours.
        let late = due(&made.status, "2026-11-26T16:20:00Z");
        assert_eq!(late.make, Some(at("2026-11-26T16:00:00Z")));
        assert_eq!(due(&late.status, "2026-11-26T16:59:00Z").make, None);
    }

    #[test]
    fn a_missed_time_that_is_too_old_is_not_made_up_for() {
        let status = since("2026-11-26T10:30:00Z");
        let now = at("2026-11-26T16:20:00Z");
        let short = Missed {
            start_within: Duration::from_mins(10),
            ..LATEST
        };
        let none = Missed {
            catch_up: CatchUp::None,
            ..LATEST
        };
        assert_eq!(hourly(false).due(&status, short, false, now).make, None);
        assert_eq!(hourly(false).due(&status, none, false, now).make, None);
        let now = at("2026-11-26T16:00:20Z");
        assert_eq!(
            hourly(false).due(&status, none, false, now).make,
            Some(at("2026-11-26T16:00:00Z"))
        );
    }

    #[test]
    fn nothing_is_made_up_for_the_time_of_a_suspension() {
        let status = since("2026-11-26T10:30:00Z");
        let suspended = hourly(true).due(&status, LATEST, false, at("2026-11-26T10:40:00Z"));
        assert_eq!((suspended.make, suspended.status.next), (None, None));
        let same = hourly(true).due(&suspended.status, LATEST, false, at("2026-11-26T14:10:00Z"));
        assert_eq!(same.status, suspended.status);
        let resumed = hourly(false).due(&same.status, LATEST, false, at("2026-11-26T15:10:00Z"));
        assert_eq!(resumed.make, None);
        let next = hourly(false).due(&resumed.status, LATEST, false, at("2026-11-26T16:00:00Z"));
        assert_eq!(next.make, Some(at("2026-11-26T16:00:00Z")));
    }

    #[test]
    fn a_time_at_which_the_request_before_has_no_outcome_is_skipped_and_counted() {
        let status = since("2026-11-26T10:30:00Z");
        let due = hourly(false).due(&status, LATEST, true, at("2026-11-26T11:00:01Z"));
        assert_eq!((due.make, due.status.skipped), (None, 1));
        let again = hourly(false).due(&due.status, LATEST, false, at("2026-11-26T11:20:00Z"));
        assert_eq!((again.make, again.status.skipped), (None, 1));
    }

    #[test]
    fn a_time_in_the_gap_and_in_the_fold_of_summer_time_comes_once() {
        let berlin = ScheduleTimes::of("30 2 * * *", "Europe/Berlin", false).expect("five fields");
        let next = |now: &str| berlin.calendar.next(at(now)).expect("a time").to_string();
        assert_eq!(next("2027-03-28T00:00:00Z"), "2027-03-28T01:00:00Z");
        assert_eq!(next("2027-03-28T01:00:00Z"), "2027-03-29T00:30:00Z");
        assert_eq!(next("2027-10-31T00:00:00Z"), "2027-10-31T00:30:00Z");
        assert_eq!(next("2027-10-31T00:30:00Z"), "2027-11-01T01:30:00Z");
    }
}
