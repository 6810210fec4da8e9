//! The clocks of a member.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::protocol::Now;

/// Measures the time since it was made, by several clocks at once.
///
/// A clock may stop while the machine sleeps, and the wall clock may be set. Each step counts by the clock that ran
/// fastest, for the trust in the own lease, and by the monotonic clock, for the silence of others.
pub(crate) struct Stopwatch {
    begun: Instant,
    /// None under tokio's clock of a test, which has nothing to do with the others.
    real: Option<Mutex<Real>>,
}

/// The last readings of the clocks.
struct Real {
    at: Readings,
    most: Duration,
}

#[derive(Clone, Copy)]
struct Readings {
    steady: Instant,
    boot: Duration,
    wall: SystemTime,
}

impl Readings {
    fn now() -> Self {
        Self {
            steady: Instant::now(),
            boot: since_boot(),
            wall: SystemTime::now(),
        }
    }

    /// Returns the longest time that any clock shows since the readings before.
    fn longest_since(&self, before: &Self) -> Duration {
        let steady = self.steady.saturating_duration_since(before.steady);
        let boot = self.boot.saturating_sub(before.boot);
        // A wall clock that is set back shows nothing.
        let wall = self.wall.duration_since(before.wall).unwrap_or_default();
        steady.max(boot).max(wall)
    }
}

impl Stopwatch {
    /// Begins to measure. Under virtual time only tokio's clock counts.
    pub(crate) fn start(is_virtual: bool) -> Self {
        let real = || Real {
            at: Readings::now(),
            most: Duration::ZERO,
        };
        Self {
            begun: Instant::now(),
            real: (!is_virtual).then(|| Mutex::new(real())),
        }
    }

    /// Returns the time since the beginning.
    pub(crate) fn now(&self) -> Now {
        let least = self.begun.elapsed();
        let most = self.real.as_ref().map_or(least, |real| {
            let mut real = real.lock();
            let at = Readings::now();
            real.most = real.most.saturating_add(at.longest_since(&real.at));
            real.at = at;
            real.most
        });
        Now { least, most }
    }
}

/// Returns the time since the machine booted, sleep included.
#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

/// Returns nothing: on other systems the wall clock shows that the machine slept.
#[cfg(not(target_os = "linux"))]
fn since_boot() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_that_ran_fastest_counts() {
        let before = Readings::now();
        let second = Duration::from_secs(1);
        let after = |boot: u32, wall: i32| Readings {
            steady: before.steady + second,
            boot: before.boot + second * boot,
            wall: match u32::try_from(wall) {
                Ok(wall) => before.wall + second * wall,
                Err(_) => before.wall - second * wall.unsigned_abs(),
            },
        };
        assert_eq!(after(1, 1).longest_since(&before), second);
        assert_eq!(
            after(9, 1).longest_since(&before),
            9 * second,
            "the machine slept"
        );
        assert_eq!(
            after(1, 7).longest_since(&before),
            7 * second,
            "its clock was set"
        );
        assert_eq!(
            after(1, -7).longest_since(&before),
            second,
            "its clock was set back"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn under_virtual_time_only_that_counts() {
        let stopwatch = Stopwatch::start(true);
        tokio::time::advance(Duration::from_secs(5)).await;
        let now = stopwatch.now();
        assert_eq!(
            (now.least, now.most),
            (Duration::from_secs(5), Duration::from_secs(5))
        );
    }
}
