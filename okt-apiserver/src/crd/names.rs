//! Accepts the names of CRDs: each name of a group belongs to one CRD.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{GROUP, PLURAL, read};
use crate::kind::{KindId, ServedKind};
use crate::object::{self, text};
use crate::store::Store;

/// The accepted names of all CRDs of a group, including the requesting one.
#[derive(Debug, Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn of(store: &Store, group: &str) -> Self {
        let mut taken = Self::default();
        for crd in crds_of(store, group) {
            let name = |key| text(&crd, &["status", "acceptedNames", key]).to_owned();
            taken.resources.extend([name("plural"), name("singular")]);
            let short = object::texts(&crd, &["status", "acceptedNames", "shortNames"]);
            taken.resources.extend(short.into_iter().map(str::to_owned));
            taken.kinds.extend([name("kind"), name("listKind")]);
        }
        taken
    }
}

fn crds_of(store: &Store, group: &str) -> Vec<Value> {
    let id = id();
    let all = store.list(&id, None).map(|(_, crd)| crd.read());
    all.filter(|crd| text(crd, &["spec", "group"]) == group)
        .collect()
}

fn id() -> KindId {
    KindId::new(GROUP, PLURAL)
}

/// Accepts the names of a CRD that no other CRD has, and reports the result in its conditions.
pub(crate) fn accept(store: &Store, crd: &mut Value, now: &str) {
    let taken = Taken::of(store, text(crd, &["spec", "group"]));
    let empty = json!({});
    let wanted = object::at(crd, &["spec", "names"]).unwrap_or(&empty);
    let had = object::at(crd, &["status", "acceptedNames"]).unwrap_or(&empty);
    // A server always writes these two fields.
    let mut names = json!({ "plural": "", "kind": "" });
    for (key, value) in had.as_object().into_iter().flatten() {
        names[key] = value.clone();
    }
    let mut refused = None;
    for (key, reason, others) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let conflicts = conflicts(wanted.get(key), had.get(key), others);
        match conflicts.as_slice() {
            [] => object::set(object::fields(&mut names), key, wanted.get(key).cloned()),
            // Only the last conflict is reported.
            [one] => refused = Some((reason, one.clone())),
            many => refused = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    let categories = wanted.get("categories").cloned();
    object::set(object::fields(&mut names), "categories", categories);
    object::put(crd, &["status", "acceptedNames"], names);
    let is_accepted = refused.is_none();
    let (reason, message) =
        refused.unwrap_or_else(|| ("NoConflicts", "no conflicts found".to_owned()));
    set_condition(crd, "NamesAccepted", is_accepted, (reason, &message), now);
    if !is_established(crd) {
        let explained = if is_accepted {
            (
                "InitialNamesAccepted",
                "the initial names have been accepted",
            )
        } else {
            ("NotAccepted", "not all names are accepted")
        };
        set_condition(crd, "Established", is_accepted, explained, now);
    }
}

/// Returns the conflicts of one name, or of each name of a list.
fn conflicts(
    wanted: Option<&Value>,
    had: Option<&Value>,
    others: &BTreeSet<String>,
) -> Vec<String> {
    let list = |value: Option<&Value>| match value {
        Some(Value::Array(names)) => names.clone(),
        Some(name) => vec![name.clone()],
        None => Vec::new(),
    };
    let had = list(had);
    let mut found = Vec::new();
    for name in list(wanted) {
        let taken = name.as_str().is_some_and(|name| others.contains(name));
        let conflict = format!("{name} is already in use");
        if taken && !had.contains(&name) && !found.contains(&conflict) {
            found.push(conflict);
        }
    }
    found
}

fn set_condition(
    crd: &mut Value,
    kind: &str,
    holds: bool,
    (reason, message): (&str, &str),
    now: &str,
) {
    let status = if holds { "True" } else { "False" };
    let condition = json!({
        "type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message,
    });
    object::set_condition(crd, condition);
}

/// Reports that a CRD is being deleted, with its reason and message.
pub(crate) fn terminate(crd: &mut Value, explained: (&str, &str), now: &str) {
    set_condition(crd, "Terminating", true, explained, now);
}

/// Whether a CRD is served.
pub(crate) fn is_established(crd: &Value) -> bool {
    object::is_condition_true(crd, "Established")
}

/// Checks the names of all CRDs of a group again, after one of them took or released names.
pub(crate) fn reconsider(store: &mut Store, group: &str) {
    let now = store.clock.text();
    let mut again = true;
    while again {
        again = false;
        for old in crds_of(store, group) {
            let mut crd = old.clone();
            accept(store, &mut crd, &now);
            if crd == old {
                continue;
            }
            again = true;
            store.put(&id(), &mut crd);
            if is_established(&crd)
                && let Ok(declared) = read(&crd)
            {
                let before = declared.first().and_then(|kind| store.kind(&kind.id()));
                let was_changed = before.is_some_and(|kind| kind.was_changed);
                let declared = declared.into_iter().map(|kind| ServedKind {
                    was_changed,
                    ..kind
                });
                store.serve_anew(declared.map(Arc::new).collect());
            }
        }
    }
}
