//! The rules for the metadata of every object.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use serde::Serialize;
use serde_json::{Value, json};

use crate::causes::Causes;
use crate::kind::ServedKind;
use crate::{crd, object};

/// The maximum size of all annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(SUBDOMAIN));
static LABEL_NAME: LazyLock<Regex> = LazyLock::new(|| pattern("[a-z0-9]([-a-z0-9]*[a-z0-9])?"));
static CONFIG_KEY: LazyLock<Regex> = LazyLock::new(|| pattern("[-._a-zA-Z0-9]+"));
static LABEL_VALUE: LazyLock<Regex> =
    LazyLock::new(|| pattern("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"));
static KEY_NAME: LazyLock<Regex> =
    LazyLock::new(|| pattern("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"));

const LABEL_SYNTAX: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const KEY_SYNTAX: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN_SYNTAX: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The maximum size of all data of a `ConfigMap` or a Secret, in bytes.
const DATA_LIMIT: u64 = 1024 * 1024;
/// The finalizers of Kubernetes itself, which need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Returns the pattern for a whole text.
fn pattern(inner: &str) -> Regex {
    Regex::new(&format!("^(?:{inner})$")).expect("the patterns of this module are valid")
}

/// Checks the metadata of an object.
pub(crate) fn check_metadata(kind: &ServedKind, object: &Value, causes: &mut Causes) {
    let prefix = object::text(object, &["metadata", "generateName"]);
    if !prefix.is_empty() {
        check_name(kind, "metadata.generateName", prefix, causes);
    }
    let name = object::name(object);
    if name.is_empty() {
        causes.required("metadata.name", "name or generateName is required");
    } else {
        check_name(kind, "metadata.name", name, causes);
    }
    for (key, value) in object::entries(object, &["metadata", "labels"]) {
        let field = "metadata.labels";
        check_key(field, key, causes);
        check_label(field, value.as_str().unwrap_or_default(), causes);
    }
    let mut size = 0;
    for (key, value) in object::entries(object, &["metadata", "annotations"]) {
        check_key("metadata.annotations", &key.to_lowercase(), causes);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        causes.too_long("metadata.annotations", ANNOTATIONS_LIMIT as u64);
    }
    let finalizers = object::finalizers(object);
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.invalid("metadata.finalizers", json!(finalizers), detail);
    }
    for (index, finalizer) in finalizers.iter().enumerate() {
        check_key("metadata.finalizers", finalizer, causes);
        if kind.is_built_in()
            && !kind.is(crd::GROUP, crd::PLURAL)
            && !finalizer.contains('/')
            && !STANDARD_FINALIZERS.contains(finalizer)
        {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            causes.invalid(format!("metadata.finalizers[{index}]"), finalizer, detail);
        }
    }
    check_owners(object, causes);
    check_data(kind, object, causes);
}

/// Checks the size of a `ConfigMap` or a Secret.
fn check_data(kind: &ServedKind, object: &Value, causes: &mut Causes) {
    let (field, parts): (&str, &[(&str, bool)]) = if kind.is("", "configmaps") {
        ("[]", &[("data", false), ("binaryData", true)])
    } else if kind.is("", "secrets") {
        ("data", &[("data", true)])
    } else {
        return;
    };
    let mut size = 0;
    for (key, is_base64) in parts {
        let values = object::entries(object, &[key]).map(|(_, value)| value);
        for text in values.filter_map(Value::as_str) {
            let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
            size += if *is_base64 {
                text.len() / 4 * 3 - padding.min(2)
            } else {
                text.len()
            } as u64;
        }
    }
    if size > DATA_LIMIT {
        causes.too_long(field, DATA_LIMIT);
    }
}

/// Checks a name, or the beginning of a generated one.
fn check_name(kind: &ServedKind, field: &str, name: &str, causes: &mut Causes) {
    let mut complain = |detail: &str| causes.invalid(field, name, detail);
    let is_prefix = field == "metadata.generateName";
    let is_free = matches!(kind.kind.as_str(), "PodDisruptionBudget" | "Event");
    if kind.group.starts_with("rbac.") || (kind.is_built_in() && is_free) {
        // These names are not restricted to subdomains (e.g. `system:node`).
        if !is_prefix && matches!(name, "." | "..") {
            complain(&format!("may not be '{name}'"));
        }
        for illegal in ['/', '%'] {
            if name.contains(illegal) {
                complain(&format!("may not contain '{illegal}'"));
            }
        }
        return;
    }
    let is_label =
        kind.group.is_empty() && matches!(kind.plural.as_str(), "namespaces" | "services");
    // A server tolerates a final dash, and with it the character before.
    let masked = name
        .strip_suffix('-')
        .filter(|rest| is_prefix && !rest.is_empty())
        .map(|rest| {
            let end = rest.char_indices().next_back().map_or(0, |(at, _)| at);
            format!("{}a", &rest[..end])
        });
    let checked = masked.as_deref().unwrap_or(name);
    let (limit, holds, what) = if is_label {
        (63, LABEL_NAME.is_match(checked), no_label(checked))
    } else {
        (253, NAME.is_match(checked), SUBDOMAIN_SYNTAX)
    };
    if checked.len() > limit {
        complain(&format!("must be no more than {limit} characters"));
    }
    if !holds {
        complain(what);
    }
}

/// Whether a text is a DNS subdomain.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && NAME.is_match(text)
}

/// Whether a text is a label of DNS.
pub(crate) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && LABEL_NAME.is_match(text)
}

/// Checks a name that must be a label of DNS.
pub(crate) fn check_dns_label(field: &str, name: &str, causes: &mut Causes) {
    if name.len() > 63 {
        causes.invalid(field, name, "must be no more than 63 bytes");
    }
    if !LABEL_NAME.is_match(name) {
        causes.invalid(field, name, no_label(name));
    }
}

/// Returns why a text is no label of DNS: one that is a subdomain can only have dots.
fn no_label(text: &str) -> &'static str {
    if NAME.is_match(text) {
        "must not contain dots"
    } else {
        LABEL_SYNTAX
    }
}

/// Checks a name that must be a subdomain of DNS.
pub(crate) fn check_dns_subdomain(field: &str, name: &str, causes: &mut Causes) {
    if name.len() > 253 {
        causes.invalid(field, name, "must be no more than 253 bytes");
    }
    if !NAME.is_match(name) {
        causes.invalid(field, name, SUBDOMAIN_SYNTAX);
    }
}

/// Checks the name of a Service.
pub(crate) fn check_service_name(field: &str, name: &str, causes: &mut Causes) {
    check_dns_label(field, name, causes);
}

/// Checks a key of the data of a `ConfigMap` or of a Secret.
pub(crate) fn check_config_key(field: &str, key: &str, causes: &mut Causes) {
    if key.len() > 253 {
        causes.invalid(field, key, "must be no more than 253 bytes");
    }
    if !CONFIG_KEY.is_match(key) {
        causes.invalid(field, key, "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')");
    }
    match key {
        "." => causes.invalid(field, key, "must not be '.'"),
        ".." => causes.invalid(field, key, "must not be '..'"),
        key if key.starts_with("..") => causes.invalid(field, key, "must not start with '..'"),
        _ => {}
    }
}

/// Checks a name that only has to be a part of a path, such as that of a role.
pub(crate) fn check_path_segment(field: &str, name: &str, causes: &mut Causes) {
    if matches!(name, "." | "..") {
        causes.invalid(field, name, &format!("may not be '{name}'"));
    }
    for illegal in ['/', '%'] {
        if name.contains(illegal) {
            causes.invalid(field, name, &format!("may not contain '{illegal}'"));
        }
    }
}

/// Checks the value of a label.
pub(crate) fn check_label(field: &str, value: &str, causes: &mut Causes) {
    if value.len() > 63 {
        causes.invalid(field, value, "must be no more than 63 bytes");
    }
    if !LABEL_VALUE.is_match(value) {
        causes.invalid(
            field,
            value,
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        );
    }
}

/// Checks the key of a label, an annotation or a finalizer.
pub(crate) fn check_key(field: &str, key: &str, causes: &mut Causes) {
    let mut complain = |detail: &str| causes.invalid(field, key, detail);
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                complain("prefix part must be non-empty");
            } else if prefix.len() > 253 {
                complain("prefix part must be no more than 253 bytes");
            }
            if !prefix.is_empty() && !NAME.is_match(prefix) {
                complain(&format!("prefix part {SUBDOMAIN_SYNTAX}"));
            }
            name
        }
        _ => {
            complain(&format!(
                "a valid label key {KEY_SYNTAX} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return;
        }
    };
    if name.is_empty() {
        complain("name part must be non-empty");
    } else if name.len() > 63 {
        complain("name part must be no more than 63 bytes");
    }
    if !KEY_NAME.is_match(name) {
        complain(&format!("name part {KEY_SYNTAX}"));
    }
}

fn check_owners(object: &Value, causes: &mut Causes) {
    let field = "metadata.ownerReferences";
    let owners: Vec<_> = object::owners(object).iter().map(Owner::of).collect();
    let mut controller = None;
    for owner in &owners {
        let version = owner.api_version;
        let is_wrong = version.matches('/').count() > 1;
        if is_wrong || version.rsplit('/').next().is_none_or(str::is_empty) {
            causes.invalid(
                format!("{field}.apiVersion"),
                version,
                "version must not be empty",
            );
        }
        for (key, text) in [
            ("kind", owner.kind),
            ("name", owner.name),
            ("uid", owner.uid),
        ] {
            if text.is_empty() {
                causes.invalid(format!("{field}.{key}"), "", "must not be empty");
            }
        }
        if (version, owner.kind) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            causes.invalid(field, owner, detail);
        }
        let name = format!("{}/{}", owner.kind, owner.name);
        match &controller {
            _ if owner.controller != Some(true) => {}
            None => controller = Some(name),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                causes.invalid(field, &owners, &detail);
            }
        }
    }
}

/// An owner in the order in which a server shows its fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

impl<'a> Owner<'a> {
    fn of(owner: &'a Value) -> Self {
        let text = |key| object::text(owner, &[key]);
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: owner["controller"].as_bool(),
            block_owner_deletion: owner["blockOwnerDeletion"].as_bool(),
        }
    }
}

/// Checks that an update keeps immutable fields.
pub(crate) fn check_kept(old: &Value, new: &Value, causes: &mut Causes) {
    check_finalizers(old, new, causes);
    for key in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let path = ["metadata", key];
        let (was, now) = (object::at(old, &path), object::at(new, &path));
        if was != now {
            causes.invalid(path.join("."), now, "field is immutable");
        }
    }
}

/// Checks that an update adds no finalizers to an object that is being deleted.
fn check_finalizers(old: &Value, new: &Value, causes: &mut Causes) {
    if !object::is_deleting(old) {
        return;
    }
    let before = object::finalizers(old);
    let added: BTreeSet<_> = object::finalizers(new)
        .into_iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    if !added.is_empty() {
        causes.forbidden(
            "metadata.finalizers",
            &format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                Vec::from_iter(added).join(", ")
            ),
        );
    }
}
