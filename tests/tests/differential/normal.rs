//! Makes the answers of two servers comparable.
//!
//! It changes these parts:
//!
//! - Versions and uids become numbers by order of appearance, for each object: they are specific to a server, and only
//!   their changes count.
//! - The version of a list is removed: it counts all changes on a server, including those of other lanes.
//! - Times of the server's clock become `<time>`.
//! - Entries of `managedFields` are sorted by manager: their order depends on the second in which they were written.
//! - The random end of a generated name becomes `<generated>`.
//! - The causes of a refusal are sorted, and if there are several, the message is cut off before them: a server walks
//!   maps in any order.
//! - The type errors of a configuration are cut off, if there are several: a server walks maps in any order and stops
//!   at the first undeclared field.
//! - For a patch whose result cannot be decoded, the text of that result and the decoder's message are removed: they
//!   hold times, and no client reads them.

use serde_json::Value;

use crate::operation::Slot;
use crate::side::Names;

/// Normalizes the body of an answer about objects of a kind.
pub(crate) fn normalise(names: &mut Names, plural: &str, slot: Option<&Slot>, body: &mut Value) {
    if body["kind"] == "Status" {
        status(names, slot, body);
    } else if let Some(Value::Array(items)) = body.get_mut("items") {
        for item in items {
            object(names, plural, item);
        }
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
            if let Some(token) = metadata.get_mut("continue")
                && *token != ""
            {
                *token = "<next>".into();
            }
        }
    } else {
        object(names, plural, body);
    }
}

/// Normalizes an object of an answer or of a watch event.
pub(crate) fn object(names: &mut Names, plural: &str, object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let text = |key: &str| {
        metadata
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (name, prefix) = (text("name"), text("generateName"));
    let (version, uid) = (text("resourceVersion"), text("uid"));
    let generated = !prefix.is_empty() && name.starts_with(&prefix);
    let shown = if generated {
        format!("{prefix}<generated>")
    } else {
        name
    };
    if generated {
        metadata.insert("name".to_owned(), shown.clone().into());
    }
    let slot = Slot {
        plural: plural.to_owned(),
        name: shown,
    };
    if !version.is_empty() {
        let shown = if generated {
            "<version>".to_owned()
        } else {
            names.version(&slot, &version)
        };
        metadata.insert("resourceVersion".to_owned(), shown.into());
    }
    if !uid.is_empty() {
        let shown = if generated {
            "<uid>".to_owned()
        } else {
            names.uid(&slot, &uid)
        };
        metadata.insert("uid".to_owned(), shown.into());
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if metadata.get(key).is_some_and(Value::is_string) {
            metadata.insert(key.to_owned(), "<time>".into());
        }
    }
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
        for owner in owners {
            let known = owner["uid"].as_str().and_then(|uid| names.known_uid(uid));
            if let Some(known) = known.cloned() {
                owner["uid"] = known.into();
            }
        }
    }
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        for entry in entries.iter_mut() {
            if entry["time"].is_string() {
                entry["time"] = "<time>".into();
            }
            // Owners are identified by their uids.
            let fields = entry["fieldsV1"].to_string();
            if fields.contains("\\\"uid\\\"") {
                entry["fieldsV1"] = names
                    .owners()
                    .fold(fields, |text, (uid, known)| text.replace(uid, known))
                    .parse()
                    .unwrap_or_default();
            }
        }
        entries.sort_by_key(|entry| {
            ["operation", "manager", "subresource", "apiVersion"]
                .map(|key| entry[key].as_str().unwrap_or_default().to_owned())
        });
    }
}

fn status(names: &mut Names, slot: Option<&Slot>, status: &mut Value) {
    if let Some(uid) = status.pointer_mut("/details/uid") {
        let known = uid.as_str().and_then(|uid| names.known_uid(uid));
        if let Some(known) = known.cloned() {
            *uid = known.into();
        }
    }
    let (mut several, mut undecodable) = (false, false);
    if let Some(Value::Array(causes)) = status.pointer_mut("/details/causes") {
        several = causes.len() > 1;
        for cause in causes.iter_mut() {
            if let Some(text) = cause["message"].as_str() {
                cause["message"] = sentence(names, slot, text).into();
            }
            if let Some(text) = cause["field"].as_str() {
                cause["field"] = sentence(names, slot, text).into();
            }
            if cause["field"] == "patch" {
                // The message holds the whole object with its times, and the text of a library.
                cause["message"] = "<the object>".into();
                undecodable = true;
            }
        }
        causes.sort_by_key(Value::to_string);
    }
    let name = status["details"]["name"].as_str().unwrap_or_default();
    if name.starts_with("gen-") {
        let message = status["message"].as_str().unwrap_or_default();
        status["message"] = message.replace(name, "<generated>").into();
        status["details"]["name"] = "<generated>".into();
    }
    if let Some(text) = status["message"].as_str() {
        let mut text = sentence(names, slot, text);
        if (several || undecodable)
            && let Some(at) = text.find(" is invalid: ")
        {
            text.truncate(at + " is invalid:".len());
        }
        if several && let Some(at) = text.find(" conflicts: ") {
            text.truncate(at + " conflicts:".len());
        }
        let untyped = text.contains("errors:") || text.contains("field not declared in schema");
        if untyped && let Some(at) = text.find("): ") {
            text.truncate(at + "):".len());
        }
        status["message"] = text.into();
    }
}

/// Replaces the uids and versions in a message.
fn sentence(names: &Names, slot: Option<&Slot>, text: &str) -> String {
    let breaks = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let mut shown = String::new();
    for piece in text.split_inclusive(breaks) {
        let word = piece.trim_end_matches(breaks);
        let version = || {
            let slot = slot.filter(|_| text.contains("ResourceVersion in the precondition"))?;
            names.known_version(slot, word)
        };
        match names.known_uid(word).cloned().or_else(version) {
            Some(known) => {
                shown.push_str(&known);
                shown.push_str(&piece[word.len()..]);
            }
            None => shown.push_str(piece),
        }
    }
    shown
}
