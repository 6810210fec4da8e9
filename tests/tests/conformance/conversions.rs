//! Behaviors of conversion webhooks.

use futures::TryStreamExt;
use kube::api::WatchEvent;
use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::hooks::{Answer, Hook};
use crate::versioned::{ALPHA, BETA, crd};
use crate::world::{World, events_only, names, owned, uid, version};

/// Renames `old` to `new` on the way to `v1beta1`, and back; an annotation keeps what the first version lacks.
fn rename(object: &Value, wanted: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = wanted.into();
    let (from, to) = if wanted.ends_with(BETA) {
        ("old", "new")
    } else {
        ("new", "old")
    };
    let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
    if let Some(value) = spec.remove(from) {
        spec.insert(to.to_owned(), value);
    }
    let mut kept = object["metadata"]["annotations"].clone();
    if wanted.ends_with(ALPHA) {
        if let Some(size) = spec.remove("size") {
            kept["size"] = size;
        }
    } else if let Some(size) = kept.as_object_mut().and_then(|kept| kept.remove("size")) {
        spec.insert("size".to_owned(), size);
    }
    object["spec"] = spec.into();
    object["metadata"]["annotations"] = kept;
    object
}

fn converted(request: &Value, convert: impl Fn(&Value, &str) -> Value) -> Answer {
    let wanted = request["desiredAPIVersion"].as_str().expect("a version");
    let objects = request["objects"].as_array().expect("objects").iter();
    let objects: Vec<_> = objects.map(|object| convert(object, wanted)).collect();
    json!({ "convertedObjects": objects, "result": { "status": "Success" } }).into()
}

/// Returns worlds of both versions of a kind whose webhook converts like this; the second version is stored.
async fn with(
    world: &World,
    answer: impl Fn(&Value) -> Answer + Send + Sync + 'static,
) -> ([World; 2], Hook) {
    let world = world.own_group();
    let hook = Hook::new(&world, "convert", answer);
    let mut crd = crd(&world, BETA);
    crd["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": { "conversionReviewVersions": ["v7", "v1"], "clientConfig": hook.client() },
    });
    world.create_crd(&crd).await.ok();
    world.established().await;
    let both = [ALPHA, BETA].map(|version| world.in_version(version));
    for world in &both {
        world.served().await;
    }
    hook.received();
    (both, hook)
}

async fn renaming(world: &World) -> ([World; 2], Hook) {
    with(world, |request| converted(request, rename)).await
}

async fn an_object_is_read_and_written_in_each_version(world: &World) {
    let ([alpha, beta], hook) = renaming(world).await;
    let made = alpha
        .create("a", json!({ "color": "red", "old": "x" }))
        .await
        .ok();
    assert_eq!(made["spec"], json!({ "color": "red", "old": "x" }));
    assert_eq!(made["apiVersion"], alpha.api_version());
    assert!(!hook.received().is_empty());
    let seen = beta.read("a").await;
    assert_eq!(
        seen["spec"],
        json!({ "color": "red", "new": "x", "size": "big" })
    );
    assert_eq!((version(&seen), uid(&seen)), (version(&made), uid(&made)));
    let changed = beta
        .set("a", json!({ "new": "y", "size": "small" }))
        .await
        .ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    let seen = alpha.read("a").await;
    assert_eq!(seen["spec"], json!({ "color": "red", "old": "y" }));
    assert_eq!(seen["metadata"]["annotations"]["size"], "small");
    alpha.set("a", json!({ "old": "z" })).await.ok();
    let seen = beta.read("a").await;
    assert_eq!(
        seen["spec"],
        json!({ "color": "red", "new": "z", "size": "small" })
    );
    for (world, spec) in [
        (&alpha, &json!({ "old": "z" })),
        (&beta, &json!({ "new": "z" })),
    ] {
        let same = world.set("a", spec.clone()).await.ok();
        assert_eq!(version(&same), version(&seen));
    }
    alpha.set_status("a", json!({ "phase": "Fine" })).await.ok();
    assert_eq!(beta.read("a").await["status"]["phase"], "Fine");
}

async fn lists_and_watches_show_all_objects_in_one_version(world: &World) {
    let ([alpha, beta], _) = renaming(world).await;
    let first = alpha.create("a", json!({ "old": "x" })).await.ok();
    beta.create("b", json!({ "new": "y" })).await.ok();
    let list = alpha.get(&alpha.path()).await.ok();
    assert_eq!(names(&list), ["a", "b"]);
    for (item, old) in list["items"]
        .as_array()
        .expect("items")
        .iter()
        .zip(["x", "y"])
    {
        assert_eq!(item["spec"]["old"], old);
        assert_eq!(item["apiVersion"], alpha.api_version());
    }
    // A selectable field of one version.
    let selected = alpha
        .get(&format!("{}?fieldSelector=spec.old%3Dy", alpha.path()))
        .await;
    assert_eq!(names(&selected.ok()), ["b"]);
    let since = version(&first).to_string();
    let api = alpha.widgets();
    let watch = api.watch(&events_only(), &since).await.expect("a watch");
    beta.set("b", json!({ "new": "z" })).await.ok();
    beta.remove("b").await.ok();
    let mut events = std::pin::pin!(watch);
    for expected in [("ADDED", "y"), ("MODIFIED", "z"), ("DELETED", "z")] {
        let event = events
            .try_next()
            .await
            .expect("no error")
            .expect("an event");
        let (kind, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            other => panic!("{other:?}"),
        };
        let old = object.data["spec"]["old"].as_str().expect("a text");
        assert_eq!((kind, old), expected, "{object:?}");
    }
}

async fn managers_of_both_versions_own_the_same_field(world: &World) {
    let ([alpha, beta], _) = renaming(world).await;
    alpha
        .apply("one", "a", json!({ "old": "x", "color": "red" }))
        .await
        .ok();
    let conflict = beta.apply("two", "a", json!({ "new": "y" })).await;
    conflict.refused(
        409,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.old",
    );
    let taken = beta.force("two", "a", json!({ "new": "y" })).await.ok();
    assert!(!owned(&taken, "one").contains(&"f:spec/f:old".to_owned()));
    assert_eq!(taken["spec"]["color"], "red");
    // A manager that leaves a field out removes it, whatever it was called.
    let ([alpha, beta], _) = renaming(world).await;
    alpha
        .apply("one", "a", json!({ "old": "x", "color": "red" }))
        .await
        .ok();
    let moved = beta.apply("one", "a", json!({ "color": "red" })).await.ok();
    assert_eq!(moved["spec"].get("new"), None);
    assert_eq!(moved["spec"]["color"], "red");
}

async fn an_object_with_a_finalizer_is_deleted_in_another_version(world: &World) {
    let ([alpha, beta], _) = renaming(world).await;
    let mut held = beta.widget("a", json!({ "new": "x" }));
    held["metadata"]["finalizers"] = json!(["okt.dev/a"]);
    beta.post(&beta.path(), &held).await.ok();
    let marked = alpha.remove("a").await.ok();
    assert_eq!(marked["spec"]["old"], "x");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(beta.read("a").await["spec"]["new"], "x");
    alpha.mark("a", json!({ "finalizers": null })).await.ok();
    assert!(beta.is_gone("a").await);
    beta.create("b", json!({ "new": "y" })).await.ok();
    let gone = alpha.delete(&alpha.path()).await.ok();
    assert_eq!(gone["items"][0]["spec"]["old"], "y");
}

async fn a_webhook_may_change_labels_and_annotations_and_no_other_metadata(world: &World) {
    let ([alpha, beta], _) = with(world, |request| {
        converted(request, |object, wanted| {
            let mut object = rename(object, wanted);
            object["metadata"]["labels"] = json!({ "seen": "yes" });
            object["metadata"]["finalizers"] = json!(["okt.dev/stray"]);
            object["metadata"]["generation"] = 77.into();
            object
        })
    })
    .await;
    beta.create("a", json!({})).await.ok();
    let seen = alpha.read("a").await;
    assert_eq!(seen["metadata"]["labels"], json!({ "seen": "yes" }));
    assert_eq!(seen["metadata"]["generation"], 1);
    assert_eq!(seen["metadata"].get("finalizers"), None);
}

/// Fails in the way that the name of the object says.
fn failing(request: &Value) -> Answer {
    let object = &request["objects"][0];
    match object["metadata"]["name"].as_str() {
        Some("words") => json!({ "convertedObjects": [], "result": { "status": "Failure", "message": "not today" } }).into(),
        Some("nothing") => json!({ "convertedObjects": [], "result": { "status": "Failure" } }).into(),
        Some("none") => json!({ "convertedObjects": [], "result": { "status": "Success" } }).into(),
        Some("error") => Answer::Status(500),
        Some("uid") => json!({ "uid": "other", "convertedObjects": [], "result": { "status": "Success" } }).into(),
        Some("version") => converted(request, |object, _| object.clone()),
        Some("name") => converted(request, |object, wanted| {
            let mut object = rename(object, wanted);
            object["metadata"]["name"] = "another".into();
            object
        }),
        Some("bare") => converted(request, |object, wanted| {
            let mut object = rename(object, wanted);
            object.as_object_mut().expect("an object").remove("metadata");
            object
        }),
        _ => converted(request, rename),
    }
}

async fn a_failed_conversion_says_why(world: &World) {
    let ([alpha, beta], _) = with(world, failing).await;
    let from = format!("conversion webhook for {}, Kind=Widget", beta.api_version());
    for (name, why) in [
        ("words", "failed: not today"),
        (
            "nothing",
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        ("none", "returned 0 objects, expected 1"),
        (
            "error",
            "failed: an error on the server (\"\") has prevented the request from succeeding",
        ),
        ("uid", "failed: expected response.uid=\"…\", got \"other\""),
        (
            "version",
            "returned invalid object at index 0: invalid groupVersion (expected …/v1alpha1, received …/v1beta1)",
        ),
        (
            "name",
            "returned invalid object: must have the same name: name != another",
        ),
        (
            "bare",
            "returned invalid object: must have the same name: bare !=",
        ),
    ] {
        beta.create(name, json!({})).await.ok();
        let from = from.replace(&beta.group, "demo.okt.dev");
        let why = why.replace("…/", "demo.okt.dev/");
        let reply = alpha.get(&alpha.at(name)).await;
        reply.refused(500, &format!("{from} {why}"));
        // One such object spoils every list.
        let list = alpha.get(&alpha.path()).await;
        assert_eq!(list.code, 500, "{}", list.body);
        beta.remove(name).await.ok();
    }
    beta.create("good", json!({})).await.ok();
    alpha.get(&alpha.path()).await.ok();
    let reply = alpha.create("words", json!({})).await;
    let from = "conversion webhook for demo.okt.dev/v1alpha1, Kind=Widget";
    reply.refused(500, &format!("{from} failed: not today"));
    assert!(beta.is_gone("words").await);
}

async fn an_admission_webhook_of_another_version_sees_a_converted_object(world: &World) {
    let ([alpha, beta], _) = renaming(world).await;
    let equivalent = Hook::new(&beta, "equivalent", |request| {
        let name = request["object"]["spec"]["new"]
            .as_str()
            .unwrap_or_default();
        let name = format!("{name}!");
        crate::hooks::patched(&json!([{ "op": "add", "path": "/spec/new", "value": name }]))
    });
    let mut rules = equivalent.configuration(&beta, &json!({}))["webhooks"][0]["rules"].clone();
    rules[0]["apiVersions"] = json!([BETA]);
    let exact = Hook::new(&beta, "exact", crate::hooks::allow);
    equivalent
        .install(&beta, crate::hooks::MUTATING, &json!({ "rules": rules }))
        .await;
    let fields = json!({ "rules": rules, "matchPolicy": "Exact" });
    exact
        .install(&beta, crate::hooks::VALIDATING, &fields)
        .await;
    equivalent.received();
    let made = alpha.create("a", json!({ "old": "x" })).await.ok();
    assert_eq!(made["spec"]["old"], "x!");
    let request = equivalent.received_one();
    assert_eq!(request["kind"]["version"], BETA);
    assert_eq!(request["requestKind"]["version"], ALPHA);
    assert_eq!(request["object"]["spec"]["new"], "x");
    assert_eq!(exact.received().len(), 0);
    beta.set("a", json!({ "color": "red" })).await.ok();
    assert_eq!(equivalent.received_one()["oldObject"]["spec"]["new"], "x!");
    exact.received_one();
}

async fn a_definition_with_a_webhook_is_checked(world: &World) {
    let world = world.own_group();
    let mut crd = crd(&world, BETA);
    let path = format!("{}?dryRun=All", crate::world::CRDS);
    for (webhook, why) in [
        (
            json!(null),
            "[spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook, spec.conversion.conversionReviewVersions: Required value]",
        ),
        (
            json!({ "conversionReviewVersions": ["v1"], "clientConfig": {} }),
            "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required",
        ),
        (
            json!({ "conversionReviewVersions": ["v7"], "clientConfig": { "url": "https://a" } }),
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v7\"]: must include at least one of v1, v1beta1",
        ),
        (
            json!({ "conversionReviewVersions": ["v1"], "clientConfig": { "url": "ftp://a" } }),
            "spec.conversion.webhookClientConfig.url: Invalid value: \"ftp\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
    ] {
        crd["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": webhook });
        let reply = world.post(&path, &crd).await;
        let name = "widgets.demo.okt.dev";
        reply.refused(
            422,
            &format!("CustomResourceDefinition.apiextensions.k8s.io \"{name}\" is invalid: {why}"),
        );
    }
    let service = json!({ "service": { "name": "a", "namespace": "b" } });
    crd["spec"]["conversion"]["webhook"] =
        json!({ "conversionReviewVersions": ["v1"], "clientConfig": service });
    let made = world.post(&path, &crd).await.ok();
    assert_eq!(
        made["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"],
        443
    );
}

behaviours!("conversions":
    an_object_is_read_and_written_in_each_version,
    lists_and_watches_show_all_objects_in_one_version,
    managers_of_both_versions_own_the_same_field,
    an_object_with_a_finalizer_is_deleted_in_another_version,
    a_webhook_may_change_labels_and_annotations_and_no_other_metadata,
    a_failed_conversion_says_why,
    an_admission_webhook_of_another_version_sees_a_converted_object,
    a_definition_with_a_webhook_is_checked,
);
