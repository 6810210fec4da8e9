//! Draws random numbers that depend only on the seed, the subject and the occasion.
//!
//! There is no sequence: whether a fault strikes the third write of an object does not depend on
//! other objects. The digest is SHA-256, so a seed gives the same numbers with each version of this
//! crate's dependencies.

use sha2::{Digest, Sha256};

/// Two numbers in `0.0..1.0`.
pub(super) struct Draw {
    /// Selects the fault that strikes, if any.
    pub(super) lot: f64,
    /// The fraction of the fault's delay or lag.
    pub(super) size: f64,
}

/// Draws for the occasion of this number of a subject.
pub(super) fn draw(seed: u64, who: &str, number: u64) -> Draw {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(number.to_le_bytes());
    hash.update(who.as_bytes());
    let digest = hash.finalize();
    Draw {
        lot: fraction(&digest[..4]),
        size: fraction(&digest[4..8]),
    }
}

fn fraction(bytes: &[u8]) -> f64 {
    let number = bytes
        .iter()
        .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    f64::from(number) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn a_seed_always_draws_the_same_lots() {
        let drawn: Vec<_> = (0..4)
            .map(|number| draw(7, "somebody", number).lot)
            .collect();
        let first: Vec<_> = drawn
            .iter()
            .map(|lot| format!("{:.0}", (lot * 1000.0).floor()))
            .collect();
        assert_eq!(first, ["19", "604", "688", "419"]);
    }

    #[test]
    fn lots_are_evenly_distributed() {
        let below = |limit: f64| {
            let drawn = (0..10_000).map(|number| draw(1, "somebody", number).lot);
            drawn.filter(|lot| *lot < limit).count()
        };
        assert!((400..600).contains(&below(0.05)), "{}", below(0.05));
        assert!((4_800..5_200).contains(&below(0.5)), "{}", below(0.5));
    }
}
