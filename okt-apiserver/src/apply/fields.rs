//! Sets of fields, in the notation of `managedFields`.

use std::fmt;

use serde_json::{Map, Value};
use smol_str::{SmolStr, SmolStrBuilder};

/// One step of a path, in the notation of `fieldsV1` (e.g. `f:spec`, `k:{"type":"Ready"}`).
///
/// An apply creates and copies hundreds of steps, most of them short.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FieldStep(SmolStr);

impl FieldStep {
    pub(crate) fn field(name: &str) -> Self {
        let mut step = SmolStrBuilder::new();
        step.push_str("f:");
        step.push_str(name);
        Self(step.finish())
    }

    /// An item of a list that is identified by its keys.
    pub(crate) fn keys(keys: Map<String, Value>) -> Self {
        Self(format!("k:{}", Value::Object(keys)).into())
    }

    /// An item of a set, identified by its value.
    pub(crate) fn item(value: &Value) -> Self {
        Self(format!("v:{value}").into())
    }

    /// An item of an atomic list, as a message names it.
    pub(crate) fn index(index: usize) -> Self {
        Self(format!("i:{index}").into())
    }

    /// The name of the field; `None` for an item of a list.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }
}

impl fmt::Display for FieldStep {
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

/// A value as a step displays it.
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

/// Displays a path for people (e.g. `.status.conditions[type="Ready"].status`).
pub(crate) fn show(path: &[FieldStep]) -> String {
    path.iter().map(FieldStep::to_string).collect()
}

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// The branches in the order of their steps; no step occurs twice.
    branches: Vec<Branch>,
}

/// A step of a set. It is a path itself, leads to further paths, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Branch {
    step: FieldStep,
    member: bool,
    below: FieldSet,
}

impl Branch {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// A set of one field, given by the names of its path.
    pub(crate) fn of_field(names: &[String]) -> Self {
        let path: Vec<_> = names.iter().map(|name| FieldStep::field(name)).collect();
        let mut field = Self::default();
        field.insert(&path);
        field
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    fn find(&self, step: &FieldStep) -> Result<usize, usize> {
        self.branches
            .binary_search_by(|branch| branch.step.cmp(step))
    }

    fn branch(&self, step: &FieldStep) -> Option<&Branch> {
        self.find(step).ok().map(|place| &self.branches[place])
    }

    pub(crate) fn insert(&mut self, path: &[FieldStep]) {
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

    pub(crate) fn has(&self, step: &FieldStep) -> bool {
        self.branch(step).is_some_and(|branch| branch.member)
    }

    pub(crate) fn below(&self, step: &FieldStep) -> Option<&FieldSet> {
        let below = &self.branch(step)?.below;
        (!below.is_empty()).then_some(below)
    }

    /// A set of these steps. The flag is whether the step is a path itself; the set holds the paths below it.
    pub(crate) fn of(branches: impl Iterator<Item = (FieldStep, bool, Self)>) -> Self {
        let mut branches: Vec<_> = branches
            .map(|(step, member, below)| Branch {
                step,
                member,
                below,
            })
            .filter(|branch| !branch.is_empty())
            .collect();
        // The fields of a JSON object are in order already, unless `serde_json` is built with another map.
        branches.sort_by(|a, b| a.step.cmp(&b.step));
        Self { branches }
    }

    /// Adds all paths of another set.
    pub(crate) fn add(&mut self, other: &Self) {
        for theirs in &other.branches {
            match self.find(&theirs.step) {
                Ok(place) => {
                    let ours = &mut self.branches[place];
                    ours.member |= theirs.member;
                    ours.below.add(&theirs.below);
                }
                Err(place) => self.branches.insert(place, theirs.clone()),
            }
        }
    }

    /// Removes all paths of another set.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for theirs in &other.branches {
            if let Ok(place) = self.find(&theirs.step) {
                let ours = &mut self.branches[place];
                ours.member &= !theirs.member;
                ours.below.subtract(&theirs.below);
                if ours.is_empty() {
                    self.branches.remove(place);
                }
            }
        }
    }

    /// Whether a path of one set equals a path of the other or leads to one.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.branches.iter().any(|ours| {
            let theirs = other.branch(&ours.step);
            theirs.is_some_and(|theirs| {
                ours.member || theirs.member || ours.below.meets(&theirs.below)
            })
        })
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

    /// Removes a path and all paths below it.
    pub(crate) fn cut(&mut self, path: &[FieldStep]) {
        self.drop_at(path, |branch| {
            branch.member = false;
            branch.below = Self::default();
        });
    }

    /// Removes one path, but none below it.
    pub(crate) fn remove(&mut self, path: &[FieldStep]) {
        self.drop_at(path, |branch| branch.member = false);
    }

    fn drop_at(&mut self, path: &[FieldStep], drop: fn(&mut Branch)) {
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

    /// Calls `visit` for each step with paths below it, and adds the step as a path of its own if `visit` returns
    /// `true`.
    pub(crate) fn each_branch(&mut self, mut visit: impl FnMut(&FieldStep, &mut Self) -> bool) {
        for branch in &mut self.branches {
            if !branch.below.is_empty() {
                branch.member |= visit(&branch.step, &mut branch.below);
            }
        }
    }

    /// Returns all paths, in order.
    pub(crate) fn paths(&self) -> Vec<Vec<FieldStep>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<FieldStep>, paths: &mut Vec<Vec<FieldStep>>) {
        for branch in self.branches.iter().filter(|branch| branch.member) {
            prefix.push(branch.step.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for branch in &self.branches {
            prefix.push(branch.step.clone());
            branch.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// Returns the set as `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = Map::new();
        for branch in &self.branches {
            let mut below = branch.below.to_json();
            if branch.member && !branch.below.is_empty() {
                crate::object::fields(&mut below).insert(".".to_owned(), Value::Object(Map::new()));
            }
            json.insert(branch.step.0.as_str().to_owned(), below);
        }
        Value::Object(json)
    }

    /// Reads `fieldsV1`; returns an empty set if it is none.
    pub(crate) fn from_json(json: &Value) -> Self {
        let fields = json.as_object().into_iter().flatten();
        let branches = fields.filter(|(key, _)| *key != ".").map(|(key, value)| {
            let fields = value.as_object();
            let leaf = fields.is_none_or(Map::is_empty);
            let member = leaf || fields.is_some_and(|fields| fields.contains_key("."));
            (FieldStep(key.into()), member, Self::from_json(value))
        });
        Self::of(branches)
    }
}
