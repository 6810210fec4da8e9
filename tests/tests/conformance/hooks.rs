//! [`Hook`]: a webhook of a behavior, and the configurations that lead a server to it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;

use axum::Router;
use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;

use crate::world::{LABEL, World, eventually};

pub(crate) const VALIDATING: &str = "validatingwebhookconfigurations";
pub(crate) const MUTATING: &str = "mutatingwebhookconfigurations";

/// What a webhook answers.
pub(crate) enum Answer {
    /// The response of the review; its uid is filled in.
    Response(Value),
    /// The whole body.
    Body(String),
    Status(u16),
    Silence,
}

impl From<Value> for Answer {
    fn from(response: Value) -> Self {
        Self::Response(response)
    }
}

type Handler = Arc<dyn Fn(&Value) -> Answer + Send + Sync>;
/// The requests that a webhook has received.
type Received = Arc<Mutex<Vec<Value>>>;

/// A webhook over TLS, at its own path of the one server of this process.
pub(crate) struct Hook {
    name: String,
    received: Received,
}

struct Site {
    port: u16,
    authority: String,
    hooks: Mutex<BTreeMap<String, (Handler, Received)>>,
}

/// The server has a thread of its own, because the behaviors of the double run under paused time.
static SITE: LazyLock<Arc<Site>> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(serve(&sender));
    });
    receiver.recv().expect("the webhooks are served")
});

async fn serve(sender: &mpsc::Sender<Arc<Site>>) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a port");
    let site = Arc::new(Site {
        port: listener.local_addr().expect("an address").port(),
        authority: made.cert.pem(),
        hooks: Mutex::default(),
    });
    sender.send(Arc::clone(&site)).expect("somebody waits");
    let router = Router::new()
        .route("/{name}", post(answer))
        .with_state(site);
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                let service = TowerToHyperService::new(router);
                let server = auto::Builder::new(TokioExecutor::new());
                drop(server.serve_connection(TokioIo::new(stream), service).await);
            }
        });
    }
}

async fn answer(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    Json(review): Json<Value>,
) -> Response {
    let Some((handler, received)) = site.hooks.lock().get(&name).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    received.lock().push(review["request"].clone());
    match handler(&review["request"]) {
        Answer::Response(mut response) => {
            if response.get("uid").is_none() {
                response["uid"] = review["request"]["uid"].clone();
            }
            let mut review = review;
            review["response"] = response;
            Json(review).into_response()
        }
        Answer::Body(body) => body.into_response(),
        Answer::Status(code) => StatusCode::from_u16(code).expect("a code").into_response(),
        Answer::Silence => std::future::pending().await,
    }
}

impl Hook {
    /// Serves a webhook with a name that no other one of the world has.
    pub(crate) fn new(
        world: &World,
        name: &str,
        handler: impl Fn(&Value) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let name = format!("{name}-{}", world.namespace);
        let received = Arc::default();
        let entry = (Arc::new(handler) as Handler, Arc::clone(&received));
        SITE.hooks.lock().insert(name.clone(), entry);
        Self { name, received }
    }

    /// Returns the `clientConfig` of the webhook.
    pub(crate) fn client(&self) -> Value {
        let bundle = BASE64_STANDARD.encode(&SITE.authority);
        json!({ "url": self.url(), "caBundle": bundle })
    }

    /// Returns the name of the webhook's configuration.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/{}", SITE.port, self.name)
    }

    /// Returns the requests since the last time.
    pub(crate) fn received(&self) -> Vec<Value> {
        std::mem::take(&mut self.received.lock())
    }

    /// Returns the only request since the last time. A real server whose copy of an object was stale asks once more,
    /// about the object as it is: what it asked about the stale one does not count.
    #[track_caller]
    pub(crate) fn received_one(&self) -> Value {
        let received = self.received();
        let subject = |it: &Value| {
            ["operation", "namespace", "name", "subResource"].map(|key| it[key].clone())
        };
        let version = |it: &Value| it["oldObject"]["metadata"]["resourceVersion"].clone();
        let asked_again = |pair: &[Value]| match pair {
            [stale, anew] => subject(stale) == subject(anew) && version(stale) != version(anew),
            _ => false,
        };
        match received.as_slice() {
            [.., last] if received.windows(2).all(asked_again) => last.clone(),
            _ => panic!("{} requests: {received:?}", received.len()),
        }
    }

    /// Returns a configuration with this webhook, for widgets of the world's namespace; `fields` are set in the webhook.
    pub(crate) fn configuration(&self, world: &World, fields: &Value) -> Value {
        let name = &self.name;
        let mut webhook = json!({
            "name": "hook.conformance.okt.dev",
            "clientConfig": self.client(),
            "rules": [{
                "apiGroups": [world.group],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "resources": ["widgets", "widgets/status"],
            }],
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": world.namespace } },
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            webhook[key] = value.clone();
        }
        json!({ "metadata": { "name": name, "labels": { LABEL: world.id } }, "webhooks": [webhook] })
    }

    /// Lets a server ask this webhook, and waits until it does.
    pub(crate) async fn install(&self, world: &World, plural: &str, fields: &Value) {
        let configuration = self.configuration(world, fields);
        world.configure(plural, &configuration).await;
        let probe = format!("{}?dryRun=All", world.path());
        eventually("the webhook is called", async || {
            world.post(&probe, &world.widget("probe", json!({}))).await;
            (!self.received().is_empty()).then_some(())
        })
        .await;
        self.received();
    }
}

impl World {
    /// Creates a configuration of admission.
    pub(crate) async fn configure(&self, plural: &str, configuration: &Value) {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        self.post(&path, configuration).await.ok();
    }
}

/// Allows a request.
pub(crate) fn allow(_: &Value) -> Answer {
    json!({ "allowed": true }).into()
}

/// Returns the response of a webhook that patches an object.
pub(crate) fn patched(steps: &Value) -> Answer {
    let patch = BASE64_STANDARD.encode(steps.to_string());
    json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }).into()
}
