//! Gates: conditions on when an object may enter some states from outside of them.

use core::fmt;
use core::time::Duration;

use crate::state::StateId;

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
    /// The agreement of a person to the planned move.
    Approval,
    /// A place among as many objects as may be in the states at a time.
    Limit,
}

impl GateKind {
    /// Returns the word of the attribute.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Window { .. } => "window",
            Self::Approval => "approval",
            Self::Limit => "limit",
        }
    }
}

/// A planned move, as a person approves it: another goal, request, revision, release or transition makes it another plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Plan(pub u32);

/// A move, as far as its plan depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedMove<'a> {
    /// A hash of the uid of the object.
    pub object: u64,
    /// The number of its last transition.
    pub transition: u64,
    /// The state that it goes to.
    pub to: &'a str,
    /// Why, on the wire.
    pub why: &'a str,
    /// The state that it is to reach, if a desired state, a visit or a request leads it.
    pub goal: &'a str,
    /// The request that the move begins, if it begins one.
    pub request: u64,
    /// The revision.
    pub revision: u64,
    /// A hash of the declared resources that the move may change.
    pub resources: u64,
}

impl Plan {
    /// Returns the plan of a move.
    pub fn of(planned: &PlannedMove<'_>) -> Self {
        let numbers = [
            planned.object,
            planned.transition,
            planned.request,
            planned.revision,
            planned.resources,
        ];
        let numbers = numbers.into_iter().flat_map(u64::to_le_bytes);
        let texts = [planned.to, planned.why, planned.goal];
        let texts = texts.iter().flat_map(|text| text.bytes().chain([0]));
        // FNV-1a, which is the same in every process.
        let hash = numbers
            .chain(texts)
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
        let folded = hash ^ (hash >> 32);
        let [a, b, c, d, ..] = folded.to_le_bytes();
        Self(u32::from_le_bytes([a, b, c, d]))
    }

    /// Reads the eight digits of a plan.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plan = text.len() == 8 && text.bytes().all(|it| it.is_ascii_hexdigit());
        u32::from_str_radix(text, 16)
            .ok()
            .filter(|_| is_plan)
            .map(Self)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
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
    /// Returns the position in [`Graph::gates`](crate::Graph::gates).
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

    /// Returns the set without a gate.
    #[must_use]
    pub fn without(self, gate: GateId) -> Self {
        Self(self.0 & !Self::NONE.with(gate).0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
