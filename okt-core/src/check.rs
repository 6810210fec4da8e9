//! The rules of a graph: reports every mistake, each at its own place.

mod declared;
mod gates;
mod search;
mod ways;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::gate::GateId;
use crate::graph::{Graph, Kind, Mark, State, StateId};

/// A rule of a graph; its code starts the message.
///
/// OKT015 and most of OKT017 and OKT018 are about the syntax of a graph, so only the macro checks them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// OKT001: a target that is no state.
    UnknownTarget = 1,
    /// OKT002: no entry, or two.
    OneEntry = 2,
    /// OKT003: no leaf.
    NoLeaf = 3,
    /// OKT004: a state that cannot be reached from the entry.
    Unreachable = 4,
    /// OKT005: no edge out and not a leaf.
    DeadEnd = 5,
    /// OKT006: a leaf with an edge out.
    LeafLeads = 6,
    /// OKT007: a state that has no way out, so that deletion would hang.
    Trap = 7,
    /// OKT008: the same target twice from one state.
    SameTarget = 8,
    /// OKT009: a cycle of Next edges through passing states only.
    Livelock = 9,
    /// OKT010: a state that is its own target.
    SelfEdge = 10,
    /// OKT011: two triggers of one state with the same kind of cause.
    SameCause = 11,
    /// OKT012: no route to a state that a spec may ask for.
    NoRoute = 12,
    /// OKT013: a `no_route` that is false.
    FalseNoRoute = 13,
    /// OKT014: two equal wire names.
    SameName = 14,
    /// OKT015: a variant with fields, or a generic enum.
    Shape = 15,
    /// OKT016: a bad condition.
    Condition = 16,
    /// OKT017: a bad option.
    Option = 17,
    /// OKT018: attributes that exclude each other.
    Exclude = 18,
    /// OKT019: a pass graph with a cycle, or with something that only a lifecycle has.
    Pass = 19,
    /// OKT020: a name that cannot be generated or written.
    Name = 20,
    /// OKT021: a gate names the entry or a leaf.
    GatedEnd = 21,
    /// OKT022: an edge into a gate begins in a passing state.
    GatedWay = 22,
    /// OKT023: the way out leads into a gate, or `passes(deletion)` is false.
    GatedDeletion = 23,
    /// OKT024: a trigger leads into a gate, or `passes(triggers)` is false.
    GatedTrigger = 24,
    /// OKT025: nothing waits before a gate.
    IdleGate = 25,
    /// OKT026: two limits that can wait for each other.
    CrossedLimits = 26,
    /// OKT027: an object may stay in a limit for ever.
    EndlessStay = 27,
    /// OKT028: arguments or `on_abort` where they mean nothing.
    Arguments = 28,
}

impl Rule {
    /// Every rule, by code.
    pub const ALL: [Self; 28] = [
        Self::UnknownTarget,
        Self::OneEntry,
        Self::NoLeaf,
        Self::Unreachable,
        Self::DeadEnd,
        Self::LeafLeads,
        Self::Trap,
        Self::SameTarget,
        Self::Livelock,
        Self::SelfEdge,
        Self::SameCause,
        Self::NoRoute,
        Self::FalseNoRoute,
        Self::SameName,
        Self::Shape,
        Self::Condition,
        Self::Option,
        Self::Exclude,
        Self::Pass,
        Self::Name,
        Self::GatedEnd,
        Self::GatedWay,
        Self::GatedDeletion,
        Self::GatedTrigger,
        Self::IdleGate,
        Self::CrossedLimits,
        Self::EndlessStay,
        Self::Arguments,
    ];

    /// Returns the text of an error, in three lines: the mistake, how to mend it, and where to read more.
    pub fn text(self, message: &str, help: &str) -> String {
        format!("{self}: {message}\nhelp: {help}\nmore: `cargo okt explain {self}`")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OKT{:03}", *self as u8)
    }
}

/// The part of the declaration that a fault is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// The enum itself.
    Graph,
    /// A gate.
    Gate(GateId),
    /// A state that a gate names, by its position.
    GateState(GateId, usize),
    /// A state.
    State(StateId),
    /// A former name of a state, by its position.
    Was(StateId, usize),
    /// A mark of a state (e.g. `#[leaf]`).
    Mark(StateId, Mark),
    /// The target of a trigger, by its position.
    Trigger(StateId, usize),
    /// The cause of a trigger, by the trigger's position.
    Cause(StateId, usize),
    /// The target of a child edge, by its position.
    Child(StateId, usize),
    /// The type of a condition, by its position.
    Condition(StateId, usize),
    /// The reason of a condition, by its position.
    Reason(StateId, usize),
    /// A `no_route`, by its position.
    NoRoute(StateId, usize),
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The rule that is broken.
    pub rule: Rule,
    /// The place of the mistake.
    pub place: Place,
    /// What is wrong, without the code.
    pub message: String,
    /// How to mend it, as code where that is possible.
    pub help: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rule.text(&self.message, &self.help))
    }
}

/// Finds every mistake of a graph, in declaration order.
///
/// The check skips rules about reachability while a target is unknown. It also skips rules that another mistake makes
/// meaningless, so that each report is a mistake of its own.
/// It ignores the graph's [`routes`](Graph::routes).
///
/// ```
/// # use okt_core::{Graph, Kind, Mark, Marks, State, StateId, check::check, routes::Routes};
/// # const fn state(name: &'static str, marks: Marks, children: &'static [StateId]) -> State<'static> {
/// #     State { name, variant: name, doc: "", was: &[], marks, triggers: &[], children, conditions: &[], no_routes: &[] }
/// # }
/// let states = [
///     state("Start", Marks(0).with(Mark::Entry), &[StateId(1)]),
///     state("End", Marks(0), &[]),
/// ];
/// let graph = Graph { name: "App", doc: "", kind: Kind::Lifecycle, parts: &[], gates: &[], states: &states, routes: Routes::NONE };
/// let faults: Vec<String> = check(&graph).iter().map(ToString::to_string).collect();
/// assert_eq!(faults.len(), 1);
/// assert!(faults[0].starts_with("OKT003: "));
/// ```
pub fn check(graph: &Graph<'_>) -> Vec<Fault> {
    let mut faults = Faults {
        graph,
        found: Vec::new(),
    };
    faults.targets_are_states();
    faults.one_entry();
    faults.a_leaf();
    faults.leaves_end();
    faults.no_dead_ends();
    faults.no_self_edges();
    faults.targets_once();
    faults.causes_once();
    faults.names();
    faults.conditions();
    faults.options();
    faults.marks_agree();
    faults.no_routes_are_of_resting_states();
    faults.arguments();
    faults.gate_names();
    if graph.kind == Kind::Pass {
        faults.a_pass();
    }
    if graph
        .states
        .iter()
        .all(|state| state.targets().all(|to| graph.get(to).is_some()))
    {
        faults.all_reachable();
        if graph.kind == Kind::Lifecycle {
            faults.no_livelock();
            faults.ways_out();
            faults.routes();
            faults.gates();
        }
    }
    faults
        .found
        .sort_by_key(|fault| (fault.place.state(), fault.place, fault.rule));
    faults.found
}

impl Place {
    /// Returns the state that a place belongs to, or nothing for the graph itself.
    pub fn state(self) -> Option<StateId> {
        match self {
            Self::Graph | Self::Gate(_) | Self::GateState(..) => None,
            Self::State(id)
            | Self::Was(id, _)
            | Self::Mark(id, _)
            | Self::Trigger(id, _)
            | Self::Cause(id, _)
            | Self::Child(id, _)
            | Self::Condition(id, _)
            | Self::Reason(id, _)
            | Self::NoRoute(id, _) => Some(id),
        }
    }
}

struct Faults<'a, 'g> {
    graph: &'a Graph<'g>,
    found: Vec<Fault>,
}

impl Faults<'_, '_> {
    fn report(
        &mut self,
        rule: Rule,
        place: Place,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.found.push(Fault {
            rule,
            place,
            message: message.into(),
            help: help.into(),
        });
    }

    fn spell(&self, id: StateId) -> String {
        format!("`{}`", self.variant(id))
    }

    fn spell_way(&self, way: &[StateId]) -> String {
        let names: Vec<&str> = way.iter().map(|id| self.variant(*id)).collect();
        format!("`{}`", names.join(" → "))
    }

    /// Returns the names of states for an attribute (e.g. `Running, End`), the first few of many.
    fn list(&self, states: &[StateId]) -> String {
        let first = states.iter().take(SHOWN);
        let mut names: Vec<&str> = first.map(|id| self.variant(*id)).collect();
        if states.len() > SHOWN {
            names.push("..");
        }
        names.join(", ")
    }

    /// Returns the state that an edge from this one is most likely to lead to: a leaf, the next state, or the first.
    fn onward(&self, from: StateId) -> &str {
        let mut leaves = self.graph.iter().filter(|(_, state)| state.is(Mark::Leaf));
        let leaf = leaves.find(|(id, _)| *id != from).map(|(id, _)| id);
        let next = StateId::at(from.index() + 1);
        let next = self.graph.get(next).map_or(StateId::at(0), |_| next);
        self.variant(leaf.unwrap_or(next))
    }

    fn variant(&self, id: StateId) -> &str {
        self.graph.get(id).map_or("..", |state| state.variant)
    }
}

/// The most states that a message lists.
const SHOWN: usize = 8;

/// The marks of which a state has only one.
const EXCLUDE: [(Mark, Mark); 7] = [
    (Mark::Leaf, Mark::Entry),
    (Mark::Leaf, Mark::Rest),
    (Mark::Leaf, Mark::Visit),
    (Mark::Leaf, Mark::NoTransit),
    (Mark::Visit, Mark::Rest),
    (Mark::Visit, Mark::Entry),
    (Mark::NoTransit, Mark::Entry),
];

fn is_dead_end(state: &State<'_>) -> bool {
    !state.is(Mark::Leaf) && state.triggers.is_empty() && state.children.is_empty()
}
