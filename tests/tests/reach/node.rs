//! A Kubernetes API on the loopback interface: pods are objects of the in-process API, and a script
//! answers the subresources `exec` and `portforward` with the channel protocols over a real WebSocket.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::DeleteParams;
use kube::{Api, Client, Config, ResourceExt};
use okt_testing::ApiServer;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use super::application::acceptor;
use okt_tests::Objects;

pub(crate) const V4: &str = "v4.channel.k8s.io";
pub(crate) const V5: &str = "v5.channel.k8s.io";

/// The channels of `exec`.
pub(crate) const STDIN: u8 = 0;
pub(crate) const STDOUT: u8 = 1;
pub(crate) const STDERR: u8 = 2;
pub(crate) const STATUS: u8 = 3;
/// In v5, the rest of the message is the channel that ends.
pub(crate) const CLOSE: u8 = 255;

type Body = UnsyncBoxBody<bytes::Bytes, tower::BoxError>;
type Scripts = Arc<Mutex<JoinSet<()>>>;
type Script = dyn Fn(Socket) -> BoxFuture<'static, ()> + Send + Sync;

/// The server's answer to a request for a subresource.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Speaks this protocol as the script says.
    Speak(&'static str, Arc<Script>),
    /// Refuses the request.
    Refuse(StatusCode, String),
    /// Switches protocols, but with a wrong key.
    WrongKey,
}

impl Answer {
    pub(crate) fn speak<F>(
        protocol: &'static str,
        script: impl Fn(Socket) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::Speak(protocol, Arc::new(move |socket| Box::pin(script(socket))))
    }

    /// Refuses a request as the API server does.
    pub(crate) fn refuse(code: u16, message: &str) -> Self {
        let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "message": message, "code": code });
        let code = StatusCode::from_u16(code).expect("a status");
        Self::Refuse(code, status.to_string())
    }
}

/// The server; when it is dropped, all connections end.
pub(crate) struct Node {
    api: ApiServer,
    uri: String,
    asked: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Node {
    pub(crate) async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let uri = format!("http://{}", listener.local_addr().expect("an address"));
        let api = ApiServer::new();
        let namespaces: Api<Namespace> = Api::all(api.client());
        namespaces
            .make(json!({ "metadata": { "name": "team" } }))
            .await;
        api.clear_requests();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let serving = serve(listener, None, api.clone(), answer, Arc::clone(&asked));
        Self {
            api,
            uri,
            asked,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    /// Starts the kubelet's part, for a real API server; returns its port.
    pub(crate) async fn kubelet(answer: Answer) -> (Self, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let api = ApiServer::new();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (acceptor, _) = acceptor("127.0.0.1");
        let asks = Arc::clone(&asked);
        let serving = serve(listener, Some(acceptor), api.clone(), answer, asks);
        let node = Self {
            api,
            uri: format!("https://127.0.0.1:{port}"),
            asked,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        };
        (node, port)
    }

    /// Returns a client for the server's socket.
    pub(crate) fn client(&self) -> Client {
        Client::try_from(Config::new(self.uri.parse().expect("a URI"))).expect("a client")
    }

    /// Creates an object in the namespace `team`.
    pub(crate) async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        let api = Api::<K>::namespaced(self.api.client(), "team");
        let status = object["status"].clone();
        let made = api.make(object).await;
        // The status is written separately.
        if !status.is_null() {
            api.edit_status(&made.name_any(), status).await;
        }
    }

    /// Deletes a pod of the namespace `team`, as the kubelet does at the end.
    pub(crate) async fn delete_pod(&self, name: &str) {
        let pods = Api::<Pod>::namespaced(self.api.client(), "team");
        let now = DeleteParams::default().grace_period(0);
        pods.delete(name, &now).await.expect("a deletion");
    }

    pub(crate) fn api(&self) -> &ApiServer {
        &self.api
    }

    /// Returns the requests for subresources, as paths with queries.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    api: ApiServer,
    answer: Answer,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let mut connections = JoinSet::new();
    // The script takes over an upgraded connection.
    let scripts = Scripts::default();
    while let Ok((stream, _)) = listener.accept().await {
        let (api, answer, asked) = (api.clone(), answer.clone(), Arc::clone(&asked));
        let (acceptor, scripts) = (acceptor.clone(), Arc::clone(&scripts));
        connections.spawn(async move {
            match acceptor {
                None => connection(stream, api, answer, asked, scripts).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        connection(stream, api, answer, asked, scripts).await;
                    }
                }
            }
        });
    }
}

/// Whether a script answers this path of an API server or of a kubelet.
fn is_scripted(path: &str) -> bool {
    let (begins, ends) = (["/exec/", "/portForward/"], ["/exec", "/portforward"]);
    begins.iter().any(|it| path.starts_with(it)) || ends.iter().any(|it| path.ends_with(it))
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    api: ApiServer,
    answer: Answer,
    asked: Arc<Mutex<Vec<String>>>,
    scripts: Scripts,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, answer, asked) = (api.clone(), answer.clone(), Arc::clone(&asked));
        let scripts = Arc::clone(&scripts);
        async move {
            let path = request.uri().path();
            if !is_scripted(path) {
                let answer = api.endpoint().oneshot(request).await.expect("an answer");
                return Ok::<_, Infallible>(
                    answer.map(|body| body.map_err(Into::into).boxed_unsync()),
                );
            }
            asked.lock().push(request.uri().to_string());
            let (protocol, script, key) = match answer {
                Answer::Refuse(code, text) => return Ok(plain(code, text)),
                Answer::WrongKey => (V5, None, "another".to_owned()),
                Answer::Speak(protocol, script) => {
                    let key = request.headers()[SEC_WEBSOCKET_KEY].as_bytes();
                    (protocol, Some(script), derive_accept_key(key))
                }
            };
            scripts.lock().spawn(async move {
                if let (Ok(upgraded), Some(script)) = (hyper::upgrade::on(request).await, script) {
                    let upgraded = TokioIo::new(upgraded);
                    let socket =
                        WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
                    script(Socket(socket)).await;
                }
            });
            let mut answer = plain(StatusCode::SWITCHING_PROTOCOLS, String::new());
            for (name, value) in [
                (CONNECTION, "Upgrade"),
                (UPGRADE, "websocket"),
                (SEC_WEBSOCKET_PROTOCOL, protocol),
                (SEC_WEBSOCKET_ACCEPT, &key),
            ] {
                answer
                    .headers_mut()
                    .insert(name, value.parse().expect("a value"));
            }
            Ok(answer)
        }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client may disconnect at any time.
    let _ = connection.with_upgrades().await;
}

fn plain(code: StatusCode, text: String) -> Response<Body> {
    let mut answer = Response::new(Full::from(text).map_err(Into::into).boxed_unsync());
    *answer.status_mut() = code;
    answer
}

/// The server's side of a channel connection.
pub(crate) struct Socket(WebSocketStream<TokioIo<Upgraded>>);

impl Socket {
    /// Sends bytes on a channel; returns whether the client is still connected.
    pub(crate) async fn send(&mut self, channel: u8, bytes: impl AsRef<[u8]>) -> bool {
        let mut message = vec![channel];
        message.extend_from_slice(bytes.as_ref());
        self.0.send(Message::binary(message)).await.is_ok()
    }

    /// Returns the client's next message and its channel; `None` if the client has closed or disconnected.
    pub(crate) async fn heard(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            match self.0.next().await? {
                Ok(Message::Binary(message)) => {
                    let (channel, bytes) = message.split_first()?;
                    return Some((*channel, bytes.to_vec()));
                }
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Reads until the client has closed or disconnected.
    pub(crate) async fn gone(mut self) {
        while self.heard().await.is_some() {}
    }

    /// Sends the final status of the command, and closes.
    pub(crate) async fn end(mut self, status: Value) {
        self.send(STATUS, status.to_string()).await;
        self.close().await;
    }

    /// Ends like a command with this exit code.
    pub(crate) async fn exit(self, code: u8) {
        self.end(match code {
            0 => json!({ "metadata": {}, "status": "Success" }),
            _ => json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
            }),
        })
        .await;
    }

    /// Sends a close message, and waits until the client has disconnected.
    pub(crate) async fn close(mut self) {
        // The client may have disconnected already.
        let _ = self.0.close(None).await;
        self.gone().await;
    }
}
