//! Metrics over TLS, for those whom the API server permits.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use okt::Monitoring;
use okt_testing::free_ports;
use okt_tests::{assert_contains, https_get};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;

/// An API server that only reviews: it knows the tokens `prometheus` and `visitor`, and lets the first read `/metrics`.
#[derive(Clone, Default)]
struct Reviews {
    /// The kinds of the questions so far.
    asked: Arc<Mutex<Vec<String>>>,
    /// How many of the next questions it refuses.
    refuses: Arc<AtomicUsize>,
}

impl Reviews {
    fn client(&self) -> Client {
        let reviews = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let reviews = reviews.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let question: Value = serde_json::from_slice(&body).expect("JSON");
                let (code, answer) = reviews.answer(question);
                let answer = Response::builder().status(code).body(answer.to_string());
                Ok::<_, kube::Error>(
                    answer
                        .expect("an answer")
                        .map(String::into_bytes)
                        .map(Body::from),
                )
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, mut question: Value) -> (u16, Value) {
        let kind = question["kind"].as_str().expect("a kind").to_owned();
        self.asked.lock().push(kind.clone());
        let refuses = (self.refuses).try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
        if refuses.is_ok() {
            let why = "no role allows it";
            let status =
                json!({ "kind": "Status", "status": "Failure", "code": 403, "message": why });
            return (403, status);
        }
        question["status"] = if kind == "TokenReview" {
            match question["spec"]["token"].as_str() {
                Some(user @ ("prometheus" | "visitor")) => json!({
                    "authenticated": true,
                    "user": { "username": user, "groups": ["monitors"] },
                }),
                _ => json!({ "authenticated": false }),
            }
        } else {
            let spec = &question["spec"];
            let path = json!({ "path": "/metrics", "verb": "get" });
            assert_eq!(spec["nonResourceAttributes"], path);
            assert_eq!(spec["groups"], json!(["monitors"]));
            json!({ "allowed": spec["user"] == "prometheus" })
        };
        (201, question)
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }
}

/// Served metrics, until this value is dropped.
struct Served {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

async fn serve(reviews: &Reviews, certificate: Option<&Path>) -> std::io::Result<Served> {
    let [port] = free_ports()?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let listen = address.to_string().parse().expect("an address");
    let (monitoring, client) = (Monitoring::new(), reviews.client());
    let served = monitoring.serve_securely(listen, &client, certificate);
    Ok(Served {
        address,
        _task: AbortOnDropHandle::new(tokio::spawn(served.await?)),
    })
}

impl Served {
    async fn get(
        &self,
        headers: &str,
        trusted: Option<&CertificateDer<'static>>,
    ) -> std::io::Result<String> {
        https_get(self.address, "/metrics", headers, trusted).await
    }

    /// Requests another path.
    async fn path(&self, path: &str, token: &str) -> String {
        let headers = format!("Authorization: Bearer {token}\r\n");
        let answer = https_get(self.address, path, &headers, None).await;
        answer.expect("an answer")
    }

    /// Returns the answer to a user, which has this status.
    async fn answers(&self, token: &str, status: u16) -> String {
        let answer = self.as_user(token).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.0 {status}")),
            "{answer}"
        );
        answer
    }

    async fn as_user(&self, token: &str) -> String {
        let headers = format!("Authorization: Bearer {token}\r\n");
        self.get(&headers, None).await.expect("an answer")
    }
}

#[tokio::test]
async fn only_those_read_the_metrics_whom_the_api_server_permits() {
    let reviews = Reviews::default();
    let served = serve(&reviews, None).await.expect("it listens");

    let answer = served.get("", None).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.0 401"), "{answer}");
    assert!(answer.contains("www-authenticate: Bearer"), "{answer}");
    let answer = served
        .get("Authorization: Basic prometheus\r\n", None)
        .await;
    assert!(answer.expect("an answer").starts_with("HTTP/1.0 401"));
    assert_eq!(reviews.asked(), 0);

    let answer = served.answers("stranger", 401).await;
    assert!(answer.contains("does not know this token"), "{answer}");
    let answer = served.answers("visitor", 403).await;
    assert_contains(&answer, "visitor may not get the path /metrics");
    let answer = served.answers("prometheus", 200).await;
    assert!(answer.ends_with("# EOF\n"), "{answer}");
}

/// Every user may read `/version` of the API server.
#[tokio::test]
async fn a_permission_for_another_path_is_none_for_the_metrics() {
    let reviews = Reviews::default();
    let served = serve(&reviews, None).await.expect("it listens");
    for path in ["/version", "/metrics/", "//metrics"] {
        let answer = served.path(path, "visitor").await;
        assert!(answer.starts_with("HTTP/1.0 404"), "{answer}");
        assert_eq!(reviews.asked(), 0);
    }
    served.answers("visitor", 403).await;
}

#[tokio::test]
async fn strangers_do_not_drive_out_the_answer_about_a_user() {
    let reviews = Reviews::default();
    let served = serve(&reviews, None).await.expect("it listens");
    served.answers("prometheus", 200).await;
    for number in 0..300 {
        served.answers(&format!("stranger-{number}"), 401).await;
    }
    let asked = reviews.asked();
    served.answers("prometheus", 200).await;
    assert_eq!(reviews.asked(), asked);
}

#[tokio::test]
async fn an_answer_of_the_api_server_is_asked_for_once_a_minute_and_a_failure_again() {
    let reviews = Reviews::default();
    let served = serve(&reviews, None).await.expect("it listens");
    reviews.refuses.store(1, Ordering::Relaxed);
    let answer = served.answers("prometheus", 503).await;
    assert!(answer.contains("see the log of the operator"), "{answer}");
    assert_eq!(reviews.asked(), 1);
    for _ in 0..3 {
        served.answers("prometheus", 200).await;
    }
    assert_eq!(reviews.asked(), 3);
    advance(61).await;
    served.answers("prometheus", 200).await;
    assert_eq!(reviews.asked(), 5);
}

#[tokio::test]
async fn invented_tokens_cost_the_api_server_little_and_shut_nobody_out_who_was_permitted() {
    let reviews = Reviews::default();
    let served = serve(&reviews, None).await.expect("it listens");
    served.answers("prometheus", 200).await;
    for minute in 0..3 {
        // The answer about the token has to be asked for again, in the middle of the flood.
        advance(61).await;
        let before = reviews.asked();
        let invented: Vec<String> = (0..200).map(|it| format!("{minute}-{it}")).collect();
        let headers: Vec<_> = (invented.iter())
            .map(|it| format!("Authorization: Bearer {it}\r\n"))
            .collect();
        let flood = headers.iter().map(|headers| served.get(headers, None));
        let flood = futures::future::join_all(flood);
        let (answers, answer) = tokio::join!(flood, served.as_user("prometheus"));
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        // Of so many connections some have lost their places.
        let answered = answers.into_iter().flatten().filter(|it| !it.is_empty());
        for answer in answered {
            assert!(answer.starts_with("HTTP/1.0 401"), "{answer}");
        }
        // Two about the permitted token, ten at once, and one for each second that the flood took.
        let asked = reviews.asked() - before;
        assert!(asked <= 60, "{asked} questions");
    }
}

/// Lets this many seconds pass for all timers.
async fn advance(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
    tokio::task::yield_now().await;
}

/// Writes a new certificate for this host.
fn certify(directory: &TempDir) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let write = |name: &str, text: String| {
        std::fs::write(directory.path().join(name), text).expect("it is written");
    };
    write("tls.key", made.signing_key.serialize_pem());
    write("tls.crt", made.cert.pem());
    made.cert.der().clone()
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_taken_and_one_that_cannot_be_read_is_not() {
    let (reviews, directory) = (
        Reviews::default(),
        tempfile::tempdir().expect("a directory"),
    );
    let first = certify(&directory);
    let served = serve(&reviews, Some(directory.path()))
        .await
        .expect("it listens");
    assert!(served.get("", Some(&first)).await.is_ok());

    std::fs::write(directory.path().join("tls.crt"), "half of it").expect("it is written");
    advance(11).await;
    assert!(served.get("", Some(&first)).await.is_ok());

    let second = certify(&directory);
    advance(11).await;
    assert!(served.get("", Some(&second)).await.is_ok());
    assert!(served.get("", Some(&first)).await.is_err());
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_at_the_start_is_an_error_with_its_file() {
    let (reviews, directory) = (
        Reviews::default(),
        tempfile::tempdir().expect("a directory"),
    );
    let why = async || match serve(&reviews, Some(directory.path())).await {
        Ok(_) => panic!("it serves"),
        Err(error) => error.to_string(),
    };
    let reason = why().await;
    assert!(reason.contains("tls.crt: No such file"), "{reason}");
    certify(&directory);
    std::fs::write(directory.path().join("tls.crt"), "").expect("it is written");
    let reason = why().await;
    assert_contains(&reason, "tls.crt: there is no certificate in it");
    certify(&directory);
    let other = tempfile::tempdir().expect("a directory");
    certify(&other);
    std::fs::copy(
        other.path().join("tls.key"),
        directory.path().join("tls.key"),
    )
    .expect("a copy");
    let reason = why().await;
    assert!(reason.contains("with its key"), "{reason}");
}
