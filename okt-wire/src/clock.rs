//! The operator's clock: wall time, or tokio's clock in tests.

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use okt_core::machine::Time;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// The longest wait of a timer: 30 years, as in tokio.
const FAR: Duration = Duration::from_hours(30 * 365 * 24);

/// Returns the time after a wait, on tokio's clock.
///
/// A wait from user code may be as long as a [`Duration`] gets, and adding that to a time panics: it is cut to 30
/// years.
pub fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait.min(FAR)).unwrap_or(now)
}

/// Returns the present moment of tokio's clock, for a machine.
pub fn moment() -> Time {
    // A day before the first call: tokio's clock, where a test pauses it, may be a little behind that of the process.
    static ORIGIN: LazyLock<std::time::Instant> = LazyLock::new(|| {
        let now = std::time::Instant::now();
        now.checked_sub(Duration::from_hours(24)).unwrap_or(now)
    });
    let now = Instant::now().into_std();
    Time::after_origin(now.saturating_duration_since(*ORIGIN))
}

/// Waits until a time; forever if there is none.
pub async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The operator's clock. Statuses hold wall time; timers use tokio's clock.
///
/// The wall clock jumps when it is set. Deadlines count from times in statuses: after a jump they must neither all come
/// at once nor never. This clock therefore follows the wall clock slowly: one second of it takes between half a second
/// and two seconds.
#[derive(Clone, Debug)]
pub struct Clock(TimeSource);

#[derive(Clone, Debug)]
enum TimeSource {
    /// The wall clock, followed slowly.
    Wall(Arc<Mutex<Led>>),
    /// Tokio's clock, set to the wall clock once. It stands still while tokio's clock does.
    Tokio { set_to: Timestamp, at: Instant },
}

impl Clock {
    /// Returns a clock that follows the wall clock.
    pub fn wall() -> Self {
        let led = Led {
            shown: Timestamp::now(),
            at: std::time::Instant::now(),
        };
        Self(TimeSource::Wall(Arc::new(Mutex::new(led))))
    }

    /// Returns tokio's clock. It is set once per process, so that a later operator does not fall behind the times that
    /// an earlier one wrote.
    pub fn tokio() -> Self {
        static SET: OnceLock<(Timestamp, Instant)> = OnceLock::new();
        let (set_to, at) = *SET.get_or_init(|| (Timestamp::now(), Instant::now()));
        Self(TimeSource::Tokio { set_to, at })
    }

    /// Returns the current time, to the millisecond.
    pub fn now(&self) -> Timestamp {
        let now = match &self.0 {
            TimeSource::Wall(led) => {
                let mut led = led.lock();
                let at = std::time::Instant::now();
                let passed = at.saturating_duration_since(led.at);
                led.at = at;
                led.shown = lead(led.shown, passed, Timestamp::now());
                led.shown
            }
            TimeSource::Tokio { set_to, at } => {
                set_to.saturating_add(at.elapsed()).unwrap_or(*set_to)
            }
        };
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Returns the time since `then`; zero if `then` lies ahead.
    pub fn since(&self, then: Timestamp) -> Duration {
        self.now()
            .duration_since(then)
            .try_into()
            .unwrap_or(Duration::ZERO)
    }
}

/// The last time that a clock showed, and when it showed it.
#[derive(Debug)]
struct Led {
    shown: Timestamp,
    at: std::time::Instant,
}

/// Returns the time to show: the wall time, but at least half of `passed` and at most twice `passed` after `shown`.
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

    /// Returns how long a deadline takes if the wall clock is wrong by `wrong_by` seconds from the start and is read
    /// every second.
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
    fn a_deadline_is_exact_if_the_wall_clock_is_right() {
        assert_eq!(deadline(0, HOUR), HOUR);
    }

    #[test]
    fn a_jump_of_the_wall_clock_at_most_halves_or_doubles_a_deadline() {
        for jump in [1, 60, 3600, 86_400, 10_000_000] {
            let sooner = deadline(jump, HOUR);
            assert!(sooner >= HOUR / 2 && sooner <= HOUR, "{jump}: {sooner:?}");
            let later = deadline(-jump, HOUR);
            assert!(later <= HOUR * 2 && later >= HOUR, "{jump}: {later:?}");
        }
    }

    #[test]
    fn a_clock_that_was_read_long_ago_has_caught_up() {
        let begin = Timestamp::from_second(1_800_000_000).expect("a time");
        let wall = Timestamp::from_second(1_800_000_000 + 5400).expect("a time");
        assert_eq!(lead(begin, HOUR, wall), wall);
    }
}
