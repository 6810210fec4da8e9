//! Resources that others have made, manage, or own, and those that a backup brings back.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, ResourceExt};
use okt::{Declared, Resources};
use okt_tests::ShopState::Open;
use serde_json::{Value, json};

use super::{Shop, deployment, map, of, open, redeclare, writes};
use okt_tests::{Objects, assert_contains};

#[tokio::test(start_paused = true)]
async fn of_two_owners_that_adopt_one_object_the_second_names_the_first_and_writes_nothing() {
    let shared = |number: u32| Declared::of(map("shared", &number.to_string())).adopting();
    for unowned in [false, true] {
        let declared = if unowned {
            shared(1).unowned()
        } else {
            shared(1)
        };
        let rig = open(Resources::new().with(declared)).await;
        rig.create("second", json!({})).await;
        let refused = rig.until_reason("second", "Ready", "NotOwned").await;
        let message = "ConfigMap shared exists and belongs to Shop";
        assert_contains(&refused.message, message);
        rig.wire.clear();
        rig.pass(Duration::from_hours(1)).await;
        let applied = writes(&rig)
            .iter()
            .filter(|it| it.contains("PATCH"))
            .count();
        assert!(applied <= 30, "{applied} attempts to create it");
        let owner = rig.of::<ConfigMap>().read("shared").await;
        let first = rig.object("shop").await.metadata.uid;
        assert_eq!(owner.labels().get("okt.dev/owner"), first.as_ref());
        rig.delete_until_gone("shop").await;
        rig.request("second");
        rig.pass(Duration::from_mins(10)).await;
        rig.until_ready("second", Open).await;
    }
}

#[tokio::test(start_paused = true)]
async fn fields_of_a_former_manager_go_if_they_are_taken_over() {
    for takes_over in [false, true] {
        let rig = Shop::without_operator_of().await;
        let mut chart = serde_json::to_value(deployment("web")).expect("JSON");
        let sidecar = json!({ "name": "proxy", "image": "proxy:1" });
        let containers = &mut chart["spec"]["template"]["spec"]["containers"];
        containers.as_array_mut().expect("a list").push(sidecar);
        chart["metadata"]["labels"] = json!({ "chart": "web-1" });
        let deployments = rig.of::<Deployment>();
        let params = PostParams {
            field_manager: Some("helm".to_owned()),
            ..PostParams::default()
        };
        deployments
            .create(&params, &of(chart))
            .await
            .expect("it is accepted");
        let declared = Declared::of(deployment("web")).adopting();
        let declared = if takes_over {
            declared.taking_over(["helm", "kubectl-client-side-apply"])
        } else {
            declared
        };
        rig.app.declare(Resources::new().with(declared));
        rig.start();
        rig.create_ready("shop", Open).await;
        let web = deployments.read("web").await;
        assert_eq!(web.labels().contains_key("chart"), !takes_over);
        let spec = web.spec.template.spec.expect("a spec");
        let names: Vec<String> = spec.containers.into_iter().map(|it| it.name).collect();
        assert_eq!(
            names.contains(&"proxy".to_owned()),
            !takes_over,
            "{names:?}"
        );
        rig.wire.clear();
        rig.pass(Duration::from_hours(1)).await;
        assert_eq!(writes(&rig), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_given_up_keeps_the_value_that_others_set() {
    let rig = open(Resources::new().apply(deployment("web"))).await;
    let deployments = rig.of::<Deployment>();
    let replicas = async || {
        let web = deployments.read("web").await;
        web.spec.replicas
    };
    assert_eq!(replicas().await, Some(2));
    // The next release leaves the replicas to an autoscaler.
    let declared = Declared::of(deployment("web")).initially("/spec/replicas");
    redeclare(&rig, Resources::new().with(declared.clone()));
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(replicas().await, Some(2));
    let params = PatchParams {
        field_manager: Some("autoscaler".to_owned()),
        ..PatchParams::default()
    };
    let scaled = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    deployments
        .patch("web", &params, &scaled)
        .await
        .expect("it is accepted");
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(replicas().await, Some(5));
    // Another change of the declaration leaves them alone, too.
    let mut changed = serde_json::to_value(deployment("web")).expect("JSON");
    changed["metadata"]["labels"] = json!({ "release": "2" });
    let changed = Declared::of(of::<Deployment>(changed)).initially("/spec/replicas");
    redeclare(&rig, Resources::new().with(changed));
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(replicas().await, Some(5));
    // An object that is made has the declared value.
    let gone = deployments
        .delete("web", &kube::api::DeleteParams::default())
        .await;
    gone.expect("it goes");
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(replicas().await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_none_is_refused() {
    let rig = Shop::without_operator_of().await;
    let declared = Declared::of(deployment("web")).initially("spec.replicas");
    rig.app.declare(Resources::new().with(declared));
    rig.start();
    rig.create("shop", json!({})).await;
    let stalled = rig.until_reason("shop", "Stalled", "BadResource").await;
    let message = "spec.replicas is not the place of a field outside of lists";
    assert_contains(&stalled.message, message);
}

/// Returns an object as a tool like Velero creates it again: without what the cluster had given it.
fn stripped(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata
        .retain(|name, _| ["name", "namespace", "labels", "annotations"].contains(&name.as_str()));
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    labels["velero.io/restore-name"] = json!("restore");
    object
}

async fn restored(rig: &Shop, api: &ApiResource, backup: &Value) {
    let namespace = backup["metadata"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let objects: Api<DynamicObject> = Api::namespaced_with(rig.client.clone(), namespace, api);
    let mut object = stripped(backup.clone());
    object["apiVersion"] = api.api_version.clone().into();
    object["kind"] = api.kind.clone().into();
    objects.make(object).await;
}

#[tokio::test(start_paused = true)]
async fn a_backup_that_is_restored_with_its_status_goes_on_where_it_was() {
    let rig = Shop::without_operator_of().await;
    rig.create_namespace("elsewhere").await;
    let mut far = map("far", "x");
    far.metadata.namespace = Some("elsewhere".to_owned());
    let secret: Secret = of(json!({ "metadata": { "name": "data" }, "stringData": { "a": "b" } }));
    let declared = Resources::new()
        .apply(map("a", "x"))
        .apply(deployment("web"))
        .create_only(secret)
        .with(Declared::of(far).unowned());
    rig.app.declare(declared);
    rig.start();
    rig.create_ready("shop", Open).await;

    let kinds = [
        (ApiResource::erase::<ConfigMap>(&()), "default", "a"),
        (ApiResource::erase::<ConfigMap>(&()), "elsewhere", "far"),
        (ApiResource::erase::<Deployment>(&()), "default", "web"),
        (ApiResource::erase::<Secret>(&()), "default", "data"),
    ];
    let mut backups = Vec::new();
    for (api, namespace, name) in &kinds {
        let objects: Api<DynamicObject> = Api::namespaced_with(rig.client.clone(), namespace, api);
        let object = objects.get(name).await.expect("it is there");
        backups.push((api, serde_json::to_value(object).expect("JSON")));
    }
    let shop = serde_json::to_value(rig.raw().read("shop").await);
    let shop = shop.expect("JSON");
    // Everything is lost, with the operator.
    rig.delete_until_gone("shop").await;
    rig.stop().await;
    let ran = rig.app.ran().len();
    for (api, namespace, name) in &kinds {
        let objects: Api<DynamicObject> = Api::namespaced_with(rig.client.clone(), namespace, api);
        let _ = objects
            .delete(name, &kube::api::DeleteParams::background())
            .await;
    }
    rig.pass(Duration::from_secs(10)).await;

    for (api, backup) in &backups {
        restored(&rig, api, backup).await;
    }
    let api = ApiResource::erase::<okt_tests::Shop>(&());
    restored(&rig, &api, &shop).await;
    let status = rig.patch_status("shop", shop["status"].clone()).await;
    status.expect("its position is accepted");
    rig.start();
    rig.pass(Duration::from_mins(10)).await;
    rig.until_ready("shop", Open).await;
    assert_eq!(rig.app.ran().len(), ran, "{:?}", rig.app.ran());
    let uid = rig.object("shop").await.metadata.uid;
    for (api, namespace, name) in &kinds {
        let objects: Api<DynamicObject> = Api::namespaced_with(rig.client.clone(), namespace, api);
        let object = objects.get(name).await.expect("it is there");
        assert_eq!(object.labels().get("okt.dev/owner"), uid.as_ref(), "{name}");
        assert_eq!(
            object.owner_references().is_empty(),
            *name == "far",
            "{name}"
        );
    }
    assert_eq!(rig.text("a").await.as_deref(), Some("x"));
    rig.writes_nothing_for(Duration::from_hours(1)).await;
    rig.delete_until_gone("shop").await;
    let far = rig.within::<ConfigMap>("elsewhere");
    assert!(!far.has("far").await);
}
