//! These tests forward ports from outside the cluster, through the API server to a pod.

use std::convert::Infallible;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};
use okt::Failure;
use okt::reach::{HttpError, Reach, ReachError, Route};
use okt_tests::in_time;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::application::{self, Application};
use super::exec::pod;
use super::node::{Answer, Node, Socket, V4};

/// The channels of the only port.
const DATA: u8 = 0;
const ERROR: u8 = 1;

/// Opens both channels with the port, as the kubelet does.
async fn open(socket: &mut Socket, port: u16) {
    for channel in [DATA, ERROR] {
        socket.send(channel, port.to_le_bytes()).await;
    }
}

/// Starts a node whose pods forward a port to a port of this machine.
async fn passing_on(port: u16, to: u16) -> Node {
    Node::start(Answer::speak(V4, move |mut socket| async move {
        open(&mut socket, port).await;
        let mut there = TcpStream::connect(("127.0.0.1", to))
            .await
            .expect("a connection");
        let mut buffer = vec![0; 16 * 1024];
        loop {
            tokio::select! {
                heard = socket.heard() => match heard {
                    Some((DATA, bytes)) => there.write_all(&bytes).await.expect("a connection"),
                    _ => return,
                },
                read = there.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => return socket.close().await,
                    Ok(read) => { socket.send(DATA, &buffer[..read]).await; }
                },
            }
        }
    }))
    .await
}

/// Starts a node whose pods send a greeting and then echo their input.
async fn echoing() -> Node {
    Node::start(Answer::speak(V4, async |mut socket: Socket| {
        open(&mut socket, 5432).await;
        socket.send(DATA, "hello ").await;
        while let Some((DATA, bytes)) = socket.heard().await {
            socket.send(DATA, bytes).await;
        }
    }))
    .await
}

/// Creates the Service `db`, whose port 80 leads to port 5432 of these pods.
async fn serve(node: &Node, pods: &[(&str, bool)]) {
    node.create::<Service>(json!({
        "metadata": { "name": "db", "namespace": "team" },
        "spec": { "selector": { "app": "db" }, "ports": [
            { "name": "metrics", "port": 9090 },
            { "name": "sql", "port": 80, "targetPort": "sql" },
        ] },
    }))
    .await;
    for (name, ready) in pods {
        node.create::<Pod>(replica(name, *ready)).await;
    }
    // This pod does not belong to the Service.
    let mut stranger = replica("a", true);
    stranger["metadata"]["labels"] = json!({ "app": "web" });
    node.create::<Pod>(stranger).await;
}

/// Returns a pod of the Service.
fn replica(name: &str, ready: bool) -> Value {
    let ready = if ready { "True" } else { "False" };
    json!({
        "metadata": { "name": name, "namespace": "team", "labels": { "app": "db" } },
        "spec": { "containers": [{ "name": "postgres", "image": "x",
            "ports": [{ "name": "sql", "containerPort": 5432 }] }] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

/// Sends a text through a route, and returns the greeting with the echo.
async fn echoed(route: &Route, text: &str) -> String {
    let mut stream = TcpStream::connect(route.to_string())
        .await
        .expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("it is sent");
    let mut heard = vec![0; "hello ".len() + text.len()];
    in_time("an echo", stream.read_exact(&mut heard))
        .await
        .expect("an echo");
    String::from_utf8(heard).expect("a text")
}

#[tokio::test]
async fn inside_the_cluster_a_route_is_the_name_of_a_service_or_the_address_of_a_pod() {
    let node = echoing().await;
    let reach = Reach::inside(node.client());
    let route = reach.service("team", "db", 80).await.expect("a route");
    assert_eq!((route.host(), route.port()), ("db.team.svc", 80));
    assert_eq!(route.to_string(), "db.team.svc:80");
    assert!(node.api().requests().is_empty(), "no request is sent");
    let status = json!({ "phase": "Running", "podIP": "fd00::7" });
    node.create::<Pod>(pod("db-0", status)).await;
    node.create::<Pod>(pod("db-1", json!({ "phase": "Pending" })))
        .await;
    node.create::<Pod>(pod(
        "db-2",
        json!({ "phase": "Failed", "podIP": "10.0.0.8" }),
    ))
    .await;
    let route = reach.pod("team", "db-0", 5432).await.expect("a route");
    assert_eq!(
        (route.host(), &*route.to_string()),
        ("fd00::7", "[fd00::7]:5432")
    );
    for (pod, phase) in [("db-1", "Pending"), ("db-2", "Failed")] {
        let error = reach.pod("team", pod, 5432).await.expect_err("no address");
        let message = format!("port 5432 of pod team/{pod}: the pod is {phase}");
        assert_eq!(error.to_string(), message);
        assert_eq!(Failure::from(error).reason(), "TargetNotRunning");
    }
    let error = reach.pod("team", "none", 5432).await.expect_err("no pod");
    assert!(
        matches!(error, ReachError::TargetNotFound { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn outside_a_pod_is_reached_by_any_number_of_connections() {
    let node = echoing().await;
    let reach = Reach::outside(node.client());
    let route = reach.pod("team", "db-0", 5432).await.expect("a route");
    assert_eq!(route.host(), "127.0.0.1");
    let long = "é".repeat(200_000);
    let (one, two) = tokio::join!(echoed(&route, "one"), echoed(&route, &long));
    assert_eq!(one, "hello one");
    assert!(two == format!("hello {long}"));
    let path = "/api/v1/namespaces/team/pods/db-0/portforward?&ports=5432";
    assert!(
        node.asked().iter().all(|it| it == path),
        "{:?}",
        node.asked()
    );
}

#[tokio::test]
async fn outside_a_service_is_reached_at_a_pod_that_is_ready_at_the_time() {
    let node = echoing().await;
    serve(&node, &[("db-0", false), ("db-1", true)]).await;
    let reach = Reach::outside(node.client());
    let route = reach.service("team", "db", 80).await.expect("a route");
    assert_eq!(echoed(&route, "one").await, "hello one");
    let path = "/api/v1/namespaces/team/pods/db-1/portforward?&ports=5432";
    assert!(
        node.asked().iter().all(|it| it == path),
        "{:?}",
        node.asked()
    );
    node.create::<Pod>(replica("db-2", true)).await;
    node.delete_pod("db-1").await;
    assert_eq!(echoed(&route, "two").await, "hello two");
    let last = node.asked().pop().expect("a request");
    assert!(last.contains("/db-2/"), "{last}");
}

#[tokio::test]
async fn a_port_that_cannot_be_forwarded_is_an_error_before_any_connection() {
    let node = echoing().await;
    let reach = Reach::outside(node.client());
    let error = reach
        .service("team", "db", 80)
        .await
        .expect_err("no Service");
    assert!(
        matches!(error, ReachError::TargetNotFound { .. }),
        "{error:?}"
    );
    serve(&node, &[("db-0", false)]).await;
    let error = reach.service("team", "db", 80).await.expect_err("no pod");
    let message = "port 80 of Service team/db: no pod of the Service is ready";
    assert_eq!(error.to_string(), message);
    assert!(error.retry_helps());
    let error = reach
        .service("team", "db", 5432)
        .await
        .expect_err("no port");
    let message = "port 5432 of Service team/db: the Service has no such port, only [9090, 80]";
    assert_eq!(error.to_string(), message);
    let error = reach.pod("team", "../nodes", 1).await.expect_err("no name");
    assert!(matches!(error, ReachError::Unaskable { .. }), "{error:?}");
    assert!(node.asked().is_empty());

    let forbidding = Node::start(Answer::refuse(403, "cannot create pods/portforward")).await;
    let reach = Reach::outside(forbidding.client());
    let error = reach.pod("team", "db-0", 1).await.expect_err("forbidden");
    let message = "port 1 of pod team/db-0: forbidden: cannot create pods/portforward";
    assert_eq!(error.to_string(), message);
    let missing = Node::start(Answer::refuse(404, "pods \"db-0\" not found")).await;
    let reach = Reach::outside(missing.client());
    let error = reach.pod("team", "db-0", 1).await.expect_err("no pod");
    assert_eq!(
        error.to_string(),
        "port 1 of pod team/db-0: there is no such pod"
    );
    let waiting = Node::start(Answer::refuse(500, "no")).await;
    waiting
        .create::<Pod>(pod("db-0", json!({ "phase": "Pending" })))
        .await;
    let reach = Reach::outside(waiting.client());
    let error = reach.pod("team", "db-0", 1).await.expect_err("not yet");
    assert_eq!(
        error.to_string(),
        "port 1 of pod team/db-0: the pod is Pending"
    );
}

#[tokio::test]
async fn a_route_that_is_dropped_ends_with_its_connections() {
    let (began, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes) = (Arc::clone(&began), Arc::clone(&gone));
    let node = Node::start(Answer::speak(V4, move |mut socket: Socket| {
        let (begins, goes) = (Arc::clone(&begins), Arc::clone(&goes));
        async move {
            open(&mut socket, 5432).await;
            if socket.heard().await.is_some() {
                begins.notify_one();
                socket.gone().await;
                goes.notify_one();
            }
        }
    }))
    .await;
    let reach = Reach::outside(node.client());
    let route = reach.pod("team", "db-0", 5432).await.expect("a route");
    let address = route.to_string();
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    stream.write_all(b"begin").await.expect("it is sent");
    in_time("the beginning", began.notified()).await;
    drop(route);
    in_time("the end at the pod", gone.notified()).await;
    let mut rest = Vec::new();
    // The connection may end or break.
    let _ = in_time("the end", stream.read_to_end(&mut rest)).await;
    let refused = TcpStream::connect(&address).await;
    assert!(refused.is_err(), "the port is closed");
}

#[tokio::test]
async fn a_client_that_closed_its_side_still_receives_the_answer() {
    let node = Node::start(Answer::speak(V4, async |mut socket: Socket| {
        open(&mut socket, 5432).await;
        let Some((DATA, question)) = socket.heard().await else {
            return;
        };
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        socket.send(DATA, question.repeat(2)).await;
        socket.close().await;
    }))
    .await;
    let route = Reach::outside(node.client())
        .pod("team", "db-0", 5432)
        .await
        .expect("a route");
    let mut stream = TcpStream::connect(route.to_string())
        .await
        .expect("a connection");
    stream.write_all(b"ping").await.expect("it is sent");
    stream.shutdown().await.expect("the side is closed");
    let mut heard = String::new();
    in_time("the answer", stream.read_to_string(&mut heard))
        .await
        .expect("an answer");
    assert_eq!(heard, "pingping");
}

#[tokio::test]
async fn a_pod_that_breaks_off_ends_the_connection() {
    let nothing = async |mut socket: Socket| open(&mut socket, 5432).await;
    let wrong_port = async |mut socket: Socket| {
        open(&mut socket, 1).await;
        socket.gone().await;
    };
    let babble = async |mut socket: Socket| {
        socket.send(77, "what").await;
        socket.gone().await;
    };
    let no_port = async |mut socket: Socket| {
        open(&mut socket, 5432).await;
        socket
            .send(
                ERROR,
                "dial tcp4 127.0.0.1:5432: connect: connection refused",
            )
            .await;
        socket.gone().await;
    };
    for answer in [
        Answer::speak(V4, nothing),
        Answer::speak(V4, wrong_port),
        Answer::speak(V4, babble),
        Answer::speak(V4, no_port),
    ] {
        let node = Node::start(answer).await;
        let route = Reach::outside(node.client())
            .pod("team", "db-0", 5432)
            .await
            .expect("a route");
        let mut stream = TcpStream::connect(route.to_string())
            .await
            .expect("a connection");
        let mut heard = Vec::new();
        // The connection may end or break.
        let _ = in_time("the end", stream.read_to_end(&mut heard)).await;
        assert!(heard.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_api_server_times_out() {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, Infallible>>()
    });
    let client = kube::Client::new(silent, "default");
    for reach in [Reach::outside(client.clone()), Reach::inside(client)] {
        let error = reach.pod("team", "db-0", 1).await.expect_err("it hangs");
        assert_eq!(
            error.to_string(),
            "port 1 of pod team/db-0: not done within 15 s"
        );
    }
}

#[tokio::test]
async fn http_finds_services_and_their_pods_by_name_from_outside() {
    let application = Application::start(application::Answer::of("200 OK", "true")).await;
    let node = passing_on(5432, application.port).await;
    serve(&node, &[("db-1", true)]).await;
    let http = Reach::outside(node.client()).http();
    for _ in 0..2 {
        let request = http.get("http://db.team.svc/health");
        let reply = in_time("an answer", request.send())
            .await
            .expect("a success");
        assert!(reply.json::<bool>().expect("JSON"));
    }
    assert_eq!(application.connections(), 1, "connections are kept");
    let request = &application.requests()[0];
    assert!(request.contains("host: db.team.svc\r\n"), "{request}");
    let request = http.get("http://db-7.db.team.svc.cluster.local:5432/");
    in_time("an answer", request.send())
        .await
        .expect("a success");
    let pods: Vec<_> = node
        .asked()
        .iter()
        .filter_map(|it| Some(it.split('/').nth(6)?.to_owned()))
        .collect();
    assert_eq!(pods, ["db-1", "db-7"]);
    // A host outside the cluster is asked directly.
    let request = http.get(application.url("/"));
    in_time("an answer", request.send())
        .await
        .expect("a success");
    assert_eq!(node.asked().len(), 2);
}

#[tokio::test]
async fn tls_goes_through_a_forwarded_port_with_the_name_of_the_service() {
    let answer = application::Answer::of("200 OK", "true");
    let (application, pem) = Application::secured(answer, "db.team.svc").await;
    let node = passing_on(5432, application.port).await;
    serve(&node, &[("db-1", true)]).await;
    let http = Reach::outside(node.client()).http();
    let http = http.trusting(pem.as_bytes()).expect("a certificate");
    let request = http.get("https://db.team.svc:80/health");
    let reply = in_time("an answer", request.send())
        .await
        .expect("a success");
    assert!(reply.json::<bool>().expect("JSON"));
}

#[tokio::test]
async fn http_reports_why_a_port_is_not_forwarded() {
    let node = Node::start(Answer::refuse(403, "cannot create pods/portforward")).await;
    let http = Reach::outside(node.client()).http();
    let request = http.get("http://db-0.db.team.svc:8080/health?token=secret");
    let error = in_time("a refusal", request.send())
        .await
        .expect_err("forbidden");
    assert_eq!(
        error.to_string(),
        "GET http://db-0.db.team.svc:8080/health: cannot connect: port 8080 of pod team/db-0: \
         forbidden: cannot create pods/portforward"
    );
    assert!(
        matches!(&error, HttpError::Unreachable { forwarding: Some(why), .. }
        if matches!(**why, ReachError::Forbidden { .. }))
    );
    let failure = Failure::from(error);
    assert_eq!(failure.reason(), "Unreachable");
    let closed = Node::start(Answer::speak(V4, async |mut socket: Socket| {
        open(&mut socket, 8080).await;
        socket.send(ERROR, "connect: connection refused").await;
        socket.close().await;
    }))
    .await;
    let http = Reach::outside(closed.client()).http();
    let request = http.get("http://db-0.db.team.svc:8080/health");
    let error = in_time("a refusal", request.send())
        .await
        .expect_err("no listener");
    assert!(
        error.to_string().ends_with("connect: connection refused"),
        "{error}"
    );
    assert!(error.retry_helps());
}
