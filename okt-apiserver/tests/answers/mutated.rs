//! Sends mutated CRDs, rules and objects: each gets a response, and the server keeps working.

use okt_apiserver::ApiServer;
use okt_fuzz::{Dice, check};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::support::{CRDS, crd, post, send};

const THINGS: &str = "/apis/rules.okt.dev/v1/namespaces/default/things";

/// Runs one case on its own server.
fn with_server(case: impl AsyncFnOnce(&ApiServer)) {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async { case(&ApiServer::new()).await });
}

/// Returns a mutation of this value, or the value itself if the mutation is no JSON.
fn nearly(dice: &mut Dice, value: &Value) -> Value {
    serde_json::from_slice(&dice.json(value)).unwrap_or_else(|_| value.clone())
}

fn refused_well(code: u16, refusal: &str) {
    assert!(matches!(code, 201 | 400 | 422 | 501), "{code} {refusal}");
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3, "format": "int32" },
                    "name": { "type": "string", "pattern": "^[a-z]+(-[0-9]+)*$", "maxLength": 20, "enum": ["a-1", "b"] },
                    "ports": {
                        "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port"],
                        "items": {
                            "type": "object", "required": ["port"],
                            "properties": { "port": { "type": "integer" }, "at": { "type": "string", "format": "date-time" } },
                        },
                    },
                    "labels": { "type": "object", "maxProperties": 4, "additionalProperties": { "type": "string", "nullable": true } },
                    "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "either": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                },
                "x-kubernetes-validations": [
                    { "rule": "self.size < 5 || has(self.name)", "message": "no name", "reason": "FieldValueInvalid" },
                    { "rule": "self.size >= oldSelf.size", "messageExpression": "'it was ' + string(oldSelf.size)", "optionalOldSelf": false },
                ],
            },
        },
    })
}

fn thing() -> Value {
    json!({
        "apiVersion": "rules.okt.dev/v1",
        "kind": "Thing",
        "metadata": { "name": "a" },
        "spec": {
            "size": 4, "name": "a-1", "ports": [{ "port": 1, "at": "2026-01-01T00:00:00Z" }],
            "labels": { "a": "b" }, "free": { "x": [1] }, "either": 5,
        },
    })
}

#[test]
fn every_crd_is_created_or_refused_and_so_is_every_object_of_it() {
    let (schema, thing) = (schema(), thing());
    check(120, |dice| {
        let definition = if dice.below(4) == 0 {
            nearly(dice, &crd(&schema))
        } else {
            crd(&nearly(dice, &schema))
        };
        let objects: Vec<_> = (0..4).map(|_| nearly(dice, &thing)).collect();
        with_server(async |server| {
            let (code, refusal) = post(server, CRDS, &definition).await;
            refused_well(code, &refusal);
            if code != 201 {
                return;
            }
            for object in [&thing].into_iter().chain(&objects) {
                let (code, refusal) = post(server, THINGS, object).await;
                assert!((200..=501).contains(&code), "{code} {refusal}");
                let path = format!("{THINGS}/a");
                if let Err((code, refusal)) = send(server, "PATCH", &path, object).await {
                    assert!((400..=501).contains(&code), "{code} {refusal}");
                }
            }
        });
    });
}

#[test]
fn a_rule_is_served_up_to_the_maximum_depth() {
    let shapes: [fn(usize) -> String; 4] = [
        |deep| format!("{}true{}", "(".repeat(deep), ")".repeat(deep)),
        |deep| format!("1{} > 0", " + 1".repeat(deep)),
        |deep| format!("{}1{} != []", "[".repeat(deep), "]".repeat(deep)),
        |deep| format!("{}true", "true ? true : ".repeat(deep / 2)),
    ];
    for shape in shapes {
        for (deep, is_served) in [(38, true), (90, false), (20_000, false)] {
            let rule = shape(deep);
            with_server(async |server| {
                let spec =
                    json!({ "type": "object", "x-kubernetes-validations": [{ "rule": rule }] });
                let schema = json!({ "type": "object", "properties": { "spec": spec } });
                let (code, refusal) = post(server, CRDS, &crd(&schema)).await;
                assert_eq!(code, if is_served { 201 } else { 501 }, "{deep} {refusal}");
                if code == 201 {
                    let mut object = thing();
                    object["spec"] = json!({});
                    let (code, refusal) = post(server, THINGS, &object).await;
                    assert!(matches!(code, 201 | 422), "{code} {refusal}");
                }
            });
        }
    }
}

#[test]
fn every_rule_is_accepted_or_refused_and_so_is_every_object_under_it() {
    let table: Value = serde_json::from_str(include_str!("cel_values.json")).expect("JSON");
    let cases = table["cases"].as_array().expect("cases");
    check(60, |dice| {
        let case = dice.pick(cases);
        let rule = case["rule"].as_str().unwrap_or("self == self");
        let mut schema = table["schema"].clone();
        let rule = String::from_utf8_lossy(&dice.bytes(rule.as_bytes())).into_owned();
        schema["x-kubernetes-validations"] = json!([{ "rule": rule }]);
        let values = [case["value"].clone(), nearly(dice, &case["value"])];
        with_server(async |server| {
            let schema = json!({ "type": "object", "properties": { "spec": schema } });
            let (code, refusal) = post(server, CRDS, &crd(&schema)).await;
            refused_well(code, &refusal);
            if code != 201 {
                return;
            }
            for value in values {
                let mut object = thing();
                object["spec"] = value;
                let (code, refusal) = post(server, THINGS, &object).await;
                assert!(
                    matches!(code, 201 | 400 | 409 | 422 | 501),
                    "{code} {refusal}"
                );
            }
        });
    });
}
