//! These tests send HTTP requests to the application, with each kind of answer and each failure.

use std::time::Duration;

use http::StatusCode;
use kube::{Client, Config};
use okt::Failure;
use okt::reach::{Http, HttpError, Reach, Reply, Request};
use okt_tests::in_time;
use serde::{Deserialize, Serialize};

use super::application::{Answer, Application};

/// Returns a client that uses no cluster.
pub(super) fn http() -> Http {
    let nowhere = Config::new("http://127.0.0.1:1".parse().expect("a URI"));
    Reach::inside(Client::try_from(nowhere).expect("a client")).http()
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Widget {
    name: String,
    size: u32,
}

/// Sends a request to an application with this answer.
async fn asked(answer: Answer, with: impl FnOnce(Request) -> Request) -> Result<Reply, HttpError> {
    let application = Application::start(answer).await;
    let request = http().get(application.url("/health?token=secret"));
    in_time("an answer", with(request).send())
        .await
        .map_err(|error| {
            assert!(!error.to_string().contains("secret"), "{error}");
            error
        })
}

/// Returns the message of an error, with the port replaced by PORT.
fn message(error: &HttpError) -> String {
    let text = error.to_string();
    let Some((before, after)) = text.split_once("127.0.0.1:") else {
        return text;
    };
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}127.0.0.1:PORT{after}")
}

#[tokio::test]
async fn json_is_sent_and_received() {
    let widget = || Widget {
        name: "a".to_owned(),
        size: 3,
    };
    let answer = Answer::with("201 Created", "X-Id: 7\r\n", r#"{"name":"a","size":3}"#);
    let application = Application::start(answer).await;
    let http = http();
    let url = application.url("/widgets?dry=true");
    let request = http
        .post(&url)
        .json(&widget())
        .bearer("token\n")
        .header("x-a", "b");
    let reply = in_time("an answer", request.send())
        .await
        .expect("a success");
    assert_eq!(reply.status(), StatusCode::CREATED);
    assert_eq!(reply.header("x-id"), Some("7"));
    assert_eq!(reply.body(), br#"{"name":"a","size":3}"#);
    assert_eq!(reply.json::<Widget>().expect("a widget"), widget());
    for request in [
        http.put(&url),
        http.patch(&url),
        http.delete(&url),
        http.get(&url),
    ] {
        in_time("an answer", request.send())
            .await
            .expect("a success");
    }
    let requests = application.requests();
    let first = requests[0].to_ascii_lowercase();
    assert!(
        first.starts_with("post /widgets?dry=true http/1.1\r\n"),
        "{first}"
    );
    for line in [
        "content-type: application/json",
        "authorization: bearer token",
        "x-a: b",
    ] {
        assert!(first.contains(&format!("\r\n{line}\r\n")), "{first}");
    }
    assert!(first.ends_with(r#"{"name":"a","size":3}"#), "{first}");
    let methods: Vec<_> = requests
        .iter()
        .filter_map(|it| it.split(' ').next())
        .collect();
    assert_eq!(methods, ["POST", "PUT", "PATCH", "DELETE", "GET"]);
    assert_eq!(application.connections(), 1, "connections are kept");
}

#[tokio::test]
async fn whatever_is_no_success_is_an_error_that_says_the_body_only_where_it_may() {
    for (status, body, reason, retry) in [
        (
            "503 Service Unavailable",
            "  starting\n up ",
            "HttpServiceUnavailable",
            true,
        ),
        (
            "500 Internal Server Error",
            "",
            "HttpInternalServerError",
            true,
        ),
        ("404 Not Found", "no such page", "HttpNotFound", true),
        ("401 Unauthorized", "", "HttpUnauthorized", true),
        ("429 Too Many Requests", "", "HttpTooManyRequests", true),
        (
            "422 Unprocessable Entity",
            "size: -1",
            "HttpUnprocessableEntity",
            false,
        ),
        ("400 Bad Request", "", "HttpBadRequest", false),
    ] {
        let error = asked(Answer::of(status, body), |it| it)
            .await
            .expect_err(status);
        assert_eq!(
            message(&error),
            format!(
                "GET http://127.0.0.1:PORT/health: {status} ({} bytes)",
                body.len()
            )
        );
        assert_eq!(
            error.status().map(|it| it.as_u16().to_string()).as_deref(),
            Some(&status[..3])
        );
        assert_eq!(error.retry_helps(), retry, "{status}");
        let failure = Failure::from(error.clone());
        assert_eq!(failure.message(), error.to_string());
        assert_eq!((failure.reason(), failure.is_permanent()), (reason, !retry));
        let debug = format!("{error:?}");
        assert!(body.is_empty() || !debug.contains(body), "{debug}");
        let failure = error.clone().with_body();
        let words: Vec<_> = body.split_whitespace().collect();
        let quoted = format!(": {}", words.join(" "));
        let quoted = if words.is_empty() { "" } else { &quoted };
        assert_eq!(failure.message(), format!("{error}{quoted}"));
        assert_eq!((failure.reason(), failure.is_permanent()), (reason, !retry));
    }
    let long = asked(Answer::of("502 Bad Gateway", &"é".repeat(3000)), |it| it).await;
    let long = long.expect_err("a bad gateway").with_body();
    let long = long.message();
    assert!(long.ends_with("é…") && long.len() < 400, "{long}");
}

#[tokio::test]
async fn a_redirection_is_an_error_and_not_followed() {
    let elsewhere = Application::start(Answer::of("200 OK", "{}")).await;
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary Redirect",
    ] {
        let to = format!("Location: {}?token=secret\r\n", elsewhere.url("/login"));
        let redirects = Answer::with(status, &to, "moved");
        let error = asked(redirects, |it| it.bearer("token"))
            .await
            .expect_err("a redirection");
        let shown = format!(
            "{status}: redirects to {}, which is not followed",
            elsewhere.url("/login")
        );
        assert!(error.to_string().ends_with(&shown), "{error}");
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_hanging_application_times_out() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    for begun in ["", "HTTP/1.1 200 OK\r\n", head] {
        let short = |it: Request| it.timeout(Duration::from_millis(300));
        let error = asked(Answer::Hanging(begun.to_owned()), short)
            .await
            .expect_err("it hangs");
        assert_eq!(
            message(&error),
            "GET http://127.0.0.1:PORT/health: no answer within 0.3 s"
        );
        assert!(error.retry_helps());
    }
}

#[tokio::test]
async fn a_broken_connection_is_an_error_at_every_point() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    for sent in ["", "HTTP/1.1 20", "SSH-2.0-OpenSSH\r\n", cut] {
        let error = asked(Answer::Broken(sent.to_owned()), |it| it)
            .await
            .expect_err(sent);
        assert!(matches!(error, HttpError::Unanswered { .. }), "{error:?}");
        assert!(error.retry_helps());
    }
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit() {
    let chunk = format!("2710\r\n{}\r\n", "x".repeat(10_000));
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = || Answer::Endless(head.to_owned(), chunk.clone());
    let error = asked(endless(), |it| it).await.expect_err("it has no end");
    assert_eq!(
        message(&error),
        "GET http://127.0.0.1:PORT/health: an answer (200 OK) of more than 1048576 bytes"
    );
    assert!(!error.retry_helps());
    let body = "x".repeat(2000);
    for (limit, fits) in [(1999, false), (2000, true)] {
        let answer = asked(Answer::of("200 OK", &body), |it| it.limit(limit)).await;
        assert_eq!(answer.is_ok(), fits);
    }
    // The body is lost, but not the status.
    let head = "HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = Answer::Endless(head.to_owned(), chunk);
    let error = asked(endless, |it| it).await.expect_err("no success");
    assert_eq!(error.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
}

#[tokio::test]
async fn an_answer_of_another_form_is_an_error_without_its_values() {
    for (body, why) in [
        (
            "<html>\n<title>Login",
            "19 bytes) of another form: expected value at line 1 column 1",
        ),
        (
            "",
            "0 bytes) of another form: EOF while parsing a value at line 1 column 0",
        ),
        (
            r#"{"name":"a"}"#,
            "12 bytes) of another form: missing field `size` at line 1 column 12",
        ),
        (
            r#"{"name":"a","size":"hunter2"}"#,
            "29 bytes) of another form: a value does not fit its type at line 1 column 28",
        ),
    ] {
        let reply = asked(Answer::of("200 OK", body), |it| it)
            .await
            .expect("a success");
        let debug = format!("{reply:?}");
        assert!(body.is_empty() || !debug.contains(body), "{debug}");
        let error = reply.json::<Widget>().expect_err("it is none");
        let expected = format!("GET http://127.0.0.1:PORT/health: an answer (200 OK, {why}");
        assert_eq!(message(&error), expected);
        assert!(error.retry_helps());
        let debug = format!("{error:?}");
        assert!(body.is_empty() || !debug.contains(body), "{debug}");
        let with_body = error.with_body();
        assert!(body.is_empty() || with_body.message().contains(&body[..6]));
    }
}

#[tokio::test]
async fn an_unreachable_application_is_a_retryable_error() {
    let application = Application::start(Answer::of("200 OK", "")).await;
    let url = application.url("/health");
    drop(application);
    for url in [&url, "http://no-such-host.invalid/health"] {
        let error = in_time("a refusal", http().get(url).send())
            .await
            .expect_err("the application is gone");
        assert!(matches!(error, HttpError::Unreachable { .. }), "{error:?}");
        assert!(error.retry_helps());
    }
}

#[tokio::test]
async fn an_invalid_request_is_not_sent() {
    let application = Application::start(Answer::of("200 OK", "")).await;
    let (http, url) = (http(), application.url("/"));
    let keys = std::collections::BTreeMap::from([([1, 2], 3)]);
    for request in [
        http.get("no url"),
        http.get("/health"),
        http.get("ftp://127.0.0.1/"),
        http.get("http://"),
        http.get(""),
        http.get(url.replace("//", "//admin:secret@")),
        http.get(&url).header("x-a", "b\r\nx-c: d"),
        http.get(&url).header("a b", "c"),
        http.post(&url).json(&keys),
    ] {
        let error = request.send().await.expect_err("it is not sent");
        assert!(matches!(error, HttpError::Unsendable { .. }), "{error:?}");
        assert!(!error.retry_helps());
    }
    assert_eq!(application.connections(), 0);
}

#[tokio::test]
async fn tls_is_accepted_from_trusted_clients_only() {
    let (application, pem) = Application::secured(Answer::of("200 OK", "true"), "localhost").await;
    let url = format!("https://localhost:{}/", application.port);
    let trusting = http().trusting(pem.as_bytes()).expect("a certificate");
    let reply = in_time("an answer", trusting.get(&url).send())
        .await
        .expect("a success");
    assert!(reply.json::<bool>().expect("JSON"));
    let other =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let other = http()
        .trusting(other.cert.pem().as_bytes())
        .expect("a certificate");
    let by_address = format!("https://127.0.0.1:{}/", application.port);
    for request in [other.get(&url), trusting.get(by_address)] {
        let error = in_time("a refusal", request.send())
            .await
            .expect_err("not trusted");
        assert!(matches!(error, HttpError::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    assert_eq!(application.requests().len(), 1);
    for wrong in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let error = http().trusting(wrong.as_bytes()).expect_err("it is none");
        assert!(matches!(error, HttpError::Unsendable { .. }), "{error:?}");
    }
}
