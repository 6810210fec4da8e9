//! These tests check on a real API server what others do to owned resources: managers of fields, a deletion in the
//! foreground, and a restored backup.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use okt::{Declared, Failure, Operator, Resources, crd};
use okt_tests::rollout::Place;
use okt_tests::{Cluster, Shop, ShopState::Open, Shops};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::resources::{deployment, map, of, until};
use crate::on_kubernetes;

struct Scene {
    cluster: Cluster<Shops>,
    client: Client,
    app: Shops,
}

impl Scene {
    async fn set(place: &Place, declared: Resources) -> Self {
        let cluster: Cluster<Shops> = place.cluster();
        cluster.define(crd::<Shop>().expect("a CRD")).await;
        let app = Shops::default();
        app.declare(declared);
        Self {
            cluster,
            client: place.client.clone(),
            app,
        }
    }

    fn start(&self) -> JoinHandle<()> {
        let operator = Operator::new(self.client.clone(), self.app.clone());
        tokio::spawn(async move {
            operator.run(std::future::pending()).await.expect("it runs");
        })
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Declares other resources, and changes the spec to cause a reconciliation.
    async fn declare(&self, resources: Resources, number: u32) {
        self.app.declare(resources);
        let touch = json!({ "spec": { "key": number.to_string() } });
        self.cluster.patch("shop", touch).await;
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn fields_are_taken_over_from_a_chart_and_given_up_to_an_autoscaler() {
    on_kubernetes("the managers of fields", async |place| {
        let scene = Scene::set(&place, Resources::new()).await;
        let mut chart = serde_json::to_value(deployment()).expect("JSON");
        chart["metadata"]["labels"] = json!({ "chart": "web-1" });
        let containers = &mut chart["spec"]["template"]["spec"]["containers"];
        let sidecar = json!({ "name": "proxy", "image": "proxy:1" });
        containers.as_array_mut().expect("a list").push(sidecar);
        let params = PostParams {
            field_manager: Some("helm".to_owned()),
            ..PostParams::default()
        };
        let made = scene.deployments().create(&params, &of(chart)).await;
        made.expect("it is accepted");
        let declared = Declared::of(deployment()).adopting().taking_over(["helm"]);
        scene.app.declare(Resources::new().with(declared));
        let operator = scene.start();
        scene.cluster.create("shop", json!({})).await;
        scene.cluster.until_ready("shop", Open).await;
        let web = scene.deployments().get("web").await.expect("it is there");
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
            let web = scene.deployments().get("web").await.expect("it is there");
            web.spec.replicas
        };
        until(&place, "there are three", async || {
            replicas().await == Some(3)
        })
        .await;
        scene.declare(Resources::new().with(declared), 2).await;
        let given_up = async || {
            let web = scene.deployments().get("web").await.expect("it is there");
            let fields = serde_json::to_string(&web.metadata.managed_fields).expect("JSON");
            !fields.contains("f:replicas\":{}") && web.spec.replicas == Some(3)
        };
        until(&place, "nobody owns the replicas, and they stay", given_up).await;
        operator.abort();
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn what_is_unowned_outlives_a_deletion_in_the_foreground() {
    on_kubernetes("a deletion in the foreground", async |place| {
        let declared = Resources::new().with(Declared::of(map("a", "x")).unowned());
        let scene = Scene::set(&place, declared.apply(map("b", "x"))).await;
        let operator = scene.start();
        scene.cluster.create("shop", json!({})).await;
        scene.cluster.until_ready("shop", Open).await;
        let foreground = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteParams::default()
        };
        let deleted = scene.cluster.api().delete("shop", &foreground).await;
        deleted.expect("it is accepted");
        scene.cluster.until_gone("shop").await;
        // `b` is collected before the work on the way out, or while it runs.
        let closed = scene.app.ran().last().cloned().expect("a call");
        let kept = ["Closing with 1", "Closing with 2"].contains(&&*closed);
        assert!(kept, "{closed}");
        let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "default");
        for name in ["a", "b"] {
            let gone = async || maps.get_opt(name).await.expect("a read").is_none();
            until(&place, "it is gone", gone).await;
        }
        operator.abort();
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
        let scene = Scene::set(&place, declared.apply(map("a", "x"))).await;
        let namespaces: Api<Namespace> = Api::all(scene.client.clone());
        let edge = of(json!({ "metadata": { "name": "edge" } }));
        let made = namespaces.create(&PostParams::default(), &edge).await;
        made.expect("it is accepted");
        let operator = scene.start();
        let kind = ApiResource::erase::<Shop>(&());
        let shops: Api<DynamicObject> =
            Api::namespaced_with(scene.client.clone(), "edge", &kind);
        let shop = of(json!({
            "apiVersion": kind.api_version, "kind": "Shop", "metadata": { "name": "shop" }, "spec": {},
        }));
        let made = shops.create(&PostParams::default(), &shop).await;
        made.expect("it is accepted");
        let says = async |reason: &str| {
            let shop = shops.get_opt("shop").await.expect("a read");
            shop.is_some_and(|shop| shop.data["status"].to_string().contains(reason))
        };
        until(&place, "it is open", async || says(r#""reason":"Open""#).await).await;
        // The Secret that says what to declare goes with the namespace.
        let gone = Failure::retry("NoSecret", "the Secret is gone");
        scene.app.fail_to_declare(Some(gone));
        let deleted = namespaces.delete("edge", &DeleteParams::default()).await;
        deleted.expect("it is accepted");
        // It fails in the state before, too, until the namespace is on its way out.
        let goes_on = async || says("after ten minutes the deletion goes on").await;
        until(&place, "it says how it goes on", goes_on).await;
        // In one step: a clock that runs ahead by itself leaves no time for answers, and each that is lost makes the
        // next wait longer.
        tokio::time::pause();
        tokio::time::advance(Duration::from_mins(11)).await;
        tokio::time::resume();
        let is_gone = async || {
            let edge = namespaces.get_opt("edge").await.expect("a read");
            edge.is_none()
        };
        until(&place, "the namespace is gone", is_gone).await;
        let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "default");
        assert!(maps.get_opt("far").await.expect("a read").is_none());
        operator.abort();
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn what_depends_on_a_deleted_resource_stays_if_that_is_declared() {
    on_kubernetes("propagation", async |place| {
        let declared = Declared::of(deployment()).propagation(PropagationPolicy::Orphan);
        let scene = Scene::set(&place, Resources::new().with(declared)).await;
        let operator = scene.start();
        scene.cluster.create("shop", json!({})).await;
        scene.cluster.until_ready("shop", Open).await;
        let web = scene.deployments().get("web").await.expect("it is there");
        let dependent: ConfigMap = of(json!({ "metadata": {
            "name": "dependent",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": web.uid(),
            }],
        } }));
        let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "default");
        let made = maps.create(&PostParams::default(), &dependent).await;
        made.expect("it is accepted");
        scene.declare(Resources::new(), 1).await;
        let is_gone = async || {
            let web = scene.deployments().get_opt("web").await;
            web.expect("a read").is_none()
        };
        until(&place, "it is pruned", is_gone).await;
        let left = maps.get("dependent").await.expect("it runs on");
        assert_eq!(left.owner_references(), []);
        maps.delete("dependent", &DeleteParams::default())
            .await
            .expect("it goes");
        operator.abort();
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_restored_backup_goes_on_where_it_was_and_is_deleted_like_any_other() {
    on_kubernetes("a restored backup", async |place| {
        let scene = Scene::set(&place, Resources::new().apply(map("a", "x"))).await;
        let operator = scene.start();
        scene.cluster.create("shop", json!({})).await;
        scene.cluster.until_ready("shop", Open).await;
        let shop = scene.cluster.raw().get("shop").await.expect("it is there");
        let shop = serde_json::to_value(shop).expect("JSON");
        let maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "default");
        let a = maps.get("a").await.expect("it is there");
        scene.cluster.delete("shop").await;
        scene.cluster.until_gone("shop").await;
        let gone = async || maps.get_opt("a").await.expect("a read").is_none();
        until(&place, "it is gone", gone).await;
        operator.abort();
        let ran = scene.app.ran().len();

        let a = stripped(serde_json::to_value(a).expect("JSON"));
        let made = maps.create(&PostParams::default(), &of(a)).await;
        made.expect("it is created again");
        let kind = ApiResource::erase::<Shop>(&());
        let shops: Api<DynamicObject> =
            Api::namespaced_with(scene.client.clone(), "default", &kind);
        let status = shop["status"].clone();
        let mut again = stripped(shop);
        again["apiVersion"] = json!(kind.api_version);
        again["kind"] = json!(kind.kind);
        let made = shops.create(&PostParams::default(), &of(again)).await;
        made.expect("it is created again");
        let by_tool = PatchParams {
            field_manager: Some("velero-server".to_owned()),
            ..PatchParams::default()
        };
        let status = Patch::Merge(json!({ "status": status }));
        let written = shops.patch_status("shop", &by_tool, &status).await;
        written.expect("its position is accepted");
        let operator = scene.start();
        let uid = shops.get("shop").await.expect("it is there").uid();
        let is_taken = async || {
            let map = maps.get("a").await.expect("it is there");
            map.labels().get("okt.dev/owner") == uid.as_ref()
        };
        until(&place, "its map is its own again", is_taken).await;
        scene.cluster.until_ready("shop", Open).await;
        assert_eq!(scene.app.ran().len(), ran, "{:?}", scene.app.ran());
        scene.cluster.delete("shop").await;
        scene.cluster.until_gone("shop").await;
        operator.abort();
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
