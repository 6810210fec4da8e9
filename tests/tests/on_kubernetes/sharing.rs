//! These tests check on a real API server what others do to owned resources: managers of fields, a deletion in the
//! foreground, and a restored backup.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::ApiResource;
use kube::{Api, ResourceExt};
use okt::{Declared, Failure, Resources};
use okt_tests::rollout::Place;
use okt_tests::{Objects, Shop, ShopState::Open, Shops, until};
use serde_json::{Value, json};

use super::resources::{deployment, map, of};
use crate::{Scene, on_kubernetes};

async fn set(place: &Place, declared: Resources) -> Scene<Shops> {
    Scene::set(place, |app: &Shops| app.declare(declared)).await
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn fields_are_taken_over_from_a_chart_and_given_up_to_an_autoscaler() {
    on_kubernetes("the managers of fields", async |place| {
        let scene = set(&place, Resources::new()).await;
        let mut chart = serde_json::to_value(deployment()).expect("JSON");
        chart["metadata"]["labels"] = json!({ "chart": "web-1" });
        let containers = &mut chart["spec"]["template"]["spec"]["containers"];
        let sidecar = json!({ "name": "proxy", "image": "proxy:1" });
        containers.as_array_mut().expect("a list").push(sidecar);
        let params = PostParams {
            field_manager: Some("helm".to_owned()),
            ..PostParams::default()
        };
        let made = scene.of::<Deployment>().create(&params, &of(chart)).await;
        made.expect("it is accepted");
        let declared = Declared::of(deployment()).adopting().taking_over(["helm"]);
        scene.app.declare(Resources::new().with(declared));
        scene.create_ready("shop", Open).await;
        let web = scene.of::<Deployment>().read("web").await;
        assert!(!web.labels().contains_key("chart"));
        let pod = web.spec.template.spec.expect("a spec");
        assert_eq!(pod.containers.len(), 1, "{:?}", pod.containers);

        let declared = Declared::of(deployment())
            .adopting()
            .taking_over(["helm"])
            .initially("/spec/replicas");
        let mut scaled = serde_json::to_value(deployment()).expect("JSON");
        scaled["spec"]["replicas"] = json!(3);
        let three = Declared::of(of::<Deployment>(scaled)).adopting();
        scene.declare(Resources::new().with(three), 1).await;
        let replicas = async || {
            let web = scene.of::<Deployment>().read("web").await;
            web.spec.replicas
        };
        until("there are three", async || replicas().await == Some(3)).await;
        scene.declare(Resources::new().with(declared), 2).await;
        let given_up = async || {
            let web = scene.of::<Deployment>().read("web").await;
            let fields = serde_json::to_string(&web.metadata.managed_fields).expect("JSON");
            !fields.contains("f:replicas\":{}") && web.spec.replicas == Some(3)
        };
        until("nobody owns the replicas, and they stay", given_up).await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn what_is_unowned_outlives_a_deletion_in_the_foreground() {
    on_kubernetes("a deletion in the foreground", async |place| {
        let declared = Resources::new().with(Declared::of(map("a", "x")).unowned());
        let scene = set(&place, declared.apply(map("b", "x"))).await;
        scene.create_ready("shop", Open).await;
        let foreground = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        let deleted = scene.api().delete("shop", &foreground).await;
        deleted.expect("it is accepted");
        scene.until_gone("shop").await;
        // `b` is collected before the work on the way out, or while it runs.
        let closed = scene.app.ran().last().cloned().expect("a call");
        let kept = ["Closing with 1", "Closing with 2"].contains(&&*closed);
        assert!(kept, "{closed}");
        let maps = scene.of::<ConfigMap>();
        for name in ["a", "b"] {
            let gone = async || !maps.has(name).await;
            until("it is gone", gone).await;
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_namespace_goes_although_nothing_says_any_more_what_to_keep() {
    on_kubernetes("a namespace that goes", async |place| {
        let mut far = map("far", "x");
        far.metadata.namespace = Some("default".to_owned());
        let declared = Resources::new().with(Declared::of(far).unowned());
        let scene = set(&place, declared.apply(map("a", "x"))).await;
        let namespaces = scene.of::<Namespace>();
        scene.create_namespace("edge").await;
        let kind = ApiResource::erase::<Shop>(&());
        let shops: Api<DynamicObject> =
            Api::namespaced_with(scene.client.clone(), "edge", &kind);
        shops.make(json!({
            "apiVersion": kind.api_version, "kind": "Shop", "metadata": { "name": "shop" }, "spec": {},
        })).await;
        let written = async |reason: &str| {
            let shop = shops.get_opt("shop").await.expect("a read");
            shop.is_some_and(|shop| shop.data["status"].to_string().contains(reason))
        };
        until("it is open", async || written(r#""reason":"Open""#).await).await;
        // The Secret that says what to declare goes with the namespace.
        let gone = Failure::retry("NoSecret", "the Secret is gone");
        scene.app.fail_to_declare(Some(gone));
        namespaces.remove("edge").await;
        // It fails in the state before, too, until the namespace is on its way out.
        let goes_on = async || written("after ten minutes the deletion goes on").await;
        until("it says how it goes on", goes_on).await;
        // In one step: a clock that runs ahead by itself leaves no time for answers, and each that is lost makes the
        // next wait longer.
        tokio::time::pause();
        tokio::time::advance(Duration::from_mins(11)).await;
        tokio::time::resume();
        let is_gone = async || {
            let edge = namespaces.get_opt("edge").await.expect("a read");
            edge.is_none()
        };
        until("the namespace is gone", is_gone).await;
        let maps = scene.of::<ConfigMap>();
        assert!(!maps.has("far").await);
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn what_depends_on_a_deleted_resource_stays_if_that_is_declared() {
    on_kubernetes("propagation", async |place| {
        let declared = Declared::of(deployment()).propagation(PropagationPolicy::Orphan);
        let scene = set(&place, Resources::new().with(declared)).await;
        scene.create_ready("shop", Open).await;
        let web = scene.of::<Deployment>().read("web").await;
        let dependent: ConfigMap = of(json!({ "metadata": {
            "name": "dependent",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": web.uid(),
            }],
        } }));
        let maps = scene.of::<ConfigMap>();
        maps.make(json!(&dependent)).await;
        scene.declare(Resources::new(), 1).await;
        let is_gone = async || {
            let web = scene.of::<Deployment>().get_opt("web").await;
            web.expect("a read").is_none()
        };
        until("it is pruned", is_gone).await;
        let left = maps.read("dependent").await;
        assert_eq!(left.owner_references(), []);
        maps.remove("dependent").await;
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_restored_backup_goes_on_where_it_was_and_is_deleted_like_any_other() {
    on_kubernetes("a restored backup", async |place| {
        let scene = set(&place, Resources::new().apply(map("a", "x"))).await;
        scene.create_ready("shop", Open).await;
        let shop = scene.raw().read("shop").await;
        let shop = serde_json::to_value(shop).expect("JSON");
        let maps = scene.of::<ConfigMap>();
        let a = maps.read("a").await;
        scene.delete_until_gone("shop").await;
        let gone = async || !maps.has("a").await;
        until("it is gone", gone).await;
        let Scene {
            cluster,
            app,
            working,
            ..
        } = scene;
        working.kill().await;
        let ran = app.ran().len();

        let a = stripped(serde_json::to_value(a).expect("JSON"));
        maps.make(a).await;
        let kind = ApiResource::erase::<Shop>(&());
        let shops: Api<DynamicObject> =
            Api::namespaced_with(cluster.client.clone(), "default", &kind);
        let status = shop["status"].clone();
        let mut again = stripped(shop);
        again["apiVersion"] = json!(kind.api_version);
        again["kind"] = json!(kind.kind);
        shops.make(again).await;
        let by_tool = PatchParams {
            field_manager: Some("velero-server".to_owned()),
            ..PatchParams::default()
        };
        let status = Patch::Merge(json!({ "status": status }));
        let written = shops.patch_status("shop", &by_tool, &status).await;
        written.expect("its position is accepted");
        let _working = place.operate(app.clone());
        let uid = shops.read("shop").await.uid();
        let is_taken = async || {
            let map = maps.read("a").await;
            map.labels().get("okt.dev/owner") == uid.as_ref()
        };
        until("its map is its own again", is_taken).await;
        cluster.until_ready("shop", Open).await;
        assert_eq!(app.ran().len(), ran, "{:?}", app.ran());
        cluster.delete_until_gone("shop").await;
    })
    .await;
}

/// Returns an object as a tool like Velero creates it again: without what the cluster had given it.
fn stripped(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata
        .retain(|name, _| ["name", "namespace", "labels", "annotations"].contains(&name.as_str()));
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}
