//! Behaviors of admission webhooks.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::hooks::{Answer, Hook, MUTATING, VALIDATING, allow, patched};
use crate::reply::Reply;
use crate::world::{World, eventually, owned, uid};

async fn a_denial_has_the_words_the_code_and_the_reason_of_the_webhook(world: &World) {
    let hook = Hook::new(world, "deny", |request| {
        match request["object"]["metadata"]["name"].as_str() {
            Some("words") => json!({
                "allowed": false, "warnings": ["careful"],
                "status": { "message": "not today", "code": 418, "reason": "Teapot" },
            }),
            Some("reason") => {
                json!({ "allowed": false, "status": { "reason": "Closed", "code": 200 } })
            }
            Some("missing") => {
                json!({ "allowed": false, "status": { "message": "no such cake", "code": 404 } })
            }
            Some("nothing") => json!({ "allowed": false }),
            _ => json!({ "allowed": true, "warnings": ["careful", "careful"] }),
        }
        .into()
    });
    hook.install(world, VALIDATING, &json!({})).await;
    let denied = r#"admission webhook "hook.conformance.okt.dev" denied the request"#;
    let reply = world.create("words", json!({})).await;
    let status = reply.json();
    assert_eq!(status["message"], format!("{denied}: not today"));
    assert_eq!((reply.code, &status["reason"]), (418, &json!("Teapot")));
    assert_eq!(reply.header("warning"), r#"299 - "careful""#);
    let reply = world.create("reason", json!({})).await;
    assert_eq!(reply.json()["message"], format!("{denied}: Closed"));
    assert_eq!(reply.code, 400);
    let reply = world.create("nothing", json!({})).await;
    assert_eq!(
        reply.json()["message"],
        format!("{denied} without explanation")
    );
    assert_eq!(reply.code, 400);
    let reply = world.create("missing", json!({})).await;
    assert_eq!(reply.json()["message"], format!("{denied}: no such cake"));
    assert_eq!(reply.code, 404);
    let reply = world.create("good", json!({})).await;
    reply.ok();
    assert_eq!(reply.headers.get_all("warning").iter().count(), 1);
}

async fn a_webhook_is_told_what_is_asked(world: &World) {
    let hook = Hook::new(world, "told", allow);
    hook.install(world, VALIDATING, &json!({})).await;
    let path = format!("{}?fieldManager=test&fieldValidation=Strict", world.path());
    let widget = world.widget("a", json!({ "color": "red" }));
    let made = world.post(&path, &widget).await.ok();
    let request = hook.received_one();
    let kind = json!({ "group": world.group, "version": "v1", "kind": "Widget" });
    let resource = json!({ "group": world.group, "version": "v1", "resource": "widgets" });
    assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
    assert_eq!(
        (&request["resource"], &request["requestResource"]),
        (&resource, &resource)
    );
    assert_eq!(
        (&request["name"], &request["namespace"]),
        (&json!("a"), &json!(world.namespace))
    );
    assert_eq!(
        (&request["operation"], &request["dryRun"]),
        (&json!("CREATE"), &json!(false))
    );
    let options = json!({
        "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
        "fieldManager": "test", "fieldValidation": "Strict",
    });
    assert_eq!(request["options"], options);
    assert!(request["userInfo"]["username"].is_string());
    assert!(request["oldObject"].is_null() && request.get("subResource").is_none());
    assert_eq!(uid(&request["object"]), uid(&made));
    assert_eq!(request["object"]["spec"], made["spec"]);
    assert_eq!(owned(&request["object"], "test"), owned(&made, "test"));
    assert_eq!(request["object"]["metadata"].get("resourceVersion"), None);
}

async fn a_webhook_is_told_of_changes_and_deletions(world: &World) {
    let hook = Hook::new(world, "told", allow);
    hook.install(world, VALIDATING, &json!({})).await;
    let made = world.create("a", json!({ "color": "red" })).await.ok();
    hook.received();
    let changed = world.set("a", json!({ "color": "blue" })).await.ok();
    let request = hook.received_one();
    assert_eq!(request["operation"], "UPDATE");
    assert_eq!(request["oldObject"], made);
    assert_eq!(request["object"]["spec"]["color"], "blue");
    assert_eq!(request["object"]["metadata"]["generation"], 2);
    assert_eq!(request["options"]["kind"], "UpdateOptions");

    world.set_status("a", json!({ "phase": "Fine" })).await.ok();
    let request = hook.received_one();
    assert_eq!(request["subResource"], "status");
    assert_eq!(request["requestSubResource"], "status");
    assert_eq!(request["oldObject"], changed);

    let path = format!("{}?dryRun=All", world.at("a"));
    world.delete(&path).await.ok();
    let request = hook.received_one();
    assert_eq!(
        (&request["operation"], &request["dryRun"]),
        (&json!("DELETE"), &json!(true))
    );
    assert!(request["object"].is_null());
    assert_eq!(request["oldObject"]["status"]["phase"], "Fine");
    assert_eq!(request["options"]["kind"], "DeleteOptions");

    world
        .apply("other", "b", json!({ "color": "red" }))
        .await
        .ok();
    let request = hook.received_one();
    assert_eq!(
        (&request["operation"], &request["name"]),
        (&json!("CREATE"), &json!("b"))
    );
    assert_eq!(request["options"]["kind"], "CreateOptions");
}

async fn a_mutating_webhook_sees_an_object_before_the_server_completes_it(world: &World) {
    let mutating = Hook::new(world, "early", allow);
    let validating = Hook::new(world, "late", allow);
    mutating.install(world, MUTATING, &json!({})).await;
    validating.install(world, VALIDATING, &json!({})).await;
    mutating.received();
    let mut widget = world.widget("", json!({}));
    widget["metadata"] = json!({ "generateName": "made-" });
    let made = world.post(&world.path(), &widget).await.ok();
    let early = mutating.received_one();
    assert_eq!(early.get("name"), None);
    let early = early["object"].clone();
    assert_eq!(early["metadata"].get("name"), None);
    assert_eq!(early["metadata"].get("uid"), None);
    let late = validating.received_one();
    assert_eq!(late["name"], made["metadata"]["name"]);
    let late = late["object"].clone();
    assert_eq!(late["metadata"]["name"], made["metadata"]["name"]);
    assert_eq!(uid(&late), uid(&made));
    // Both see the defaults.
    assert_eq!(early["spec"], late["spec"]);
    assert_eq!(early["spec"], made["spec"]);
}

async fn a_mutating_webhook_changes_what_is_checked_and_stored(world: &World) {
    let hook = Hook::new(
        world,
        "paint",
        |request| match request["object"]["metadata"]["name"].as_str() {
            Some("wrong") => patched(&json!([{ "op": "add", "path": "/spec/color", "value": 5 }])),
            Some("stray") => patched(&json!([{ "op": "add", "path": "/spec/stray", "value": 5 }])),
            Some("lost") => patched(&json!([{ "op": "remove", "path": "/spec/nothing" }])),
            Some("bare") => patched(&json!([{ "op": "remove", "path": "/spec" }])),
            Some("empty") => patched(&json!([])),
            Some("merge") => {
                json!({ "allowed": true, "patchType": "MergePatch", "patch": "W3t9XQ==" }).into()
            }
            Some("nonsense") => {
                json!({ "allowed": true, "patchType": "JSONPatch", "patch": "bm9uc2Vuc2U=" }).into()
            }
            _ => patched(&json!([
                { "op": "add", "path": "/spec/color", "value": "green" },
                { "op": "add", "path": "/metadata/labels", "value": { "painted": "true" } },
            ])),
        },
    );
    hook.install(world, MUTATING, &json!({})).await;
    let made = world.create("a", json!({})).await.ok();
    assert_eq!(made["spec"]["color"], "green");
    assert_eq!(made["metadata"]["labels"]["painted"], "true");
    assert_eq!(world.read("a").await, made);
    let wrong = world.create("wrong", json!({})).await;
    wrong.refused(
        422,
        "Widget.demo.okt.dev \"wrong\" is invalid: [spec.color: Invalid value: \"integer\": …",
    );
    let stray = world.create("stray", json!({})).await.ok();
    assert_eq!(stray["spec"].get("stray"), None);
    let lost = world.create("lost", json!({})).await;
    lost.refused(500, "Internal error occurred: …");
    world.create("empty", json!({})).await.ok();
    let failed = "Internal error occurred: failed calling webhook \"hook.conformance.okt.dev\": ";
    let merge = world.create("merge", json!({})).await;
    merge.refused(
        500,
        &format!("{failed}unsupported patch type \"MergePatch\""),
    );
    let nonsense = world.create("nonsense", json!({})).await;
    nonsense.refused(
        500,
        &format!("{failed}received undecodable patch in webhook response: …"),
    );
    let changed = world.set("a", json!({ "color": "red" })).await.ok();
    assert_eq!(changed["spec"]["color"], "green");
    assert_eq!(changed["metadata"]["generation"], 1);
}

/// Waits until a widget is refused with this code: a server takes a moment to know a webhook.
async fn refused_at_last(world: &World, spec: Value, code: u16) -> Reply {
    eventually("the webhook is called", async || {
        let reply = world.create("a", spec.clone()).await;
        (reply.code == code).then_some(reply)
    })
    .await
}

async fn a_webhook_that_cannot_be_called_stops_a_write_or_is_ignored(world: &World) {
    let hook = Hook::new(world, "gone", allow);
    let away = json!({ "url": "https://127.0.0.1:1/away" });
    let fields = json!({ "clientConfig": away, "timeoutSeconds": 5 });
    world
        .configure(VALIDATING, &hook.configuration(world, &fields))
        .await;
    let refused = refused_at_last(world, json!({}), 500);
    refused.await.refused(500, "Internal error occurred: failed calling webhook \"hook.conformance.okt.dev\": failed to call webhook: Post \"https://127.0.0.1:1/away?timeout=5s\": …connection refused");
    let path = format!(
        "/apis/admissionregistration.k8s.io/v1/{VALIDATING}/{}",
        hook.name()
    );
    let ignored =
        json!([{ "op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore" }]);
    world
        .patch(&path, crate::world::JSON_PATCH, &ignored)
        .await
        .ok();
    eventually("the failure is ignored", async || {
        let reply = world.create("b", json!({})).await;
        matches!(reply.code, 201 | 409).then_some(())
    })
    .await;
}

async fn bad_answers_of_a_webhook_are_failures(world: &World) {
    let hook = Hook::new(
        world,
        "bad",
        |request| match request["object"]["metadata"]["name"].as_str() {
            Some("late") => Answer::Silence,
            Some("error") => Answer::Status(500),
            Some("missing") => Answer::Status(404),
            Some("uid") => json!({ "allowed": true, "uid": "other" }).into(),
            Some("kind") => {
                Answer::Body(json!({ "kind": "Other", "apiVersion": "v1" }).to_string())
            }
            Some("none") => Answer::Body(
                json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1" })
                    .to_string(),
            ),
            Some("patch") => patched(&json!([])),
            _ => json!({ "allowed": true }).into(),
        },
    );
    hook.install(world, VALIDATING, &json!({ "timeoutSeconds": 1 }))
        .await;
    let failed = "Internal error occurred: failed calling webhook \"hook.conformance.okt.dev\": ";
    for (name, why) in [
        ("late", format!("failed to call webhook: Post \"{}?timeout=1s\": context deadline exceeded", hook.url())),
        ("error", "failed to call webhook: an error on the server (\"\") has prevented the request from succeeding".to_owned()),
        ("missing", "failed to call webhook: the server could not find the requested resource".to_owned()),
        ("uid", "received invalid webhook response: expected response.uid=\"…\", got \"other\"".to_owned()),
        ("none", "received invalid webhook response: webhook response was absent".to_owned()),
        ("patch", "received invalid webhook response: validating webhook may not return response.patch".to_owned()),
    ] {
        let reply = world.create(name, json!({})).await;
        reply.refused(500, &format!("{failed}{why}"));
    }
    let reply = world.create("kind", json!({})).await;
    reply.refused(500, &format!("{failed}…"));
}

async fn a_webhook_whose_certificate_nobody_trusts_is_not_called(world: &World) {
    let hook = Hook::new(world, "stranger", allow);
    let fields = json!({ "clientConfig": { "url": hook.url() } });
    world
        .configure(VALIDATING, &hook.configuration(world, &fields))
        .await;
    let refused = refused_at_last(world, json!({}), 500);
    refused.await.refused(
        500,
        "…tls: failed to verify certificate: x509: certificate …",
    );
    assert_eq!(hook.received(), Vec::<Value>::new());
}

async fn selectors_and_conditions_say_which_writes_a_webhook_sees(world: &World) {
    let selected = Hook::new(world, "selected", allow);
    let fields = json!({
        "objectSelector": { "matchExpressions": [{ "key": "kept", "operator": "DoesNotExist" }] },
        "matchConditions": [
            { "name": "color", "expression": "request.operation != 'DELETE' && has(object.spec) && (!has(object.spec.color) || object.spec.color == 'red')" },
            { "name": "old", "expression": "oldObject == null || oldObject.metadata.name == request.name" },
        ],
    });
    selected.install(world, VALIDATING, &fields).await;
    world.create("red", json!({ "color": "red" })).await.ok();
    selected.received_one();
    world.create("blue", json!({ "color": "blue" })).await.ok();
    assert_eq!(selected.received().len(), 0);
    let mut kept = world.widget("kept", json!({ "color": "red" }));
    kept["metadata"]["labels"] = json!({ "kept": "yes" });
    world.post(&world.path(), &kept).await.ok();
    assert_eq!(selected.received().len(), 0);
    // Either of both states is enough.
    world
        .mark("kept", json!({ "labels": { "kept": null } }))
        .await
        .ok();
    selected.received_one();
    world
        .set_status("red", json!({ "phase": "Fine" }))
        .await
        .ok();
    selected.received_one();
    world.remove("red").await.ok();
    assert_eq!(selected.received().len(), 0);
}

async fn a_condition_that_fails_refuses_the_write(world: &World) {
    let hook = Hook::new(world, "broken", allow);
    let fields = json!({
        "matchConditions": [{ "name": "broken", "expression": "object.spec.color.size() > 1" }],
    });
    world
        .configure(VALIDATING, &hook.configuration(world, &fields))
        .await;
    let refused = refused_at_last(world, json!({ "count": 1 }), 403);
    refused
        .await
        .refused(403, "widgets.demo.okt.dev \"a\" is forbidden: …");
}

async fn a_webhook_is_called_again_if_a_later_one_changes_the_object(world: &World) {
    let first = Hook::new(world, "1", |request| {
        let seen = request["object"]["metadata"]["labels"]["second"].is_string();
        let seen = if seen { "yes" } else { "no" };
        if request["object"]["metadata"]["labels"].is_object() {
            patched(&json!([{ "op": "add", "path": "/metadata/labels/seen", "value": seen }]))
        } else {
            let labels = json!({ "seen": seen });
            patched(&json!([{ "op": "add", "path": "/metadata/labels", "value": labels }]))
        }
    });
    let second = Hook::new(world, "2", |_| {
        patched(&json!([{ "op": "add", "path": "/metadata/labels/second", "value": "yes" }]))
    });
    first
        .install(
            world,
            MUTATING,
            &json!({ "reinvocationPolicy": "IfNeeded" }),
        )
        .await;
    second.install(world, MUTATING, &json!({})).await;
    first.received();
    let made = world.create("a", json!({})).await.ok();
    assert_eq!(
        made["metadata"]["labels"],
        json!({ "seen": "yes", "second": "yes" })
    );
    assert_eq!((first.received().len(), second.received().len()), (2, 1));
}

async fn a_configuration_is_checked_and_completed(world: &World) {
    let hook = Hook::new(world, "checked", allow);
    let path = format!("/apis/admissionregistration.k8s.io/v1/{VALIDATING}?dryRun=All");
    let good = hook.configuration(world, &json!({}));
    let made = world.post(&path, &good).await.ok();
    let webhook = &made["webhooks"][0];
    for (key, value) in [
        ("failurePolicy", json!("Fail")),
        ("matchPolicy", json!("Equivalent")),
        ("objectSelector", json!({})),
        ("timeoutSeconds", json!(10)),
    ] {
        assert_eq!(webhook[key], value, "{key}");
    }
    assert_eq!(webhook["rules"][0]["scope"], "*");
    assert_eq!(made["metadata"]["generation"], 1);
    let service = json!({ "clientConfig": { "service": { "name": "a", "namespace": "b" } } });
    let made = world
        .post(&path, &hook.configuration(world, &service))
        .await
        .ok();
    let port = &made["webhooks"][0]["clientConfig"]["service"]["port"];
    assert_eq!(*port, 443);
    for (fields, why) in [
        (
            json!({ "name": "short" }),
            "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
        ),
        (
            json!({ "sideEffects": null }),
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        ),
        (
            json!({ "sideEffects": "Some" }),
            "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
        ),
        (
            json!({ "timeoutSeconds": 31 }),
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            json!({ "failurePolicy": "Maybe" }),
            "webhooks[0].failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
        ),
        (
            json!({ "admissionReviewVersions": null }),
            "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        ),
        (
            json!({ "admissionReviewVersions": ["v7"] }),
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v7\"]: must include at least one of v1, v1beta1",
        ),
        (
            json!({ "clientConfig": {} }),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            json!({ "clientConfig": { "url": "http://a" } }),
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
        (
            json!({ "clientConfig": { "url": "https://a?b=c" } }),
            "webhooks[0].clientConfig.url: Invalid value: \"b=c\": query parameters are not permitted in the URL",
        ),
        (
            json!({ "clientConfig": { "service": { "name": "a" } } }),
            "webhooks[0].clientConfig.service.name: Required value",
        ),
        (
            json!({ "rules": [{ "apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["b"] }] }),
            "webhooks[0].rules[0].operations: Required value",
        ),
    ] {
        let reply = world.post(&path, &hook.configuration(world, &fields)).await;
        let name = hook.name();
        reply.refused(422, &format!("ValidatingWebhookConfiguration.admissionregistration.k8s.io \"{name}\" is invalid: {why}"));
    }
}

behaviours!("webhooks":
    a_denial_has_the_words_the_code_and_the_reason_of_the_webhook,
    a_webhook_is_told_what_is_asked,
    a_webhook_is_told_of_changes_and_deletions,
    a_mutating_webhook_sees_an_object_before_the_server_completes_it,
    a_mutating_webhook_changes_what_is_checked_and_stored,
    a_webhook_that_cannot_be_called_stops_a_write_or_is_ignored,
    bad_answers_of_a_webhook_are_failures,
    a_webhook_whose_certificate_nobody_trusts_is_not_called,
    selectors_and_conditions_say_which_writes_a_webhook_sees,
    a_condition_that_fails_refuses_the_write,
    a_webhook_is_called_again_if_a_later_one_changes_the_object,
    a_configuration_is_checked_and_completed,
);
