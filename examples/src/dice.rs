//! Random choices of a test: a seed determines the choices, but not when they happen.

use std::time::Duration;

/// The generator `SplitMix64`.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.number() % (most - least + 1)
    }

    /// Returns a time from `least` to `most` milliseconds.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }

    /// Returns one of the choices, or `None` if there are none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let last = u64::try_from(choices.len()).ok()?.checked_sub(1)?;
        choices.get(usize::try_from(self.between(0, last)).ok()?)
    }

    /// Returns one of the choices, each as likely as its weight.
    ///
    /// # Panics
    ///
    /// If there are no choices, or all weights are 0.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let total: u64 = choices.iter().map(|(weight, _)| weight).sum();
        let mut thrown = self.between(1, total);
        for (weight, choice) in choices {
            if thrown <= *weight {
                return *choice;
            }
            thrown -= weight;
        }
        unreachable!("the throw is at most the sum of the weights")
    }
}
