//! Compares `openapi.yaml` with the agent: both have the same paths, methods, answers and codes, and answers match the
//! schemas.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use jsonschema::ValidationError;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::ServiceExt as _;

use super::super::service;
use super::puppet::{Answer, Life, once, work};
use crate::wire::Code;

pub(super) fn document() -> Value {
    serde_saphyr::from_str(include_str!("../../../openapi.yaml")).unwrap()
}

/// Follows a reference within the document.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.pointer(&reference[1..]).expect(reference),
        None => value,
    }
}

pub(super) fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, methods)| {
        let keys = methods.as_object().unwrap().keys();
        let methods = keys.filter(|method| *method != "parameters");
        methods.map(|method| (path.clone(), method.to_uppercase()))
    });
    operations.collect()
}

/// Checks whether an instance matches a schema of the document.
fn fits(document: &Value, schema: &Value, instance: &Value) -> Result<(), String> {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&whole).unwrap();
    let text = |error: ValidationError<'_>| format!("{error} at {}", error.instance_path());
    let errors: Vec<_> = validator.iter_errors(instance).map(text).collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.join("; "))
    }
}

/// Checks an answer against the document.
#[track_caller]
pub(super) fn check(document: &Value, method: &str, path: &str, answer: &Answer) {
    let operation = &document["paths"][path][method.to_lowercase()];
    let responses = operation["responses"].as_object().unwrap();
    let status = answer.status.to_string();
    // Answers that every path may give are under "default"; a success must be listed.
    let default = responses.get("default").filter(|_| answer.status >= 400);
    let Some(response) = responses.get(&status).or(default) else {
        panic!("{method} {path} answers {status}: {answer:?}");
    };
    let response = resolve(document, response);
    let kind = answer.headers["content-type"].to_str().unwrap();
    let essence = kind.split(';').next().unwrap();
    let Some(content) = response["content"].get(essence) else {
        panic!("{method} {path} {status} is {kind}");
    };
    let instance = match essence {
        "application/json" | "application/problem+json" => answer.json.clone(),
        _ => Value::String(answer.text.clone()),
    };
    if let Err(why) = fits(document, &content["schema"], &instance) {
        panic!("{method} {path} {status}: {why}: {instance}");
    }
    if answer.status >= 400 {
        let code = &answer.json["code"];
        let codes = operation["x-codes"].as_array().unwrap();
        assert!(codes.contains(code), "{method} {path} answers {code}");
    }
    for name in response["headers"].as_object().into_iter().flatten() {
        assert!(answer.headers.contains_key(name.0), "{path}: {}", name.0);
    }
}

#[tokio::test]
async fn the_document_and_the_agent_have_the_same_paths_and_methods() {
    let life = Life::new().await;
    let mut served = BTreeSet::new();
    for (path, methods) in service::paths() {
        // Without the layers, so that only the methods matter.
        let router: Router = Router::new()
            .route(path, methods)
            .with_state(life.started.service.clone());
        for method in [
            Method::GET,
            Method::PUT,
            Method::POST,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            let builder = Request::builder().method(&method);
            let request = builder.uri(path.replace("{id}", "a")).body(Body::empty());
            let answer = router.clone().oneshot(request.unwrap()).await.unwrap();
            if answer.status() != 405 {
                served.insert((path.to_owned(), method.to_string()));
            }
        }
    }
    assert_eq!(served, operations(&document()));
}

#[test]
fn the_document_names_each_code_and_where_it_comes_from() {
    let document = document();
    let codes = document["components"]["schemas"]["Code"]["enum"].clone();
    let named: BTreeSet<String> = serde_json::from_value(codes).unwrap();
    let known: BTreeSet<_> = Code::ALL.iter().map(|code| format!("{code:?}")).collect();
    assert_eq!(named, known);
    // Each code belongs to an operation, except those that belong to none; and its status is listed there.
    let mut given: BTreeSet<_> = [
        Code::Unauthorized,
        Code::ForeignHost,
        Code::NotFound,
        Code::UnsupportedVersion,
        Code::MethodNotAllowed,
    ]
    .map(|code| format!("{code:?}"))
    .into();
    for (path, method) in operations(&document) {
        let operation = &document["paths"][&path][method.to_lowercase()];
        let codes: Vec<Code> = serde_json::from_value(operation["x-codes"].clone()).unwrap();
        let status = |code: &Code| code.meaning().0.to_string();
        let statuses: BTreeSet<_> = codes.iter().map(status).collect();
        let responses = operation["responses"].as_object().unwrap().keys();
        let is_refusal = |status: &&String| status.starts_with(['4', '5']);
        let refusals: BTreeSet<_> = responses.filter(is_refusal).cloned().collect();
        assert_eq!(refusals, statuses, "{method} {path}");
        given.extend(codes.iter().map(|code| format!("{code:?}")));
    }
    assert_eq!(given, known);
}

/// The refusals are in `codes`.
#[tokio::test(start_paused = true)]
async fn real_answers_fit_their_schemas() {
    let document = document();
    let life = Life::new().await;
    let mut answered = BTreeSet::new();
    let mut ask = async |method: &str, path: &str, body: Value| {
        let without_query = path.split('?').next().unwrap_or_default();
        let template = &without_query.replace("/actions/a", "/actions/{id}");
        let answer = life.call(method, path, body).await;
        check(&document, method, template, &answer);
        answered.insert((template.to_owned(), method.to_owned(), answer.status));
        answer.status
    };
    let paths = [
        "/lifecycle",
        "/lifecycle/v1/status",
        "/lifecycle/v1/actions",
        "/livez",
        "/readyz",
        "/metrics",
    ];
    for place in [Some("Running"), Some(""), None] {
        life.world.put_at(place);
        sleep(Duration::from_secs(20)).await;
        for path in paths {
            ask("GET", path, Value::Null).await;
        }
    }
    let action = "/lifecycle/v1/actions/a";
    let request = work("Once", 2, 2, &json!({ "seconds": 60, "print": "text" }));
    assert_eq!(ask("PUT", action, request.clone()).await, 201);
    assert_eq!(ask("PUT", action, request.clone()).await, 200);
    for path in paths {
        ask("GET", path, Value::Null).await;
    }
    assert_eq!(ask("GET", action, Value::Null).await, 200);
    let output = format!("{action}/output");
    assert_eq!(ask("GET", &output, Value::Null).await, 200);
    let cancel = format!("{action}?epoch=2");
    assert_eq!(ask("DELETE", &cancel, Value::Null).await, 202);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(ask("DELETE", &cancel, Value::Null).await, 200);
    let acknowledgement = json!({ "attempt": 1, "epoch": 2 });
    let acknowledge = format!("{action}/acknowledgement");
    assert_eq!(ask("PUT", &acknowledge, acknowledgement).await, 200);
    assert_eq!(ask("PUT", action, request).await, 201, "a second attempt");
    let actions = "/lifecycle/v1/actions";
    assert_eq!(ask("GET", actions, Value::Null).await, 200);
    // Every success that the document lists was answered.
    for (path, method) in operations(&document) {
        let operation = &document["paths"][&path][method.to_lowercase()];
        for status in operation["responses"].as_object().unwrap().keys() {
            if status.starts_with('2') {
                let given = (path.clone(), method.clone(), status.parse().unwrap());
                assert!(answered.contains(&given), "{given:?} was not given");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_agent_refuses_requests_that_the_schema_refuses() {
    let document = document();
    let schema = json!({ "$ref": "#/components/schemas/ActionRequest" });
    let life = Life::new().await;
    let good = once(1, &json!({ "any": [1, null] }));
    fits(&document, &schema, &good).unwrap();
    let changes = [
        ("/state", json!("")),
        ("/state", json!(7)),
        ("/owner", json!({ "uid": "7c5d" })),
        ("/owner/name", json!("")),
        ("/owner/uid", json!("")),
        ("/owner/uid", json!("7".repeat(129))),
        ("/owner/name", json!("n".repeat(254))),
        ("/owner/kind", json!("Database")),
        ("/fence", json!({})),
        ("/fence", json!({ "transition": 1 })),
        ("/fence/recordedAt", json!(7)),
        ("/fence/epoch", json!(-1)),
        ("/fence/transition", json!(1.5)),
        ("/fence/term", json!(1)),
        ("/graph", json!("g".repeat(257))),
        ("/from", json!("Running")),
        ("/from", json!([""])),
        ("/input", json!([])),
        ("/mode", json!("quick")),
    ];
    for (place, value) in changes {
        let mut bad = good.clone();
        let (parent, field) = place.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[field] = value;
        assert!(fits(&document, &schema, &bad).is_err(), "{place}");
        let answer = life.put("a", bad).await;
        assert_eq!(answer.code(), (400, "BadRequest"), "{place}");
    }
    assert_eq!(life.put("a", good).await.status, 201);
}
