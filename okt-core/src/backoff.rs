//! Exponential backoff with jitter.

use core::time::Duration;

/// An exponential backoff: the wait doubles with each attempt up to a limit, and a jitter spreads it.
///
/// ```
/// use core::time::Duration;
/// use okt_core::backoff::Backoff;
///
/// let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// let first = backoff.wait(1, 7);
/// assert!(first >= Duration::from_millis(800) && first <= Duration::from_millis(1200));
/// assert!(backoff.wait(1_000, 7) <= backoff.longest());
/// assert_eq!(backoff.wait(3, 7), backoff.wait(3, 7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
}

impl Default for Backoff {
    /// Doubles from one second to five minutes; Kubernetes limits the backoff of crashing containers to five minutes
    /// too.
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_mins(5))
    }
}

impl Backoff {
    /// Creates a backoff that doubles from `first` to `cap`, both before a jitter of a fifth.
    ///
    /// A `first` of zero becomes one millisecond, so that nothing spins. A `cap` below `first` becomes `first`.
    pub const fn new(first: Duration, cap: Duration) -> Self {
        let first = if first.is_zero() {
            Duration::from_millis(1)
        } else {
            first
        };
        let cap = if cap.as_nanos() < first.as_nanos() {
            first
        } else {
            cap
        };
        Self { first, cap }
    }

    /// Returns the wait after this many consecutive failures, starting at 1.
    ///
    /// The jitter depends on `seed` and `failures` only, so the same arguments give the same wait.
    pub fn wait(&self, failures: u32, seed: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let plain = self.first.saturating_mul(1 << doublings).min(self.cap);
        // Between 0.8 and 1.2 of the plain wait, in thousandths.
        let spread = 800 + u32::try_from(mix(seed, failures) % 401).unwrap_or(200);
        plain.saturating_mul(spread) / 1000
    }

    /// Returns the longest possible wait, jitter included.
    pub fn longest(&self) -> Duration {
        self.cap.saturating_mul(6) / 5
    }
}

/// `SplitMix64` (Steele, Lea and Flood 2014): maps close numbers far apart.
fn mix(seed: u64, failures: u32) -> u64 {
    let mut z = seed.wrapping_add(u64::from(failures).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_within_the_jitter() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(10));
        for seed in 0..200 {
            for (failures, plain) in [
                (1, 1.0),
                (2, 2.0),
                (3, 4.0),
                (4, 8.0),
                (5, 10.0),
                (u32::MAX, 10.0),
            ] {
                let wait = backoff.wait(failures, seed).as_secs_f64();
                assert!(
                    wait >= plain * 0.8 && wait <= plain * 1.2,
                    "{failures} {seed} {wait}"
                );
                assert!(wait <= backoff.longest().as_secs_f64());
            }
        }
    }

    #[test]
    fn seeds_spread_objects_apart() {
        let backoff = Backoff::default();
        let mut waits: alloc::vec::Vec<_> = (0..100).map(|seed| backoff.wait(5, seed)).collect();
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 70, "only {} different waits", waits.len());
    }

    #[test]
    fn a_backoff_of_zero_does_not_spin() {
        assert!(
            !Backoff::new(Duration::ZERO, Duration::ZERO)
                .wait(1, 0)
                .is_zero()
        );
    }
}
