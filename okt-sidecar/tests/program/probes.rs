//! Probes of the application, by commands and by requests.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use serde_json::json;

use crate::site::Site;

/// Starts an application that answers requests: each path has a status and a body.
fn server(answers: &'static [(&str, &str)]) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    // It ends with the test's process.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            let whole = loop {
                let length = stream.read(&mut piece).unwrap_or(0);
                request.extend_from_slice(&piece[..length]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let wanted =
                    text.to_lowercase()
                        .split_once("content-length: ")
                        .map_or(0, |(_, rest)| {
                            rest.split("\r\n")
                                .next()
                                .and_then(|it| it.parse().ok())
                                .unwrap_or(0)
                        });
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
                if length == 0 || body.is_some_and(|body| body >= wanted) {
                    break text;
                }
            };
            let path = whole.split(' ').nth(1).unwrap_or_default();
            let answer = answers
                .iter()
                .find(|(it, _)| *it == path)
                .map_or("404 Not Found\r\n\r\n", |it| it.1);
            if !whole.is_empty() {
                log.lock().push(whole.clone());
            }
            let _ = write!(
                stream,
                "HTTP/1.1 {}",
                answer.replacen("\r\n", "\r\nconnection: close\r\n", 1)
            );
        }
    });
    (port, asked)
}

fn sees(site: &Site, wanted: &serde_json::Value) {
    site.until(
        format!("{wanted} is observed, not {}", site.seen()),
        |site| {
            let seen = site.seen();
            wanted
                .as_object()
                .is_some_and(|it| it.iter().all(|(key, value)| seen[key] == *value))
        },
    );
}

#[test]
fn a_probe_reports_the_state_and_events_and_any_other_answer_is_unreachable() {
    let site = Site::running(
        "probe: { command: [sh, -c, '. {dir}/answer'], every: 20ms, timeout: 400ms }\n",
    );
    for (script, seen) in [
        (
            "echo Running Promoted",
            json!({ "seen": "in", "state": "Running", "events": ["Promoted"] }),
        ),
        ("echo absent", json!({ "seen": "absent" })),
        (
            "echo password=secret >&2; exit 3",
            json!({ "seen": "unreachable", "why": "the probe exited with 3" }),
        ),
        (
            "echo unreachable no route",
            json!({ "seen": "unreachable", "why": "no route" }),
        ),
        (
            "echo FATAL: no",
            json!({ "seen": "unreachable", "why": "the answer of the probe begins with no state" }),
        ),
        (
            "true",
            json!({ "seen": "unreachable", "why": "the answer of the probe is empty" }),
        ),
        (
            "trap '' TERM; sleep 100 & wait",
            json!({ "seen": "unreachable", "why": "the probe took longer than 400ms" }),
        ),
        (
            "yes Running",
            json!({ "seen": "unreachable", "why": "the probe took longer than 400ms" }),
        ),
    ] {
        site.write("answer", script);
        sees(&site, &seen);
    }
    site.write("answer", "echo Running");
    sees(&site, &json!({ "state": "Running" }));
    site.until("no probe is left", |site| site.below(None).len() <= 2);
}

#[test]
fn exit_codes_can_be_mapped_to_answers() {
    let site = Site::running(
        "probe: { command: [sh, -c, 'exit $(cat {dir}/code)'], exits: { 0: Running, 1: Starting, 2: absent }, every: 20ms }\n",
    );
    for (code, seen) in [
        ("0", json!({ "state": "Running" })),
        ("1", json!({ "state": "Starting" })),
        ("2", json!({ "seen": "absent" })),
        (
            "7",
            json!({ "seen": "unreachable", "why": "the probe exited with 7" }),
        ),
    ] {
        site.write("code", code);
        sees(&site, &seen);
    }
}

#[test]
fn an_application_is_probed_and_driven_by_requests() {
    let (port, asked) = server(&[
        ("/where", "200 OK\r\n\r\nRunning Promoted\n"),
        (
            "/do",
            "202 Accepted\r\nOkt-Event: Reviewing\r\nOkt-Message: later\r\n\r\nqueued\n",
        ),
        (
            "/wrong",
            "422 Unprocessable\r\nOkt-Message: port 70000 is no port\r\n\r\n",
        ),
        ("/elsewhere", "302 Found\r\nLocation: /do\r\n\r\n"),
    ]);
    let gone = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .port();
    let mut site = Site::running(&format!(
        "probe: {{ http: 'http://127.0.0.1:{port}/where', every: 50ms }}\nstates:\n  \
         Do: {{ http: {{ url: 'http://127.0.0.1:{port}/do' }} }}\n  \
         Wrong: {{ http: {{ url: 'http://127.0.0.1:{port}/wrong', permanent: [422] }} }}\n  \
         Elsewhere: {{ http: {{ method: GET, url: 'http://127.0.0.1:{port}/elsewhere' }} }}\n  \
         Gone: {{ http: {{ url: 'http://127.0.0.1:{gone}/' }} }}\n"
    ));
    sees(
        &site,
        &json!({ "state": "Running", "events": ["Promoted"] }),
    );

    let id = site.put_with("Do", &json!({ "size": 3 }));
    let action = site.wait(&id);
    assert_eq!(
        (&action["event"], &action["message"]),
        (&json!("Reviewing"), &json!("later")),
        "{action}"
    );
    assert_eq!(site.output(&id), "queued\n");
    let requests = asked.lock().clone();
    let request = requests
        .iter()
        .find(|it| it.starts_with("POST /do"))
        .expect("it was asked");
    assert!(request.contains("okt-action-id: u1.1\r\n"), "{request}");
    assert!(request.contains("\"input\":{\"size\":3}"), "{request}");

    let action = site.done("Wrong");
    assert_eq!(
        (&action["permanent"], &action["message"]),
        (&json!(true), &json!("port 70000 is no port")),
        "{action}"
    );
    let action = site.done("Elsewhere");
    assert_eq!(
        action["message"],
        format!("GET http://127.0.0.1:{port}/elsewhere answered 302"),
        "{action}"
    );
    let action = site.done("Gone");
    assert_eq!(action["reason"], "NoAnswer", "{action}");
}
