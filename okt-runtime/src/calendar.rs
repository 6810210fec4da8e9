//! The times of a calendar: five fields of cron in a time zone.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The times of a calendar.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    cron: Cron,
    pub(crate) zone: TimeZone,
}

impl Calendar {
    /// Reads five fields and a time zone; `field` is the name of the five fields.
    ///
    /// # Errors
    ///
    /// Why they name no times. A retry does not help.
    pub(crate) fn of(field: &str, times: &str, zone: &str) -> Result<Self, String> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser.parse(times);
        let cron = cron.map_err(|error| format!("`{field}: {times}` names no times: {error}"))?;
        let found = TimeZone::get(zone);
        let zone = found.map_err(|_| format!("there is no time zone `{zone}`"))?;
        Ok(Self { cron, zone })
    }

    /// Returns the next time; none if there is none.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let now = now.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&now, false).ok()?;
        Some(next.timestamp())
    }

    /// Returns the last time that is not later than now.
    pub(crate) fn last(&self, now: Timestamp) -> Option<Timestamp> {
        let now = now.to_zoned(self.zone.clone());
        let last = self.cron.find_previous_occurrence(&now, true).ok()?;
        Some(last.timestamp())
    }
}
