//! Generates operations.

use serde_json::{Value, json};

use crate::changes;
use crate::dice::Dice;
use crate::kinds::Kind;
use crate::model::Model;
use crate::operation::{Operation, Slot};
use crate::values::{self, Style};

/// A uid that no object has.
pub(crate) const OTHER_UID: &str = "00000000-0000-4000-8000-999999999999";
pub(crate) const MANAGERS: [&str; 3] = ["alice", "bob", "carol"];
const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

/// The kind, the namespace and the object of an operation.
pub(crate) struct Scene<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) namespace: &'a str,
    pub(crate) slot: Slot,
}

impl Scene<'_> {
    pub(crate) fn style(&self, dice: &mut Dice) -> Style {
        Style {
            fill: *dice.pick(&[8, 15, 30, 60]),
            mistakes: if self.kind.built_in { 0 } else { 6 },
            nulls: 3,
            careful: false,
        }
    }

    /// Creates an operation on the object of this scene.
    pub(crate) fn operation(
        &self,
        verb: &'static str,
        method: &'static str,
        door: &str,
    ) -> Operation {
        Operation {
            verb,
            method,
            path: format!(
                "{}/{}{door}",
                self.kind.path(self.namespace),
                self.slot.name
            ),
            query: Vec::new(),
            media: JSON,
            accept: JSON,
            body: None,
            plural: self.kind.plural.clone(),
            slot: Some(self.slot.clone()),
        }
    }

    /// Creates an operation on all objects of the kind.
    fn on_all(&self, verb: &'static str, method: &'static str) -> Operation {
        Operation {
            path: self.kind.path(self.namespace),
            slot: None,
            ..self.operation(verb, method, "")
        }
    }

    pub(crate) fn version(&self, back: usize) -> String {
        format!("@v:{}:{back}@", self.slot)
    }

    pub(crate) fn uid(&self) -> String {
        format!("@u:{}:1@", self.slot)
    }
}

/// Generates the next operation on a kind.
pub(crate) fn next(dice: &mut Dice, model: &mut Model, kind: &Kind, namespace: &str) -> Operation {
    let slot = model.slot(kind, namespace, dice.below(3));
    let scene = Scene {
        kind,
        namespace,
        slot,
    };
    let object = model.object(&scene.slot).cloned();
    let old = model.is_old(&scene.slot);
    let mut operation = match &object {
        None => match dice.below(20) {
            0 | 3 => scene.operation("get", "GET", ""),
            1 => delete(dice, &scene, false),
            2 => changes::merge(dice, &scene, &json!({})),
            4 => changes::replace(dice, &scene, &scene.kind.bare()),
            5..=10 => apply(dice, model, &scene, None),
            _ => create(dice, &scene),
        },
        Some(object) => match dice.below(100) {
            0..=2 => get(dice, &scene),
            3..=7 => collection(dice, &scene),
            8..=9 => create(dice, &scene),
            10..=14 => delete(dice, &scene, old),
            15..=28 => changes::replace(dice, &scene, object),
            29..=42 => changes::merge(dice, &scene, object),
            43..=54 => changes::json_patch(dice, &scene, object),
            55..=59 if kind.built_in => changes::strategic(dice, &scene, object),
            60..=62 if kind.scale => changes::scale(dice, &scene),
            63..=65 => changes::finalizers(dice, &scene, object),
            66 => changes::reset(dice, &scene),
            _ => apply(dice, model, &scene, Some(object)),
        },
    };
    if operation.method != "GET" {
        if operation.method != "DELETE" {
            if operation.verb != "apply" && dice.chance(80) {
                let manager = *dice.pick(&MANAGERS);
                operation.query.push(("fieldManager", manager.to_owned()));
            }
            if dice.chance(8) {
                let how = *dice.pick(&["Strict", "Warn", "Ignore"]);
                operation.query.push(("fieldValidation", how.to_owned()));
            }
        }
        if dice.chance(4) {
            operation.query.push(("dryRun", "All".to_owned()));
        }
    }
    operation
}

/// Generates the metadata that a client sends.
pub(crate) fn metadata(dice: &mut Dice) -> Value {
    let mut metadata = json!({});
    let pairs = |dice: &mut Dice, keys: &[&str], values: &[&str]| {
        let mut pairs = json!({});
        for _ in 0..dice.below(3) {
            let key = *dice.pick(keys);
            pairs[key] = Value::from(*dice.pick(values));
        }
        pairs
    };
    if dice.chance(30) {
        metadata["labels"] = pairs(dice, &["app", "team", "okt.dev/x"], &["a", "b", ""]);
    }
    if dice.chance(15) {
        let notes = &["some text", "{\"a\":1}"];
        metadata["annotations"] = pairs(dice, &["note", "okt.dev/note"], notes);
    }
    if dice.chance(12) {
        let finalizers = ["okt.dev/one", "okt.dev/two"];
        metadata["finalizers"] = json!(finalizers[..dice.below(3)]);
    }
    if dice.chance(6) {
        metadata["ownerReferences"] = json!([owner(dice)]);
    }
    metadata
}

/// Generates a reference to the object that every lane keeps during its run.
pub(crate) fn owner(dice: &mut Dice) -> Value {
    let mut owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "anchor", "uid": "@u:configmaps/anchor:1@",
    });
    if dice.chance(40) {
        owner["controller"] = dice.chance(80).into();
    }
    if dice.chance(30) {
        owner["blockOwnerDeletion"] = true.into();
    }
    owner
}

/// Generates an object of the kind.
pub(crate) fn made_up(dice: &mut Dice, scene: &Scene<'_>) -> Value {
    let style = Style {
        nulls: 0,
        mistakes: 0,
        ..scene.style(dice)
    };
    let mut fields = values::value(dice, style, &scene.kind.schema);
    // Most operations concern these fields.
    for (key, chance) in [("spec", 90), ("data", 80), ("status", 40)] {
        let below = scene.kind.schema["properties"].get(key);
        if let (Some(below), true) = (below, fields.get(key).is_none() && dice.chance(chance)) {
            fields[key] = values::value(dice, style, below);
        }
    }
    let mut object = scene.kind.bare();
    values::lay(&mut object, &fields);
    if !scene.kind.built_in && dice.chance(25) {
        let style = scene.style(dice);
        values::change(
            dice,
            Style {
                mistakes: 300,
                nulls: 20,
                ..style
            },
            &scene.kind.schema,
            &mut object,
        );
    }
    object
}

fn create(dice: &mut Dice, scene: &Scene<'_>) -> Operation {
    let mut operation = scene.operation("create", "POST", "");
    operation.path = scene.kind.path(scene.namespace);
    let mut object = made_up(dice, scene);
    let mut given = metadata(dice);
    if dice.chance(4) {
        operation.verb = "create generated";
        operation.slot = None;
        given["generateName"] = "gen-".into();
    } else if !dice.chance(2) {
        given["name"] = scene.slot.name.clone().into();
    }
    match dice.below(60) {
        0 => given["resourceVersion"] = "1".into(),
        1 => given["namespace"] = "elsewhere".into(),
        2 => given["name"] = "Not_A_Name".into(),
        3 => {
            given["uid"] = scene.uid().into();
            given["generation"] = 7.into();
            given["creationTimestamp"] = Value::Null;
        }
        4 => given["labels"] = json!({ "app": "not a label!" }),
        5 => object["kind"] = "Other".into(),
        _ => {}
    }
    object["metadata"] = given;
    operation.body = Some(object);
    operation
}

fn get(dice: &mut Dice, scene: &Scene<'_>) -> Operation {
    let door = match dice.below(5) {
        0 => "/status",
        1 => "/scale",
        _ => "",
    };
    let mut operation = scene.operation("get", "GET", door);
    if door.is_empty() && dice.chance(30) {
        operation.verb = "get metadata";
        operation.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    }
    if dice.chance(10) {
        operation
            .query
            .push(("resourceVersion", (*dice.pick(&["0", ""])).to_owned()));
    }
    if (door == "/status" && scene.kind.built_in && !scene.kind.status)
        || (door == "/scale" && scene.kind.built_in && !scene.kind.scale)
    {
        return scene.operation("get", "GET", "");
    }
    operation
}

fn collection(dice: &mut Dice, scene: &Scene<'_>) -> Operation {
    let mut operation = scene.on_all("list", "GET");
    if !scene.kind.namespaced {
        // All lanes share the cluster-scoped objects.
        return scene.operation("get", "GET", "");
    }
    let mut query = Vec::new();
    match dice.below(10) {
        0..=2 => return operation,
        3 => query.push((
            "labelSelector",
            (*dice.pick(&[
                "app=a",
                "app",
                "!app",
                "app in (a,b),team!=b",
                "team notin (a)",
                "app==",
            ]))
            .to_owned(),
        )),
        4 => {
            let mut choices = vec![
                ("metadata.name", scene.slot.name.as_str()),
                ("metadata.namespace", scene.namespace),
            ];
            choices.extend(scene.kind.selectable.iter().copied());
            let (path, value) = *dice.pick(&choices);
            let operator = *dice.pick(&["=", "!=", "=="]);
            query.push(("fieldSelector", format!("{path}{operator}{value}")));
        }
        5 => query.push(("fieldSelector", "spec.nothing=x".to_owned())),
        6 => query.push(("limit", (dice.below(3) + 1).to_string())),
        7 => {
            query.push(("limit", "1".to_owned()));
            query.push(("labelSelector", "app".to_owned()));
        }
        8 => {
            query.push(("resourceVersion", scene.version(1)));
            let how = *dice.pick(&["Exact", "NotOlderThan", "Wrong"]);
            query.push(("resourceVersionMatch", how.to_owned()));
        }
        _ => {
            let mut gone = scene.on_all("delete collection", "DELETE");
            let selector = *dice.pick(&["app=a", "team", "app=b,team=a"]);
            gone.query = vec![("labelSelector", selector.to_owned())];
            return gone;
        }
    }
    operation.verb = "list some";
    operation.query = query;
    operation
}

fn delete(dice: &mut Dice, scene: &Scene<'_>, surely: bool) -> Operation {
    let mut operation = scene.operation("delete", "DELETE", "");
    if surely {
        return operation;
    }
    let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
    match dice.below(16) {
        0 => options["preconditions"] = json!({ "uid": OTHER_UID }),
        1 => options["preconditions"] = json!({ "uid": scene.uid() }),
        2 => options["preconditions"] = json!({ "resourceVersion": scene.version(1) }),
        3 => options["preconditions"] = json!({ "resourceVersion": scene.version(2) }),
        4 => options["propagationPolicy"] = "Background".into(),
        5 => options["propagationPolicy"] = "Sideways".into(),
        6 => options["dryRun"] = json!(["All"]),
        7 => options["gracePeriodSeconds"] = 0.into(),
        // The timing of the garbage collector is random, so these deletions are dry runs.
        14 => {
            options["propagationPolicy"] = (*dice.pick(&["Foreground", "Orphan"])).into();
            options["dryRun"] = json!(["All"]);
        }
        8 => {
            operation
                .query
                .push(("propagationPolicy", "Background".to_owned()));
            return operation;
        }
        _ => return operation,
    }
    operation.body = Some(options);
    operation
}

/// Picks an endpoint of an object that accepts such a write.
pub(crate) fn door(dice: &mut Dice, kind: &Kind) -> &'static str {
    if kind.status && dice.chance(35) {
        "/status"
    } else {
        ""
    }
}

fn apply(dice: &mut Dice, model: &mut Model, scene: &Scene<'_>, live: Option<&Value>) -> Operation {
    let door = if live.is_some() || dice.chance(5) {
        door(dice, scene.kind)
    } else {
        ""
    };
    let mut operation = scene.operation("apply", "PATCH", door);
    operation.media = APPLY;
    let manager = *dice.pick(&MANAGERS);
    operation.query.push(("fieldManager", manager.to_owned()));
    if dice.chance(55) {
        operation.query.push(("force", "true".to_owned()));
    }
    let key = (manager.to_owned(), door);
    let last = model.entry(&scene.slot).applied.get(&key).cloned();
    let mut config = match last {
        Some(last) if dice.chance(25) => last,
        Some(mut last) if dice.chance(65) && !scene.kind.built_in => {
            let style = scene.style(dice);
            for _ in 0..=dice.below(3) {
                values::change(
                    dice,
                    Style {
                        mistakes: 8,
                        ..style
                    },
                    &scene.kind.schema,
                    &mut last,
                );
            }
            if dice.chance(20) {
                last["metadata"] = metadata(dice);
            }
            last
        }
        _ => {
            let mut made = made_up(dice, scene);
            made["metadata"] = metadata(dice);
            made
        }
    };
    if door == "/status" {
        // An operator sends only the status there, and sometimes more.
        if let (Some(fields), true) = (config.as_object_mut(), dice.chance(85)) {
            // A missing service can be created through its status, too.
            if scene.kind.plural != "services" {
                fields.remove("spec");
            }
            if !fields.contains_key("status") {
                let style = scene.style(dice);
                let schema = &scene.kind.schema["properties"]["status"];
                fields.insert("status".to_owned(), values::value(dice, style, schema));
            }
        }
    }
    model.entry(&scene.slot).applied.insert(key, config.clone());
    config["metadata"]["name"] = scene.slot.name.clone().into();
    match dice.below(40) {
        0..=3 => config["metadata"]["resourceVersion"] = scene.version(1).into(),
        4..=5 => config["metadata"]["resourceVersion"] = scene.version(2).into(),
        6 => config["metadata"]["uid"] = scene.uid().into(),
        7 if dice.chance(50) => config["metadata"]["uid"] = OTHER_UID.into(),
        8 if dice.chance(50) => config["metadata"]["managedFields"] = json!([]),
        9 if dice.chance(50) => config["metadata"]["name"] = "other".into(),
        10 if dice.chance(50) => {
            if let Some(metadata) = config["metadata"].as_object_mut() {
                metadata.remove("name");
            }
        }
        11 if dice.chance(50) => config["apiVersion"] = "other/v1".into(),
        _ => {}
    }
    operation.body = Some(config);
    operation
}
