//! The rules that hold in every state of the world.

mod effects;
mod records;
mod rests;

use crate::world::World;

impl World {
    /// Records that a rule is broken. The first one counts.
    pub(crate) fn breaks(&mut self, rule: &str) {
        self.broken.get_or_insert_with(|| rule.to_owned());
    }

    pub(crate) fn must(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.breaks(otherwise);
        }
    }
}
