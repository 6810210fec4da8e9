//! This file draws lots that depend on nothing but what they are drawn for.
//!
//! There is no sequence: whether the third write of an object goes wrong does not depend on what
//! other objects did before. The digest is SHA-256, so a seed means the same in each version of
//! this crate's dependencies.

use sha2::{Digest, Sha256};

/// Two numbers in `0.0..1.0`.
pub(super) struct Draw {
    /// Which of the things that may go wrong does, if any.
    pub(super) lot: f64,
    /// How bad it is.
    pub(super) size: f64,
}

/// Draws for the occasion of this number of somebody or something.
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
    fn a_seed_means_the_same_for_ever() {
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
    fn lots_are_even() {
        let below = |limit: f64| {
            let drawn = (0..10_000).map(|number| draw(1, "somebody", number).lot);
            drawn.filter(|lot| *lot < limit).count()
        };
        assert!((400..600).contains(&below(0.05)), "{}", below(0.05));
        assert!((4_800..5_200).contains(&below(0.5)), "{}", below(0.5));
    }
}
