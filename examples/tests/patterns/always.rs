//! An object that must always exist is created, created again after a deletion, and otherwise left alone.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use okt_examples::always::always;
use okt_testing::{ApiServer, Fault, Verb};
use serde_json::json;

fn settings(text: &str) -> ConfigMap {
    let map = json!({ "metadata": { "name": "settings" }, "data": { "text": text } });
    serde_json::from_value(map).expect("a map")
}

struct Kept {
    server: ApiServer,
    maps: Api<ConfigMap>,
}

impl Kept {
    /// Starts to keep the object.
    fn on(server: ApiServer) -> Self {
        let keeper = Api::default_namespaced(server.client_named("keeper"));
        tokio::spawn(always(keeper, settings("x")));
        let maps = Api::default_namespaced(server.client());
        Self { server, maps }
    }

    async fn text(&self) -> Option<String> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let map = self.maps.get_opt("settings").await.expect("an answer")?;
        map.data?.get("text").cloned()
    }

    fn writes(&self) -> usize {
        let requests = self.server.requests();
        let of_keeper = requests.iter().filter(|it| it.client == "keeper");
        of_keeper.filter(|it| it.is_write()).count()
    }
}

#[tokio::test(start_paused = true)]
async fn declared_objects_are_created_and_recreated() {
    let kept = Kept::on(ApiServer::new());
    assert_eq!(kept.text().await.as_deref(), Some("x"));
    let deleted = kept.maps.delete("settings", &DeleteParams::default()).await;
    deleted.expect("a deletion");
    assert_eq!(kept.text().await.as_deref(), Some("x"));
    assert_eq!(kept.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_existing_object_is_not_changed() {
    let server = ApiServer::new();
    let kept = Kept::on(server.clone());
    assert_eq!(kept.text().await.as_deref(), Some("x"));
    let change = Patch::Merge(json!({ "data": { "text": "y" } }));
    let params = PatchParams::default();
    let changed = kept.maps.patch("settings", &params, &change).await;
    changed.expect("accepted");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(kept.text().await.as_deref(), Some("y"));
    // A second keeper finds the object when it starts.
    let kept = Kept::on(server);
    assert_eq!(kept.text().await.as_deref(), Some("y"));
    assert_eq!(kept.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_under_deletion_is_created_again_when_it_is_gone() {
    let kept = Kept::on(ApiServer::new());
    assert_eq!(kept.text().await.as_deref(), Some("x"));
    let change = async |change| {
        let (params, change) = (PatchParams::default(), Patch::Merge(change));
        let changed = kept.maps.patch("settings", &params, &change).await;
        changed.expect("accepted");
    };
    change(json!({ "metadata": { "finalizers": ["test.okt.dev/hold"] }, "data": { "text": "y" } }))
        .await;
    let deleted = kept.maps.delete("settings", &DeleteParams::default()).await;
    deleted.expect("a deletion");
    assert_eq!(kept.text().await.as_deref(), Some("y"));
    change(json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(kept.text().await.as_deref(), Some("x"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_retried() {
    let server = ApiServer::new();
    server.inject(Fault::forbidden().on(Verb::Create).times(2));
    server.inject(Fault::unavailable().on(Verb::List).times(2));
    let kept = Kept::on(server);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(kept.text().await.as_deref(), Some("x"));
}
