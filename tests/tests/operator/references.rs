//! Objects that refer to others: a name in a spec stays in the namespace of its object.

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use okt_testing::{Fault, Verb};
use okt_tests::{Kiosk, Kiosks, Objects, Rig, Served, ShelfState::Filled, Shelves};
use serde_json::{Value, json};

/// A cluster with a kiosk in each of two namespaces, `default/near` and `elsewhere/far`, and an operator of shelves.
async fn rig() -> Rig<Shelves> {
    let rig = Rig::<Shelves>::without_operator_of().await;
    let kiosks = Rig::<Kiosks>::beside(&rig).await;
    rig.create_namespace("elsewhere").await;
    kiosks.create("near", json!({})).await;
    put(&rig, "elsewhere", "far").await;
    rig.start();
    rig
}

async fn put(rig: &Rig<Shelves>, namespace: &str, name: &str) {
    let kiosks = rig.within::<Kiosk>(namespace);
    kiosks.make(Kiosks::object(name, json!({}))).await;
}

/// A shelf with these fields in its spec.
async fn shelf(rig: &Rig<Shelves>, spec: Value) {
    rig.create_with("shelf", spec).await;
    rig.until_ready("shelf", Filled).await;
    rig.pass(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_in_a_spec_reaches_no_other_namespace() {
    let rig = rig().await;
    let long = "x".repeat(100_000);
    let names = json!([
        "elsewhere/far",
        "far",
        "near",
        "default/near",
        "../far",
        "%2e",
        "",
        ".",
        "..",
        long
    ]);
    shelf(&rig, json!({ "kiosks": names })).await;
    assert_eq!(rig.app.sees_kiosks(), ["near"]);
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(rig.shows("shelf", "Ready").await, "True Filled");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_is_a_condition_of_the_objects_that_refer_to_it() {
    let rig = rig().await;
    rig.kill().await;
    let fault = rig.inject(Fault::forbidden().on(Verb::List).resource("kiosks"));
    rig.start();
    rig.create_with("shelf", json!({ "kiosks": ["near"] }))
        .await;
    let why = "Kiosk objects, to which it refers, cannot be listed";
    rig.until_message("shelf", "Ready", "ResourceNotWatched", why)
        .await;
    fault.end();
    rig.until_reason("shelf", "Ready", "Filled").await;
}

#[tokio::test(start_paused = true)]
async fn another_namespace_is_reached_where_the_application_says_across() {
    let rig = rig().await;
    let far = json!({ "namespace": "elsewhere", "name": "far" });
    let late = json!({ "namespace": "elsewhere", "name": "late" });
    let beside = json!({ "name": "near" });
    let wrong = json!({ "namespace": "..", "name": "far" });
    let split = json!({ "name": "elsewhere/far" });
    let across = json!([far, late, beside, wrong, split]);
    shelf(&rig, json!({ "across": across })).await;
    assert_eq!(rig.app.sees_kiosks(), ["far", "near"]);
    // A change of a referred kiosk triggers a reconciliation, also if that kiosk did not exist at first.
    put(&rig, "elsewhere", "late").await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.sees_kiosks(), ["far", "late", "near"]);
    // Kiosks that the selectors of the declaration exclude are not found.
    let private = Patch::Merge(json!({ "metadata": { "labels": { "private": "" } } }));
    let kiosks = Api::<Kiosk>::namespaced(rig.client.clone(), "elsewhere");
    let patched = kiosks.patch("far", &PatchParams::default(), &private).await;
    patched.expect("it is accepted");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.app.sees_kiosks(), ["late", "near"]);
}
