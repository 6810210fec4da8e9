//! Tests of refused requests.

use std::time::Duration;

use kube::api::ListParams;
use okt_apiserver::{ApiServer, Fault, Verb};

use crate::support::{empty, maps, refusal, set, take, watch, with_a, x};

#[tokio::test(start_paused = true)]
async fn a_conflict_has_the_real_message_and_writes_nothing() {
    let (server, maps, _) = with_a().await;
    server.inject(Fault::conflict().on(Verb::Patch).times(1));
    let status = refusal(set(&maps, "a", "1").await);
    assert!(status.is_conflict());
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    assert_eq!(x(&maps.get("a").await.unwrap()), "");
    assert_eq!(x(&set(&maps, "a", "1").await.unwrap()), "1");
}

#[tokio::test(start_paused = true)]
async fn every_refusal_has_its_code_and_reason() {
    let (server, maps) = empty();
    for (fault, code, reason) in [
        (Fault::conflict(), 409, "Conflict"),
        (Fault::internal_error(), 500, "InternalError"),
        (Fault::unavailable(), 503, "ServiceUnavailable"),
        (Fault::timeout(), 504, "Timeout"),
        (Fault::gone(), 410, "Expired"),
        (Fault::unauthorized(), 401, "Unauthorized"),
        (Fault::forbidden(), 403, "Forbidden"),
        (
            Fault::answer(418, "Teapot", "short and stout"),
            418,
            "Teapot",
        ),
    ] {
        server.inject(fault.times(1));
        let status = refusal(maps.list(&ListParams::default()).await);
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_sends_retry_after_in_whole_seconds() {
    let server = ApiServer::new();
    server.inject(Fault::too_many_requests(Duration::from_millis(1200)));
    let request = http::Request::get("/api/v1/pods")
        .body(Vec::new().into())
        .unwrap();
    let response = server.client().send(request).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "2");
    let status = refusal(maps(server.client()).list(&ListParams::default()).await);
    assert_eq!(status.details.unwrap().retry_after_seconds, 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_an_expired_version_gets_an_error_event() {
    let (server, maps) = empty();
    server.inject(Fault::gone().on(Verb::Watch).times(1));
    let mut events = watch(&maps, "1").await;
    assert_eq!(take(&mut events, 2).await, ["ERROR 410"]);
}
