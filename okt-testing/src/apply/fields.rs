//! This file holds sets of fields, as `managedFields` writes them.

use std::fmt;

use serde_json::{Map, Value};
use smol_str::{SmolStr, SmolStrBuilder};

/// One step of a path, in the notation of `fieldsV1` (e.g. `f:spec`, `k:{"type":"Ready"}`).
///
/// An apply makes and copies hundreds of them, most of them short.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step(SmolStr);

impl Step {
    pub(crate) fn field(name: &str) -> Self {
        let mut step = SmolStrBuilder::new();
        step.push_str("f:");
        step.push_str(name);
        Self(step.finish())
    }

    /// An item of a list that is told apart by keys.
    pub(crate) fn keys(keys: Map<String, Value>) -> Self {
        Self(format!("k:{}", Value::Object(keys)).into())
    }

    /// An item of a set.
    pub(crate) fn item(value: &Value) -> Self {
        Self(format!("v:{value}").into())
    }

    /// An item of a list that is one value, where a message is about it.
    pub(crate) fn index(index: usize) -> Self {
        Self(format!("i:{index}").into())
    }

    /// The name of the field; `None` for an item of a list.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
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
                    .map(|(key, value)| format!("{key}={}", shown(value)))
                    .collect();
                write!(f, "[{}]", pairs.join(","))
            }
            Some((_, other)) => write!(f, "[{other}]"),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A value as a step shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key}={}", shown(value)))
                .collect();
            fields.concat()
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// A path as it is shown to people (e.g. `.status.conditions[type="Ready"].status`).
pub(crate) fn show(path: &[Step]) -> String {
    path.iter().map(Step::to_string).collect()
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// In order of their steps, none of which is there twice.
    branches: Vec<Branch>,
}

/// A step from a set; it is a path of its own, or leads to some, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Branch {
    step: Step,
    member: bool,
    below: FieldSet,
}

impl Branch {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    fn find(&self, step: &Step) -> Result<usize, usize> {
        self.branches
            .binary_search_by(|branch| branch.step.cmp(step))
    }

    fn branch(&self, step: &Step) -> Option<&Branch> {
        self.find(step).ok().map(|place| &self.branches[place])
    }

    pub(crate) fn insert(&mut self, path: &[Step]) {
        let [first, rest @ ..] = path else { return };
        let place = self.find(first).unwrap_or_else(|place| {
            let branch = Branch {
                step: first.clone(),
                member: false,
                below: Self::default(),
            };
            self.branches.insert(place, branch);
            place
        });
        let branch = &mut self.branches[place];
        if rest.is_empty() {
            branch.member = true;
        } else {
            branch.below.insert(rest);
        }
    }

    pub(crate) fn has(&self, step: &Step) -> bool {
        self.branch(step).is_some_and(|branch| branch.member)
    }

    pub(crate) fn below(&self, step: &Step) -> Option<&FieldSet> {
        let below = &self.branch(step)?.below;
        (!below.is_empty()).then_some(below)
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for theirs in &other.branches {
            match union.find(&theirs.step) {
                Ok(place) => {
                    let ours = &mut union.branches[place];
                    ours.member |= theirs.member;
                    if !theirs.below.is_empty() {
                        ours.below = ours.below.union(&theirs.below);
                    }
                }
                Err(place) => union.branches.insert(place, theirs.clone()),
            }
        }
        union
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        let branches = self
            .branches
            .iter()
            .map(|ours| match other.branch(&ours.step) {
                None => ours.clone(),
                Some(theirs) => Branch {
                    step: ours.step.clone(),
                    member: ours.member && !theirs.member,
                    below: ours.below.difference(&theirs.below),
                },
            });
        Self {
            branches: branches.filter(|branch| !branch.is_empty()).collect(),
        }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let branches = self.branches.iter().filter_map(|ours| {
            let theirs = other.branch(&ours.step)?;
            Some(Branch {
                step: ours.step.clone(),
                member: ours.member && theirs.member,
                below: ours.below.intersection(&theirs.below),
            })
        });
        Self {
            branches: branches.filter(|branch| !branch.is_empty()).collect(),
        }
    }

    /// Drops a path and all below it.
    pub(crate) fn cut(&mut self, path: &[Step]) {
        self.drop_at(path, |branch| {
            branch.member = false;
            branch.below = Self::default();
        });
    }

    /// Drops one path, but nothing below it.
    pub(crate) fn remove(&mut self, path: &[Step]) {
        self.drop_at(path, |branch| branch.member = false);
    }

    fn drop_at(&mut self, path: &[Step], drop: fn(&mut Branch)) {
        let [first, rest @ ..] = path else { return };
        let Ok(place) = self.find(first) else { return };
        let branch = &mut self.branches[place];
        if rest.is_empty() {
            drop(branch);
        } else {
            branch.below.drop_at(rest, drop);
        }
        if branch.is_empty() {
            self.branches.remove(place);
        }
    }

    /// The steps that have something below them.
    pub(crate) fn branches(&self) -> impl Iterator<Item = (&Step, &FieldSet)> {
        self.branches
            .iter()
            .filter(|branch| !branch.below.is_empty())
            .map(|branch| (&branch.step, &branch.below))
    }

    /// Makes a member of a step that so far only leads to others, and replaces what is below it.
    pub(crate) fn own_branch(&mut self, step: &Step, below: FieldSet, member: bool) {
        if let Ok(place) = self.find(step) {
            let branch = &mut self.branches[place];
            branch.member |= member;
            branch.below = below;
        }
    }

    /// All paths, in order.
    pub(crate) fn paths(&self) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
        for branch in self.branches.iter().filter(|branch| branch.member) {
            prefix.push(branch.step.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for (step, below) in self.branches() {
            prefix.push(step.clone());
            below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// The set as `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = Map::new();
        for branch in &self.branches {
            let mut below = branch.below.to_json();
            if branch.member && !branch.below.is_empty() {
                crate::object::fields(&mut below).insert(".".to_owned(), Value::Object(Map::new()));
            }
            json.insert(branch.step.0.to_string(), below);
        }
        Value::Object(json)
    }

    /// Reads `fieldsV1`; what is no such thing is an empty set.
    pub(crate) fn from_json(json: &Value) -> Self {
        let mut branches = Vec::new();
        for (key, value) in json.as_object().into_iter().flatten() {
            if key == "." {
                continue;
            }
            let fields = value.as_object();
            let leaf = fields.is_none_or(Map::is_empty);
            branches.push(Branch {
                step: Step(key.into()),
                member: leaf || fields.is_some_and(|fields| fields.contains_key(".")),
                below: Self::from_json(value),
            });
        }
        branches.retain(|branch: &Branch| !branch.is_empty());
        // A map of JSON is in order already, unless somebody builds it otherwise.
        branches.sort_by(|a, b| a.step.cmp(&b.step));
        Self { branches }
    }
}
