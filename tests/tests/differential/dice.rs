//! A small random number generator that gives the same numbers for a seed on every machine.

/// The generator `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below a bound that is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number() % bound as u64).expect("it is below a usize")
    }

    /// Returns true with this probability, in percent.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Returns one of several choices by their weights.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let total: usize = choices.iter().map(|(weight, _)| weight).sum();
        let mut thrown = self.below(total);
        for (weight, choice) in choices {
            if thrown < *weight {
                return *choice;
            }
            thrown -= weight;
        }
        unreachable!("the throw is below the sum of the weights")
    }
}
