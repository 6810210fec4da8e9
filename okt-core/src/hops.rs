//! The hop to every desired state, and the way out: tables that are one literal of generated code.

use crate::state::StateId;

/// State ids packed as little-endian pairs of bytes, so that a table is one literal of generated code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table<'a>(pub &'a [u8]);

impl Table<'_> {
    pub(crate) fn get(&self, index: usize) -> Option<StateId> {
        let at = index.checked_mul(2)?;
        let bytes = self.0.get(at..at.checked_add(2)?)?;
        let id = StateId(u16::from_le_bytes([bytes[0], bytes[1]]));
        (id != StateId::UNKNOWN).then_some(id)
    }
}

/// The routes of one graph; each look-up takes constant time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routes<'a> {
    /// For each state that a spec may wish for, the number of its row in `hops`.
    pub rows: Table<'a>,
    /// The next hop: a row per wish, a column per state.
    pub hops: Table<'a>,
    /// The next hop of the way out, per state.
    pub out: Table<'a>,
    /// The wish of a spec that wishes nothing.
    pub home: StateId,
}

impl Routes<'_> {
    /// No routes: those of a graph that is only being checked.
    pub const NONE: Routes<'static> = Routes {
        rows: Table(&[]),
        hops: Table(&[]),
        out: Table(&[]),
        home: StateId::UNKNOWN,
    };
}
