//! Objects that are nested as deeply as a real API server allows.

use http::Request;
use kube::api::{Patch, PatchParams};
use okt::crd;
use okt_tests::{Cluster, Kiosk, KioskState::Open, Kiosks};
use serde_json::json;

use crate::on_kubernetes;

/// The depth of the deepest list that the server stores in `spec.free`; its decoder takes 10,000 levels in all.
const DEEPEST: usize = 9_990;

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn the_deepest_object_that_a_server_stores_is_reported_and_stops_no_other() {
    on_kubernetes("deeply nested objects", async |place| {
        let cluster: Cluster<Kiosks> = place.cluster();
        cluster.define(crd::<Kiosk>().expect("a CRD")).await;
        let path = "/apis/demo.okt.dev/v1/namespaces/default/kiosks";
        let create = |name: &str, depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            let head = r#"{"apiVersion":"demo.okt.dev/v1","kind":"Kiosk","metadata":{"name":""#;
            let body = format!(r#"{head}{name}"}},"spec":{{"free":{open}{close}}}}}"#);
            let request = Request::post(path).header("content-type", "application/json");
            let request = request.body(body.into_bytes()).expect("a request");
            let client = cluster.client.clone();
            async move { client.request_text(request).await }
        };
        create("listed", DEEPEST).await.expect("it is stored");
        let deeper = create("deeper", 10_001).await;
        assert!(deeper.is_err(), "a server stores no deeper one");
        let _operator = place.operate(Kiosks::default());
        cluster.create_ready("first", Open).await;
        create("watched", DEEPEST).await.expect("it is stored");
        cluster.create_ready("second", Open).await;
        for name in ["listed", "watched"] {
            let deadline = tokio::time::Instant::now() + cluster.patience;
            loop {
                let request = Request::get(format!("{path}/{name}")).body(Vec::new());
                let request = request.expect("a request");
                let text = cluster.client.request_text(request).await.expect("a read");
                if text.contains("recursion limit exceeded") {
                    break;
                }
                assert!(tokio::time::Instant::now() < deadline, "{name} is silent");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            // A repaired object starts its lifecycle.
            let mended = Patch::Merge(json!({ "spec": { "free": null } }));
            let params = PatchParams::default();
            let patched = cluster.api().patch_metadata(name, &params, &mended).await;
            patched.expect("the patch is accepted");
            cluster.until_ready(name, Open).await;
        }
    })
    .await;
}
