//! The windows of an object: when it may pass a gate.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use okt_core::duration;
use okt_wire::limits::OPENINGS_LIMIT;
use okt_wire::window::Window;

use crate::calendar::Calendar;

/// The longest window.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// The most windows that an object has.
const MOST: usize = 16;

/// The times at which a gate `#[window(..)]` is open for an object.
///
/// ```
/// use okt::{Opening, Window, Windows};
///
/// # fn example(maintenance: Vec<Window>) {
/// let by_spec = Windows::of(&maintenance); // without any it is always open
/// let by_code = Windows::from_code(|now| Opening::open().until(None));
/// # let _ = (by_spec, by_code);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Windows(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Always,
    Calendar(Vec<Window>),
    Code(Arc<dyn Fn(Timestamp) -> Opening + Send + Sync>),
}

/// Whether a window is open, and until when that stays so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    is_open: bool,
    until: Option<Timestamp>,
}

impl Opening {
    /// Says that the window is open.
    pub const fn open() -> Self {
        Self {
            is_open: true,
            until: None,
        }
    }

    /// Says that the window is shut.
    pub const fn shut() -> Self {
        Self {
            is_open: false,
            until: None,
        }
    }

    /// Says until when that stays so; none if only a change of the object changes it.
    #[must_use]
    pub const fn until(mut self, until: Option<Timestamp>) -> Self {
        self.until = until;
        self
    }
}

/// A window gate at a moment.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct WindowState {
    pub(crate) is_open: bool,
    /// When that changes.
    pub(crate) change: Option<Timestamp>,
    /// When it opens next, if it is shut.
    pub(crate) openings: Vec<Timestamp>,
    /// The time zone of the first of these.
    pub(crate) zone: TimeZone,
}

impl Windows {
    /// Declares that the gate is always open.
    pub fn always() -> Self {
        Self::default()
    }

    /// Declares the windows of a spec, at most 16; without any the gate is always open.
    pub fn of<'w>(windows: impl IntoIterator<Item = &'w Window>) -> Self {
        let windows: Vec<Window> = windows.into_iter().cloned().collect();
        Self(if windows.is_empty() {
            Source::Always
        } else {
            Source::Calendar(windows)
        })
    }

    /// Declares windows that code computes, from the time alone.
    pub fn from_code(opening: impl Fn(Timestamp) -> Opening + Send + Sync + 'static) -> Self {
        Self(Source::Code(Arc::new(opening)))
    }

    /// Returns the state of the gate, if `needs` of a window must be left.
    ///
    /// # Errors
    ///
    /// Why it never opens. A retry does not help.
    pub(crate) fn at(&self, now: Timestamp, needs: Duration) -> Result<WindowState, String> {
        let plain = |Opening { is_open, until }: Opening| WindowState {
            is_open,
            change: until.filter(|until| *until > now),
            openings: until.into_iter().filter(|_| !is_open).collect(),
            zone: TimeZone::UTC,
        };
        match &self.0 {
            Source::Always => Ok(plain(Opening::open())),
            Source::Code(opening) => Ok(plain(opening(now))),
            Source::Calendar(windows) => {
                if windows.len() > MOST {
                    return Err(format!(
                        "{} windows, and {MOST} at most are read",
                        windows.len()
                    ));
                }
                let windows = windows.iter().map(|it| ReadWindow::of(it, needs));
                state(&windows.collect::<Result<Vec<_>, _>>()?, now)
            }
        }
    }
}

/// A window as it was read.
struct ReadWindow {
    calendar: Calendar,
    /// How long after its beginning an object may enter.
    admits: Duration,
}

impl ReadWindow {
    fn of(window: &Window, needs: Duration) -> Result<Self, String> {
        let calendar = Calendar::of("start", &window.start, &window.time_zone)?;
        let lasts = duration::parse(&window.duration)
            .ok_or_else(|| format!("`duration: {}` is no time", window.duration))?;
        if lasts > LONGEST {
            return Err(format!(
                "`duration: {}` is longer than seven days",
                window.duration
            ));
        }
        let admits = lasts.checked_sub(needs).filter(|left| !left.is_zero());
        let admits = admits.ok_or_else(|| {
            format!(
                "`duration: {}` is no longer than the {} that must be left of it",
                window.duration,
                duration::text(needs)
            )
        })?;
        Ok(Self { calendar, admits })
    }

    /// Returns when the window that is open now admits objects no longer.
    fn closes(&self, now: Timestamp) -> Option<Timestamp> {
        let began = self.calendar.last(now)?;
        let until = began.saturating_add(self.admits).unwrap_or(Timestamp::MAX);
        Some(until).filter(|until| *until > now)
    }
}

fn state(windows: &[ReadWindow], now: Timestamp) -> Result<WindowState, String> {
    if let Some(closes) = windows.iter().filter_map(|it| it.closes(now)).max() {
        return Ok(WindowState {
            is_open: true,
            change: Some(closes),
            openings: Vec::new(),
            zone: TimeZone::UTC,
        });
    }
    let first = windows
        .iter()
        .filter_map(|it| Some((it.calendar.next(now)?, it)));
    let (opens, window) = first
        .min_by_key(|(opens, _)| *opens)
        .ok_or("no window names a time to come")?;
    let mut openings = vec![opens];
    while let Some(last) = openings
        .last()
        .copied()
        .filter(|_| openings.len() < OPENINGS_LIMIT)
    {
        let next = windows.iter().filter_map(|it| it.calendar.next(last)).min();
        openings.extend(next);
        if next.is_none() {
            break;
        }
    }
    Ok(WindowState {
        is_open: false,
        change: Some(opens),
        openings,
        zone: window.calendar.zone.clone(),
    })
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("Always"),
            Self::Calendar(windows) => f.debug_list().entries(windows).finish(),
            Self::Code(_) => f.write_str("Code"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn nightly(needs: Duration) -> impl Fn(&str) -> WindowState {
        let window = Window {
            start: "0 2 * * *".to_owned(),
            duration: "4h".to_owned(),
            time_zone: "Europe/Berlin".to_owned(),
        };
        let windows = Windows::of(&[window]);
        move |now| windows.at(at(now), needs).expect("a window")
    }

    #[test]
    fn a_window_is_open_for_its_duration_and_only_while_enough_of_it_is_left() {
        let nightly = nightly(Duration::from_hours(1));
        let before = nightly("2026-11-28T00:59:59Z");
        assert!(!before.is_open);
        assert_eq!(before.change, Some(at("2026-11-28T01:00:00Z")));
        let nights = ["2026-11-28", "2026-11-29", "2026-11-30"];
        let nights = nights.map(|night| at(&format!("{night}T01:00:00Z")));
        assert_eq!(before.openings, nights);
        let open = nightly("2026-11-28T01:00:00Z");
        assert_eq!(
            (open.is_open, open.change),
            (true, Some(at("2026-11-28T04:00:00Z")))
        );
        assert!(nightly("2026-11-28T03:59:59Z").is_open);
        assert!(!nightly("2026-11-28T04:00:00Z").is_open);
    }

    #[test]
    fn a_window_opens_once_on_both_days_of_summer_time() {
        let nightly = nightly(Duration::ZERO);
        // 2027-03-28 has no 02:00 to 03:00: the window opens at 03:00 there, 01:00 in UTC, and lasts four hours.
        assert!(!nightly("2027-03-28T00:59:59Z").is_open);
        assert!(nightly("2027-03-28T01:00:00Z").is_open);
        assert!(nightly("2027-03-28T04:59:59Z").is_open);
        assert!(!nightly("2027-03-28T05:00:00Z").is_open);
        // 2027-10-31 has 02:00 to 03:00 twice: the window opens at the first, 00:00 in UTC.
        assert!(!nightly("2027-10-30T23:59:59Z").is_open);
        assert!(nightly("2027-10-31T00:00:00Z").is_open);
        assert!(nightly("2027-10-31T03:59:59Z").is_open);
        assert!(!nightly("2027-10-31T04:00:00Z").is_open);
        assert_eq!(
            nightly("2027-10-31T04:00:00Z").openings[0],
            at("2027-11-01T01:00:00Z")
        );
    }

    #[test]
    fn of_several_windows_the_one_that_is_open_longest_counts() {
        let window = |start: &str, duration: &str| Window {
            start: start.to_owned(),
            duration: duration.to_owned(),
            time_zone: "Etc/UTC".to_owned(),
        };
        let windows = Windows::of(&[window("0 2 * * *", "1h"), window("30 2 * * *", "2h")]);
        let state = |now| windows.at(at(now), Duration::ZERO).expect("windows");
        assert_eq!(
            state("2026-11-28T02:45:00Z").change,
            Some(at("2026-11-28T04:30:00Z"))
        );
        let openings = state("2026-11-28T05:00:00Z").openings;
        assert_eq!(
            openings[..2],
            [at("2026-11-29T02:00:00Z"), at("2026-11-29T02:30:00Z")]
        );
    }

    #[test]
    fn a_window_that_never_opens_says_why() {
        let why = |start: &str, duration: &str, zone: &str| {
            let window = Window {
                start: start.to_owned(),
                duration: duration.to_owned(),
                time_zone: zone.to_owned(),
            };
            let state =
                Windows::of(&[window]).at(at("2026-11-28T00:00:00Z"), Duration::from_hours(1));
            state.expect_err("it never opens")
        };
        assert!(why("0 25 * * *", "4h", "Etc/UTC").contains("names no times"));
        assert_eq!(
            why("0 2 30 2 *", "4h", "Etc/UTC"),
            "no window names a time to come"
        );
        assert_eq!(
            why("0 2 * * *", "4h", "Mars"),
            "there is no time zone `Mars`"
        );
        assert_eq!(
            why("0 2 * * *", "four", "Etc/UTC"),
            "`duration: four` is no time"
        );
        assert!(why("0 2 * * *", "1h", "Etc/UTC").contains("must be left"));
        assert!(why("0 2 * * *", "200h", "Etc/UTC").contains("seven days"));
    }

    #[test]
    fn without_windows_and_by_code_a_gate_is_as_it_is_told() {
        let now = at("2026-11-28T00:00:00Z");
        let later = at("2026-11-28T01:00:00Z");
        assert!(
            Windows::of(&[])
                .at(now, Duration::ZERO)
                .expect("always")
                .is_open
        );
        let shut = Windows::from_code(move |_| Opening::shut().until(Some(later)));
        let shut = shut.at(now, Duration::ZERO).expect("a state");
        assert_eq!((shut.is_open, shut.openings), (false, vec![later]));
    }
}
