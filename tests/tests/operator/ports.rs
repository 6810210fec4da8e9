//! What is served over HTTP, and readers who mean ill or do not read.

use std::net::SocketAddr;
use std::time::Duration;

use okt::Monitoring;
use okt_testing::free_ports;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_from_metrics_and_health() {
    let ports = free_ports().expect("two ports");
    let [metrics, health] = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let listen = |address: SocketAddr| Some(address.to_string().parse().expect("an address"));
    let served = Monitoring::new()
        .serve(listen(metrics), listen(health))
        .await;
    let _served = AbortOnDropHandle::new(tokio::spawn(served.expect("it listens")));
    let mut still = Vec::new();
    for _ in 0..300 {
        for address in [metrics, health] {
            still.push(TcpStream::connect(address).await.expect("a connection"));
        }
    }
    for _ in 0..3 {
        let (livez, text) = (get(health, "/livez").await, get(metrics, "/metrics").await);
        assert!(livez.ends_with("ok\n"), "{livez}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
    // The oldest have lost their places; an end or a reset, but no wait.
    for stream in still.iter_mut().take(300) {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_mins(1), stream.read(&mut byte)).await;
        assert!(!matches!(read.expect("it is closed"), Ok(1..)));
    }
}
