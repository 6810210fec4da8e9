//! This file remembers what there is, so that operations are about something.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    kinds::Kind,
    operation::{Operation, Slot},
    side::Answer,
};

/// As many names of a kind are in use at a time.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// After so many operations an object gets another name.
const LIFE: usize = 60;

/// What the generator knows.
#[derive(Default)]
pub(crate) struct Model {
    objects: BTreeMap<Slot, Entry>,
    /// How often a name of a kind was given up.
    rounds: BTreeMap<(String, usize), usize>,
}

/// What is known of an object.
#[derive(Default)]
pub(crate) struct Entry {
    /// Its last state, as answers show it.
    pub(crate) object: Option<Value>,
    /// What each manager applied last, by the endpoint.
    pub(crate) applied: BTreeMap<(String, &'static str), Value>,
    /// All operations on it.
    pub(crate) history: Vec<Operation>,
}

impl Model {
    /// The object that has a name of a kind now.
    pub(crate) fn slot(&mut self, kind: &Kind, namespace: &str, which: usize) -> Slot {
        let which = which % NAMES.len();
        let round = self.rounds.entry((kind.plural.clone(), which)).or_default();
        let slot = |round: usize| Slot {
            plural: kind.plural.clone(),
            // Objects of the cluster are shared by all lanes.
            name: if kind.namespaced {
                format!("{}-{round}", NAMES[which])
            } else {
                format!("{namespace}-{}-{round}", NAMES[which])
            },
        };
        let old = self.objects.get(&slot(*round));
        if old.is_some_and(|entry| entry.object.is_none() && entry.history.len() >= LIFE) {
            *round += 1;
        }
        slot(*round)
    }

    /// Gives a name up: the servers disagree about the object.
    pub(crate) fn retire(&mut self, slot: &Slot) {
        let name = slot.name.rsplit('-').nth(1).unwrap_or_default();
        if let Some(which) = NAMES.iter().position(|other| *other == name) {
            *self.rounds.entry((slot.plural.clone(), which)).or_default() += 1;
        }
        self.objects.remove(slot);
    }

    pub(crate) fn entry(&mut self, slot: &Slot) -> &mut Entry {
        self.objects.entry(slot.clone()).or_default()
    }

    pub(crate) fn object(&self, slot: &Slot) -> Option<&Value> {
        self.objects.get(slot)?.object.as_ref()
    }

    pub(crate) fn history(&self, slot: &Slot) -> &[Operation] {
        self.objects.get(slot).map_or(&[], |entry| &entry.history)
    }

    /// An object that has grown old, and shall go.
    pub(crate) fn is_old(&self, slot: &Slot) -> bool {
        self.objects
            .get(slot)
            .is_some_and(|entry| entry.history.len() >= LIFE)
    }

    /// Learns from what both servers answered.
    pub(crate) fn learn(&mut self, operation: &Operation, answer: &Answer) {
        if let Some(Value::Array(items)) = answer.body.get("items") {
            // A whole list says what is there.
            if operation.verb == "list" {
                for (slot, entry) in &mut self.objects {
                    if slot.plural == operation.plural {
                        let found = items
                            .iter()
                            .find(|item| item["metadata"]["name"] == slot.name.as_str());
                        let typed = found.cloned().map(|mut item| {
                            if let (Some(old), true) = (&entry.object, item.get("kind").is_none()) {
                                item["kind"] = old["kind"].clone();
                                item["apiVersion"] = old["apiVersion"].clone();
                            }
                            item
                        });
                        entry.object = typed;
                    }
                }
            }
            return;
        }
        let Some(slot) = &operation.slot else { return };
        if answer.code == 404 && operation.method != "DELETE" && operation.door() == "main" {
            self.entry(slot).object = None;
        }
        if answer.code >= 300 || operation.dry_run() || operation.door() == "scale" {
            return;
        }
        let body = &answer.body;
        let entry = self.entry(slot);
        let metadata = &body["metadata"];
        let let_go =
            metadata.get("deletionTimestamp").is_some() && metadata.get("finalizers").is_none();
        if body["kind"] == "Status" || let_go {
            entry.object = None;
        } else if !body["kind"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("PartialObject"))
        {
            entry.object = Some(body.clone());
        }
    }
}
