//! What handlers remember and the results of steps on a real API server, which another writer of the status changes.

use std::time::Duration;

use okt::reasons;
use okt_tests::{BrokerState, Brokers, Objects, Resize};
use serde_json::{Value, json};

use crate::{Scene, on_kubernetes};

/// Nothing on this server deletes what a broker owns: another test must not meet it.
const NAME: &str = "edited";

const CHANGED: &str = "somebody else than the operator has changed `value`";

#[tokio::test]
#[ignore = "starts a real API server; run with --include-ignored"]
async fn memory_and_steps_that_another_writer_changes_are_reported_and_not_obeyed() {
    on_kubernetes("memory", async |place| {
        let mut scene = Scene::<Brokers>::set(&place, |_| {}).await;
        scene.create_with(NAME, json!({ "nodes": 3 })).await;
        scene.until_ready(NAME, BrokerState::Running).await;
        let edit = |memory: Value| json!({ "lifecycle": { "memory": { "value": memory } } });
        let size = async |scene: &Scene<Brokers>| {
            let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = scene.of();
            maps.read(NAME).await.data.unwrap_or_default()["text"].clone()
        };

        let edited = edit(json!({ "nodes": 1 }));
        scene.patch_status(NAME, edited).await.expect("a status");
        scene
            .until_message(NAME, "Stalled", reasons::UNDECODABLE, CHANGED)
            .await;
        scene.patch(NAME, json!({ "spec": { "nodes": 4 } })).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(size(&scene).await, "3", "it was obeyed");
        let restored = edit(json!({ "nodes": 3 }));
        scene.app.resizes.lock().push_back(Resize::Steps(1));
        scene.patch_status(NAME, restored).await.expect("a status");

        // The first of three steps is recorded, and the second one does not end.
        let recorded = |broker: &okt_tests::Broker| {
            let position = broker.status.as_ref()?.lifecycle.as_ref()?;
            position.action.as_ref()?.steps.as_ref().map(|_| ())
        };
        scene
            .until(NAME, "has recorded a step", |it| recorded(it).is_some())
            .await;
        let forged = json!([{ "name": "drain", "result": 0 }, { "name": "move", "result": 1 }]);
        let forged = json!({ "lifecycle": { "action": { "steps": { "value": forged } } } });
        scene.patch_status(NAME, forged).await.expect("a status");
        scene.restart().await;
        scene
            .until_message(NAME, "Stalled", reasons::UNDECODABLE, CHANGED)
            .await;
        assert_eq!(scene.app.taken.lock().len(), 1);
        let removed = json!({ "lifecycle": { "action": { "steps": null } } });
        scene.patch_status(NAME, removed).await.expect("a status");
        scene.until_ready(NAME, BrokerState::Running).await;
        assert_eq!(size(&scene).await, "4");
        let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = scene.of();
        maps.remove(NAME).await;
    })
    .await;
}
