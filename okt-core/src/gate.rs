//! Gates: conditions on when an object may enter some states from outside of them.

use core::time::Duration;

use crate::graph::{Cause, Graph, Mark, StateId};

/// A gate: a condition on when an object may enter some states from outside of them.
///
/// An object waits before a gate only in a resting state, and only for a move that the operator chooses: a child edge, or
/// a trigger by a change. What has happened to the application is recorded at once, and nothing holds up a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate<'a> {
    /// The name (e.g. `maintenance`).
    pub name: &'a str,
    /// What it waits for.
    pub kind: GateKind,
    /// The states.
    pub states: &'a [StateId],
    /// What passes it without waiting.
    pub passes: Passes,
}

/// What a gate waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GateKind {
    /// A time of a calendar.
    Window {
        /// How much of it must be left.
        needs: Duration,
    },
}

impl GateKind {
    /// Returns the word of the attribute.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Window { .. } => "window",
        }
    }
}

/// What leads into the states of a gate without waiting, as its declaration admits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passes {
    /// Triggers other than those by a change.
    pub triggers: bool,
    /// The way out.
    pub deletion: bool,
}

/// A gate of one graph: its position in the declaration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GateId(pub u8);

impl GateId {
    /// Returns the position in [`Graph::gates`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of the gates of one graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Gates(u32);

impl Gates {
    /// No gate.
    pub const NONE: Self = Self(0);
    /// The most gates that a graph can have.
    pub const LIMIT: usize = 32;

    /// Returns whether the set has a gate.
    pub fn has(self, gate: GateId) -> bool {
        self.0
            .checked_shr(gate.0.into())
            .is_some_and(|rest| rest & 1 == 1)
    }

    /// Returns the set with one more gate; one above the limit is not added.
    #[must_use]
    pub fn with(self, gate: GateId) -> Self {
        Self(self.0 | 1_u32.checked_shl(gate.0.into()).unwrap_or(0))
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl<'a> Graph<'a> {
    /// Returns every gate with its id.
    pub fn all_gates(&self) -> impl Iterator<Item = (GateId, &'a Gate<'a>)> + use<'a> {
        (0..=u8::MAX).map(GateId).zip(self.gates)
    }

    /// Returns the gates that a move passes: those of which it enters a state from outside.
    pub fn gates_between(
        &self,
        from: StateId,
        to: StateId,
    ) -> impl Iterator<Item = (GateId, &'a Gate<'a>)> + use<'a> {
        self.all_gates()
            .filter(move |(_, gate)| gate.states.contains(&to) && !gate.states.contains(&from))
    }

    /// Returns the gates before which an object waits on an edge: those of a child, or of a trigger by a change, that
    /// begins in a resting state.
    pub fn waits_on(
        &self,
        from: StateId,
        to: StateId,
    ) -> impl Iterator<Item = (GateId, &'a Gate<'a>)> + use<'a> {
        let waits = self.get(from).is_some_and(|state| {
            let mut triggers = state.triggers.iter().filter(|trigger| trigger.to == to);
            let mut by_change = || triggers.any(|trigger| trigger.cause.is_change());
            state.is(Mark::Rest) && (state.children.contains(&to) || by_change())
        });
        self.gates_between(from, to).filter(move |_| waits)
    }
}

impl Cause {
    /// Returns whether a change of the spec, or of what is declared, raises it.
    pub const fn is_change(&self) -> bool {
        matches!(self, Self::OnChange | Self::OnChangeOf(_))
    }
}
