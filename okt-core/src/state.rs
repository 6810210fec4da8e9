//! The states of a graph: names, marks and edges, as one literal of generated code.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// A state of one graph: its position in the declaration.
///
/// ```
/// use okt_core::StateId;
/// assert_eq!(StateId(3).index(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateId(pub u16);

impl StateId {
    /// A name that the graph does not have: a misspelt target, or a stored state of another version.
    pub const UNKNOWN: Self = Self(u16::MAX);

    /// Returns the position in [`Graph::states`](crate::Graph::states).
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the state at a position.
    ///
    /// A graph has fewer than 65,535 states, so a position that does not fit gives [`UNKNOWN`](Self::UNKNOWN).
    pub fn at(index: usize) -> Self {
        u16::try_from(index).map_or(Self::UNKNOWN, Self)
    }
}

/// An event: a request to go to a state, raised by a handler, an observation, a desired state or a cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Go to this state.
    To(StateId),
    /// Go to the last child, wherever that is.
    Next,
}

/// The kind of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An object moves through the graph over many reconciliations and stays in resting states.
    Lifecycle,
    /// One reconciliation runs through the whole graph.
    Pass,
}

/// One property of a state (e.g. `#[rest(hold)]` sets [`Mark::Rest`] and [`Mark::Hold`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Mark {
    /// Objects are created here.
    Entry = 1,
    /// An object may stay here.
    Rest = 2,
    /// No observation leads out, and no desired state or visit that is older than the arrival.
    Hold = 4,
    /// The state has no work and no handler.
    Idle = 8,
    /// The application is gone or finished.
    Leaf = 16,
    /// A spec may ask for a visit to this state.
    Visit = 32,
    /// No route leads through this state.
    NoTransit = 64,
    /// The visit has arguments: only a request leads here.
    Args = 128,
}

/// The properties of a state.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks(pub u8);

impl Marks {
    /// Returns whether the mark is set.
    pub const fn has(self, mark: Mark) -> bool {
        self.0 & mark as u8 != 0
    }

    /// Returns the marks with one more mark set.
    #[must_use]
    pub const fn with(self, mark: Mark) -> Self {
        Self(self.0 | mark as u8)
    }

    /// Returns the marks with one mark not set.
    #[must_use]
    pub const fn without(self, mark: Mark) -> Self {
        Self(self.0 & !(mark as u8))
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Mark::{Args, Entry, Hold, Idle, Leaf, NoTransit, Rest, Visit};
        f.debug_set()
            .entries(
                [Entry, Rest, Hold, Idle, Leaf, Visit, NoTransit, Args]
                    .into_iter()
                    .filter(|mark| self.has(*mark)),
            )
            .finish()
    }
}

/// A set of the parts of a spec that a graph names: bit `n` is the part [`Graph::parts`](crate::Graph::parts)`[n]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Parts(pub u32);

impl Parts {
    /// No part.
    pub const NONE: Self = Self(0);
    /// Every part.
    pub const ALL: Self = Self(u32::MAX);
    /// The most parts that a graph can name.
    pub const LIMIT: usize = 32;

    /// Returns whether the set has a part.
    pub fn has(self, index: usize) -> bool {
        u32::try_from(index)
            .ok()
            .and_then(|index| self.0.checked_shr(index))
            .is_some_and(|rest| rest & 1 == 1)
    }

    /// Returns the set with one more part; a part above the limit is not added.
    #[must_use]
    pub fn with(self, index: usize) -> Self {
        let bit = u32::try_from(index)
            .ok()
            .and_then(|it| 1_u32.checked_shl(it));
        Self(self.0 | bit.unwrap_or(0))
    }

    /// Returns the parts of either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the parts that both sets have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the parts that the other set does not have.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the names of the parts, of those that a graph names.
    pub fn names<'a>(self, parts: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let named = parts.iter().enumerate();
        named.filter_map(move |(index, name)| self.has(index).then_some(*name))
    }

    /// Returns the names of the parts as text (e.g. `version, disk.size`), of those that a graph names.
    pub fn text(self, parts: &[&str]) -> String {
        self.names(parts).collect::<Vec<_>>().join(", ")
    }
}

/// The cause that raises a trigger, in addition to its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// No cause: only a handler or an observation that names the target raises the trigger.
    Named,
    /// The object has been in the state for this time.
    After(Duration),
    /// The object has been for this time in states that have this cause with the same time and target: one deadline
    /// over several states.
    Deadline(Duration),
    /// This many attempts of the state's action failed, or one failed permanently.
    OnError {
        /// Attempts, the first included; at least 1.
        attempts: u32,
    },
    /// The object is being deleted.
    OnDelete,
    /// The revision changed.
    OnChange,
    /// One of these parts of the spec changed.
    OnChangeOf(Parts),
    /// A step of the pass gave up, or failed permanently.
    OnGiveUp,
    /// The request whose work the state does was deleted.
    OnAbort,
}

impl Cause {
    /// Returns whether a change of the spec, or of what is declared, raises it.
    pub const fn is_change(&self) -> bool {
        matches!(self, Self::OnChange | Self::OnChangeOf(_))
    }
}

/// A trigger edge: a debranching, checked before every child.
///
/// An edge with several causes is one trigger for each of them, with the same target; the cause that applies first
/// raises it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// The target.
    pub to: StateId,
    /// The cause that raises the trigger.
    pub cause: Cause,
}

/// The status of a condition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known whether the condition holds.
    Unknown,
}

impl ConditionStatus {
    /// Returns the word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Returns the status for a word on the wire.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "True" => Some(Self::True),
            "False" => Some(Self::False),
            "Unknown" => Some(Self::Unknown),
            _ => None,
        }
    }
}

/// A condition that holds while an object is in the state that declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declared<'a> {
    /// The type (e.g. `Available`).
    pub name: &'a str,
    /// The status in this state.
    pub status: ConditionStatus,
    /// The reason; empty means the state's name.
    pub reason: &'a str,
    /// The message; may be empty.
    pub message: &'a str,
}

/// A claim that no route leads from this state to another, so that a spec cannot ask for that one here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoute<'a> {
    /// The state that a spec cannot ask for.
    pub to: StateId,
    /// The reason, for the user who asks for the state.
    pub reason: &'a str,
}

/// One state and its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State<'a> {
    /// The wire name (e.g. `Running`).
    pub name: &'a str,
    /// The name in your code, as messages about the graph spell it; usually the wire name.
    pub variant: &'a str,
    /// The doc comment; may be empty.
    pub doc: &'a str,
    /// Former wire names.
    pub was: &'a [&'a str],
    /// Entry, rest, leaf and so on.
    pub marks: Marks,
    /// Trigger edges in declaration order.
    pub triggers: &'a [Trigger],
    /// Child edges in declaration order; the last is Next.
    pub children: &'a [StateId],
    /// Conditions of this state.
    pub conditions: &'a [Declared<'a>],
    /// The desired states that are refused here.
    pub no_routes: &'a [NoRoute<'a>],
}

impl State<'_> {
    /// Returns whether the mark is set.
    pub const fn is(&self, mark: Mark) -> bool {
        self.marks.has(mark)
    }

    /// Returns whether the state's work ends by itself and the object then moves on.
    pub const fn is_passing(&self) -> bool {
        !self.is(Mark::Rest) && !self.is(Mark::Leaf)
    }

    /// Returns whether a route may lead through this state on the way to another.
    ///
    /// No route leads through a leaf, a holding state, a visit or a state marked `no_transit`.
    pub const fn is_transit(&self) -> bool {
        !(self.is(Mark::Leaf)
            || self.is(Mark::Hold)
            || self.is(Mark::NoTransit)
            || self.is(Mark::Visit))
    }

    /// Returns the last child.
    pub fn next(&self) -> Option<StateId> {
        self.children.last().copied()
    }

    /// Returns the trigger edge to a state, if there is one.
    pub fn trigger_to(&self, to: StateId) -> Option<&Trigger> {
        self.triggers.iter().find(|trigger| trigger.to == to)
    }

    /// Returns the deadline that the state is under together with other states: where it leads, and its time.
    pub fn deadline(&self) -> Option<(StateId, Duration)> {
        self.triggers
            .iter()
            .find_map(|trigger| match trigger.cause {
                Cause::Deadline(time) => Some((trigger.to, time)),
                Cause::Named
                | Cause::After(_)
                | Cause::OnError { .. }
                | Cause::OnDelete
                | Cause::OnChange
                | Cause::OnChangeOf(_)
                | Cause::OnGiveUp
                | Cause::OnAbort => None,
            })
    }

    /// Returns every target, triggers first, in declaration order; a target can occur twice.
    pub fn targets(&self) -> impl Iterator<Item = StateId> + '_ {
        self.triggers
            .iter()
            .map(|trigger| trigger.to)
            .chain(self.children.iter().copied())
    }
}
