//! Changes of existing objects: replacements and patches.

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::generator::{OTHER_UID, Scene, door, made_up, metadata, owner};
use crate::operation::Operation;
use crate::values::{self, Style};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Generates a PUT.
pub(crate) fn replace(dice: &mut Dice, scene: &Scene<'_>, live: &Value) -> Operation {
    let mut operation = scene.operation("replace", "PUT", door(dice, scene.kind));
    let mut object = live.clone();
    object["metadata"]["name"] = scene.slot.name.clone().into();
    if scene.kind.built_in {
        let made = made_up(dice, scene);
        for key in [
            "spec",
            "data",
            "rules",
            "secrets",
            "status",
            "automountServiceAccountToken",
        ] {
            if let Some(value) = made.get(key) {
                object[key] = value.clone();
            }
        }
    } else {
        let style = scene.style(dice);
        let count = dice.below(4);
        for _ in 0..count {
            values::change(dice, style, &scene.kind.schema, &mut object);
        }
    }
    if dice.chance(25) {
        let given = metadata(dice);
        for (key, value) in given.as_object().expect("fields") {
            object["metadata"][key] = value.clone();
        }
    }
    let fields = &mut object["metadata"];
    remove(fields, "deletionTimestamp");
    remove(fields, "creationTimestamp");
    if dice.chance(30) {
        // Clients that do not know managedFields leave them out; others send them back.
        remove(fields, "managedFields");
    } else if let Some(Value::Array(entries)) = fields.get_mut("managedFields") {
        for entry in entries {
            entry["time"] = "2026-01-01T00:00:00Z".into();
        }
    }
    fields["resourceVersion"] = scene.version(1).into();
    if fields.get("uid").is_some() {
        fields["uid"] = scene.uid().into();
    }
    if fields.get("ownerReferences").is_some() {
        fields["ownerReferences"] = json!([owner(dice)]);
    }
    match dice.below(30) {
        0..=1 => fields["resourceVersion"] = scene.version(2).into(),
        2 => remove(fields, "resourceVersion"),
        3 => fields["uid"] = OTHER_UID.into(),
        4 => fields["name"] = "other".into(),
        5 => {
            remove(fields, "uid");
            fields["generation"] = 99.into();
        }
        6 => remove(fields, "namespace"),
        7 => fields["namespace"] = "elsewhere".into(),
        _ => {}
    }
    operation.body = Some(object);
    operation
}

fn remove(fields: &mut Value, key: &str) {
    fields.as_object_mut().expect("fields").remove(key);
}

/// Generates a JSON merge patch.
pub(crate) fn merge(dice: &mut Dice, scene: &Scene<'_>, _live: &Value) -> Operation {
    let mut operation = scene.operation("merge patch", "PATCH", door(dice, scene.kind));
    operation.media = MERGE;
    operation.body = Some(partial(dice, scene, true));
    operation
}

/// Generates a part of an object, with nulls for removed fields.
fn partial(dice: &mut Dice, scene: &Scene<'_>, careful: bool) -> Value {
    let style = Style {
        careful: careful && scene.kind.built_in,
        ..scene.style(dice)
    };
    let mut patch = values::patch(dice, style, &scene.kind.schema);
    if !patch.is_object() {
        patch = json!({});
    }
    let mut given = if dice.chance(40) {
        metadata(dice)
    } else {
        json!({})
    };
    match dice.below(30) {
        0..=1 => given["resourceVersion"] = scene.version(1).into(),
        2 => given["resourceVersion"] = scene.version(2).into(),
        3 => given["labels"] = json!({ "app": null }),
        4 => given["annotations"] = Value::Null,
        5 if dice.chance(40) => given["name"] = "other".into(),
        6 if dice.chance(40) => given["uid"] = OTHER_UID.into(),
        7 if dice.chance(40) => {
            given["generation"] = 40.into();
            given["creationTimestamp"] = Value::Null;
        }
        8 if dice.chance(30) => patch["kind"] = "Other".into(),
        _ => {}
    }
    if given != json!({}) {
        patch["metadata"] = given;
    }
    patch
}

/// Generates a strategic merge patch, with an occasional directive.
pub(crate) fn strategic(dice: &mut Dice, scene: &Scene<'_>, _live: &Value) -> Operation {
    let mut operation = scene.operation("strategic merge patch", "PATCH", door(dice, scene.kind));
    operation.media = STRATEGIC;
    let mut patch = partial(dice, scene, false);
    match dice.below(12) {
        1 => patch["metadata"]["labels"] = json!({ "$patch": "delete" }),
        2 => {
            // The order of adding and deleting an item of both lists is random on a server.
            let added = patch.pointer("/metadata/finalizers").map(Value::to_string);
            let added = added.unwrap_or_default();
            let gone = ["okt.dev/one", "okt.dev/two"];
            if let Some(gone) = gone.iter().find(|name| !added.contains(*name)) {
                patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([gone]);
            }
        }
        _ => {}
    }
    if let Some(Value::Array(containers)) = patch.pointer_mut("/spec/template/spec/containers") {
        for container in containers {
            if let (Some(Value::Array(variables)), true) =
                (container.get_mut("env"), dice.chance(30))
            {
                let name = *dice.pick(&["A", "B"]);
                variables.push(json!({ "$patch": "delete", "name": name }));
            }
        }
    }
    operation.body = Some(patch);
    operation
}

/// Generates a JSON patch with a few steps.
pub(crate) fn json_patch(dice: &mut Dice, scene: &Scene<'_>, live: &Value) -> Operation {
    let door = door(dice, scene.kind);
    let mut operation = scene.operation("json patch", "PATCH", door);
    operation.media = JSON_PATCH;
    let mut places = Vec::new();
    values::pointers(&scene.kind.schema, live, "", &mut places);
    places.retain(|(path, schema)| {
        let top = path.split('/').nth(1).unwrap_or_default();
        let made = scene.kind.schema["properties"].get(top).is_some();
        let deep = path
            .split('/')
            .any(|step| step == "-" || step.parse::<usize>().is_ok());
        let kept = scene.kind.built_in
            && (deep
                || schema.is_null()
                || schema.get(values::KEPT).is_some()
                || path.ends_with("/replicas")
                || path.ends_with("/containers")
                || path.ends_with("/rules"));
        // A server cannot read an embedded object with mistyped identifying fields.
        let embedded = ["apiVersion", "kind", "metadata"]
            .iter()
            .any(|key| path.starts_with(&format!("/spec/template/{key}")));
        made && !kept && !embedded && (door == "/status") == (top == "status")
    });
    let style = scene.style(dice);
    let mut steps = Vec::new();
    for _ in 0..=dice.below(3) {
        if places.is_empty() || dice.chance(20) {
            steps.push(dice.pick(&[
                json!({ "op": "add", "path": "/metadata/labels", "value": { "app": "a" } }),
                json!({ "op": "add", "path": "/metadata/labels/team", "value": "b" }),
                json!({ "op": "remove", "path": "/metadata/labels/app" }),
                json!({ "op": "remove", "path": "/metadata/annotations" }),
                json!({ "op": "test", "path": "/metadata/labels/app", "value": "a" }),
                json!({ "op": "test", "path": "/metadata/finalizers", "value": null }),
                json!({ "op": "add", "path": "/metadata/finalizers/-", "value": "okt.dev/two" }),
                json!({ "op": "test", "path": "/metadata/resourceVersion", "value": scene.version(1) }),
                json!({ "op": "test", "path": "/metadata/resourceVersion", "value": scene.version(2) }),
                json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": scene.version(2) }),
            ]).clone());
            continue;
        }
        let (path, schema) = dice.pick(&places).clone();
        let found = live.pointer(&path);
        let value = values::value(dice, style, schema);
        steps.push(match dice.below(14) {
            0..=3 => json!({ "op": "add", "path": path, "value": value }),
            4..=6 => json!({ "op": "replace", "path": path, "value": value }),
            7..=9 => json!({ "op": "remove", "path": path }),
            10 => {
                json!({ "op": "test", "path": path, "value": found.cloned().unwrap_or_default() })
            }
            11 => json!({ "op": "test", "path": path, "value": value }),
            how => {
                let (from, _) = dice.pick(&places).clone();
                if scene.kind.built_in {
                    continue;
                }
                let how = if how == 12 { "copy" } else { "move" };
                json!({ "op": how, "from": from, "path": path })
            }
        });
    }
    operation.body = Some(steps.into());
    operation
}

/// Generates an operation on the scale of an object.
pub(crate) fn scale(dice: &mut Dice, scene: &Scene<'_>) -> Operation {
    let replicas = dice.below(4);
    let mut operation = match dice.below(3) {
        0 => scene.operation("get", "GET", "/scale"),
        1 => scene.operation("merge patch", "PATCH", "/scale"),
        _ => scene.operation("replace", "PUT", "/scale"),
    };
    if operation.method == "PATCH" {
        operation.media = MERGE;
        operation.body = Some(json!({ "spec": { "replicas": replicas } }));
    } else if operation.method == "PUT" {
        let mut metadata = json!({ "name": scene.slot.name, "namespace": scene.namespace });
        if dice.chance(50) {
            metadata["resourceVersion"] = scene.version(dice.below(2) + 1).into();
        }
        operation.body = Some(json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": metadata, "spec": { "replicas": replicas },
        }));
    }
    operation
}

/// Adds or removes a finalizer or an owner, as operators do.
pub(crate) fn finalizers(dice: &mut Dice, scene: &Scene<'_>, live: &Value) -> Operation {
    let mut operation = scene.operation("merge patch", "PATCH", "");
    operation.media = MERGE;
    let has = live["metadata"]["finalizers"]
        .as_array()
        .map_or(0, Vec::len);
    let mut metadata = json!({});
    metadata["finalizers"] = match (has, dice.below(3)) {
        (0, 0..=1) => json!(["okt.dev/one"]),
        (0, _) => json!(["okt.dev/one", "okt.dev/two"]),
        (_, 0) => json!([]),
        (_, 1) => Value::Null,
        _ => json!(["okt.dev/two"]),
    };
    if dice.chance(25) {
        metadata["ownerReferences"] = if dice.chance(50) {
            json!([owner(dice)])
        } else {
            Value::Null
        };
    }
    operation.body = Some(json!({ "metadata": metadata }));
    operation
}

/// Empties the managed fields.
pub(crate) fn reset(dice: &mut Dice, scene: &Scene<'_>) -> Operation {
    let mut operation = scene.operation("merge patch", "PATCH", door(dice, scene.kind));
    operation.media = MERGE;
    let entries = if dice.chance(70) {
        json!([{}])
    } else {
        json!([])
    };
    operation.body = Some(json!({ "metadata": { "managedFields": entries } }));
    operation
}
