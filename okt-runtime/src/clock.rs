//! What time it is, by the wall or by tokio's clock.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// How far ahead the latest time is that a timer may be set to: 30 years, as tokio has it.
const FAR: Duration = Duration::from_hours(30 * 365 * 24);

/// Returns the time after a wait, on tokio's clock.
///
/// A wait that an author chose may be as long as a [`Duration`] gets, and adding that to a time panics: it is cut to
/// 30 years.
pub(crate) fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait.min(FAR)).unwrap_or(now)
}

/// A clock; status holds wall time, timers are tokio's.
///
/// The wall clock may jump, by hand or when a wrong one is set right. Deadlines count from times in statuses: they must
/// neither all come at once then, nor never. So this one is led towards the wall clock gently: whatever that does while
/// the operator runs, a second of it takes between half a second and two.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The wall clock, led gently.
    Wall(Arc<Mutex<Led>>),
    /// Tokio's clock, set to the wall clock once: it stands still where tokio's does.
    Tokio { set_to: Timestamp, at: Instant },
}

impl Clock {
    /// The wall clock.
    pub(crate) fn wall() -> Self {
        let led = Led {
            shown: Timestamp::now(),
            at: std::time::Instant::now(),
        };
        Self::Wall(Arc::new(Mutex::new(led)))
    }

    /// Set once per process, so that an operator started later does not fall back behind what an earlier one wrote.
    pub(crate) fn tokio() -> Self {
        static SET: OnceLock<(Timestamp, Instant)> = OnceLock::new();
        let (set_to, at) = *SET.get_or_init(|| (Timestamp::now(), Instant::now()));
        Self::Tokio { set_to, at }
    }

    /// Now, to the millisecond.
    pub(crate) fn now(&self) -> Timestamp {
        let now = match self {
            Self::Wall(led) => {
                let mut led = led.lock().unwrap_or_else(PoisonError::into_inner);
                let at = std::time::Instant::now();
                let passed = at.saturating_duration_since(led.at);
                led.at = at;
                led.shown = lead(led.shown, passed, Timestamp::now());
                led.shown
            }
            Self::Tokio { set_to, at } => set_to.saturating_add(at.elapsed()).unwrap_or(*set_to),
        };
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// The time since a moment; none at all where it lies ahead.
    pub(crate) fn since(&self, then: Timestamp) -> Duration {
        self.now()
            .duration_since(then)
            .try_into()
            .unwrap_or(Duration::ZERO)
    }
}

/// What a clock that is led has shown last, and when that was.
#[derive(Debug)]
pub(crate) struct Led {
    shown: Timestamp,
    at: std::time::Instant,
}

/// What is shown a time after something was shown, where the wall clock shows this: at least half of that time later, and
/// at most twice as much.
fn lead(shown: Timestamp, passed: Duration, wall: Timestamp) -> Timestamp {
    let after = |time: Duration| shown.saturating_add(time).unwrap_or(wall);
    let slowest = after(passed.checked_div(2).unwrap_or_default());
    let fastest = after(passed.saturating_mul(2));
    wall.clamp(slowest, fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// How long after something was shown a deadline comes, where the wall clock is wrong by this many seconds from the
    /// beginning, and is read every second.
    fn deadline(wrong_by: i64, deadline: Duration) -> Duration {
        let begin = Timestamp::from_second(1_800_000_000).expect("a time");
        let mut shown = begin;
        for second in 1..100_000 {
            let wall = begin.as_second() + wrong_by + second;
            let wall = Timestamp::from_second(wall).expect("a time");
            shown = lead(shown, Duration::from_secs(1), wall);
            let since =
                Duration::try_from(shown.duration_since(begin)).expect("it never goes back");
            if since >= deadline {
                return Duration::from_secs(second.unsigned_abs());
            }
        }
        panic!("it never comes");
    }

    #[test]
    fn a_deadline_takes_its_time_where_the_wall_clock_is_right() {
        assert_eq!(deadline(0, HOUR), HOUR);
    }

    #[test]
    fn a_wall_clock_that_jumps_brings_no_deadline_before_half_its_time_nor_after_twice_its_time() {
        for jump in [1, 60, 3600, 86_400, 10_000_000] {
            let sooner = deadline(jump, HOUR);
            assert!(sooner >= HOUR / 2 && sooner <= HOUR, "{jump}: {sooner:?}");
            let later = deadline(-jump, HOUR);
            assert!(later <= HOUR * 2 && later >= HOUR, "{jump}: {later:?}");
        }
    }

    #[test]
    fn a_clock_that_was_asked_long_ago_has_caught_up() {
        let begin = Timestamp::from_second(1_800_000_000).expect("a time");
        let wall = Timestamp::from_second(1_800_000_000 + 5400).expect("a time");
        assert_eq!(lead(begin, HOUR, wall), wall);
    }
}
