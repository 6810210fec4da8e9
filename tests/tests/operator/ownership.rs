//! OKT treats a resource as owned only if more than its labels say so, and creating a resource adopts nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use okt::Operator;
use okt_tests::{KioskState::*, Kiosks, OPERATOR, Objects, Part, Rig};
use serde_json::{Value, json};

type Market = Rig<Kiosks>;

async fn create(rig: &Market, name: &str, map: &str) {
    rig.create_with(name, json!({ "maps": { (map): name } }))
        .await;
}

fn maps_in(rig: &Market, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(rig.client.clone(), namespace)
}

async fn map(rig: &Market, name: &str) -> Option<ConfigMap> {
    maps_in(rig, "default").get_opt(name).await.expect("a read")
}

fn text(map: &ConfigMap) -> &str {
    let data = map.data.as_ref().expect("data");
    &data["text"]
}

/// A client that runs an action before its request of this number, counted from 1.
fn before_request<F, D>(client: &Client, number: usize, what: F) -> (Client, Arc<AtomicUsize>)
where
    F: Fn() -> D + Clone + Send + Sync + 'static,
    D: Future<Output = ()> + Send,
{
    let (inner, count) = (client.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, what, counted) = (inner.clone(), what.clone(), Arc::clone(&counted));
        async move {
            if counted.fetch_add(1, Ordering::Relaxed) + 1 == number {
                what().await;
            }
            client.send(request).await
        }
    });
    (Client::new(service, client.default_namespace()), count)
}

#[tokio::test(start_paused = true)]
async fn when_two_objects_declare_the_same_map_one_owns_it_and_the_other_reports_it() {
    let rig = Market::of().await;
    for name in ["first", "second"] {
        create(&rig, name, "shared").await;
    }
    rig.until_ready("first", Open).await;
    rig.until_message("second", "Ready", "NotOwned", "ConfigMap shared")
        .await;
    rig.pass(Duration::from_hours(1)).await;
    assert_eq!(text(&map(&rig, "shared").await.expect("a map")), "first");
    rig.delete_until_gone("second").await;
    assert!(
        map(&rig, "shared").await.is_some(),
        "the map of the first object"
    );
}

#[tokio::test(start_paused = true)]
async fn a_map_made_by_hand_at_any_moment_is_neither_changed_nor_deleted() {
    let mut number = 0;
    loop {
        number += 1;
        let rig = Market::without_operator_of().await;
        create(&rig, "kiosk", "map").await;
        let by_hand: ConfigMap = serde_json::from_value(json!({
            "metadata": { "name": "map" },
            "data": { "by": "hand" },
        }))
        .expect("a map");
        let api = maps_in(&rig, "default");
        let make = move || {
            let (api, map) = (api.clone(), by_hand.clone());
            // If the operator's map exists already, it stays.
            async move { drop(api.create(&PostParams::default(), &map).await) }
        };
        let (client, count) = before_request(&rig.server.client_named(OPERATOR), number, make);
        let operator = Operator::new(client, rig.app.clone()).virtual_time();
        let operator = tokio::spawn(operator.run(std::future::pending()));
        rig.pass(Duration::from_mins(10)).await;
        let there = map(&rig, "map").await.expect("a map");
        let data = there.data.clone().unwrap_or_default();
        if data.contains_key("by") {
            assert_eq!(data.len(), 1, "before request {number}");
            assert!(there.labels().is_empty(), "before request {number}");
            assert_eq!(rig.shows("kiosk", "Ready").await, "False NotOwned");
        }
        rig.delete_until_gone("kiosk").await;
        if data.contains_key("by") {
            let there = map(&rig, "map").await;
            assert!(there.is_some(), "before request {number}");
        }
        operator.abort();
        if number > count.load(Ordering::Relaxed) {
            println!("made by hand before each of {} requests", number - 1);
            assert!(number > 10);
            return;
        }
    }
}

/// Applies a map that claims to belong to a kiosk; every user who may write maps in its namespace can do this.
async fn forge(rig: &Market, namespace: &str, uid: &str, owner: &Value) {
    let forged = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "forged",
            "labels": { "okt.dev/owner": uid, "okt.dev/owner-kind": "Kiosk.demo.okt.dev" },
            "annotations": {
                "okt.dev/owner-name": "default/kiosk",
                "okt.dev/unowned": "true",
                "okt.dev/wave": "1",
            },
            "ownerReferences": owner,
            "finalizers": ["example.com/stays"],
        },
        "data": { "text": "forged" },
    });
    let params = PatchParams::apply("okt/kiosks.demo.okt.dev").force();
    let maps = maps_in(rig, namespace);
    let forged = Patch::Apply(forged);
    maps.patch("forged", &params, &forged)
        .await
        .expect("any user may");
}

#[tokio::test(start_paused = true)]
async fn a_map_that_claims_to_be_owned_is_not_believed() {
    let rig = Market::of().await;
    rig.create_namespace("elsewhere").await;
    create(&rig, "kiosk", "map").await;
    let uid = rig.until_ready("kiosk", Open).await.uid().expect("a uid");
    let reference = json!([{
        "apiVersion": "demo.okt.dev/v1", "kind": "Kiosk", "name": "kiosk", "uid": uid,
    }]);
    rig.pass(Duration::from_mins(5)).await;
    let observations = rig.app.asked("kiosk", Part::Observe);
    // In another namespace with an owner reference, and in the same namespace without one.
    for _ in 0..50 {
        forge(&rig, "elsewhere", &uid, &reference).await;
        forge(&rig, "default", &uid, &json!([])).await;
        for namespace in ["elsewhere", "default"] {
            let maps = maps_in(&rig, namespace);
            maps.edit("forged", json!({ "metadata": { "finalizers": null } }))
                .await;
            maps.remove("forged").await;
        }
    }
    rig.pass(Duration::from_secs(10)).await;
    let caused = rig.app.asked("kiosk", Part::Observe) - observations;
    assert!(
        caused <= 1,
        "{caused} observations are more than the routine one"
    );
    forge(&rig, "elsewhere", &uid, &reference).await;
    forge(&rig, "default", &uid, &json!([])).await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(rig.app.sees_maps("kiosk"), ["map"]);
    rig.delete("kiosk").await;
    rig.pass(Duration::from_secs(5)).await;
    assert!(
        rig.get("kiosk").await.is_none(),
        "nothing blocks its deletion"
    );
    let deletions = rig.wire.writes().into_iter();
    let deletions = deletions.filter(|it| it.starts_with("DELETE") && it.ends_with("forged"));
    assert_eq!(deletions.count(), 0, "the operator deleted no forged map");
}

#[tokio::test(start_paused = true)]
async fn edits_of_an_owned_map_cause_few_observations() {
    let rig = Market::of().await;
    create(&rig, "kiosk", "map").await;
    rig.until_ready("kiosk", Open).await;
    rig.pass(Duration::from_mins(5)).await;
    let observations = rig.app.asked("kiosk", Part::Observe);
    for number in 0..1000 {
        let edit = json!({ "metadata": { "annotations": { "n": number.to_string() } } });
        let edit = Patch::Merge(edit);
        let maps = maps_in(&rig, "default");
        maps.patch("map", &PatchParams::default(), &edit)
            .await
            .expect("an edit");
        rig.pass(Duration::from_millis(10)).await;
    }
    rig.pass(Duration::from_secs(5)).await;
    let observations = rig.app.asked("kiosk", Part::Observe) - observations;
    println!("observations caused by 1,000 edits within 10 s: {observations}");
    assert!((1..=25).contains(&observations), "{observations}");
    // The last edit still has an effect.
    let spoil = Patch::Merge(json!({ "data": { "text": "spoilt" } }));
    let maps = maps_in(&rig, "default");
    maps.patch("map", &PatchParams::default(), &spoil)
        .await
        .expect("an edit");
    rig.pass(Duration::from_secs(5)).await;
    assert_eq!(text(&map(&rig, "map").await.expect("a map")), "kiosk");
}
