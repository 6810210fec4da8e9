//! The existing objects, so that operations refer to them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kinds::Kind;
use crate::operation::{Operation, Slot};
use crate::side::Answer;

/// The names of a kind that are in use at a time.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// The number of operations after which an object gets another name.
const LIFE: usize = 60;

/// The state of the generator.
#[derive(Default)]
pub(crate) struct Model {
    objects: BTreeMap<Slot, Entry>,
    /// The number of times that a name of a kind was retired.
    rounds: BTreeMap<(String, usize), usize>,
}

/// The known state of an object.
#[derive(Default)]
pub(crate) struct Entry {
    /// The last state of the object in an answer.
    pub(crate) object: Option<Value>,
    /// The last configuration of each manager, by endpoint.
    pub(crate) applied: BTreeMap<(String, &'static str), Value>,
    /// All operations on the object.
    pub(crate) history: Vec<Operation>,
}

impl Model {
    /// Returns the current object of a name of a kind.
    pub(crate) fn slot(&mut self, kind: &Kind, namespace: &str, which: usize) -> Slot {
        let which = which % NAMES.len();
        let round = self.rounds.entry((kind.plural.clone(), which)).or_default();
        let slot = |round: usize| Slot {
            plural: kind.plural.clone(),
            // All lanes share the cluster-scoped objects.
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

    /// Retires a name, because the servers disagree about the object.
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

    /// Whether an object has reached its maximum number of operations and should be deleted.
    pub(crate) fn is_old(&self, slot: &Slot) -> bool {
        self.objects
            .get(slot)
            .is_some_and(|entry| entry.history.len() >= LIFE)
    }

    /// Updates the model from the answer of both servers.
    pub(crate) fn learn(&mut self, operation: &Operation, answer: &Answer) {
        if let Some(Value::Array(items)) = answer.body.get("items") {
            // A complete list holds all existing objects.
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
        let is_released =
            metadata.get("deletionTimestamp").is_some() && metadata.get("finalizers").is_none();
        if body["kind"] == "Status" || is_released {
            entry.object = None;
        } else if !body["kind"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("PartialObject"))
        {
            entry.object = Some(body.clone());
        }
    }
}
