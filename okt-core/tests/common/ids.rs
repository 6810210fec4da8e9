//! Random ids, of existing and of unknown states.

use okt_core::StateId;

use crate::rng::Rng;

/// Returns mostly the id of one of `count` states, sometimes an unknown one.
pub(crate) fn any_id(rng: &mut Rng, count: usize) -> StateId {
    match rng.below(12) {
        0 => StateId::UNKNOWN,
        1 => StateId::at(count + rng.below(3)),
        _ => StateId::at(rng.below(count.max(1))),
    }
}
