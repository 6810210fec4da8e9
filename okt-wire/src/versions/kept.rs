//! What versions of an object have that the present one cannot hold.
//!
//! For each such version the annotation has the places at which the object differed after it was converted there and back:
//! `[path, [value then], [value before]]`, with empty lists for a field that was not there.
//! Whoever converts it back merges three ways: what nobody has changed since becomes what it was before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is kept for each version, by its name.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct KeptForVersions(BTreeMap<String, KeptPlaces>);

/// The places at which two objects differ.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct KeptPlaces(Vec<KeptPlace>);

/// The path of a place as a JSON pointer, the value then, and the value before; an empty list for none.
#[derive(Serialize, Deserialize)]
struct KeptPlace(String, Vec<Value>, Vec<Value>);

impl KeptForVersions {
    /// Reads the annotation; what is not one of OKT is ignored.
    pub(super) fn read(annotation: &Value) -> Self {
        let text = annotation.as_str().unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Returns the text of the annotation; none if nothing is kept.
    pub(super) fn text(&self) -> Option<String> {
        (!self.0.is_empty())
            .then(|| serde_json::to_string(self).ok())
            .flatten()
    }

    /// Takes out what is kept for a version.
    pub(super) fn take(&mut self, version: &str) -> KeptPlaces {
        self.0.remove(version).unwrap_or_default()
    }

    /// Keeps what a version has `before`, and would not have again from what it was converted to (`then`).
    pub(super) fn keep(
        &mut self,
        version: &str,
        then: &Map<String, Value>,
        before: &Map<String, Value>,
    ) {
        let mut found = KeptPlaces::default();
        found.compare_fields(&mut Vec::new(), then, before);
        if !found.0.is_empty() {
            self.0.insert(version.to_owned(), found);
        }
    }
}

impl KeptPlaces {
    fn compare(&mut self, at: &mut Vec<String>, then: Option<&Value>, before: Option<&Value>) {
        match (then, before) {
            (Some(Value::Object(then)), Some(Value::Object(before))) => {
                self.compare_fields(at, then, before);
            }
            (then, before) if then != before => {
                let list = |value: Option<&Value>| value.into_iter().cloned().collect();
                self.0.push(KeptPlace(path(at), list(then), list(before)));
            }
            _ => {}
        }
    }

    fn compare_fields(
        &mut self,
        at: &mut Vec<String>,
        then: &Map<String, Value>,
        before: &Map<String, Value>,
    ) {
        let only_before = before.keys().filter(|name| !then.contains_key(*name));
        for name in then.keys().chain(only_before) {
            at.push(name.clone());
            self.compare(at, then.get(name), before.get(name));
            at.pop();
        }
    }

    /// Gives back what was kept, where nobody has changed what was there.
    pub(super) fn give_back(self, now: &mut Map<String, Value>) {
        for KeptPlace(path, then, before) in self.0 {
            let names = names(&path);
            let Some((last, parents)) = names.split_last() else {
                continue;
            };
            let Some(fields) = parent(now, parents, !before.is_empty()) else {
                continue;
            };
            match merged(then.first(), before.first(), fields.get(last)) {
                Some(value) => fields.insert(last.clone(), value),
                None => fields.remove(last),
            };
        }
    }
}

/// Returns the object at a path, which is made if there is something to put into it.
fn parent<'a>(
    fields: &'a mut Map<String, Value>,
    path: &[String],
    make: bool,
) -> Option<&'a mut Map<String, Value>> {
    let Some((name, rest)) = path.split_first() else {
        return Some(fields);
    };
    if make && !fields.contains_key(name) {
        fields.insert(name.clone(), Value::Object(Map::new()));
    }
    parent(fields.get_mut(name)?.as_object_mut()?, rest, make)
}

/// Merges a value that was `then` when it was `before` in another version, and that is something else `now`.
fn merged(then: Option<&Value>, before: Option<&Value>, now: Option<&Value>) -> Option<Value> {
    if now == then {
        return before.cloned();
    }
    Some(match (then, before, now?) {
        (Some(Value::Array(then)), Some(Value::Array(before)), Value::Array(now))
            if then.len() == before.len() =>
        {
            Value::Array(merged_items(then, before, now))
        }
        (Some(Value::Object(then)), Some(Value::Object(before)), Value::Object(now)) => {
            let mut now = now.clone();
            let mut found = KeptPlaces::default();
            found.compare_fields(&mut Vec::new(), then, before);
            found.give_back(&mut now);
            Value::Object(now)
        }
        (_, _, now) => now.clone(),
    })
}

/// Merges the items of a list: each that is as it was then becomes what it was before, wherever it is now.
fn merged_items(then: &[Value], before: &[Value], now: &[Value]) -> Vec<Value> {
    let mut is_used = vec![false; then.len()];
    let mut found: Vec<Option<usize>> = Vec::new();
    for (index, item) in now.iter().enumerate() {
        let is_it = |at: usize| !is_used[at] && then[at] == *item;
        let same_place = Some(index).filter(|at| *at < then.len() && is_it(*at));
        let at = same_place.or_else(|| (0..then.len()).find(|at| is_it(*at)));
        if let Some(at) = at {
            is_used[at] = true;
        }
        found.push(at);
    }
    let items = now.iter().zip(found).enumerate();
    let items = items.map(|(index, (item, at))| {
        let at = at.or_else(|| Some(index).filter(|at| is_used.get(*at) == Some(&false)));
        let merged = at.and_then(|at| merged(Some(&then[at]), Some(&before[at]), Some(item)));
        merged.unwrap_or_else(|| item.clone())
    });
    items.collect()
}

/// Returns the path of a place, as a JSON pointer.
fn path(names: &[String]) -> String {
    let escaped = |name: &String| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    names.iter().map(escaped).collect()
}

fn names(path: &str) -> Vec<String> {
    let names = path.split('/').skip(1);
    let names = names.map(|name| name.replace("~1", "/").replace("~0", "~"));
    names.collect()
}
