//! The rules about single declarations: edges, names, conditions, options, marks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::search::cycles;
use super::{EXCLUDE, Faults, Place, Rule, is_dead_end};
use crate::conditions::DECLARED_LIMIT;
use crate::graph::{Cause, Kind, Mark, Parts, State, StateId, Trigger};
use crate::names;
use crate::routes::net;

impl<'g> Faults<'_, 'g> {
    /// OKT001. The macro lets rustc report this, with its "similar name" help.
    pub(super) fn targets_are_states(&mut self) {
        let graph = self.graph;
        for (id, state) in graph.iter() {
            let is_unknown = |to: StateId| graph.get(to).is_none();
            let mut places = edges_to(id, state, is_unknown);
            let no_routes = state.no_routes.iter().enumerate();
            let unknown = no_routes.filter(|(_, no_route)| is_unknown(no_route.to));
            places.extend(unknown.map(|(index, _)| Place::NoRoute(id, index)));
            let message = format!("{} names a target that is no state", self.spell(id));
            self.report_each(
                Rule::UnknownTarget,
                places,
                &message,
                "write the name of a variant",
            );
        }
    }

    /// OKT002: every object is created in the same state.
    pub(super) fn one_entry(&mut self) {
        let graph = self.graph;
        let mut entries = graph.iter().filter(|(_, state)| state.is(Mark::Entry));
        let Some((first, _)) = entries.next() else {
            self.report(
                Rule::OneEntry,
                Place::Graph,
                "no entry: no state is marked as the one in which objects are created",
                format!("write `#[entry]` above `{}`", self.likely_entry()),
            );
            return;
        };
        for (id, _) in entries {
            self.report(
                Rule::OneEntry,
                Place::Mark(id, Mark::Entry),
                format!("a second entry, after {}", self.spell(first)),
                "remove this `#[entry]`, or the other",
            );
        }
    }

    /// OKT003: deletion ends in a leaf.
    pub(super) fn a_leaf(&mut self) {
        if !self.graph.states.iter().any(|state| state.is(Mark::Leaf)) {
            self.report(
                Rule::NoLeaf,
                Place::Graph,
                "no leaf: no state is marked as the one in which the application is gone or finished",
                match self.likely_leaf() {
                    Some(id) => format!("write `#[leaf]` above {}", self.spell(id)),
                    None => "add a state for the end, e.g. `#[leaf] Gone`, and `#[child(Gone)]` to the states that lead there".into(),
                },
            );
        }
    }

    /// OKT006: only a new desired state leads out of a leaf, through the entry.
    pub(super) fn leaves_end(&mut self) {
        for (id, state) in self.graph.iter().filter(|(_, state)| state.is(Mark::Leaf)) {
            let places = edges_to(id, state, |_| true);
            let message = format!("the leaf {} has an edge out", self.spell(id));
            self.report_each(
                Rule::LeafLeads,
                places,
                &message,
                "remove the edge, or `#[leaf]`",
            );
        }
    }

    /// OKT005.
    pub(super) fn no_dead_ends(&mut self) {
        // Without a leaf, that is the mistake.
        let leaf = self.likely_leaf();
        for (id, state) in self.graph.iter() {
            if is_dead_end(state) && leaf != Some(id) {
                self.report(
                    Rule::DeadEnd,
                    Place::State(id),
                    format!(
                        "dead end: {} has no edge out and is not a leaf",
                        self.spell(id)
                    ),
                    format!(
                        "write `#[child({})]` above it, or `#[leaf]`{} if the lifecycle ends here",
                        self.onward(id),
                        if state.is(Mark::Rest) {
                            " instead of `#[rest]`"
                        } else {
                            ""
                        }
                    ),
                );
            }
        }
    }

    /// OKT010: staying is no transition; a resting state answers `Stay`, any other `Wait`.
    pub(super) fn no_self_edges(&mut self) {
        for (id, state) in self.graph.iter() {
            let help = if state.is(Mark::Rest) {
                "remove the edge: the handler answers `Stay` to stay"
            } else {
                "remove the edge: the handler answers `Wait(time)` to be called again"
            };
            let places = edges_to(id, state, |to| to == id);
            let message = format!("{} leads to itself", self.spell(id));
            self.report_each(Rule::SelfEdge, places, &message, help);
        }
    }

    fn report_each(&mut self, rule: Rule, places: Vec<Place>, message: &str, help: &str) {
        for place in places {
            self.report(rule, place, message, help);
        }
    }

    /// OKT008: an event names a state, so one name must mean one edge.
    ///
    /// A trigger with a cause may have the same target as a child: the cause distinguishes them.
    pub(super) fn targets_once(&mut self) {
        for (id, state) in self.graph.iter() {
            for (index, trigger) in state.triggers.iter().enumerate() {
                if trigger.to == StateId::UNKNOWN {
                    continue;
                }
                // Each cause of an edge is a trigger; OKT011 compares the causes.
                let is_named = |trigger: &Trigger| trigger.cause == Cause::Named;
                let is_another = |earlier: &&Trigger| {
                    earlier.to == trigger.to && (is_named(earlier) || is_named(trigger))
                };
                if let Some(earlier) = state.triggers[..index].iter().find(is_another) {
                    let fix = if is_named(earlier) && is_named(trigger) {
                        "remove one"
                    } else {
                        "remove the one without a cause: a trigger with a cause has a name too"
                    };
                    self.report(
                        Rule::SameTarget,
                        Place::Trigger(id, index),
                        format!(
                            "{} has a trigger to {} already",
                            self.spell(id),
                            self.spell(trigger.to)
                        ),
                        fix,
                    );
                } else if trigger.cause == Cause::Named && state.children.contains(&trigger.to) {
                    self.report(
                        Rule::SameTarget,
                        Place::Trigger(id, index),
                        format!(
                            "{} has {} as a child too",
                            self.spell(id),
                            self.spell(trigger.to)
                        ),
                        format!(
                            "give the trigger a cause, e.g. `#[trigger({}, on_error)]`, or remove one",
                            self.variant(trigger.to)
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
                            "{} has the child {} already",
                            self.spell(id),
                            self.spell(*to)
                        ),
                        "remove one",
                    );
                }
            }
        }
    }

    /// OKT011: the second of two triggers with the same cause would never be taken.
    pub(super) fn causes_once(&mut self) {
        for (id, state) in self.graph.iter() {
            for (index, trigger) in state.triggers.iter().enumerate() {
                let earlier = &state.triggers[..index];
                let earlier = if let Cause::OnChangeOf(parts) = trigger.cause {
                    raised_before(earlier, parts)
                } else {
                    earlier.iter().find(|earlier| {
                        trigger.cause != Cause::Named
                            && core::mem::discriminant(&earlier.cause)
                                == core::mem::discriminant(&trigger.cause)
                    })
                };
                if let Some(earlier) = earlier {
                    self.report(
                        Rule::SameCause,
                        Place::Cause(id, index),
                        format!(
                            "a second trigger with this kind of cause, after that to {}",
                            self.spell(earlier.to)
                        ),
                        "keep one; to escalate, declare the second one on the state that the first leads to",
                    );
                }
            }
        }
    }

    /// OKT014 and OKT020.
    pub(super) fn names(&mut self) {
        let mut wire: BTreeMap<&str, StateId> = BTreeMap::new();
        for (id, state) in self.graph.iter() {
            if let Some(first) = wire.insert(state.name, id) {
                wire.insert(state.name, first);
                self.report(
                    Rule::SameName,
                    Place::State(id),
                    format!(
                        "the wire name `{}` is taken by {}",
                        state.name,
                        self.spell(first)
                    ),
                    "rename one, e.g. with `#[serde(rename = \"..\")]`",
                );
            }
            if !names::is_state(state.name) {
                self.report(
                    Rule::Name,
                    Place::State(id),
                    format!(
                        "the wire name `{}` cannot be the reason of a condition",
                        state.name
                    ),
                    format!(
                        "use at most {} ASCII letters, digits and `_`, beginning with a letter; `#[serde(rename = \"..\")]` gives the state another wire name",
                        names::STATE_LIMIT
                    ),
                );
            }
        }
        self.former_names(wire);
        self.handler_names();
    }

    /// The part of OKT020 about the names of handlers.
    fn handler_names(&mut self) {
        let mut methods: BTreeMap<String, StateId> = BTreeMap::new();
        for (id, state) in self.graph.iter() {
            let rename = format!(
                "rename it; `#[serde(rename = \"{}\")]` keeps the wire name",
                state.name
            );
            if matches!(state.variant, "Stay" | "Next" | "Wait") {
                self.report(
                    Rule::Name,
                    Place::State(id),
                    format!(
                        "a state cannot be called {}: the word is a handler's answer",
                        self.spell(id)
                    ),
                    rename.as_str(),
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
                        "the handler of {} would be called `{method}`, which Rust does not allow",
                        self.spell(id)
                    ),
                    rename,
                );
            } else if let Some(first) = methods.insert(method.clone(), id) {
                self.report(
                    Rule::Name,
                    Place::State(id),
                    format!(
                        "the handler of {} would be called `{method}` like that of {}",
                        self.spell(id),
                        self.spell(first)
                    ),
                    "rename one; `#[serde(rename = \"..\")]` keeps its wire name",
                );
            }
        }
    }

    /// The part of OKT014 and OKT020 about former names; a current name takes precedence over every former one.
    fn former_names(&mut self, mut wire: BTreeMap<&'g str, StateId>) {
        for (id, state) in self.graph.iter() {
            for (index, was) in state.was.iter().enumerate() {
                if let Some(first) = wire.insert(was, id) {
                    wire.insert(was, first);
                    self.report(
                        Rule::SameName,
                        Place::Was(id, index),
                        if first == id {
                            format!("`{was}` is the name of this state already")
                        } else {
                            format!(
                                "the name `{was}` belongs to {}, and a stored object cannot be in two states",
                                self.spell(first)
                            )
                        },
                        "remove it",
                    );
                } else if !names::is_state(was) {
                    self.report(
                        Rule::Name,
                        Place::Was(id, index),
                        format!(
                            "`{was}` is no valid name of a state, so no object is stored under it"
                        ),
                        "remove it",
                    );
                }
            }
        }
    }

    /// OKT016: conditions that the API server would refuse, or that the runtime writes itself.
    pub(super) fn conditions(&mut self) {
        let mut types: Vec<&str> = Vec::new();
        for (id, state) in self.graph.iter() {
            for (index, condition) in state.conditions.iter().enumerate() {
                let at = Place::Condition(id, index);
                let name = condition.name;
                if !types.contains(&name) {
                    types.push(name);
                    if types.len() == DECLARED_LIMIT + 1 {
                        self.report(
                            Rule::Condition,
                            at,
                            format!("more than {DECLARED_LIMIT} condition types"),
                            "declare fewer: an object holds 32, and others need room",
                        );
                    }
                }
                if !names::is_condition_type(name) {
                    self.report(
                        Rule::Condition,
                        at,
                        format!("`{name}` is no condition type"),
                        "use an adjective or participle in PascalCase, e.g. `#[condition(Available)]`",
                    );
                } else if names::RESERVED
                    .iter()
                    .any(|word| word.eq_ignore_ascii_case(name))
                {
                    self.report(
                        Rule::Condition,
                        at,
                        format!("the condition `{name}` is written by the operator itself"),
                        "choose another type, e.g. `#[condition(Available)]`",
                    );
                }
                if state.conditions[..index].iter().any(|c| c.name == name) {
                    self.report(
                        Rule::Condition,
                        at,
                        format!("{} declares the condition `{name}` twice", self.spell(id)),
                        "keep one",
                    );
                }
                if !condition.reason.is_empty() && !names::is_reason(condition.reason) {
                    self.report(
                        Rule::Condition,
                        Place::Reason(id, index),
                        format!("`{}` is no reason", condition.reason),
                        "use one word in PascalCase (letters, digits, `_`), e.g. `reason = \"DiskFull\"`",
                    );
                }
            }
        }
    }

    /// OKT017, the part about causes.
    pub(super) fn options(&mut self) {
        for (id, state) in self.graph.iter() {
            for (index, trigger) in state.triggers.iter().enumerate() {
                const TIME: &str = "give it a number above 0 and a unit, e.g. `after = \"30m\"`";
                let (message, help) = match trigger.cause {
                    Cause::After(time) if time.is_zero() => {
                        ("a time of zero would leave the state at once", TIME)
                    }
                    Cause::Deadline(time) if time.is_zero() => {
                        ("a time of zero would leave the states at once", TIME)
                    }
                    Cause::OnError { attempts: 0 } => (
                        "the number of attempts must be at least 1",
                        "write `on_error` to leave at the first failure",
                    ),
                    Cause::OnGiveUp if self.graph.kind == Kind::Lifecycle => (
                        "`on_give_up` is for passes: the work of a lifecycle fails or ends",
                        "write `on_error`",
                    ),
                    Cause::After(_)
                    | Cause::Deadline(_)
                    | Cause::OnError { .. }
                    | Cause::Named
                    | Cause::OnDelete
                    | Cause::OnChange
                    | Cause::OnChangeOf(_)
                    | Cause::OnGiveUp
                    | Cause::OnAbort => continue,
                };
                self.report(Rule::Option, Place::Cause(id, index), message, help);
            }
        }
    }

    /// OKT018: a state has one role.
    pub(super) fn marks_agree(&mut self) {
        for (id, state) in self.graph.iter() {
            for (one, other) in EXCLUDE {
                if state.is(one) && state.is(other) {
                    self.report(
                        Rule::Exclude,
                        Place::Mark(id, other),
                        format!(
                            "`#[{}]` and `#[{}]` exclude each other on {}",
                            word(other),
                            word(one),
                            self.spell(id)
                        ),
                        "keep one",
                    );
                }
            }
        }
    }

    /// OKT028: only a request leads to a visit with arguments, and only its deletion raises `on_abort`.
    pub(super) fn arguments(&mut self) {
        let graph = self.graph;
        let has_args = |id: StateId| graph.get(id).is_some_and(|to| to.is(Mark::Args));
        for (id, state) in graph.iter() {
            for (index, trigger) in state.triggers.iter().enumerate() {
                if has_args(trigger.to) {
                    self.report(
                        Rule::Arguments,
                        Place::Trigger(id, index),
                        format!(
                            "a trigger leads into {}, whose work has arguments: only a request gives them",
                            self.spell(trigger.to)
                        ),
                        format!("write `#[child({})]`, or let the trigger lead elsewhere", self.variant(trigger.to)),
                    );
                }
                if trigger.cause == Cause::OnAbort
                    && !state.is(Mark::Args)
                    && graph.kind == Kind::Lifecycle
                {
                    self.report(
                        Rule::Arguments,
                        Place::Cause(id, index),
                        format!(
                            "{} serves no request, so none can be aborted",
                            self.spell(id)
                        ),
                        "write it on a state with `#[visit(args = ..)]`",
                    );
                }
            }
            let last = state.children.len().saturating_sub(1);
            if state.next().is_some_and(has_args) {
                self.report(
                    Rule::Arguments,
                    Place::Child(id, last),
                    format!(
                        "the last child of {} has arguments, and `Next` would lead there without a request",
                        self.spell(id)
                    ),
                    "put another child last",
                );
            }
        }
    }

    /// OKT019: a pass ends within one reconciliation, so it has no cycle and no state to stay in.
    pub(super) fn a_pass(&mut self) {
        let graph = self.graph;
        for (id, state) in graph.iter() {
            for mark in [Mark::Rest, Mark::Visit, Mark::NoTransit] {
                if state.is(mark) {
                    self.report(
                        Rule::Pass,
                        Place::Mark(id, mark),
                        format!(
                            "`#[{}]` is for lifecycles: a pass runs from the entry to a leaf at once",
                            word(mark)
                        ),
                        REMOVE,
                    );
                }
            }
            for index in 0..state.was.len() {
                self.report(
                    Rule::Pass,
                    Place::Was(id, index),
                    "`#[was]` is for lifecycles: a pass stores no state",
                    REMOVE,
                );
            }
            for index in 0..state.no_routes.len() {
                self.report(
                    Rule::Pass,
                    Place::NoRoute(id, index),
                    "`#[no_route]` is for lifecycles: a spec cannot ask for a state of a pass",
                    REMOVE,
                );
            }
            for (index, trigger) in state.triggers.iter().enumerate() {
                let (message, help) = match trigger.cause {
                    Cause::Named
                    | Cause::OnDelete
                    | Cause::OnGiveUp
                    | Cause::OnError { attempts: 1 } => continue,
                    Cause::OnError { .. } => (
                        "a pass does not count attempts",
                        "write `on_error`: the step failed",
                    ),
                    Cause::After(_)
                    | Cause::Deadline(_)
                    | Cause::OnChange
                    | Cause::OnChangeOf(_)
                    | Cause::OnAbort => (
                        "a pass runs within one reconciliation, so it has no `after`, no `on_change`, no `on_abort` and no deadline",
                        "use `on_delete`, `on_error` or `on_give_up`",
                    ),
                };
                self.report(Rule::Pass, Place::Cause(id, index), message, help);
            }
        }
        let edges = net(graph, |_, state| state.targets().collect());
        for cycle in cycles(&edges) {
            self.report(
                Rule::Pass,
                Place::State(cycle[0]),
                format!("a pass has no cycles: {}", self.spell_way(&cycle)),
                "remove one of these edges, or the option `pass`",
            );
        }
    }

    /// Returns the state that looks most like the entry: the first to which no edge leads, or the first of all.
    fn likely_entry(&self) -> &str {
        let graph = self.graph;
        let is_target = |id| {
            graph
                .states
                .iter()
                .any(|from| from.targets().any(|to| to == id))
        };
        let mut candidates = graph.iter().filter(|(_, state)| !state.is(Mark::Leaf));
        let found = candidates.find(|(id, _)| !is_target(*id));
        self.variant(found.map_or(StateId::at(0), |(id, _)| id))
    }

    /// Returns the state that is most likely meant as the leaf, in a graph without one: the last without an edge out.
    fn likely_leaf(&self) -> Option<StateId> {
        let graph = self.graph;
        if graph.states.iter().any(|state| state.is(Mark::Leaf)) {
            return None;
        }
        let ends = graph.iter().filter(|(_, state)| is_dead_end(state));
        ends.map(|(id, _)| id).max()
    }
}

/// Returns the places of the edges of a state whose targets are these.
fn edges_to(id: StateId, state: &State<'_>, is_meant: impl Fn(StateId) -> bool) -> Vec<Place> {
    let triggers = state.triggers.iter().enumerate();
    let children = state.children.iter().enumerate();
    triggers
        .filter(|(_, trigger)| is_meant(trigger.to))
        .map(|(index, _)| Place::Trigger(id, index))
        .chain(
            children
                .filter(|(_, to)| is_meant(**to))
                .map(|(index, _)| Place::Child(id, index)),
        )
        .collect()
}

/// The advice about an attribute that a pass cannot have.
const REMOVE: &str = "remove it, or the option `pass`";

/// Returns the spelling of a mark as an attribute.
fn word(mark: Mark) -> &'static str {
    match mark {
        Mark::Entry => "entry",
        Mark::Rest => "rest",
        Mark::Hold => "rest(hold)",
        Mark::Idle => "idle",
        Mark::Leaf => "leaf",
        Mark::Visit => "visit",
        Mark::Args => "visit(args)",
        Mark::NoTransit => "no_transit",
    }
}

/// Returns the trigger that keeps a later one for these parts of the spec from ever being raised: one for any change, or
/// the last of those that name all of them.
fn raised_before(earlier: &[Trigger], parts: Parts) -> Option<&Trigger> {
    let mut left = parts;
    earlier.iter().find(|trigger| match trigger.cause {
        Cause::OnChange => true,
        Cause::OnChangeOf(these) => {
            left = left.without(these);
            left.is_empty()
        }
        Cause::Named
        | Cause::After(_)
        | Cause::Deadline(_)
        | Cause::OnError { .. }
        | Cause::OnDelete
        | Cause::OnGiveUp
        | Cause::OnAbort => false,
    })
}
