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
                if length == 0 || is_whole(&text) {
                    break text;
                }
            };
            let path = whole.split(' ').nth(1).unwrap_or_default();
            let known = answers.iter().find(|(it, _)| *it == path);
            let text = known.map_or("404 Not Found\r\n\r\n", |it| it.1);
            let answer = text.replacen("\r\n", "\r\nconnection: close\r\n", 1);
            if !whole.is_empty() {
                log.lock().push(whole.clone());
            }
            let _ = write!(stream, "HTTP/1.1 {answer}");
        }
    });
    (port, asked)
}

/// Returns whether a request has arrived, with its body.
fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_lowercase();
    let mut lengths = head
        .lines()
        .map(|line| line.strip_prefix("content-length: "));
    let length = lengths.find_map(|length| length?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn sees(site: &Site, wanted: &serde_json::Value) {
    let what = format!("{wanted} is observed, not {}", site.seen());
    let wanted = wanted.as_object().expect("fields of an observation");
    site.until(what, |site| {
        let seen = site.seen();
        wanted.iter().all(|(key, value)| seen[key] == *value)
    });
}

fn unreachable(why: &str) -> serde_json::Value {
    json!({ "seen": "unreachable", "why": why })
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
            unreachable("the probe exited with 3"),
        ),
        ("echo unreachable no route", unreachable("no route")),
        (
            "echo FATAL: no",
            unreachable("the answer of the probe begins with no state"),
        ),
        ("true", unreachable("the answer of the probe is empty")),
        (
            "trap '' TERM; sleep 100 & wait",
            unreachable("the probe took longer than 400ms"),
        ),
        (
            "yes Running",
            unreachable("the probe took longer than 400ms"),
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
        ("7", unreachable("the probe exited with 7")),
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
    let mut site = Site::running(&format!(
        "probe: {{ http: 'http://127.0.0.1:{port}/where', every: 50ms }}\nstates:\n  \
         Do: {{ http: {{ url: 'http://127.0.0.1:{port}/do' }} }}\n  \
         Wrong: {{ http: {{ url: 'http://127.0.0.1:{port}/wrong', permanent: [422] }} }}\n  \
         Elsewhere: {{ http: {{ method: GET, url: 'http://127.0.0.1:{port}/elsewhere' }} }}\n  \
         Gone: {{ http: {{ url: 'http://127.0.0.1:1/' }} }}\n"
    ));
    sees(
        &site,
        &json!({ "state": "Running", "events": ["Promoted"] }),
    );

    let id = site.put_with("Do", &json!({ "size": 3 }));
    let action = site.wait(&id);
    assert_eq!(action["event"], "Reviewing");
    assert_eq!(action["message"], "later");
    assert_eq!(site.output(&id), "queued\n");
    let requests = asked.lock().clone();
    let mut posts = requests.iter().filter(|it| it.starts_with("POST /do"));
    let request = posts.next().expect("it was asked");
    assert!(request.contains("okt-action-id: u1.1\r\n"), "{request}");
    assert!(request.contains("\"input\":{\"size\":3}"), "{request}");

    let action = site.done("Wrong");
    assert_eq!(action["permanent"], true);
    assert_eq!(action["message"], "port 70000 is no port");
    let answered = format!("GET http://127.0.0.1:{port}/elsewhere answered 302");
    assert_eq!(site.done("Elsewhere")["message"], answered);
    let action = site.done("Gone");
    assert_eq!(action["reason"], "NoAnswer", "{action}");
}
