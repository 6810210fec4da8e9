//! The graph in the annotation of a CRD: reads it and joins two graphs.

use std::collections::{BTreeMap, BTreeSet};

use okt_core::Graph;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A graph in the annotation `okt.dev/graph` (the format of [`okt_core::Graph::json`]).
///
/// An operator reads the fields that it knows; a newer OKT with the same format only adds fields.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct StoredGraph {
    #[serde(default)]
    pub(crate) format: u32,
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    doc: String,
    #[serde(default)]
    kind: String,
    /// The states; empty without a lifecycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) states: Vec<StoredState>,
}

/// One state; in a joined graph its lists are those of both graphs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredState {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    doc: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) was: Vec<String>,
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

/// A name that two graphs give to different states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ambiguous {
    pub(crate) name: String,
    pub(crate) old: String,
    pub(crate) new: String,
}

/// The error of reading a stored graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// The graph has this format, of another OKT version.
    Format(u64),
    /// The text is not a graph.
    Text(String),
}

impl StoredGraph {
    /// Reads the text of the annotation.
    pub(crate) fn read(text: &str) -> Result<Self, Unread> {
        let unread = |error: serde_json::Error| Unread::Text(error.to_string());
        let value: Value = serde_json::from_str(text).map_err(unread)?;
        // Check the format first: in another format nothing else may be readable.
        match value.get("format").and_then(Value::as_u64) {
            Some(format) if format == u64::from(Graph::JSON_FORMAT) => {}
            Some(format) => return Err(Unread::Format(format)),
            None => return Err(Unread::Text("it does not say its format".to_owned())),
        }
        serde_json::from_value(value).map_err(unread)
    }

    /// Converts a graph into its stored form.
    pub(crate) fn of(graph: &Graph<'_>) -> Self {
        serde_json::from_str(&graph.json())
            .expect("this reads what `Graph::json` writes, whatever the graph")
    }

    /// Returns the graph as text for the annotation.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("it holds texts and lists only")
    }

    /// Returns the present name of a state, by its present or a former name.
    pub(crate) fn named<'s>(&'s self, name: &str) -> Option<&'s str> {
        (self.states.iter().find(|state| state.name == name))
            .or_else(|| self.states.iter().find(|state| state.has_been(name)))
            .map(|state| state.name.as_str())
    }

    /// Returns the states in which objects are created; a joined graph may have more than one.
    pub(crate) fn entries(&self) -> Vec<&str> {
        let entries = self.states.iter().filter(|state| state.is("entry"));
        entries.map(|state| state.name.as_str()).collect()
    }

    /// Returns every former name with the present one.
    pub(crate) fn former(&self) -> impl Iterator<Item = (&str, &str)> {
        let states = self.states.iter();
        states.flat_map(|state| state.was.iter().map(|was| (was.as_str(), &*state.name)))
    }

    /// Returns the targets of a state, each once; from a leaf also the entries.
    pub(crate) fn targets<'s>(&'s self, state: &'s StoredState) -> Vec<&'s str> {
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
    pub(crate) fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let edges = self.states.iter().map(|state| {
            let targets = state.declared().filter_map(|to| self.named(to)).collect();
            (state.name.as_str(), targets)
        });
        edges.collect()
    }

    /// Returns every state name in the graph, present, former or as a target.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.states.iter().flat_map(|state| {
            let was = state.was.iter().map(String::as_str);
            state.declared().chain(was).chain([state.name.as_str()])
        })
    }

    /// Joins two graphs into one that has every state and every edge of either.
    ///
    /// If the new graph renames a state of the old one, the two are one state. If the new graph merges two states of
    /// the old one, an edge between the two becomes an edge from the merged state to itself.
    pub(crate) fn join(&self, old: &Self) -> Result<Self, Ambiguous> {
        let present = |name: &str| -> String {
            let before = old.named(name).unwrap_or(name);
            self.named(before).unwrap_or(before).to_owned()
        };
        let names = |graph: &Self| -> Vec<String> {
            let names = graph.states.iter();
            names
                .flat_map(|state| std::iter::once(&state.name).chain(&state.was).cloned())
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
        for state in &old.states {
            let state = state.renamed(present);
            match joined.states.iter_mut().find(|own| own.name == state.name) {
                Some(own) => own.take_in(state),
                None => joined.states.push(state),
            }
        }
        Ok(joined)
    }
}

impl StoredState {
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

fn add(own: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if !own.contains(&name) {
            own.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
}
