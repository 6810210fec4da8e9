//! The routing tables of a graph, each one literal of generated code: the next hop to every desired state, and the way
//! out.

use crate::state::StateId;

/// State ids as little-endian pairs of bytes, so that a table is one literal of generated code.
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

/// The routes of one graph; each lookup takes constant time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routes<'a> {
    /// For each state that a spec may ask for, the number of its row in `hops`.
    pub rows: Table<'a>,
    /// The next hop: a row per desired state, a column per state.
    pub hops: Table<'a>,
    /// The next hop of the way out, per state.
    pub out: Table<'a>,
    /// The desired state of a spec that sets none.
    pub home: StateId,
}

impl Routes<'_> {
    /// No routes, for a graph that is only checked.
    pub const NONE: Routes<'static> = Routes {
        rows: Table(&[]),
        hops: Table(&[]),
        out: Table(&[]),
        home: StateId::UNKNOWN,
    };
}
