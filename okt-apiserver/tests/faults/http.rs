//! Tests of faults over HTTP, where connections really break.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{ListParams, WatchParams};
use okt_apiserver::{ApiServer, Fault, Served, Verb};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Retries, create, maps, over_http, refusal, set, short, version};

/// Sends a request and reads until the server closes the connection.
async fn raw(served: &Served, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(served.address()).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    timeout(Duration::from_mins(10), stream.read_to_end(&mut answer)).await??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn a_refusal_has_its_status_line_and_header() {
    let server = ApiServer::new();
    let served = server.serve().await.unwrap();
    server.inject(Fault::too_many_requests(Duration::from_secs(3)));
    let request = "GET /api/v1/pods HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = raw(&served, request).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    assert!(answer.contains("retry-after: 3"), "{answer}");
}

#[tokio::test]
async fn a_broken_connection_is_closed_without_a_response() {
    let server = ApiServer::new();
    let served = server.serve().await.unwrap();
    server.inject(Fault::break_connection().after_commit());
    let maps_over_http = maps(over_http(&served, Retries::None).await);
    let broken = create(&maps_over_http, "a").await.unwrap_err();
    assert!(matches!(broken, kube::Error::Service(_)), "{broken:?}");
    let answer = raw(&served, "GET /api/v1/pods HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(answer, "");
    server.calm();
    maps(server.client())
        .get("a")
        .await
        .expect("it was written");
}

#[tokio::test]
async fn a_cut_body_has_no_proper_end() {
    let server = ApiServer::new();
    let served = server.serve().await.unwrap();
    server.inject(Fault::cut_body(15));
    let maps = maps(over_http(&served, Retries::None).await);
    maps.list(&ListParams::default()).await.unwrap_err();
    let answer = raw(&served, "GET /api/v1/pods HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn kube_resumes_a_broken_watch_without_losing_events() {
    let server = ApiServer::new();
    let served = server.serve().await.unwrap();
    let maps = maps(over_http(&served, Retries::None).await);
    let first = create(&maps, "a").await.unwrap();
    server.inject(Fault::break_stream().nth(2));
    let mut from = version(&first);
    for x in ["1", "2", "3"] {
        set(&maps, "a", x).await.unwrap();
    }
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let mut events = maps
            .watch(&WatchParams::default(), &from)
            .await
            .unwrap()
            .boxed();
        while seen.len() < 3
            && let Some(event) = events.next().await
        {
            let event = event.unwrap();
            seen.push(short(&event));
            if let kube::api::WatchEvent::Modified(map) = event {
                from = version(&map);
            }
        }
    }
    assert_eq!(seen, ["MODIFIED a=1", "MODIFIED a=2", "MODIFIED a=3"]);
}

#[tokio::test]
async fn a_client_over_http_is_identified_by_its_user_agent() {
    let server = ApiServer::new();
    let served = server.serve().await.unwrap();
    server.inject(Fault::unavailable().client("curl"));
    let of = |agent: &str| {
        format!(
            "GET /version HTTP/1.1\r\nhost: a\r\nuser-agent: {agent}\r\nconnection: close\r\n\r\n"
        )
    };
    assert!(
        raw(&served, &of("curl/8.0"))
            .await
            .unwrap()
            .starts_with("HTTP/1.1 503")
    );
    assert!(
        raw(&served, &of("wget/1.0"))
            .await
            .unwrap()
            .starts_with("HTTP/1.1 200")
    );
}

#[tokio::test]
async fn a_replica_can_be_served_too() {
    let server = ApiServer::new();
    let b = server.replica("b");
    b.freeze();
    let served = b.endpoint().serve().await.unwrap();
    let of_b = maps(over_http(&served, Retries::None).await);
    create(&of_b, "a").await.unwrap();
    let cached = ListParams::default().match_any();
    assert_eq!(of_b.list(&cached).await.unwrap().items.len(), 0);
    assert_eq!(
        of_b.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
}

#[tokio::test]
async fn a_default_kube_client_retries() {
    let server = ApiServer::new();
    let served = server.serve().await.unwrap();
    let maps = maps(over_http(&served, Retries::Default).await);
    let outage = server.inject(Fault::unavailable().on(Verb::Create).times(2));
    create(&maps, "a").await.unwrap();
    assert_eq!(outage.struck(), 2);
    // A creation that timed out after its commit is retried, and the object exists already.
    server.inject(Fault::timeout().on(Verb::Create).after_commit().times(1));
    assert_eq!(refusal(create(&maps, "b").await).reason, "AlreadyExists");
}
