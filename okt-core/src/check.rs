//! The rules of a graph: every mistake it makes, each at its own place.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;

use crate::graph::{Cause, Graph, Kind, Mark, State, StateId};
use crate::names;
use crate::routes::{Paths, net, reached, ways_out, wishable};

/// A rule; its code heads the message.
///
/// OKT015 and most of OKT017 and OKT018 are about how a graph is spelled, so only the macro meets them.
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
    /// OKT012: no route to a state that a spec may wish for.
    NoRoute = 12,
    /// OKT013: a `no_route` that claims what is not so.
    FalseNoRoute = 13,
    /// OKT014: two wire names alike.
    SameName = 14,
    /// OKT015: a variant with fields, or a generic enum.
    Shape = 15,
    /// OKT016: a bad condition.
    Condition = 16,
    /// OKT017: a bad option.
    Option = 17,
    /// OKT018: attributes that exclude each other.
    Exclude = 18,
    /// OKT019: a pass graph with a cycle, or with what only a lifecycle has.
    Pass = 19,
    /// OKT020: a name that cannot be generated or written.
    Name = 20,
}

impl Rule {
    /// Every rule, by code.
    pub const ALL: [Self; 20] = [
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
    ];
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OKT{:03}", *self as u8)
    }
}

/// What in the declaration a fault is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// The enum itself.
    Graph,
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
    /// Where.
    pub place: Place,
    /// What is wrong and what to do, without the code.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// Finds every mistake of a graph, in declaration order.
///
/// Rules about reachability are skipped while a target is unknown, and rules that another mistake makes
/// meaningless are skipped with it, so that each report is a mistake of its own.
/// The graph's [`routes`](Graph::routes) are not looked at.
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
/// let graph = Graph { name: "App", doc: "", kind: Kind::Lifecycle, states: &states, routes: Routes::NONE };
/// let faults: Vec<String> = check(&graph).iter().map(ToString::to_string).collect();
/// assert_eq!(faults.len(), 2);
/// assert!(faults[0].starts_with("OKT003: "));
/// assert!(faults[1].starts_with("OKT005: "));
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
        }
    }
    faults
        .found
        .sort_by_key(|fault| (fault.place.state(), fault.place, fault.rule));
    faults.found
}

impl Place {
    /// The state a place belongs to; none for the graph itself.
    pub fn state(self) -> Option<StateId> {
        match self {
            Self::Graph => None,
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
    fn report(&mut self, rule: Rule, place: Place, message: impl Into<String>) {
        self.found.push(Fault {
            rule,
            place,
            message: message.into(),
        });
    }

    fn spell(&self, id: StateId) -> String {
        self.graph
            .get(id)
            .map_or_else(|| "?".to_string(), |state| format!("`{}`", state.variant))
    }

    fn spell_way(&self, way: &[StateId]) -> String {
        let names: Vec<String> = way
            .iter()
            .map(|id| {
                self.graph
                    .get(*id)
                    .map_or("?", |state| state.variant)
                    .to_string()
            })
            .collect();
        format!("`{}`", names.join(" > "))
    }

    /// OKT001. The macro lets rustc say this, with its "similar name" help.
    fn targets_are_states(&mut self) {
        let graph = self.graph;
        for (id, state) in graph.iter() {
            let unknown = |to: StateId| graph.get(to).is_none();
            let places = (state.triggers.iter().enumerate())
                .filter(|(_, trigger)| unknown(trigger.to))
                .map(|(index, _)| Place::Trigger(id, index))
                .chain(
                    (state.children.iter().enumerate())
                        .filter(|(_, to)| unknown(**to))
                        .map(|(index, _)| Place::Child(id, index)),
                )
                .chain(
                    (state.no_routes.iter().enumerate())
                        .filter(|(_, no_route)| unknown(no_route.to))
                        .map(|(index, _)| Place::NoRoute(id, index)),
                );
            for place in places {
                self.report(
                    Rule::UnknownTarget,
                    place,
                    format!("{} names a target that is no state", self.spell(id)),
                );
            }
        }
    }

    /// OKT002: an object is created in one place.
    fn one_entry(&mut self) {
        let graph = self.graph;
        let mut entries = graph.iter().filter(|(_, state)| state.is(Mark::Entry));
        let Some((first, _)) = entries.next() else {
            self.report(
                Rule::OneEntry,
                Place::Graph,
                "no entry; mark the state in which objects are created with `#[entry]`",
            );
            return;
        };
        for (id, _) in entries {
            self.report(
                Rule::OneEntry,
                Place::Mark(id, Mark::Entry),
                format!("a second entry, after {}; keep one", self.spell(first)),
            );
        }
    }

    /// OKT003: deletion ends in a leaf.
    fn a_leaf(&mut self) {
        if !self.graph.states.iter().any(|state| state.is(Mark::Leaf)) {
            self.report(
                Rule::NoLeaf,
                Place::Graph,
                "no leaf; mark the state in which the application is gone or finished with `#[leaf]`",
            );
        }
    }

    /// OKT006: out of a leaf leads only a new wish, by the entry.
    fn leaves_end(&mut self) {
        for (id, state) in self.graph.iter().filter(|(_, state)| state.is(Mark::Leaf)) {
            let places = (0..state.triggers.len())
                .map(|index| Place::Trigger(id, index))
                .chain((0..state.children.len()).map(|index| Place::Child(id, index)));
            for place in places {
                self.report(
                    Rule::LeafLeads,
                    place,
                    format!(
                        "the leaf {} has an edge out; remove the edge, or `#[leaf]`",
                        self.spell(id)
                    ),
                );
            }
        }
    }

    /// OKT005.
    fn no_dead_ends(&mut self) {
        for (id, state) in self.graph.iter() {
            if is_dead_end(state) {
                self.report(
                    Rule::DeadEnd,
                    Place::State(id),
                    format!(
                        "dead end: {} has no edge out and is not a leaf; add `#[child(..)]` or `#[leaf]`",
                        self.spell(id)
                    ),
                );
            }
        }
    }

    /// OKT010: a state is not left by staying; a resting state says `Stay`, another is retried.
    fn no_self_edges(&mut self) {
        for (id, state) in self.graph.iter() {
            let places = (state.triggers.iter().enumerate())
                .filter(|(_, trigger)| trigger.to == id)
                .map(|(index, _)| Place::Trigger(id, index))
                .chain(
                    (state.children.iter().enumerate())
                        .filter(|(_, to)| **to == id)
                        .map(|(index, _)| Place::Child(id, index)),
                );
            for place in places {
                self.report(
                    Rule::SelfEdge,
                    place,
                    format!(
                        "{} leads to itself; a resting state stays by `Stay`, any other by `Wait`",
                        self.spell(id)
                    ),
                );
            }
        }
    }

    /// OKT008: an event names a state, so one name must mean one edge.
    ///
    /// A trigger by cause beside a child is told apart by its cause.
    fn targets_once(&mut self) {
        for (id, state) in self.graph.iter() {
            for (index, trigger) in state.triggers.iter().enumerate() {
                if trigger.to == StateId::UNKNOWN {
                    continue;
                }
                if state.triggers[..index].iter().any(|t| t.to == trigger.to) {
                    self.report(
                        Rule::SameTarget,
                        Place::Trigger(id, index),
                        format!(
                            "{} has a trigger to {} already; remove one",
                            self.spell(id),
                            self.spell(trigger.to)
                        ),
                    );
                } else if trigger.cause == Cause::Named && state.children.contains(&trigger.to) {
                    self.report(
                        Rule::SameTarget,
                        Place::Trigger(id, index),
                        format!(
                            "{0} has {1} as a child too; give the trigger a cause (`after`, `on_error`, `on_delete` or `on_change`), or remove one",
                            self.spell(id),
                            self.spell(trigger.to)
                        ),
                    );
                }
            }
            for (index, to) in state.children.iter().enumerate() {
                if *to != StateId::UNKNOWN && state.children[..index].contains(to) {
                    self.report(
                        Rule::SameTarget,
                        Place::Child(id, index),
                        format!(
                            "{} has the child {} already; remove one",
                            self.spell(id),
                            self.spell(*to)
                        ),
                    );
                }
            }
        }
    }

    /// OKT011: the second of two would never be taken.
    fn causes_once(&mut self) {
        for (id, state) in self.graph.iter() {
            for (index, trigger) in state.triggers.iter().enumerate() {
                let earlier = state.triggers[..index].iter().find(|earlier| {
                    trigger.cause != Cause::Named
                        && core::mem::discriminant(&earlier.cause)
                            == core::mem::discriminant(&trigger.cause)
                });
                if let Some(earlier) = earlier {
                    self.report(
                        Rule::SameCause,
                        Place::Cause(id, index),
                        format!(
                            "the trigger to {} has this kind of cause already, so this one is never taken; remove one",
                            self.spell(earlier.to)
                        ),
                    );
                }
            }
        }
    }

    /// OKT014 and OKT020.
    fn names(&mut self) {
        let mut wire: BTreeMap<&str, StateId> = BTreeMap::new();
        let mut methods: BTreeMap<String, StateId> = BTreeMap::new();
        for (id, state) in self.graph.iter() {
            // A present name stands before every former one, whatever the order of declaration.
            if let Some(first) = wire.insert(state.name, id) {
                wire.insert(state.name, first);
                self.report(
                    Rule::SameName,
                    Place::State(id),
                    format!(
                        "the wire name `{}` is taken by {}; rename one",
                        state.name,
                        self.spell(first)
                    ),
                );
            }
            if !names::is_state(state.name) {
                self.report(
                    Rule::Name,
                    Place::State(id),
                    format!(
                        "the wire name `{}` cannot be written to a condition; use at most {} letters, digits and `_`, beginning with a letter",
                        state.name,
                        names::STATE_LIMIT
                    ),
                );
            }
            if matches!(state.variant, "Stay" | "Next" | "Wait") {
                self.report(
                    Rule::Name,
                    Place::State(id),
                    format!(
                        "a state cannot be called {}: the word is a handler's answer; rename it",
                        self.spell(id)
                    ),
                );
            }
            if state.is(Mark::Idle) {
                continue;
            }
            let method = names::snake(state.variant);
            if matches!(method.as_str(), "self" | "super" | "crate" | "") {
                self.report(
                    Rule::Name,
                    Place::State(id),
                    format!(
                        "the handler of {} would be called `{method}`, which Rust does not allow; rename it",
                        self.spell(id)
                    ),
                );
            } else if let Some(first) = methods.insert(method.clone(), id) {
                self.report(
                    Rule::Name,
                    Place::State(id),
                    format!(
                        "the handler of {} would be called `{method}` like that of {}; rename one",
                        self.spell(id),
                        self.spell(first)
                    ),
                );
            }
        }
        for (id, state) in self.graph.iter() {
            for (index, was) in state.was.iter().enumerate() {
                if let Some(first) = wire.insert(was, id) {
                    wire.insert(was, first);
                    self.report(
                        Rule::SameName,
                        Place::Was(id, index),
                        format!(
                            "the name `{was}` belongs to {}, and a stored object cannot be in two states; remove it",
                            self.spell(first)
                        ),
                    );
                } else if !names::is_state(was) {
                    self.report(
                        Rule::Name,
                        Place::Was(id, index),
                        format!("`{was}` was never the name of a state, because it cannot be written; remove it"),
                    );
                }
            }
        }
    }

    /// OKT016: what the API server would refuse, or the runtime writes itself.
    fn conditions(&mut self) {
        let mut types: Vec<&str> = Vec::new();
        for (id, state) in self.graph.iter() {
            for (index, condition) in state.conditions.iter().enumerate() {
                let at = Place::Condition(id, index);
                let name = condition.name;
                if !types.contains(&name) {
                    types.push(name);
                    if types.len() == crate::conditions::DECLARED_LIMIT + 1 {
                        self.report(
                            Rule::Condition,
                            at,
                            format!(
                                "more than {} condition types; an object holds 32, and others need room",
                                crate::conditions::DECLARED_LIMIT
                            ),
                        );
                    }
                }
                if !names::is_condition_type(name) {
                    self.report(
                        Rule::Condition,
                        at,
                        format!("`{name}` is no condition type; use an adjective or participle in PascalCase (e.g. `Available`)"),
                    );
                } else if names::RESERVED
                    .iter()
                    .any(|word| word.eq_ignore_ascii_case(name))
                {
                    self.report(
                        Rule::Condition,
                        at,
                        format!("the condition `{name}` is written by the operator itself; choose another type"),
                    );
                }
                if state.conditions[..index].iter().any(|c| c.name == name) {
                    self.report(
                        Rule::Condition,
                        at,
                        format!(
                            "{} declares the condition `{name}` twice; keep one",
                            self.spell(id)
                        ),
                    );
                }
                if !condition.reason.is_empty() && !names::is_reason(condition.reason) {
                    self.report(
                        Rule::Condition,
                        Place::Reason(id, index),
                        format!(
                            "`{}` is no reason; use one word in PascalCase (letters, digits, `_`)",
                            condition.reason
                        ),
                    );
                }
            }
        }
    }

    /// OKT017, as far as numbers go.
    fn options(&mut self) {
        for (id, state) in self.graph.iter() {
            for (index, trigger) in state.triggers.iter().enumerate() {
                let message = match trigger.cause {
                    Cause::After(time) if time.is_zero() => {
                        "a time of zero would leave the state at once; give it a unit and a number above 0 (e.g. `after = \"30m\"`)"
                    }
                    Cause::OnError { attempts: 0 } => {
                        "zero attempts would never try; use `attempts = 1` to leave at the first failure"
                    }
                    Cause::OnGiveUp if self.graph.kind == Kind::Lifecycle => {
                        "`on_give_up` is for passes: the work of a lifecycle fails or ends; use `on_error`"
                    }
                    Cause::After(_)
                    | Cause::OnError { .. }
                    | Cause::Named
                    | Cause::OnDelete
                    | Cause::OnChange
                    | Cause::OnGiveUp => continue,
                };
                self.report(Rule::Option, Place::Cause(id, index), message);
            }
        }
    }

    /// OKT018: a state has one role.
    fn marks_agree(&mut self) {
        use Mark::{Entry, Leaf, NoTransit, Rest, Visit};
        const EXCLUDE: [(Mark, Mark); 7] = [
            (Leaf, Entry),
            (Leaf, Rest),
            (Leaf, Visit),
            (Leaf, NoTransit),
            (Visit, Rest),
            (Visit, Entry),
            (NoTransit, Entry),
        ];
        for (id, state) in self.graph.iter() {
            for (one, other) in EXCLUDE {
                if state.is(one) && state.is(other) {
                    self.report(
                        Rule::Exclude,
                        Place::Mark(id, other),
                        format!(
                            "`#[{}]` and `#[{}]` exclude each other on {}; keep one",
                            word(other),
                            word(one),
                            self.spell(id)
                        ),
                    );
                }
            }
        }
    }

    /// OKT019: a pass ends within one reconciliation, so it cannot circle or stay.
    fn a_pass(&mut self) {
        let graph = self.graph;
        for (id, state) in graph.iter() {
            for mark in [Mark::Rest, Mark::Visit, Mark::NoTransit] {
                if state.is(mark) {
                    self.report(
                        Rule::Pass,
                        Place::Mark(id, mark),
                        format!(
                            "`#[{}]` is for lifecycles: a pass walks from the entry to a leaf at once",
                            word(mark)
                        ),
                    );
                }
            }
            for index in 0..state.was.len() {
                self.report(
                    Rule::Pass,
                    Place::Was(id, index),
                    "`#[was]` is for lifecycles: a pass stores no state",
                );
            }
            for index in 0..state.no_routes.len() {
                self.report(
                    Rule::Pass,
                    Place::NoRoute(id, index),
                    "`#[no_route]` is for lifecycles: nobody wishes for a state of a pass",
                );
            }
            for (index, trigger) in state.triggers.iter().enumerate() {
                let message = match trigger.cause {
                    Cause::Named
                    | Cause::OnDelete
                    | Cause::OnGiveUp
                    | Cause::OnError { attempts: 1 } => continue,
                    Cause::OnError { .. } => {
                        "a pass does not count attempts; write `on_error`: the step failed"
                    }
                    Cause::After(_) | Cause::OnChange => {
                        "a pass has no time and no changes; `on_delete`, `on_error` and `on_give_up` raise its triggers"
                    }
                };
                self.report(Rule::Pass, Place::Cause(id, index), message);
            }
        }
        let edges = net(graph, |_, state| state.targets().collect());
        for cycle in cycles(&edges) {
            self.report(
                Rule::Pass,
                Place::State(cycle[0]),
                format!(
                    "a pass cannot circle, {}; remove an edge",
                    self.spell_way(&cycle)
                ),
            );
        }
    }

    /// OKT004.
    fn all_reachable(&mut self) {
        let Some(entry) = self.graph.entry() else {
            return;
        };
        let reached = reached(self.graph, |_, state| state.targets().collect());
        for (id, _) in self.graph.iter() {
            if !reached[id.index()] {
                self.report(
                    Rule::Unreachable,
                    Place::State(id),
                    format!(
                        "{0} cannot be reached from the entry {1}; add a `#[child(..)]` or `#[trigger(..)]` that leads to it, or remove it",
                        self.spell(id),
                        self.spell(entry)
                    ),
                );
            }
        }
    }

    /// OKT009: nothing would ever stop an object there.
    fn no_livelock(&mut self) {
        let edges = net(self.graph, |_, state| {
            if state.is_passing() {
                state.next().into_iter().collect()
            } else {
                Vec::new()
            }
        });
        for cycle in cycles(&edges) {
            self.report(
                Rule::Livelock,
                Place::State(cycle[0]),
                format!(
                    "livelock: Next circles through passing states only, {}; mark one `#[rest]`, or change a last child",
                    self.spell_way(&cycle)
                ),
            );
        }
    }

    /// OKT007. Dead ends have their own report; what leads only there is no mistake of its own.
    fn ways_out(&mut self) {
        let graph = self.graph;
        if !graph.states.iter().any(|state| state.is(Mark::Leaf)) {
            return;
        }
        let states: Vec<State<'_>> = graph.states.iter().map(dead_end_as_leaf).collect();
        let mended = Graph {
            states: &states,
            ..*graph
        };
        let out = ways_out(&mended);
        let caught = |id: StateId| {
            out[id.index()].is_none() && mended.get(id).is_some_and(|state| !state.is(Mark::Leaf))
        };
        for (knot, upstream) in knots(&mended, caught) {
            let message = self.trap(&mended, &knot, &upstream);
            self.report(Rule::Trap, Place::State(knot[0]), message);
        }
        // Deletion takes an `on_delete` trigger where there is one; that must not lead back.
        let edges = net(&mended, |id, state| {
            let trigger = on_delete(state).map(|(_, to)| to);
            trigger.or(out[id.index()]).into_iter().collect()
        });
        for cycle in cycles(&edges) {
            let place = cycle
                .iter()
                .find_map(|id| Some(Place::Cause(*id, on_delete(graph.get(*id)?)?.0)))
                .unwrap_or(Place::State(cycle[0]));
            self.report(
                Rule::Trap,
                place,
                format!(
                    "trap: the way out circles, {}, so deletion would hang; let `on_delete` lead nearer to a leaf",
                    self.spell_way(&cycle)
                ),
            );
        }
    }

    /// One trap: the states that cannot be left for good, and those that only lead there.
    fn trap(&self, mended: &Graph<'_>, knot: &[StateId], upstream: &[StateId]) -> String {
        let names = |ids: &[StateId]| {
            let names: Vec<String> = ids.iter().map(|id| self.spell(*id)).collect();
            names.join(", ")
        };
        let mut message = format!(
            "trap: {} has no way out, so deletion would hang: no children lead from it to a leaf{}",
            self.spell(knot[0]),
            self.forbidden_transit(mended, knot[0])
        );
        if knot.len() > 1 {
            message.push_str(&format!(
                "; the same holds for {}, where it leads",
                names(&knot[1..])
            ));
        }
        if !upstream.is_empty() {
            message.push_str(&format!("; {} lead nowhere else", names(upstream)));
        }
        message
    }

    /// Which states would have to be led through, said after "no children lead from it to a leaf".
    fn forbidden_transit(&self, graph: &Graph<'_>, from: StateId) -> String {
        let leaves = graph.iter().filter(|(_, state)| state.is(Mark::Leaf));
        for (leaf, _) in leaves {
            if let Some(through) = through(graph, from, leaf) {
                return format!(
                    " but through {}, which no route may lead through; add a child nearer to a leaf",
                    self.spell(through)
                );
            }
        }
        "; add a `#[child(..)]`".into()
    }

    /// OKT013, the part that needs no routes.
    fn no_routes_are_of_resting_states(&mut self) {
        for (id, state) in self.graph.iter() {
            if !state.is(Mark::Rest) && self.graph.kind == Kind::Lifecycle {
                for index in 0..state.no_routes.len() {
                    self.report(
                        Rule::FalseNoRoute,
                        Place::NoRoute(id, index),
                        format!(
                            "`#[no_route]` on {}, which is not resting: a wish is routed from where the object comes to rest; remove it",
                            self.spell(id)
                        ),
                    );
                }
            }
        }
    }

    /// OKT012 and OKT013: every wish has a route or a reason, and no reason lies.
    fn routes(&mut self) {
        let graph = self.graph;
        if graph.entry().is_none() {
            return;
        }
        let wishable = wishable(graph);
        let reached = reached(graph, |_, state| state.targets().collect());
        let resting: Vec<(StateId, &State<'_>)> = graph
            .iter()
            .filter(|(_, state)| state.is(Mark::Rest) && !state.is(Mark::Leaf))
            .collect();
        let paths = Paths::of(graph);
        let mut missing: Vec<Vec<StateId>> = vec![Vec::new(); graph.states.len()];
        for (to, _) in graph.iter() {
            let hops = wishable[to.index()].then(|| paths.to(to));
            for (from, state) in &resting {
                let claims = (state.no_routes.iter().enumerate())
                    .filter(|(_, no_route)| no_route.to == to)
                    .map(|(index, _)| Place::NoRoute(*from, index));
                let mut claimed = false;
                for place in claims {
                    let lie = match &hops {
                        None => Some(format!(
                            "nobody may wish for {}: it is not reached along children, or neither resting, `#[visit]` nor a leaf; remove this",
                            self.spell(to)
                        )),
                        Some(_) if *from == to => Some(format!(
                            "{} needs no route to itself; remove this",
                            self.spell(to)
                        )),
                        Some(hops) => hops[from.index()].map(|_| {
                            format!(
                                "there is a route, {}; remove this",
                                self.spell_way(&way(&hops[..], *from, to))
                            )
                        }),
                    };
                    if claimed {
                        self.report(
                            Rule::FalseNoRoute,
                            place,
                            format!("{} is named twice; remove this", self.spell(to)),
                        );
                    } else if let Some(lie) = lie {
                        self.report(Rule::FalseNoRoute, place, lie);
                    }
                    claimed = true;
                }
                if let Some(hops) = &hops
                    && !claimed
                    && *from != to
                    && reached[from.index()]
                    && hops[from.index()].is_none()
                {
                    missing[from.index()].push(to);
                }
            }
        }
        for (from, _) in resting {
            let missing = &missing[from.index()];
            let state = &graph.states[from.index()];
            // A claim about an unknown state may be meant for one of these.
            let doubtful = state
                .no_routes
                .iter()
                .any(|no_route| graph.get(no_route.to).is_none());
            if missing.is_empty() || doubtful || is_dead_end(state) {
                continue;
            }
            let each: Vec<String> = missing
                .iter()
                .map(|to| match through(graph, from, *to) {
                    Some(through) => format!(
                        "{} (only through {}, which no route may lead through)",
                        self.spell(*to),
                        self.spell(through)
                    ),
                    None => self.spell(*to),
                })
                .collect();
            let names: Vec<&str> = missing
                .iter()
                .map(|to| graph.states[to.index()].variant)
                .collect();
            self.report(
                Rule::NoRoute,
                Place::State(from),
                format!(
                    "no route from {} to {}, which a spec may wish for; add children that lead there, or refuse the wish: `#[no_route({}, reason = \"..\")]`",
                    self.spell(from),
                    each.join(", "),
                    names.join(", ")
                ),
            );
        }
    }
}

fn is_dead_end(state: &State<'_>) -> bool {
    !state.is(Mark::Leaf) && state.triggers.is_empty() && state.children.is_empty()
}

fn dead_end_as_leaf<'g>(state: &State<'g>) -> State<'g> {
    let mut state = *state;
    if is_dead_end(&state) {
        state.marks = state.marks.with(Mark::Leaf);
    }
    state
}

/// The spelling of a mark as an attribute.
fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Entry => "entry",
        Mark::Rest => "rest",
        Mark::Hold => "rest(hold)",
        Mark::Idle => "idle",
        Mark::Leaf => "leaf",
        Mark::Visit => "visit",
        Mark::NoTransit => "no_transit",
    }
}

fn on_delete(state: &State<'_>) -> Option<(usize, StateId)> {
    state
        .triggers
        .iter()
        .enumerate()
        .find(|(_, trigger)| trigger.cause == Cause::OnDelete)
        .map(|(index, trigger)| (index, trigger.to))
}

/// The innermost traps among the caught states, each with the caught states outside that lead to it.
///
/// One missing edge catches every state that leads there; only where it is missing is a mistake.
fn knots(graph: &Graph<'_>, caught: impl Fn(StateId) -> bool) -> Vec<(Vec<StateId>, Vec<StateId>)> {
    let inside = net(graph, |id, state| {
        let children = state.children.iter().copied();
        children.filter(|to| caught(id) && caught(*to)).collect()
    });
    let reaches = |from: StateId, knot: &[StateId]| {
        let mut walk = Dfs::new(&inside, NodeIndex::new(from.index()));
        let mut reached = core::iter::from_fn(|| walk.next(&inside));
        reached.any(|node| knot.contains(&StateId::at(node.index())))
    };
    let mut found: Vec<(Vec<StateId>, Vec<StateId>)> = tarjan_scc(&inside)
        .into_iter()
        .map(|knot| {
            let mut knot: Vec<StateId> = (knot.iter())
                .map(|node| StateId::at(node.index()))
                .collect();
            knot.sort();
            knot
        })
        .filter(|knot| {
            let leaves = |id: &StateId| {
                let mut heads = inside.neighbors(NodeIndex::new(id.index()));
                heads.any(|head| !knot.contains(&StateId::at(head.index())))
            };
            caught(knot[0]) && !knot.iter().any(leaves)
        })
        .map(|knot| {
            let upstream = (graph.iter().map(|(id, _)| id))
                .filter(|id| caught(*id) && !knot.contains(id) && reaches(*id, &knot))
                .collect();
            (knot, upstream)
        })
        .collect();
    found.sort();
    found
}

/// The way the hops lead, both ends included.
fn way(hops: &[Option<StateId>], from: StateId, to: StateId) -> Vec<StateId> {
    let mut way = vec![from];
    let mut at = from;
    while let Some(hop) = hops[at.index()] {
        way.push(hop);
        if hop == to {
            break;
        }
        at = hop;
    }
    way
}

/// The first state that a way would have to lead through although no route may; none where there is no way at all.
fn through(graph: &Graph<'_>, from: StateId, to: StateId) -> Option<StateId> {
    let hops = Paths::of(graph).to_through_anything(to);
    let way = way(&hops, from, to);
    let inner = way.get(1..way.len().saturating_sub(1))?;
    inner
        .iter()
        .find(|id| graph.get(**id).is_some_and(|state| !state.is_transit()))
        .copied()
}

/// The cycles of a graph, one per knot, each from its first state back to it, in declaration order.
fn cycles(net: &DiGraph<(), ()>) -> Vec<Vec<StateId>> {
    let mut found: Vec<Vec<StateId>> = tarjan_scc(net)
        .into_iter()
        .filter(|knot| knot.len() > 1)
        .filter_map(|knot| {
            let start = *knot.iter().min()?;
            Some(cycle(net, &knot, start))
        })
        .collect();
    found.sort();
    found
}

/// A shortest cycle through `start` within its knot.
fn cycle(net: &DiGraph<(), ()>, knot: &[NodeIndex], start: NodeIndex) -> Vec<StateId> {
    let mut came_from: BTreeMap<NodeIndex, NodeIndex> = BTreeMap::new();
    let mut ring = vec![start];
    while !ring.is_empty() {
        let mut further = Vec::new();
        for at in ring {
            // petgraph lists the newest edge first; declaration order is the other way round.
            let mut heads: Vec<NodeIndex> = net.neighbors(at).collect();
            heads.reverse();
            for head in heads {
                if head == start {
                    let mut way = vec![start, at];
                    while let Some(previous) = came_from.get(way.last().unwrap_or(&start)) {
                        way.push(*previous);
                    }
                    way.reverse();
                    return way
                        .into_iter()
                        .map(|node| StateId::at(node.index()))
                        .collect();
                }
                if knot.contains(&head) && !came_from.contains_key(&head) {
                    came_from.insert(head, at);
                    further.push(head);
                }
            }
        }
        ring = further;
    }
    vec![StateId::at(start.index())]
}
