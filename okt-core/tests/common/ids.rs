//! Random ids, of states and of none.

use okt_core::StateId;

use crate::rng::Rng;

/// Mostly a state of a graph with so many, sometimes none.
pub(crate) fn any_id(rng: &mut Rng, count: usize) -> StateId {
    match rng.below(12) {
        0 => StateId::UNKNOWN,
        1 => StateId::at(count + rng.below(3)),
        _ => StateId::at(rng.below(count.max(1))),
    }
}
