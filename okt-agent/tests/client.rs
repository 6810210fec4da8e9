//! The client against servers that are no proper agents: endless, silent, foreign, redirecting, with another token.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::{IntoFuture, pending};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Json, Response};
use axum::routing::{get, put};
use okt_agent::client::{Carried, Client, ClientError, Endpoint, EndpointError, News, Order};
use okt_agent::wire::{Code, Phase, Problem};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::task::AbortOnDropHandle;

/// Serves on loopback until the guard is dropped.
async fn serve(router: Router) -> (Endpoint, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        let served = axum::serve(listener, router).await;
        served.expect("it serves until it is dropped");
    });
    let endpoint = Endpoint::parse(&url).expect("a URL");
    (endpoint, AbortOnDropHandle::new(serving))
}

async fn client_of(router: Router) -> (Client, AbortOnDropHandle<()>) {
    let (endpoint, serving) = serve(router).await;
    let endpoint = endpoint.timeout(Duration::from_mins(2));
    (Client::new(&endpoint).expect("a client"), serving)
}

/// Returns a router with the agent's answer to the first request.
fn agent() -> Router {
    Router::new().route(
        "/lifecycle",
        get(|| async { Json(json!({ "versions": ["v1"] })) }),
    )
}

#[tokio::test]
async fn an_answer_without_end_is_read_up_to_its_limit() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let endless = move || {
        let counter = Arc::clone(&counter);
        async move {
            let piece = Bytes::from(vec![b' '; 64 * 1024]);
            let pieces = endless_body(move || {
                counter.fetch_add(piece.len(), Ordering::SeqCst);
                piece.clone()
            });
            Response::new(pieces)
        }
    };
    let (client, _serving) = client_of(agent().route("/lifecycle/v1/status", get(endless))).await;
    let error = client.status().await.expect_err("the body is endless");
    is_foreign(&error, 200);
    let why = "longer than 262144 bytes";
    assert!(error.to_string().contains(why), "{error}");
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent < 64 * 1024 * 1024, "{sent} bytes were sent");
}

fn is_foreign(error: &ClientError, expected: u16) {
    let ClientError::Foreign { status, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(*status, expected, "{error}");
}

/// Returns a body that never ends.
fn endless_body(piece: impl FnMut() -> Bytes + Send + Unpin + 'static) -> Body {
    struct Endless<F>(F);

    impl<F: FnMut() -> Bytes + Unpin> axum::body::HttpBody for Endless<F> {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
            std::task::Poll::Ready(Some(Ok(http_body::Frame::data((self.0)()))))
        }
    }

    Body::new(Endless(piece))
}

#[tokio::test]
async fn a_silent_agent_is_waited_for_within_a_limit() {
    let silent = get(|| async { pending::<StatusCode>().await });
    let (endpoint, _serving) = serve(agent().route("/lifecycle/v1/status", silent)).await;
    let endpoint = endpoint.timeout(Duration::from_millis(300));
    let client = Client::new(&endpoint).expect("a client");
    let error = client.status().await.expect_err("nothing answers");
    let is_unanswered = matches!(error, ClientError::Unanswered { .. });
    assert!(is_unanswered && error.retry_helps(), "{error}");
}

/// A server may close a connection that is kept just when the next request is sent on it: that request is lost.
#[tokio::test]
async fn each_request_has_a_connection_of_its_own() {
    let ports = Arc::new(Mutex::new(HashSet::new()));
    let seen = Arc::clone(&ports);
    let status = move |ConnectInfo(from): ConnectInfo<SocketAddr>| {
        seen.lock().insert(from.port());
        async { StatusCode::OK }
    };
    let router = agent().route("/lifecycle/v1/status", get(status));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = tokio::spawn(axum::serve(listener, service).into_future());
    let _serving = AbortOnDropHandle::new(serving);
    let client = Client::new(&Endpoint::parse(&url).expect("a URL")).expect("a client");
    for requests in 1..=3 {
        let _ = client.status().await;
        assert_eq!(ports.lock().len(), requests);
    }
}

#[tokio::test]
async fn a_foreign_server_is_distinguished_from_an_agent_that_refuses() {
    let page = get(|| async { (StatusCode::BAD_GATEWAY, Html("<h1>no</h1>")) });
    let refusal = get(|| async {
        let problem = Problem::new(Code::Stopping, "it is being stopped");
        (StatusCode::SERVICE_UNAVAILABLE, Json(problem))
    });
    let router = agent()
        .route("/lifecycle/v1/status", page)
        .route("/lifecycle/v1/actions", refusal);
    let (client, _serving) = client_of(router).await;
    let error = client.status().await.expect_err("an HTML page");
    is_foreign(&error, 502);
    let error = client.actions().await.expect_err("the agent refuses");
    assert_eq!(error.code(), Some(Code::Stopping));
    assert!(error.retry_helps());
}

#[tokio::test]
async fn a_token_is_sent_nowhere_else() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let elsewhere = Router::new().fallback(move |headers: HeaderMap| {
        heard.lock().push(headers);
        async { StatusCode::OK }
    });
    let (there, _serving) = serve(elsewhere).await;
    let there = format!("{there}/");
    let moved = get(move || {
        let there = there.clone();
        async move { (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, there)]) }
    });
    let (endpoint, _other) = serve(Router::new().route("/lifecycle", moved)).await;
    let client = Client::new(&endpoint.token("secret")).expect("a client");
    let error = client.versions().await.expect_err("a redirect");
    is_foreign(&error, 307);
    assert!(seen.lock().is_empty());
}

#[tokio::test]
async fn a_new_token_is_read_from_its_file_when_the_old_one_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "old\n").expect("it is written");
    let wanted = Arc::new(Mutex::new("Bearer old"));
    let asked = Arc::clone(&wanted);
    let agent = move |request: Request| {
        let given = request.headers().get(AUTHORIZATION).cloned();
        let admitted = given.is_some_and(|given| given == *asked.lock());
        async move {
            if admitted {
                Json(json!({ "versions": ["v1"] })).into_response()
            } else {
                let problem = Problem::new(Code::Unauthorized, "another token is needed");
                (StatusCode::UNAUTHORIZED, Json(problem)).into_response()
            }
        }
    };
    let (endpoint, _serving) = serve(Router::new().fallback(agent)).await;
    let client = Client::new(&endpoint.token_file(file.path())).expect("a client");
    client.versions().await.expect("the token is right");
    *wanted.lock() = "Bearer new";
    let error = client.versions().await.expect_err("the token is old");
    assert_eq!(error.code(), Some(Code::Unauthorized));
    std::fs::write(file.path(), "new\n").expect("it is written");
    client.versions().await.expect("the new token is read");
    std::fs::write(file.path(), "\n").expect("it is written");
    *wanted.lock() = "Bearer newest";
    let error = client.versions().await.expect_err("there is no token");
    let in_file = matches!(error, ClientError::Endpoint(EndpointError::File { .. }));
    assert!(in_file, "{error}");
}

fn order() -> Order {
    let request = json!({
        "state": "Servicing",
        "owner": { "uid": "uid", "createdAt": "2026-11-21T08:00:00Z", "name": "orders" },
        "fence": { "transition": 1, "recordedAt": "2026-11-21T08:00:01Z" },
    });
    Order {
        id: "uid.1".parse().expect("an id"),
        request: serde_json::from_value(request).expect("a request"),
        traceparent: None,
        again: true,
    }
}

#[tokio::test]
async fn work_is_followed_to_its_end_though_the_token_changes_meanwhile() {
    let report = |phase: &str| {
        Json(json!({
            "id": "uid.1", "state": "Servicing", "phase": phase, "attempt": 1,
            "startedAt": "2026-11-21T09:00:00Z", "outputBytes": 0,
        }))
    };
    let begin = put(move || async move { (StatusCode::CREATED, report("Running")) });
    let ended = get(move |headers: HeaderMap| async move {
        if headers
            .get(AUTHORIZATION)
            .is_some_and(|it| it == "Bearer new")
        {
            return report("Succeeded").into_response();
        }
        let problem = Problem::new(Code::Unauthorized, "another token is needed");
        (StatusCode::UNAUTHORIZED, Json(problem)).into_response()
    });
    let taken = put(move || async move { report("Succeeded") });
    let router = agent()
        .route(
            "/lifecycle/v1/actions",
            get(|| async { Json(json!({ "actions": [] })) }),
        )
        .route("/lifecycle/v1/actions/{id}", begin.merge(ended))
        .route("/lifecycle/v1/actions/{id}/acknowledgement", taken);
    let (endpoint, _serving) = serve(router).await;
    let [old, new] = ["old", "new"].map(|token| {
        let endpoint = endpoint.clone().token(token);
        Client::new(&endpoint).expect("a client")
    });
    let mut troubles = 0;
    let news = |news: News<'_>| troubles += usize::from(matches!(news, News::Trouble(_)));
    let order = order();
    let carried = old.carry_renewed(&order, pending(), news, || Some(new.clone()));
    let Ok(Carried::Ended(ended)) = carried.await else {
        panic!("it does not end");
    };
    assert_eq!((ended.phase, troubles), (Phase::Succeeded, 1));
}

#[tokio::test]
async fn an_attempt_whose_first_answer_was_lost_is_not_followed_by_another() {
    let puts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&puts);
    let report = json!({
        "id": "uid.1", "state": "Servicing", "phase": "Failed", "attempt": 1, "reason": "Broken",
        "startedAt": "2026-11-21T09:00:00Z", "endedAt": "2026-11-21T09:00:01Z", "outputBytes": 0,
    });
    let taken = report.clone();
    // The agent takes the first request, but its answer is lost.
    let ask = put(move || {
        let nth = counted.fetch_add(1, Ordering::SeqCst);
        let report = taken.clone();
        async move {
            if nth == 0 {
                (StatusCode::BAD_GATEWAY, Html("<h1>no</h1>")).into_response()
            } else {
                Json(report).into_response()
            }
        }
    });
    let router = agent().route("/lifecycle/v1/actions/{id}", ask).route(
        "/lifecycle/v1/actions/{id}/acknowledgement",
        put(move || async move { Json(report) }),
    );
    let (client, _serving) = client_of(router).await;
    let carried = client.carry(&order(), pending(), |_| {}).await;
    let Ok(Carried::Ended(ended)) = carried else {
        panic!("{carried:?}");
    };
    assert_eq!((ended.phase, ended.attempt), (Phase::Failed, 1));
    let puts = puts.load(Ordering::SeqCst);
    assert_eq!(puts, 2, "the lost request and its retry");
}

#[tokio::test]
async fn a_socket_is_addressed_by_its_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("agent.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let serving = tokio::spawn(async move { axum::serve(listener, agent()).await });
    let _serving = AbortOnDropHandle::new(serving);
    let client = Client::new(&Endpoint::unix(&path)).expect("a client");
    let versions = client.versions().await.expect("it answers");
    assert_eq!(versions.versions, ["v1"]);
}

#[tokio::test]
async fn an_agent_of_another_version_is_reported_as_such() {
    let other = get(|| async { Json(json!({ "versions": ["v7", "v6"], "later": true })) });
    let (client, _serving) = client_of(Router::new().route("/lifecycle", other)).await;
    let error = client.status().await.expect_err("no v1");
    assert_eq!(error.to_string(), "the agent speaks v7, v6, this client v1");
}

#[test]
fn invalid_addresses_are_refused_with_the_cause() {
    for (address, why) in [
        ("orders-0:8470", "it begins with http://"),
        ("ftp://orders", "it begins with http://"),
        ("unix:agent.sock", "its whole path"),
        ("http://user@orders", "a user"),
        ("http://orders/?a=b", "a query"),
        ("", "no URL"),
    ] {
        let error = Endpoint::parse(address).expect_err(address);
        assert!(error.to_string().contains(why), "{address}: {error}");
    }
}

#[test]
fn a_token_is_not_shown() {
    let endpoint = Endpoint::unix("/run/agent.sock").token("secret");
    let client = Client::new(&endpoint).expect("a client");
    assert!(!format!("{endpoint:?} {client:?}").contains("secret"));
}
