//! This file holds sets of fields, as `managedFields` writes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value};

/// One step of a path, in the notation of `fieldsV1` (e.g. `f:spec`, `k:{"type":"Ready"}`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step(String);

impl Step {
    pub(crate) fn field(name: &str) -> Self {
        Self(format!("f:{name}"))
    }

    /// An item of a list that is told apart by keys.
    pub(crate) fn keys(keys: Map<String, Value>) -> Self {
        Self(format!("k:{}", Value::Object(keys)))
    }

    /// An item of a set.
    pub(crate) fn item(value: &Value) -> Self {
        Self(format!("v:{value}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once(':') {
            Some(("f", name)) => write!(f, ".{name}"),
            Some(("v", value)) => write!(f, "[={value}]"),
            Some(("k", keys)) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<_> = keys
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                write!(f, "[{}]", pairs.join(","))
            }
            Some((_, other)) => write!(f, "[{other}]"),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A path as it is shown to people (e.g. `.status.conditions[type="Ready"].status`).
pub(crate) fn show(path: &[Step]) -> String {
    path.iter().map(Step::to_string).collect()
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    own: BTreeSet<Step>,
    below: BTreeMap<Step, FieldSet>,
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.below.values().all(Self::is_empty)
    }

    pub(crate) fn insert(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => {
                self.own.insert(last.clone());
            }
            [first, rest @ ..] => self.below.entry(first.clone()).or_default().insert(rest),
        }
    }

    pub(crate) fn has(&self, step: &Step) -> bool {
        self.own.contains(step)
    }

    pub(crate) fn below(&self, step: &Step) -> Option<&FieldSet> {
        self.below.get(step).filter(|below| !below.is_empty())
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.own.extend(other.own.iter().cloned());
        for (step, set) in &other.below {
            let below = union.below.entry(step.clone()).or_default();
            *below = below.union(set);
        }
        union
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut rest = Self {
            own: self.own.difference(&other.own).cloned().collect(),
            below: BTreeMap::new(),
        };
        for (step, set) in &self.below {
            let set = match other.below.get(step) {
                Some(other) => set.difference(other),
                None => set.clone(),
            };
            if !set.is_empty() {
                rest.below.insert(step.clone(), set);
            }
        }
        rest
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut common = Self {
            own: self.own.intersection(&other.own).cloned().collect(),
            below: BTreeMap::new(),
        };
        for (step, set) in &self.below {
            if let Some(other) = other.below.get(step) {
                let set = set.intersection(other);
                if !set.is_empty() {
                    common.below.insert(step.clone(), set);
                }
            }
        }
        common
    }

    /// Drops a path and all below it.
    pub(crate) fn cut(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => {
                self.own.remove(last);
                self.below.remove(last);
            }
            [first, rest @ ..] => {
                if let Some(below) = self.below.get_mut(first) {
                    below.cut(rest);
                    if below.is_empty() {
                        self.below.remove(first);
                    }
                }
            }
        }
    }

    /// Drops one path, but nothing below it.
    pub(crate) fn remove(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => {
                self.own.remove(last);
            }
            [first, rest @ ..] => {
                if let Some(below) = self.below.get_mut(first) {
                    below.remove(rest);
                    if below.is_empty() {
                        self.below.remove(first);
                    }
                }
            }
        }
    }

    /// The steps that have something below them.
    pub(crate) fn branches(&self) -> impl Iterator<Item = (&Step, &FieldSet)> {
        self.below.iter()
    }

    /// Makes a member of a step that so far only leads to others, and replaces what is below it.
    pub(crate) fn own_branch(&mut self, step: &Step, below: FieldSet, member: bool) {
        if member {
            self.own.insert(step.clone());
        }
        self.below.insert(step.clone(), below);
    }

    /// All paths, in order.
    pub(crate) fn paths(&self) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
        for step in &self.own {
            prefix.push(step.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for (step, below) in &self.below {
            prefix.push(step.clone());
            below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// The set as `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = Map::new();
        for step in &self.own {
            json.insert(step.0.clone(), Value::Object(Map::new()));
        }
        for (step, below) in &self.below {
            let mut below = below.to_json();
            if self.own.contains(step) {
                crate::object::fields(&mut below).insert(".".to_owned(), Value::Object(Map::new()));
            }
            json.insert(step.0.clone(), below);
        }
        Value::Object(json)
    }

    /// Reads `fieldsV1`; what is no such thing is an empty set.
    pub(crate) fn from_json(json: &Value) -> Self {
        let mut set = Self::default();
        for (key, value) in json.as_object().into_iter().flatten() {
            if key == "." {
                continue;
            }
            let step = Step(key.clone());
            let fields = value.as_object();
            let leaf = fields.is_none_or(Map::is_empty);
            if leaf || fields.is_some_and(|fields| fields.contains_key(".")) {
                set.own.insert(step.clone());
            }
            let below = Self::from_json(value);
            if !below.is_empty() {
                set.below.insert(step, below);
            }
        }
        set
    }
}
