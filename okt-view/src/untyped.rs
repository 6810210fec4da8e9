//! The states of an object whose Rust types are not known.

use okt_core::routes::Routes;
use okt_core::{Graph, Kind, Lifecycle, NoGate, StateId};

/// The states of an object whose Rust types are not known: each is a name only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untyped {}

impl Lifecycle for Untyped {
    type Gate = NoGate;

    const GRAPH: &'static Graph<'static> = &Graph {
        name: "Untyped",
        doc: "",
        kind: Kind::Pass,
        parts: &[],
        gates: &[],
        states: &[],
        routes: Routes::NONE,
    };

    fn id(self) -> StateId {
        match self {}
    }

    fn from_id(_: StateId) -> Option<Self> {
        None
    }
}
