//! HTTP by hand: the bytes of requests and answers.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::application::TOKEN;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Returns a request with the right token that asks to close the connection.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    with_token(method, path, body, &token)
}

/// Returns a request with these additional header lines.
pub(crate) fn with_token(method: &str, path: &str, body: &str, lines: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: agent\r\n{lines}Connection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// Sends a text and reads the answer to its end.
pub(crate) async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    text: &str,
) -> Option<Answer> {
    // The agent may answer and close the connection before everything is sent.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    })
}

/// Sends a request over TCP.
pub(crate) async fn ask(address: SocketAddr, text: &str) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    exchange(stream, text).await.expect("an answer")
}

/// Requests the status with the right token.
pub(crate) async fn status(address: SocketAddr) -> Answer {
    ask(address, &request("GET", "/lifecycle/v1/status", "")).await
}

/// Returns the body of a request for work.
pub(crate) fn work() -> String {
    r#"{"state":"Servicing","owner":{"uid":"7c5d","createdAt":"2026-11-20T10:00:00Z","name":"orders"},
        "fence":{"epoch":1,"transition":1,"recordedAt":"2026-11-20T10:00:01Z"}}"#
        .to_owned()
}
