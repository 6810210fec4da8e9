//! Behaviors of the options of a deletion, in its body and in its query.

use serde_json::json;

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::table::cases;
use crate::world::{World, released};

/// Deletes the widget `a`; `query` is empty or begins with a question mark.
async fn delete(world: &World, query: &str, body: &str) -> Reply {
    let path = world.at(&format!("a{query}"));
    if body.is_empty() {
        world.delete(&path).await
    } else {
        world.delete_with(&path, body).await
    }
}

/// Checks that the widget `a` exists and is not being deleted.
async fn is_untouched(world: &World) {
    let metadata = &world.read("a").await["metadata"];
    assert_eq!(metadata.get("deletionTimestamp"), None);
}

/// Bodies of deletions, and the messages that refuse them.
const UNREADABLE: &str = r#"
[] → couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }
{"kind":1} → couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string
{"kind":"Pod","apiVersion":"v1"} → no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"
{"kind":"Widget"} → no kind "Widget" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"
{"kind":"DeleteOptions","apiVersion":"a/b/c"} → unexpected GroupVersion string: a/b/c
{"gracePeriodSeconds":"1"} → json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64
{"gracePeriodSeconds":1.0} → json: cannot unmarshal number 1.0 into Go struct field DeleteOptions.gracePeriodSeconds of type int64
{"dryRun":"All"} → json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string
{"dryRun":[1]} → json: cannot unmarshal number into Go struct field DeleteOptions.dryRun of type string
{"propagationPolicy":1} → json: cannot unmarshal number into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation
{"orphanDependents":"x"} → json: cannot unmarshal string into Go struct field DeleteOptions.orphanDependents of type bool
{"preconditions":[]} → json: cannot unmarshal array into Go struct field DeleteOptions.preconditions of type v1.Preconditions
{"preconditions":{"uid":1}} → json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID
{"preconditions":{"resourceVersion":1}} → json: cannot unmarshal number into Go struct field Preconditions.preconditions.resourceVersion of type string
{"ignoreStoreReadErrorWithClusterBreakingPotential":1} → json: cannot unmarshal number into Go struct field DeleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential of type bool
"#;

async fn a_deletion_with_options_that_cannot_be_read_is_400(world: &World) {
    world.create("a", json!({})).await.ok();
    for (body, message) in cases(UNREADABLE) {
        delete(world, "", body).await.refused(400, message);
        is_untouched(world).await;
    }
}

/// Options of deletions in a body and in a query, and the messages that refuse them.
const INVALID: &str = r#"
{"dryRun":["Some"]} ?dryRun=Some → dryRun: Unsupported value: ["Some"]: supported values: "All"
{"dryRun":["All","Some"]} ?dryRun=All&dryRun=Some → dryRun: Unsupported value: ["All","Some"]: supported values: "All"
{"dryRun":[""]} ?dryRun= → dryRun: Unsupported value: [""]: supported values: "All"
{"propagationPolicy":""} ?propagationPolicy= → propagationPolicy: Unsupported value: "": supported values: "Foreground", "Background", "Orphan", "nil"
{"orphanDependents":true,"propagationPolicy":"Orphan"} ?orphanDependents=true&propagationPolicy=Orphan → propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set
"#;

async fn a_deletion_with_options_that_mean_nothing_is_422(world: &World) {
    world.create("a", json!({})).await.ok();
    for (options, problem) in cases(INVALID) {
        let (body, query) = options.split_once(' ').expect("both");
        let message = format!(r#"DeleteOptions.meta.k8s.io "" is invalid: {problem}"#);
        for (query, body) in [("", body), (query, "")] {
            delete(world, query, body).await.refused(422, &message);
            is_untouched(world).await;
        }
    }
}

async fn a_dry_run_in_the_body_deletes_nothing_and_one_beside_a_body_is_not_seen(world: &World) {
    world.create("a", json!({})).await.ok();
    delete(world, "", r#"{"dryRun":["All","All"]}"#).await.ok();
    is_untouched(world).await;
    delete(world, "?dryRun=All", "{}").await.ok();
    assert!(world.is_gone("a").await);
}

async fn a_deletion_takes_options_of_any_version_and_what_it_does_not_know(world: &World) {
    for body in [
        json!({ "kind": "DeleteOptions", "apiVersion": "v1" }),
        json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" }),
        json!({ "kind": "DeleteOptions", "apiVersion": "apps/v9" }),
        json!({ "unknown": 1, "DryRun": ["All"] }),
        json!({ "dryRun": [], "propagationPolicy": null, "preconditions": { "uid": null } }),
        json!(null),
    ] {
        world.create("a", json!({})).await.ok();
        let query = "?dryRun=Some&gracePeriodSeconds=x";
        delete(world, query, &body.to_string()).await.ok();
        assert!(world.is_gone("a").await, "{body}");
    }
}

async fn an_empty_precondition_is_one(world: &World) {
    world.create("a", json!({})).await.ok();
    for field in ["uid", "resourceVersion"] {
        let body = json!({ "preconditions": { field: "" } });
        let refused = delete(world, "", &body.to_string()).await;
        refused.refused(409, "…in the precondition () does not match…");
    }
    is_untouched(world).await;
}

/// Options of deletions, the code of the answer, and the finalizers of the object in it.
const PROPAGATION: &str = r#"
{"propagationPolicy":"Orphan"} → 200 ["okt.dev/a","orphan"]
{"propagationPolicy":"Foreground"} → 200 ["okt.dev/a","foregroundDeletion"]
The old words for it.
{"orphanDependents":true} → 200 ["okt.dev/a","orphan"]
?orphanDependents=true → 200 ["okt.dev/a","orphan"]
{"orphanDependents":false} → 202 ["okt.dev/a"]
?orphanDependents=false → 202 ["okt.dev/a"]
"#;

async fn the_propagation_decides_what_a_waiting_deletion_answers(world: &World) {
    for (options, expected) in cases(PROPAGATION) {
        world.create_held("a").await;
        let is_query = options.starts_with('?');
        let (query, body) = if is_query {
            (options, "")
        } else {
            ("", options)
        };
        let reply = delete(world, query, body).await;
        let metadata = &reply.ok()["metadata"];
        let found = format!("{} {}", reply.code, metadata["finalizers"]);
        assert_eq!(found, expected, "{options}");
        assert!(metadata["deletionTimestamp"].is_string());
        world.merge("a", released()).await.ok();
    }
    world.create("a", json!({})).await.ok();
    let gone = delete(world, "?orphanDependents=false", "").await;
    assert_eq!(gone.code, 200, "it does not wait");
}

/// The queries and bodies of deletions of a collection, and their refusals.
const COLLECTIONS: &str = r#"
[] → 400 couldn't get version/kind
{"dryRun":["Some"]} → 422 DeleteOptions.meta.k8s.io "" is invalid
?dryRun=Some → 422 DeleteOptions.meta.k8s.io "" is invalid
?gracePeriodSeconds= → 400 strconv.ParseInt: parsing ""
?limit=x {} → 400 strconv.ParseInt: parsing "x"
?sendInitialEvents=true {"dryRun":["Some"]} → 422 ListOptions.meta.k8s.io "" is invalid
?fieldSelector=x=y {"dryRun":["Some"]} → 400 field label not supported: x
"#;

async fn a_collection_is_not_deleted_with_wrong_options(world: &World) {
    world.create("a", json!({})).await.ok();
    for (options, refusal) in cases(COLLECTIONS) {
        let start = options.find(['[', '{']).unwrap_or(options.len());
        let (query, body) = options.split_at(start);
        let path = format!("{}{}", world.path(), query.trim_end());
        let reply = match body {
            "" => world.delete(&path).await,
            _ => world.delete_with(&path, body).await,
        };
        let (code, message) = refusal.split_once(' ').expect("both");
        let code = code.parse().expect("a code");
        reply.refused(code, &format!("…{message}…"));
        is_untouched(world).await;
    }
}

behaviours! { "options":
    a_deletion_with_options_that_cannot_be_read_is_400,
    a_deletion_with_options_that_mean_nothing_is_422,
    a_dry_run_in_the_body_deletes_nothing_and_one_beside_a_body_is_not_seen,
    a_deletion_takes_options_of_any_version_and_what_it_does_not_know,
    an_empty_precondition_is_one,
    the_propagation_decides_what_a_waiting_deletion_answers,
    a_collection_is_not_deleted_with_wrong_options,
}
