//! An application on the loopback interface whose answers a test scripts, byte by byte.

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// The answer to a request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Sends this and keeps the connection for the next request.
    Whole(String),
    /// Sends this and ends the connection.
    Broken(String),
    /// Sends this and then nothing more.
    Hanging(String),
    /// Sends this, and then the same piece as long as the client reads.
    Endless(String, String),
}

impl Answer {
    /// Returns an answer with this status line and body.
    pub(crate) fn of(status: &str, body: &str) -> Self {
        Self::with(status, "", body)
    }

    /// Returns an answer with headers, each with its line end.
    pub(crate) fn with(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Whole(format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
    }
}

/// The application; when it is dropped, all connections end.
pub(crate) struct Application {
    pub(crate) port: u16,
    heard: Arc<Mutex<Heard>>,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Heard {
    requests: Vec<String>,
    connections: usize,
}

impl Application {
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::serve(answer, None).await
    }

    /// Starts the application with TLS for this name; returns its certificate (PEM).
    pub(crate) async fn secured(answer: Answer, name: &str) -> (Self, String) {
        let (acceptor, pem) = acceptor(name);
        (Self::serve(answer, Some(acceptor)).await, pem)
    }

    async fn serve(answer: Answer, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let hears = Arc::clone(&heard);
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                hears.lock().connections += 1;
                let (answer, acceptor, hears) =
                    (answer.clone(), acceptor.clone(), Arc::clone(&hears));
                connections.spawn(async move {
                    match acceptor {
                        None => converse(stream, answer, hears).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                converse(stream, answer, hears).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            port,
            heard,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the requests, each with its body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.heard.lock().requests.clone()
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.heard.lock().connections
    }
}

/// Returns a TLS acceptor for this name or address, and its certificate (PEM).
pub(crate) fn acceptor(name: &str) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a pair");
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    hears: Arc<Mutex<Heard>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = request(&mut stream).await {
        hears.lock().requests.push(request);
        let (Answer::Whole(text)
        | Answer::Broken(text)
        | Answer::Hanging(text)
        | Answer::Endless(text, _)) = &answer;
        let mut sent = stream.write_all(text.as_bytes()).await.is_ok();
        sent &= stream.flush().await.is_ok();
        match &answer {
            Answer::Whole(_) if sent => {}
            Answer::Whole(_) | Answer::Broken(_) => {
                let _ = stream.shutdown().await;
                return;
            }
            Answer::Hanging(_) => {
                // Waits until the client disconnects.
                let _ = stream.read_u8().await;
                return;
            }
            Answer::Endless(_, piece) => while stream.write_all(piece.as_bytes()).await.is_ok() {},
        }
    }
}

/// Reads the next request; `None` if the client has disconnected.
async fn request(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut request = String::new();
    let mut length = 0;
    loop {
        let from = request.len();
        if stream.read_line(&mut request).await.ok()? == 0 {
            return None;
        }
        let line = request[from..].trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    request.push_str(&String::from_utf8_lossy(&body));
    Some(request)
}
