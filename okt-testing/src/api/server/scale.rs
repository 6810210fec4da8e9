//! This file answers a server-side apply of a scale.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, call::Call};
use crate::api::{
    apply::Operation,
    convert,
    kind::{Kind, Origin},
    object::{self, text},
    patch,
    refusal::{Cause, Refusal, Subject},
    store::{Key, Store},
    write::{self, Precondition, Subresource},
};

/// Applies a scale that sets the number of replicas and nothing else.
pub(super) fn apply(
    store: &mut Store,
    call: &Call,
    kind: &Arc<Kind>,
    key: &Key,
) -> Result<Answer, Refusal> {
    let Some(scale) = &kind.scale else {
        return Err(Refusal::unknown_path());
    };
    let door = call.door(kind, Subresource::Scale, Operation::Apply);
    let mut config = call.parse(&[patch::APPLY])?;
    object::whole_numbers(&mut config);
    let Some(old) = convert::current(store, kind, key) else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let given = (text(&config, &["apiVersion"]), text(&config, &["kind"]));
    if given != ("autoscaling/v1", "Scale") {
        return Err(Refusal::bad_request(format!(
            "invalid object type: {}, Kind={}",
            given.0, given.1
        )));
    }
    if kind.origin == Origin::Crd {
        return Err(Refusal::not_served(
            "server-side apply of the scale of a custom resource, at which a real server fails",
        ));
    }
    let replicas = object::at(&config, &["spec", "replicas"]).and_then(Value::as_i64);
    let only = json!({
        "apiVersion": given.0, "kind": given.1,
        "metadata": config.get("metadata"), "spec": { "replicas": replicas },
    });
    let says_more = object::at(&config, &["metadata"])
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .any(|(key, _)| !matches!(key.as_str(), "name" | "namespace" | "resourceVersion"));
    let says_all = config.get("metadata").is_some();
    let Some(replicas) = replicas.filter(|_| says_all && !says_more && config == only) else {
        return Err(Refusal::not_served(
            "server-side apply of a scale that does not say its name and its replicas, or says more",
        ));
    };
    let address = (
        text(&config, &["metadata", "name"]),
        object::namespace(&config),
    );
    if address.0 != key.name || !(address.1.is_empty() || address.1 == key.namespace) {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            address.0, key.name
        )));
    }
    let old = old.read();
    Precondition::of(&config).check_version(kind, &old)?;
    if replicas < 0 {
        let detail = "must be greater than or equal to 0";
        let cause = Cause::invalid("spec.replicas", &replicas.into(), detail);
        let subject = Subject {
            group: "autoscaling",
            kind: "Scale",
            plural: "scales",
            name: &key.name,
        };
        return Err(Refusal::invalid(subject, &[cause]));
    }
    let replicas = (scale.spec_replicas.as_slice(), replicas);
    let force = call.query.flag("force");
    let written = write::apply_scale(store, &door, &old, replicas, force)?;
    Ok(Answer::ok(scale.of(&written.read())))
}
