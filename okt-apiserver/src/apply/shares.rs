//! Reads and writes `metadata.managedFields`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::FieldSet;
use crate::object;

/// The writer of fields, and the endpoint it uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) operation: Operation,
    pub(crate) name: String,
    /// An updater has one entry per version. An applier has one entry for all versions, and this is empty.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

/// The order of the variants is the order of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

#[derive(Clone, Debug)]
pub(super) struct FieldShare {
    pub(super) fields: FieldSet,
    pub(super) api_version: String,
    /// `None` if an apply changed only the ownership.
    pub(super) time: Option<String>,
}

pub(super) type Shares = BTreeMap<Manager, FieldShare>;

/// Returns the manager as a conflict names it.
pub(super) fn describe(manager: &Manager, share: &FieldShare) -> String {
    let mut text = format!("{:?}", manager.name);
    if !manager.subresource.is_empty() {
        text = format!("{text} with subresource {:?}", manager.subresource);
    }
    if manager.operation == Operation::Update {
        text = format!("{text} using {}", share.api_version);
    }
    text
}

/// Reads the owners of an object's fields; `None` if an entry is unreadable.
pub(super) fn read(object: &Value) -> Option<Shares> {
    read_entries(object::at(object, &["metadata", "managedFields"]))
}

/// Reads the owners from these entries; `None` if an entry is unreadable.
pub(super) fn read_entries(entries: Option<&Value>) -> Option<Shares> {
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    entries
        .map(|entry| {
            let text = |key| object::text(entry, &[key]).to_owned();
            let operation = match object::text(entry, &["operation"]) {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let manager = Manager {
                operation,
                name: text("manager"),
                api_version: match operation {
                    Operation::Apply => String::new(),
                    Operation::Update => text("apiVersion"),
                },
                subresource: text("subresource"),
            };
            if text("apiVersion").is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let share = FieldShare {
                fields: FieldSet::from_json(entry.get("fieldsV1").unwrap_or(&Value::Null)),
                api_version: text("apiVersion"),
                time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            };
            Some((manager, share))
        })
        .collect()
}

/// The maximum number of separate updaters.
const UPDATERS: usize = 10;

/// The manager of the oldest updates after they were merged.
const ANCIENT: &str = "ancient-changes";

/// Merges the oldest updates into one entry if there are more than [`UPDATERS`].
pub(super) fn cap(shares: &mut Shares) {
    let mut updaters: Vec<_> = shares
        .iter()
        .filter(|(manager, _)| manager.operation == Operation::Update)
        .map(|(manager, share)| (share.time.clone(), manager.clone()))
        .collect();
    if updaters.len() <= UPDATERS {
        return;
    }
    updaters.sort();
    let mut excess = updaters.len() - UPDATERS;
    let mut first = BTreeMap::<String, Manager>::new();
    for (time, manager) in updaters {
        if excess == 0 {
            return;
        }
        let Some(begun) = first.get(&manager.api_version) else {
            first.insert(manager.api_version.clone(), manager);
            continue;
        };
        let bucket = Manager {
            operation: Operation::Update,
            name: ANCIENT.to_owned(),
            api_version: manager.api_version.clone(),
            subresource: String::new(),
        };
        if !shares.contains_key(&bucket)
            && let Some(share) = shares.remove(begun)
        {
            shares.insert(bucket.clone(), share);
        }
        if let Some(share) = shares.remove(&manager)
            && let Some(ancient) = shares.get_mut(&bucket)
        {
            ancient.fields.add(&share.fields);
            ancient.time = time;
        }
        excess -= 1;
    }
}

/// Writes the owners in the order that a server uses.
pub(super) fn write(object: &mut Value, shares: Shares) {
    let mut shares: Vec<_> = shares
        .into_iter()
        .filter(|(_, share)| !share.fields.is_empty())
        .collect();
    shares.sort_by(|(a, x), (b, y)| {
        (
            a.operation,
            &x.time,
            &a.name,
            &x.api_version,
            &a.subresource,
        )
            .cmp(&(
                b.operation,
                &y.time,
                &b.name,
                &y.api_version,
                &b.subresource,
            ))
    });
    let entries: Vec<_> = shares
        .into_iter()
        .map(|(manager, share)| {
            let operation = match manager.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            };
            let mut entry = Map::new();
            let mut set = |key: &str, value: Value| entry.insert(key.to_owned(), value);
            set("manager", manager.name.into());
            set("operation", operation.into());
            set("apiVersion", share.api_version.into());
            set("fieldsType", "FieldsV1".into());
            set("fieldsV1", share.fields.to_json());
            if let Some(time) = share.time {
                set("time", time.into());
            }
            if !manager.subresource.is_empty() {
                set("subresource", manager.subresource.into());
            }
            Value::Object(entry)
        })
        .collect();
    let entries = (!entries.is_empty()).then_some(Value::Array(entries));
    object::set(object::metadata(object), "managedFields", entries);
}
