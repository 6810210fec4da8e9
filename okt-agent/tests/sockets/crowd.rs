//! Attackers: many silent connections, endless bodies, clients that do not read.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::application::{Beside, TOKEN, loopback};
use crate::wire::{ask, exchange, request, status, work};

/// Returns the resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let size = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    size.expect("Linux")
}

/// Opens a thousand connections that begin a request and then stay silent.
async fn half_open(address: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for number in 0..1000 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let begun: &[u8] = match number % 4 {
            0 => b"",
            1 => b"GET /lifecycle/v1/status HTTP/1.1\r\nHost: agent\r\nX: ",
            2 => b"PUT /lifecycle/v1/actions/a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
            _ => &[b'x'; 8000],
        };
        let _ = stream.write_all(begun).await;
        streams.push(stream);
    }
    streams
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_half_open_connections_neither_stop_the_status_nor_take_memory() {
    let beside = Beside::on_loopback().await;
    let address = beside.address();
    let put = request("PUT", "/lifecycle/v1/actions/a", &work());
    assert_eq!(ask(address, &put).await.status, 201);
    let before = resident();
    let crowd = half_open(address).await;
    for _ in 0..50 {
        let begun = Instant::now();
        assert_eq!(status(address).await.status, 200);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    // Both ends of the connections are in this process, and so are other tests.
    let grown = resident().saturating_sub(before);
    assert!(grown < 60 * 1024, "{grown} KiB more");
    let metrics = ask(address, &request("GET", "/metrics", "")).await.body;
    let mut values = metrics
        .lines()
        .map(|line| line.strip_prefix("okt_sidecar_connections "));
    let open: usize = values.find_map(|value| value?.parse().ok()).unwrap();
    assert!(open <= 256, "{open} connections");
    drop(crowd);
    beside.stop().await;
}

#[tokio::test]
async fn clients_that_do_not_finish_in_time_are_answered_408_or_disconnected() {
    let quick = |agent: okt_agent::Agent<_>| agent.request_limit(Duration::from_secs(1));
    let beside = Beside::start(quick, |_| vec![loopback()]).await;
    let address = beside.address();
    let limit = Duration::from_mins(2);

    // A head without an end.
    let stream = TcpStream::connect(address).await.unwrap();
    let cut = exchange(stream, "GET /livez HTTP/1.1\r\nHost:").await;
    assert!(cut.is_none_or(|answer| answer.status == 408));

    // A body without an end.
    let head = format!(
        "PUT /lifecycle/v1/actions/a HTTP/1.1\r\nHost: agent\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: 100\r\nConnection: close\r\n\r\n{{"
    );
    let stream = TcpStream::connect(address).await.unwrap();
    let in_time = timeout(limit, exchange(stream, &head)).await;
    let answer = in_time.unwrap().unwrap();
    assert_eq!(answer.status, 408);
    assert!(answer.body.contains(r#""code":"TooSlow""#), "{answer:?}");

    // A connection that is kept and not used.
    let stream = TcpStream::connect(address).await.unwrap();
    let unused = exchange(stream, "GET /livez HTTP/1.1\r\nHost: agent\r\n\r\n");
    let closed = timeout(limit, unused).await.expect("it is closed");
    assert_eq!(closed.unwrap().status, 200);

    // A client that sends requests and never reads.
    let (mut reading, mut writing) = TcpStream::connect(address).await.unwrap().into_split();
    let text = request("GET", "/metrics", "").replace("Connection: close\r\n", "");
    let flood = async { while writing.write_all(text.as_bytes()).await.is_ok() {} };
    let flooded = timeout(limit, flood).await;
    flooded.expect("the client is disconnected");
    let _ = reading.read(&mut [0]).await;
    assert_eq!(status(address).await.status, 200);
    beside.stop().await;
}

#[tokio::test]
async fn invalid_requests_are_refused_and_the_agent_still_answers() {
    let beside = Beside::on_loopback().await;
    let address = beside.address();
    let put = |body: &str| request("PUT", "/lifecycle/v1/actions/a", body);
    let deep = format!("{}{}", "[".repeat(4_000), "]".repeat(4_000));
    let bad = [
        deep,
        work().replace("\"epoch\":1", "\"epoch\":-1"),
        work().replace("\"epoch\":1", "\"epoch\":1e400"),
        work().replace("\"epoch\":1", "\"epoch\":18446744073709551616"),
        work().replace("2026-11-20", "2026-13-20"),
    ];
    for body in &bad {
        let answer = ask(address, &put(body)).await;
        assert_eq!(answer.status, 400, "{body:.200}: {answer:?}");
        let is_problem = answer.head.contains("application/problem+json");
        assert!(is_problem, "{answer:?}");
        assert!(answer.body.len() < 2048, "{}", answer.body.len());
    }
    for id in ["..", "%ff"] {
        let text = request("PUT", &format!("/lifecycle/v1/actions/{id}"), &work());
        assert_eq!(ask(address, &text).await.status, 400, "{id}");
    }
    for query in ["wait=-1", "wait=soon", "wait=1&wait=2", "until=3"] {
        let text = request("GET", &format!("/lifecycle/v1/actions/a?{query}"), "");
        assert_eq!(ask(address, &text).await.status, 400, "{query}");
    }
    // A body that is too long, without a declared length.
    let mut chunked = request("PUT", "/lifecycle/v1/actions/a", "")
        .replace("Content-Length: 0", "Transfer-Encoding: chunked");
    for _ in 0..40 {
        chunked += &format!("2000\r\n{}\r\n", " ".repeat(0x2000));
    }
    assert_eq!(ask(address, &chunked).await.status, 413);
    // A body that is short, but large in memory.
    let dense = format!("[{}1]", "1,".repeat(5_000));
    let input = format!("\"input\":{{\"a\":{dense}}},\"fence\"");
    let dense = work().replace("\"fence\"", &input);
    assert_eq!(ask(address, &put(&dense)).await.status, 413);
    let fits = format!("{}{}", work(), " ".repeat(256 * 1024 - work().len()));
    assert_eq!(ask(address, &put(&fits)).await.status, 201);
    let (zeros, http_2) = ("\0\0\0\0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    for text in [zeros, http_2, "GET / HTTP/9.9\r\n\r\n"] {
        let stream = TcpStream::connect(address).await.unwrap();
        let answer = exchange(stream, text).await;
        assert!(answer.is_none_or(|answer| answer.status >= 400), "{text}");
    }
    assert_eq!(status(address).await.status, 200);
    beside.stop().await;
}
