//! What a lifecycle graph is: states, edges, and the walk that picks the next state.

use core::fmt;
use core::time::Duration;

use crate::routes::Routes;

/// A state of one graph: its position in the declaration.
///
/// ```
/// use okt_core::StateId;
/// assert_eq!(StateId(3).index(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateId(pub u16);

impl StateId {
    /// A name that the graph does not know: a misspelt target, or a stored state of another version.
    pub const UNKNOWN: Self = Self(u16::MAX);

    /// The position in [`Graph::states`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The state at a position.
    ///
    /// A graph has fewer than 65,535 states, so a position that does not fit is no state.
    pub fn at(index: usize) -> Self {
        u16::try_from(index).map_or(Self::UNKNOWN, Self)
    }
}

/// An event: a request to go somewhere, raised by a handler, an observation, a wish or a cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Go to this state.
    To(StateId),
    /// Go to the last child, wherever that is.
    Next,
}

/// What kind of life the graph describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An object walks it over many turns and stays in resting states.
    Lifecycle,
    /// The whole graph is walked within one reconciliation.
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
    /// No observation and no wish older than the arrival leads out.
    Hold = 4,
    /// There is no work and no handler.
    Idle = 8,
    /// The application is gone or finished.
    Leaf = 16,
    /// A spec may ask for this state to be gone through once.
    Visit = 32,
    /// No route leads through this state.
    NoTransit = 64,
}

/// The properties of a state.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks(pub u8);

impl Marks {
    /// Whether the mark is set.
    pub const fn has(self, mark: Mark) -> bool {
        self.0 & mark as u8 != 0
    }

    /// The same with one mark more.
    #[must_use]
    pub const fn with(self, mark: Mark) -> Self {
        Self(self.0 | mark as u8)
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Mark::{Entry, Hold, Idle, Leaf, NoTransit, Rest, Visit};
        f.debug_set()
            .entries(
                [Entry, Rest, Hold, Idle, Leaf, Visit, NoTransit]
                    .into_iter()
                    .filter(|mark| self.has(*mark)),
            )
            .finish()
    }
}

/// What raises a trigger beside its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Nothing: only a handler or an observation that names the target.
    Named,
    /// The time in the state.
    After(Duration),
    /// That many failed attempts of the state's action, or one that failed for good.
    OnError {
        /// Attempts, the first included; at least 1.
        attempts: u32,
    },
    /// The object is being deleted.
    OnDelete,
    /// The revision changed.
    OnChange,
}

/// A trigger edge: a debranching, tried before every child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// Where it leads.
    pub to: StateId,
    /// What raises it.
    pub cause: Cause,
}

/// The status of a condition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

impl ConditionStatus {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status a word on the wire stands for.
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

/// A claim that a wish for a state is refused from here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoute<'a> {
    /// The state that cannot be wished for.
    pub to: StateId,
    /// Why, for the user who wishes it.
    pub reason: &'a str,
}

/// One state and its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State<'a> {
    /// The wire name (e.g. `Running`).
    pub name: &'a str,
    /// The name in the code, where a message spells the state as its author did; mostly the wire name.
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
    /// Wishes that are refused from here.
    pub no_routes: &'a [NoRoute<'a>],
}

impl State<'_> {
    /// Whether the mark is set.
    pub const fn is(&self, mark: Mark) -> bool {
        self.marks.has(mark)
    }

    /// Whether the state's work ends by itself and the object then moves on.
    pub const fn is_passing(&self) -> bool {
        !self.is(Mark::Rest) && !self.is(Mark::Leaf)
    }

    /// Whether a route may lead through this state on the way to another.
    ///
    /// Never through a leaf, a holding state, a visit or a state marked `no_transit`.
    pub const fn is_transit(&self) -> bool {
        !(self.is(Mark::Leaf)
            || self.is(Mark::Hold)
            || self.is(Mark::NoTransit)
            || self.is(Mark::Visit))
    }

    /// The last child.
    pub fn next(&self) -> Option<StateId> {
        self.children.last().copied()
    }

    /// The trigger edge to a state, if there is one.
    pub fn trigger_to(&self, to: StateId) -> Option<&Trigger> {
        self.triggers.iter().find(|trigger| trigger.to == to)
    }

    /// Every target, triggers first, in declaration order; a target can come twice.
    pub fn targets(&self) -> impl Iterator<Item = StateId> + '_ {
        self.triggers
            .iter()
            .map(|trigger| trigger.to)
            .chain(self.children.iter().copied())
    }
}

/// A lifecycle graph, in declaration order throughout.
///
/// `#[lifecycle_graph]` writes one as a constant.
/// Whoever builds one in another way gives it to [`check`](crate::check::check) first: everything else
/// is total on any graph, but promises only hold for a graph that passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Graph<'a> {
    /// The name of the enum.
    pub name: &'a str,
    /// The doc comment of the enum; may be empty.
    pub doc: &'a str,
    /// A lifecycle or a pass.
    pub kind: Kind,
    /// The states.
    pub states: &'a [State<'a>],
    /// Where to go from where; [`Routes::NONE`] until computed.
    pub routes: Routes<'a>,
}

impl<'a> Graph<'a> {
    /// The state with this id, unless it is none of this graph.
    pub fn get(&self, id: StateId) -> Option<&'a State<'a>> {
        self.states.get(id.index())
    }

    /// Every state with its id.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (StateId, &'a State<'a>)> + use<'a> {
        self.states
            .iter()
            .enumerate()
            .map(|(index, state)| (StateId::at(index), state))
    }

    /// The state in which objects are created.
    pub fn entry(&self) -> Option<StateId> {
        self.iter()
            .find(|(_, state)| state.is(Mark::Entry))
            .map(|(id, _)| id)
    }

    /// The wire name of a state; empty for an id that is none.
    pub fn name_of(&self, id: StateId) -> &'a str {
        self.get(id).map_or("", |state| state.name)
    }

    /// The state with this wire name, or with this former one.
    pub fn named(&self, name: &str) -> Option<StateId> {
        self.iter()
            .find(|(_, state)| state.name == name)
            .or_else(|| self.iter().find(|(_, state)| state.was.contains(&name)))
            .map(|(id, _)| id)
    }

    /// The walk: edges in order, triggers before children; the first whose target is among the events wins.
    ///
    /// The order of the events is irrelevant.
    /// [`Event::Next`] matches the last child, and only when the walk gets there, so that an event
    /// that names an earlier edge wins over it.
    /// Events that name no edge of this state match nothing.
    ///
    /// ```
    /// # use okt_core::{Event::{Next, To}, Graph, StateId, Kind, Marks, State, routes::Routes};
    /// # const fn state(name: &'static str, children: &'static [StateId]) -> State<'static> {
    /// #     State { name, variant: name, doc: "", was: &[], marks: Marks(0), triggers: &[], children, conditions: &[], no_routes: &[] }
    /// # }
    /// let (running, servicing, stopping) = (StateId(0), StateId(1), StateId(2));
    /// let states = [
    ///     state("Running", &[StateId(1), StateId(2)]),
    ///     state("Servicing", &[StateId(0)]),
    ///     state("Stopping", &[]),
    /// ];
    /// let graph = Graph { name: "App", doc: "", kind: Kind::Lifecycle, states: &states, routes: Routes::NONE };
    /// assert_eq!(graph.next(running, &[Next]), Some(stopping));
    /// assert_eq!(graph.next(running, &[Next, To(servicing)]), Some(servicing));
    /// assert_eq!(graph.next(servicing, &[To(stopping)]), None);
    /// ```
    pub fn next(&self, state: StateId, events: &[Event]) -> Option<StateId> {
        let state = self.get(state)?;
        let named = |to: StateId| events.contains(&Event::To(to));
        state
            .targets()
            .find(|to| named(*to))
            // Next stands behind every edge but the last, so it is only asked when no name matched.
            .or_else(|| {
                events
                    .contains(&Event::Next)
                    .then(|| state.next())
                    .flatten()
            })
    }

    /// What the Next way leads through: the state itself, then from last child to last child.
    ///
    /// Ends at a state without children, or after as many states as the graph has (it circles).
    pub fn next_way(&self, from: StateId) -> impl Iterator<Item = StateId> + '_ {
        let mut left = self.states.len();
        core::iter::successors(self.get(from).map(|_| from), move |at| {
            left = left.checked_sub(1)?;
            if left == 0 {
                return None;
            }
            self.get(*at)?.next().filter(|to| self.get(*to).is_some())
        })
    }
}
