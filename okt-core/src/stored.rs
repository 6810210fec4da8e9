//! A graph as it is stored in a cluster: read from JSON, joined with another, or turned into a [`Graph`].

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::iter;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::draw::{self, ROLES, roles};
use crate::duration;
use crate::gate::{Gate, GateKind, Passes};
use crate::graph::{
    Cause, ConditionStatus, Declared, Graph, Kind, Marks, NoRoute, Parts, State, StateId, Trigger,
};
use crate::hops::Routes;
use crate::names::is_state;
use crate::routes::Tables;

/// A graph in the annotation `okt.dev/graph` of a CRD (the format of [`Graph::json`]).
///
/// It has the fields that this version of OKT knows; a newer OKT with the same format only adds fields.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredGraph {
    /// The version of the format.
    #[serde(default)]
    pub format: u32,
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    doc: String,
    #[serde(default)]
    kind: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gates: Vec<StoredGate>,
    /// The states; empty without a lifecycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StoredState>,
}

/// A gate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct StoredGate {
    name: String,
    kind: String,
    states: Vec<String>,
    /// What passes without waiting: `triggers`, `deletion`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passes: Vec<String>,
    /// How much of a window must be left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    needs: Option<String>,
}

/// One state; in a joined graph its lists are those of both graphs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredState {
    /// The wire name.
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    doc: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<String>,
    /// Former wire names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub was: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<StoredTrigger>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<StoredCondition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    no_routes: Vec<StoredClaim>,
}

/// A trigger edge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct StoredTrigger {
    to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
}

/// A condition of a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct StoredCondition {
    #[serde(rename = "type")]
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    message: String,
}

/// A claim that no route leads to a desired state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct StoredClaim {
    to: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
}

/// The error of joining two graphs: they give one name to different states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ambiguous {
    /// The name.
    pub name: String,
    /// The state that the old graph means, by its present name.
    pub old: String,
    /// The state that the new graph means.
    pub new: String,
}

/// The error of reading a stored graph; another attempt with the same text does not help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unread {
    /// The graph has this format, of another OKT version.
    Format(u64),
    /// The text is not a graph.
    Text(String),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(
                f,
                "the graph has format {format}, and this version of OKT reads format {}",
                Graph::JSON_FORMAT
            ),
            Self::Text(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for Unread {}

impl Graph<'_> {
    /// The version of the format, in its field `format`.
    ///
    /// A reader may rely on every field of a version; a new one only adds fields.
    pub const JSON_FORMAT: u32 = 1;

    /// Writes a graph as one line of JSON.
    ///
    /// Fields: `format`, `name`, `doc`, `kind` (`lifecycle` or `pass`), `gates`, `states`; of a gate `name`, `kind`, `states`,
    /// `passes`, `needs`; of a state `name`, `doc`,
    /// `roles`, `was`, `triggers` (`to`, `cause`, and `after`, `deadline` or `attempts`), `children` (the last is Next),
    /// `conditions`, `noRoutes`. Empty texts and lists are left out.
    ///
    /// ```
    /// # use okt_core::{Graph, Kind, Mark, Marks, State, StateId, routes::Routes};
    /// # const fn state(name: &'static str, marks: Marks, children: &'static [StateId]) -> State<'static> {
    /// #     State { name, variant: name, doc: "", was: &[], marks, triggers: &[], children, conditions: &[], no_routes: &[] }
    /// # }
    /// let states = [
    ///     state("Start", Marks(0).with(Mark::Entry), &[StateId(1)]),
    ///     state("End", Marks(0).with(Mark::Leaf), &[]),
    /// ];
    /// let graph = Graph { name: "App", doc: "", kind: Kind::Lifecycle, parts: &[], gates: &[], states: &states, routes: Routes::NONE };
    /// assert_eq!(
    ///     graph.json(),
    ///     r#"{"format":1,"name":"App","kind":"lifecycle","states":[{"name":"Start","roles":["entry"],"children":["End"]},{"name":"End","roles":["leaf"]}]}"#
    /// );
    /// ```
    #[must_use]
    pub fn json(&self) -> String {
        StoredGraph::of(self).text()
    }
}

impl StoredGraph {
    /// Reads the text of the annotation.
    ///
    /// # Errors
    ///
    /// [`Unread`]: the text is not a graph, or one of another format.
    pub fn read(text: &str) -> Result<Self, Unread> {
        let unread = |error: serde_json::Error| Unread::Text(error.to_string());
        let value: Value = serde_json::from_str(text).map_err(unread)?;
        // Check the format first: in another format nothing else may be readable.
        match value.get("format").and_then(Value::as_u64) {
            Some(format) if format == u64::from(Graph::JSON_FORMAT) => {}
            Some(format) => return Err(Unread::Format(format)),
            None => return Err(Unread::Text("it does not say its format".to_owned())),
        }
        let graph: Self = serde_json::from_value(value).map_err(unread)?;
        // Whoever may write the definition chooses them; they stand in CEL rules, drawings, commands and scripts of shells.
        if let Some(word) = graph.words().find(|word| !is_state(word)) {
            let word: String = word.chars().filter(|c| !c.is_control()).collect();
            return Err(Unread::Text(format!("`{word}` is no name of a state")));
        }
        Ok(graph)
    }

    /// Converts a graph into its stored form.
    pub fn of(graph: &Graph<'_>) -> Self {
        let kind = match graph.kind {
            Kind::Lifecycle => "lifecycle",
            Kind::Pass => "pass",
        };
        let states = graph.states.iter();
        Self {
            format: Graph::JSON_FORMAT,
            name: graph.name.to_owned(),
            doc: graph.doc.to_owned(),
            kind: kind.to_owned(),
            gates: graph
                .gates
                .iter()
                .map(|gate| StoredGate::of(graph, gate))
                .collect(),
            states: states.map(|state| StoredState::of(graph, state)).collect(),
        }
    }

    /// Returns the graph as text for the annotation.
    ///
    /// # Panics
    ///
    /// Never: a stored graph holds only texts, numbers and lists.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("it holds texts and lists only")
    }

    /// Returns the present name of a state, by its present or a former name.
    pub fn named<'s>(&'s self, name: &str) -> Option<&'s str> {
        let present = self.states.iter().find(|state| state.name == name);
        present
            .or_else(|| self.states.iter().find(|state| state.has_been(name)))
            .map(|state| state.name.as_str())
    }

    /// Returns the states in which objects are created; a joined graph may have more than one.
    pub fn entries(&self) -> Vec<&str> {
        let entries = self.states.iter().filter(|state| state.is("entry"));
        entries.map(|state| state.name.as_str()).collect()
    }

    /// Returns every former name with the present one.
    pub fn former(&self) -> impl Iterator<Item = (&str, &str)> {
        let states = self.states.iter();
        states.flat_map(|state| state.was.iter().map(|was| (was.as_str(), &*state.name)))
    }

    /// Returns the targets of a state, each once; from a leaf also the entries.
    pub fn targets<'s>(&'s self, state: &'s StoredState) -> Vec<&'s str> {
        let entries = self.entries().into_iter();
        let reentry = entries.filter(|_| state.is("leaf"));
        let mut targets = Vec::new();
        for to in state.declared().chain(reentry) {
            if !targets.contains(&to) {
                targets.push(to);
            }
        }
        targets
    }

    /// Returns every declared edge, by present names.
    pub fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let edges = self.states.iter().map(|state| {
            let targets = state.declared().filter_map(|to| self.named(to)).collect();
            (state.name.as_str(), targets)
        });
        edges.collect()
    }

    /// Returns every name in the graph: of states, present, former or as a target, and of gates.
    fn words(&self) -> impl Iterator<Item = &str> {
        let gates = self.gates.iter();
        let gates = gates.flat_map(|gate| gate.states.iter().chain([&gate.name]));
        let states = self.states.iter().flat_map(|state| {
            let was = state.was.iter().map(String::as_str);
            state.declared().chain(was).chain([state.name.as_str()])
        });
        states.chain(gates.map(String::as_str))
    }

    /// Joins two graphs into one that has every state and every edge of either.
    ///
    /// If the new graph renames a state of the old one, the two are one state. If the new graph merges two states of
    /// the old one, an edge between the two becomes an edge from the merged state to itself.
    ///
    /// # Errors
    ///
    /// [`Ambiguous`]: the graphs give one name to different states.
    pub fn join(&self, old: &Self) -> Result<Self, Ambiguous> {
        let present = |name: &str| -> String {
            let before = old.named(name).unwrap_or(name);
            self.named(before).unwrap_or(before).to_owned()
        };
        let names = |graph: &Self| -> Vec<String> {
            let names = graph.states.iter();
            names
                .flat_map(|state| iter::once(&state.name).chain(&state.was).cloned())
                .collect()
        };
        for name in names(self) {
            let (old, new) = (present(&name), self.named(&name).unwrap_or_default());
            if old != new {
                let new = new.to_owned();
                return Err(Ambiguous { name, old, new });
            }
        }
        let mut joined = self.clone();
        for gate in &old.gates {
            // The gate of this release counts; one that it does not have holds for the release before.
            if joined.gates.iter().all(|own| own.name != gate.name) {
                joined.gates.push(gate.renamed(present));
            }
        }
        for state in &old.states {
            let state = state.renamed(present);
            match joined.states.iter_mut().find(|own| own.name == state.name) {
                Some(own) => own.take_in(state),
                None => joined.states.push(state),
            }
        }
        Ok(joined)
    }

    /// Keeps the graph for the life of the program, and computes its routes.
    ///
    /// For programs that read the graphs of operators, such as a command line. The memory is never freed, as with
    /// [`Box::leak`]: do not call this for each object.
    /// Targets that the graph does not have become [`StateId::UNKNOWN`].
    ///
    /// ```
    /// # use okt_core::stored::StoredGraph;
    /// let text = r#"{"format":1,"name":"App","kind":"lifecycle","states":[
    ///     {"name":"Start","roles":["entry"],"children":["End"]},
    ///     {"name":"End","roles":["leaf"]}
    /// ]}"#;
    /// let graph = StoredGraph::read(text)?.leak();
    /// let (start, end) = (graph.named("Start").expect("a state"), graph.named("End").expect("a state"));
    /// assert_eq!(graph.hop(start, end), Some(end));
    /// # Ok::<(), okt_core::stored::Unread>(())
    /// ```
    pub fn leak(self) -> &'static Graph<'static> {
        let stored: &'static Self = Box::leak(Box::new(self));
        let ids: BTreeMap<&str, StateId> = stored.ids();
        let id = |name: &str| ids.get(name).copied().unwrap_or(StateId::UNKNOWN);
        let mut parts: Vec<&str> = Vec::new();
        let triggers = stored.states.iter().flat_map(|state| &state.triggers);
        for part in triggers.flat_map(StoredTrigger::parts) {
            if !parts.contains(&part) && parts.len() < Parts::LIMIT {
                parts.push(part);
            }
        }
        let states = stored.states.iter().map(|state| state.leak(&id, &parts));
        let kind = match stored.kind.as_str() {
            "pass" => Kind::Pass,
            _ => Kind::Lifecycle,
        };
        let graph = Graph {
            name: &stored.name,
            doc: &stored.doc,
            kind,
            states: kept(states),
            parts: kept(parts.iter().copied()),
            gates: kept(stored.gates.iter().filter_map(|gate| gate.leak(&id))),
            routes: Routes::NONE,
        };
        let tables: &'static Tables = Box::leak(Box::new(Tables::of(&graph)));
        let routes = tables.routes();
        Box::leak(Box::new(Graph { routes, ..graph }))
    }

    /// Returns the id of each name, present or former; a present name wins.
    fn ids(&self) -> BTreeMap<&str, StateId> {
        let numbered = || (0..).map(StateId::at).zip(&self.states);
        let former =
            numbered().flat_map(|(id, state)| state.was.iter().map(move |was| (&**was, id)));
        let present = numbered().map(|(id, state)| (&*state.name, id));
        // Of equal names the first one wins, as in `Graph::named`.
        let mut ids: BTreeMap<&str, StateId> = BTreeMap::new();
        for (name, id) in present.chain(former) {
            ids.entry(name).or_insert(id);
        }
        ids
    }
}

/// Keeps items for the life of the program.
fn kept<T>(items: impl Iterator<Item = T>) -> &'static [T] {
    items.collect::<Vec<T>>().leak()
}

impl StoredGate {
    fn of(graph: &Graph<'_>, gate: &Gate<'_>) -> Self {
        let states = gate.states.iter();
        let Passes { triggers, deletion } = gate.passes;
        let passes = [(triggers, TRIGGERS), (deletion, DELETION)];
        let needs = match gate.kind {
            GateKind::Window { needs } => needs,
            GateKind::Approval | GateKind::Limit => Duration::ZERO,
        };
        Self {
            name: gate.name.to_owned(),
            kind: gate.kind.as_str().to_owned(),
            states: states.map(|id| graph.name_of(*id).to_owned()).collect(),
            passes: passes
                .iter()
                .filter(|(passes, _)| *passes)
                .map(|(_, word)| (*word).to_owned())
                .collect(),
            needs: (!needs.is_zero()).then(|| duration::text(needs)),
        }
    }

    /// Returns the gate; none if this version of OKT does not know its kind.
    fn leak(&'static self, id: &impl Fn(&str) -> StateId) -> Option<Gate<'static>> {
        let needs = self.needs.as_deref().and_then(duration::parse);
        let kind = match self.kind.as_str() {
            "window" => GateKind::Window {
                needs: needs.unwrap_or_default(),
            },
            "approval" => GateKind::Approval,
            "limit" => GateKind::Limit,
            _ => return None,
        };
        let passes = |word: &str| self.passes.iter().any(|own| own == word);
        Some(Gate {
            name: &self.name,
            kind,
            states: kept(self.states.iter().map(|name| id(name))),
            passes: Passes {
                triggers: passes(TRIGGERS),
                deletion: passes(DELETION),
            },
        })
    }

    /// Renames the states.
    fn renamed(&self, present: impl Fn(&str) -> String) -> Self {
        Self {
            states: self.states.iter().map(|name| present(name)).collect(),
            ..self.clone()
        }
    }
}

/// What passes a gate without waiting, as words.
const TRIGGERS: &str = "triggers";
const DELETION: &str = "deletion";

impl StoredState {
    fn of(graph: &Graph<'_>, state: &State<'_>) -> Self {
        let name = |id: StateId| graph.name_of(id).to_owned();
        let triggers = state.triggers.iter();
        let conditions = state.conditions.iter().map(|condition| StoredCondition {
            name: condition.name.to_owned(),
            status: condition.status.as_str().to_owned(),
            reason: condition.reason.to_owned(),
            message: condition.message.to_owned(),
        });
        let no_routes = state.no_routes.iter().map(|claim| StoredClaim {
            to: name(claim.to),
            reason: claim.reason.to_owned(),
        });
        Self {
            name: state.name.to_owned(),
            doc: state.doc.to_owned(),
            roles: owned(&roles(state)),
            was: owned(state.was),
            triggers: triggers
                .map(|trigger| StoredTrigger::of(name(trigger.to), trigger.cause, graph.parts))
                .collect(),
            children: state.children.iter().map(|to| name(*to)).collect(),
            conditions: conditions.collect(),
            no_routes: no_routes.collect(),
        }
    }

    fn leak(&'static self, id: &impl Fn(&str) -> StateId, parts: &[&str]) -> State<'static> {
        let marks = ROLES.iter().filter(|(_, role)| self.is(role));
        let conditions = self.conditions.iter().map(|condition| Declared {
            name: &condition.name,
            status: ConditionStatus::from_word(&condition.status)
                .unwrap_or(ConditionStatus::Unknown),
            reason: &condition.reason,
            message: &condition.message,
        });
        let triggers = self.triggers.iter().map(|trigger| Trigger {
            to: id(&trigger.to),
            cause: trigger.cause(parts),
        });
        let no_routes = self.no_routes.iter().map(|claim| NoRoute {
            to: id(&claim.to),
            reason: &claim.reason,
        });
        State {
            name: &self.name,
            variant: &self.name,
            doc: &self.doc,
            was: kept(self.was.iter().map(String::as_str)),
            marks: marks.fold(Marks(0), |marks, (mark, _)| marks.with(*mark)),
            triggers: kept(triggers),
            children: kept(self.children.iter().map(|to| id(to))),
            conditions: kept(conditions),
            no_routes: kept(no_routes),
        }
    }

    fn is(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own == role)
    }

    fn has_been(&self, name: &str) -> bool {
        self.was.iter().any(|was| was == name)
    }

    /// Returns the targets of the declared edges, triggers first; a target may occur twice.
    fn declared(&self) -> impl Iterator<Item = &str> {
        let triggers = self.triggers.iter().map(|trigger| trigger.to.as_str());
        triggers.chain(self.children.iter().map(String::as_str))
    }

    /// Renames the state and its targets; the replaced name becomes a former one.
    fn renamed(&self, present: impl Fn(&str) -> String) -> Self {
        let mut state = self.clone();
        state.name = present(&self.name);
        if state.name != self.name {
            state.was.push(self.name.clone());
        }
        for trigger in &mut state.triggers {
            trigger.to = present(&trigger.to);
        }
        for child in &mut state.children {
            *child = present(child);
        }
        for claim in &mut state.no_routes {
            claim.to = present(&claim.to);
        }
        state
    }

    /// Adds what only the same state of an older graph has; the last child stays the last.
    fn take_in(&mut self, old: Self) {
        add(&mut self.roles, old.roles);
        add(&mut self.was, old.was);
        for trigger in old.triggers {
            if self.triggers.iter().all(|own| own.to != trigger.to) {
                self.triggers.push(trigger);
            }
        }
        let mut children = old.children;
        children.retain(|child| !self.children.contains(child));
        children.append(&mut self.children);
        self.children = children;
        for condition in old.conditions {
            if self.conditions.iter().all(|own| own.name != condition.name) {
                self.conditions.push(condition);
            }
        }
        // A claim that there is no route may be false for the joined graph.
        self.no_routes.retain(|claim| old.no_routes.contains(claim));
    }
}

impl StoredTrigger {
    fn of(to: String, cause: Cause, parts: &[&str]) -> Self {
        let mut stored = Self {
            to,
            cause: draw::cause(cause, parts),
            after: None,
            deadline: None,
            attempts: None,
        };
        match cause {
            Cause::After(time) => stored.after = Some(duration::text(time)),
            Cause::Deadline(time) => stored.deadline = Some(duration::text(time)),
            Cause::OnError { attempts } => stored.attempts = Some(attempts),
            Cause::Named
            | Cause::OnDelete
            | Cause::OnChange
            | Cause::OnChangeOf(_)
            | Cause::OnGiveUp
            | Cause::OnAbort => {}
        }
        stored
    }

    /// Returns the parts of the spec whose change raises it.
    fn parts(&self) -> impl Iterator<Item = &str> {
        let text = self.cause.as_deref().unwrap_or_default();
        let names = text.strip_prefix(draw::ON_CHANGE_OF);
        names.into_iter().flat_map(|names| names.split(", "))
    }

    /// Returns the cause; one that this version of OKT does not know counts as none.
    fn cause(&self, parts: &[&str]) -> Cause {
        let time = |text: &Option<String>| text.as_deref().and_then(duration::parse);
        if let Some(time) = time(&self.after) {
            return Cause::After(time);
        }
        if let Some(time) = time(&self.deadline) {
            return Cause::Deadline(time);
        }
        if let Some(attempts) = self.attempts {
            return Cause::OnError { attempts };
        }
        let mut own = self.parts().peekable();
        if own.peek().is_some() {
            let index = |name: &str| parts.iter().position(|part| *part == name);
            return Cause::OnChangeOf(own.filter_map(index).fold(Parts::NONE, Parts::with));
        }
        let known = [
            Cause::OnDelete,
            Cause::OnChange,
            Cause::OnGiveUp,
            Cause::OnAbort,
        ];
        let is_this = |cause: &Cause| draw::cause(*cause, parts) == self.cause;
        known.into_iter().find(is_this).unwrap_or(Cause::Named)
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn add(own: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if !own.contains(&name) {
            own.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use serde_json::json;

    use super::*;

    fn graph(states: impl Into<Value>) -> StoredGraph {
        let states: Value = states.into();
        let graph = json!({ "format": 1, "name": "App", "kind": "lifecycle", "states": states });
        serde_json::from_value(graph).expect("a graph")
    }

    fn old() -> StoredGraph {
        graph(json!([
            { "name": "Start", "roles": ["entry"], "children": ["Draft"] },
            { "name": "Draft", "roles": ["rest"], "children": ["Old", "End"] },
            { "name": "Old", "children": ["Draft"] },
            { "name": "End", "roles": ["leaf"] },
        ]))
    }

    #[test]
    fn a_graph_whose_states_have_no_names_is_not_read() {
        let text = |name: &str, place: &str| {
            let mut state = json!({ "name": "A", "roles": ["entry"] });
            match place {
                "name" => state["name"] = name.into(),
                "triggers" => state["triggers"] = json!([{ "to": name }]),
                _ => state[place] = json!([name]),
            }
            json!({ "format": 1, "name": "App", "kind": "lifecycle", "states": [state] })
                .to_string()
        };
        for place in ["name", "was", "children", "triggers"] {
            assert!(StoredGraph::read(&text("B_2", place)).is_ok());
            for name in [
                "$(reboot)",
                "a b",
                "",
                "a\nb",
                "é",
                "a;b",
                "\u{202e}a",
                "<b>",
            ] {
                let read = StoredGraph::read(&text(name, place));
                let why = read.expect_err("it is no name").to_string();
                assert!(why.ends_with("is no name of a state"), "{why}");
            }
        }
    }

    #[test]
    fn joined_graphs_have_the_states_and_edges_of_both_under_the_new_names() {
        let new = graph(json!([
            { "name": "Start", "roles": ["entry"], "children": ["Live"] },
            { "name": "Live", "was": ["Draft"], "roles": ["rest"], "children": ["New", "End"] },
            { "name": "New", "children": ["Live"] },
            { "name": "End", "roles": ["leaf"] },
        ]));
        let joined = new.join(&old()).expect("they fit");
        let expected = graph(json!([
            { "name": "Start", "roles": ["entry"], "children": ["Live"] },
            { "name": "Live", "was": ["Draft"], "roles": ["rest"], "children": ["Old", "New", "End"] },
            { "name": "New", "children": ["Live"] },
            { "name": "End", "roles": ["leaf"] },
            { "name": "Old", "children": ["Live"] },
        ]));
        assert_eq!(joined, expected);
        assert_eq!(
            joined.join(&old()),
            Ok(expected),
            "a second join changes nothing"
        );
    }

    #[test]
    fn a_state_that_absorbed_another_has_an_edge_to_itself() {
        let new = graph(json!([
            { "name": "Start", "roles": ["entry"], "children": ["Draft"] },
            { "name": "Draft", "was": ["Old"], "roles": ["rest"], "children": ["End"] },
            { "name": "End", "roles": ["leaf"] },
        ]));
        let joined = new.join(&old()).expect("they fit");
        let edges = joined.edges();
        assert_eq!(edges["Draft"], BTreeSet::from(["Draft", "End"]));
    }

    #[test]
    fn a_name_with_a_new_meaning_is_ambiguous() {
        let mut old = old();
        old.states[1].was = vec!["Live".to_owned()];
        let new = graph(json!([
            { "name": "Start", "roles": ["entry"], "children": ["Draft"] },
            { "name": "Draft", "roles": ["rest"], "children": ["Live"] },
            { "name": "Live", "children": ["End"] },
            { "name": "End", "roles": ["leaf"] },
        ]));
        let ambiguous = new.join(&old).expect_err("Live was Draft");
        let (name, old, new) = ("Live".into(), "Draft".into(), "Live".into());
        assert_eq!(ambiguous, Ambiguous { name, old, new });
    }

    /// A graph with a state for each kind of mark and a trigger for each kind of cause, as [`Graph::json`] writes it.
    const EVERYTHING: &str = concat!(
        r#"{"format":1,"name":"App","doc":"An app.","kind":"lifecycle","gates":["#,
        r#"{"name":"night","kind":"window","states":["Saved"],"passes":["triggers","deletion"],"needs":"1h"},"#,
        r#"{"name":"day","kind":"approval","states":["Saved"]}],"states":["#,
        r#"{"name":"Start","roles":["entry","idle"],"children":["Run"]},"#,
        r#"{"name":"Run","doc":"Runs.","roles":["rest"],"was":["Ran"],"triggers":["#,
        r#"{"to":"Broken","cause":"on 3 errors","attempts":3},"#,
        r#"{"to":"Saved","cause":"on change"},"#,
        r#"{"to":"Broken","cause":"after 1d2h3m4s5ms","after":"1d2h3m4s5ms"},"#,
        r#"{"to":"Gone","cause":"on delete"},{"to":"Start"}],"children":["Saved","Gone"],"conditions":["#,
        r#"{"type":"Available","status":"True","reason":"Up","message":"It \"runs\"."}]},"#,
        r#"{"name":"Saved","roles":["visit","no_transit"],"triggers":["#,
        r#"{"to":"Broken","cause":"deadline 1h","deadline":"1h"}],"children":["Run"]},"#,
        r#"{"name":"Broken","roles":["rest","hold"],"children":["Gone"],"noRoutes":["#,
        r#"{"to":"Run","reason":"it is broken"}]},"#,
        r#"{"name":"Gone","roles":["leaf"]}]}"#,
    );

    #[test]
    fn a_graph_in_memory_is_the_graph_that_was_read() {
        let graph = StoredGraph::read(EVERYTHING).expect("a graph").leak();
        assert_eq!(graph.json(), EVERYTHING);
        let id = |name| graph.named(name).expect("a state");
        assert_eq!(graph.named("Ran"), Some(id("Run")));
        assert_eq!(graph.hop(id("Start"), id("Saved")), Some(id("Run")));
        assert_eq!(graph.home(), Some(id("Run")));
        assert_eq!(graph.out(id("Broken")), Some(id("Gone")));
    }

    #[test]
    fn any_text_survives() {
        let text = "\"quoted\" back\\slash \\u0041\r\n\tand \u{0}\u{1}\u{8}\u{c}\u{1f}\u{7f}\u{2028} ä 🦀 }],{\"x\":1";
        let mut stored = StoredGraph::read(EVERYTHING).expect("a graph");
        stored.doc = text.to_owned();
        let written = stored.leak().json();
        assert_eq!(StoredGraph::read(&written).expect("a graph").doc, text);
    }

    #[test]
    fn a_target_that_the_graph_lacks_leads_nowhere() {
        let text = r#"{"format":1,"states":[{"name":"A","children":["B","Z"],"triggers":[{"to":"Y"}]},{"name":"B"}]}"#;
        let graph = StoredGraph::read(text).expect("a graph").leak();
        let id = |name| graph.named(name).expect("a state");
        assert_eq!(graph.hop(id("A"), id("B")), None, "there is no entry");
        let targets: Vec<StateId> = graph.states[0].targets().collect();
        assert_eq!(targets, [StateId::UNKNOWN, id("B"), StateId::UNKNOWN]);
    }

    #[test]
    fn a_text_that_is_no_graph_is_an_error() {
        let why = |text| StoredGraph::read(text).expect_err("no graph").to_string();
        assert_eq!(
            why(r#"{"format":2}"#),
            "the graph has format 2, and this version of OKT reads format 1"
        );
        assert_eq!(why("{}"), "it does not say its format");
        assert!(why("[").starts_with("EOF"), "{}", why("["));
    }
}
