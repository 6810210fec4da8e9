//! The webhooks of a program, over TLS: the API server asks them to convert objects to other versions, and to check and
//! complete them before it stores them.
//!
//! | module | content |
//! |---|---|
//! | `admission` | checks and completes objects |
//! | `metrics` | how often and how fast they answer |
//! | `kinds` | about which kinds the API server asks |
//! | `certificate` | the certificate that the replicas of the program share, in a Secret, and renew |
//! | `definitions` | which certificates the objects trust that lead the API server here |
//!
//! They answer on every replica, whether it acts on objects or not.

mod admission;
mod certificate;
mod definitions;
mod kinds;
mod metrics;

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{Request, Response, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use axum::{Json, Router};
use kube::Client;
use kube::client::Body;
use kube::core::conversion::ConversionReview;
use okt_runtime::Application;
use okt_serve::tls::{CertificateFiles, RustlsAcceptor, RustlsConfig, ServerConfig};
use okt_serve::{Handle, ListenAddress, bind, server};
use okt_telemetry::monitoring::Monitoring;
use okt_wire::api_timeout::limit_answers;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, service_fn};

use self::admission::{AdmissionTask, Review};
use self::certificate::SharedCertificate;
use self::definitions::{keep_trusted, take};
pub(crate) use self::kinds::HookedKind;
use self::metrics::{WebhookMetrics, measured};
use crate::install::webhooks::WebhookService;

/// How many connections the API servers may have.
const CONNECTIONS: usize = 128;

/// The largest request, in bytes: a list of all objects is converted at once.
const LARGEST: usize = 256 * 1024 * 1024;

/// How many requests are read and answered at the same time.
const AT_ONCE: usize = 8;

/// How often the file of the authority is read.
const REVISIT: Duration = Duration::from_secs(10);

/// How long requests may take that are on their way when the program stops.
const DRAINED: Duration = Duration::from_secs(5);

/// How the webhooks are served.
pub(crate) struct Webhooks {
    pub(crate) address: ListenAddress,
    /// The directory of the certificate; without one the replicas make a certificate that they share.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) service: WebhookService,
    /// How long a certificate is valid that the replicas make.
    pub(crate) valid: Duration,
    /// How long a program that stops still answers: a Service takes a moment to pass it over.
    pub(crate) lingers: Duration,
}

type Kinds = Arc<Vec<HookedKind>>;

/// Returns the webhooks of an application as a service without TLS, for a test or for a server of your own. It answers at
/// `/convert/<name of the definition>`, `/validate/..` and `/complete/..`.
///
/// # Example
///
/// ```
/// # use okt::Application;
/// # async fn example<A: Application>() -> Result<(), Box<dyn std::error::Error>> {
/// let webhooks = okt::webhooks_of::<A>();
/// // In a test: server.set_service("default", "tents-webhook", webhooks);
/// # drop(webhooks);
/// # Ok(())
/// # }
/// ```
pub fn webhooks_of<A: Application>()
-> BoxCloneSyncService<Request<Body>, Response<Body>, Infallible> {
    let routes = routes(Arc::new(vec![HookedKind::of::<A>()]));
    BoxCloneSyncService::new(service_fn(move |request: Request<Body>| {
        let routes = routes.clone();
        async move {
            let response: Response<_> = routes.oneshot(request).await?;
            let (head, body) = response.into_parts();
            let body = to_bytes(body, LARGEST).await.unwrap_or_default();
            Ok(Response::from_parts(head, Body::from(body.to_vec())))
        }
    }))
}

/// Serves the webhooks, until the returned future is dropped, or `ended`: while operators end their work, they need them
/// for their writes. A while after `stopping` the API server is led to other replicas.
///
/// # Errors
///
/// If the certificate cannot be had, or the address cannot be listened on; a retry helps once that has changed.
pub(crate) async fn serve(
    webhooks: Webhooks,
    client: Client,
    kinds: Vec<HookedKind>,
    monitoring: &Monitoring,
    (stopping, ended): (CancellationToken, CancellationToken),
) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    let client = limit_answers(client);
    let kinds = Arc::new(kinds);
    let metrics = WebhookMetrics::register(monitoring);
    let routes = routes(Arc::clone(&kinds)).layer(from_fn_with_state(metrics, measured));
    let (first, source) = CertificateSource::of(&webhooks, &client).await?;
    let tls = RustlsConfig::from_config(Arc::new(first));
    let listener = bind(webhooks.address, "webhooks").await?;
    let handle = Handle::new();
    let server = server(listener, CONNECTIONS)
        .map(|connections| RustlsAcceptor::new(tls.clone()).acceptor(connections))
        .handle(handle.clone())
        .serve(routes.into_make_service_with_connect_info::<SocketAddr>());
    Ok(async move {
        let (trusted, authorities) = watch::channel(Vec::new());
        let trusting = keep_trusted(&client, &kinds, &webhooks.service, &authorities);
        let renewing = async {
            match source {
                CertificateSource::Files(files, digest) => {
                    let reading = read_authority(&webhooks, &trusted);
                    tokio::join!(files.follow(digest, &tls), reading);
                }
                CertificateSource::Secret(certificate) => {
                    certificate.keep(&client, &tls, &trusted).await;
                }
            }
        };
        let ending = async {
            stopping.cancelled().await;
            tokio::join!(sleep(webhooks.lingers), ended.cancelled());
            handle.graceful_shutdown(Some(DRAINED));
            pending::<()>().await;
        };
        tokio::select! {
            // It ends once it is drained, and with an error only if the listener is gone.
            ended = server => drop(ended),
            () = trusting => {}
            () = renewing => {}
            () = ending => {}
        }
    })
}

/// Where the certificate comes from.
enum CertificateSource {
    /// Files, and a digest of what was read.
    Files(CertificateFiles, [u8; 32]),
    Secret(Box<SharedCertificate>),
}

impl CertificateSource {
    /// Returns the first certificate, and where the next ones come from.
    async fn of(webhooks: &Webhooks, client: &Client) -> io::Result<(ServerConfig, Self)> {
        if let Some(directory) = &webhooks.certificate {
            let files = CertificateFiles::in_directory(directory);
            let (digest, first) = files.read()?;
            return Ok((first, Self::Files(files, digest)));
        }
        let certificate = SharedCertificate::get(client, &webhooks.service, webhooks.valid);
        let certificate = certificate.await.map_err(io::Error::other)?;
        let first = certificate.config().map_err(io::Error::other)?;
        Ok((first, Self::Secret(Box::new(certificate))))
    }
}

/// Reads the authority in the file beside the certificate again and again; without this file, cert-manager or a person
/// tells the API server what to trust.
async fn read_authority(webhooks: &Webhooks, trusted: &watch::Sender<Vec<u8>>) {
    let file = webhooks.certificate.as_deref().map(|it| it.join("ca.crt"));
    loop {
        if let Some(Ok(authority)) = file.as_ref().map(std::fs::read) {
            take(trusted, &authority);
        }
        sleep(REVISIT).await;
    }
}

fn routes(kinds: Kinds) -> Router {
    let state = (kinds, Arc::new(Semaphore::new(AT_ONCE)));
    let validate = |state, crd, review| admit(AdmissionTask::Validate, state, crd, review);
    let complete = |state, crd, review| admit(AdmissionTask::Complete, state, crd, review);
    Router::new()
        .route("/convert/{crd}", post(convert))
        .route("/validate/{crd}", post(validate))
        .route("/complete/{crd}", post(complete))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(state)
}

type Turns = State<(Kinds, Arc<Semaphore>)>;

/// Converts objects.
async fn convert(
    State((kinds, turns)): Turns,
    Path(crd): Path<String>,
    Json(review): Json<ConversionReview>,
) -> Result<Json<ConversionReview>, (StatusCode, String)> {
    in_turn(kinds, turns, crd, move |kind| {
        Some(Ok(kind.versions.as_ref()?.review(review)))
    })
    .await
}

/// Checks or completes an object.
async fn admit(
    task: AdmissionTask,
    State((kinds, turns)): Turns,
    Path(crd): Path<String>,
    Json(review): Json<Review>,
) -> Result<Json<Review>, (StatusCode, String)> {
    in_turn(kinds, turns, crd, move |kind| {
        Some(kind.admission.as_ref()?.review(task, review))
    })
    .await
}

/// Answers a question about a kind, when it is its turn. An answer may take long, so it has a thread of its own.
async fn in_turn<T: Send + 'static>(
    kinds: Kinds,
    turns: Arc<Semaphore>,
    crd: String,
    answer: impl FnOnce(&HookedKind) -> Option<Result<T, String>> + Send + 'static,
) -> Result<Json<T>, (StatusCode, String)> {
    let turn = turns.acquire_owned().await;
    let answered = tokio::task::spawn_blocking(move || {
        let kind = kinds.iter().find(|kind| kind.crd == crd);
        let answered = kind.and_then(answer);
        drop(turn);
        answered
    });
    match answered.await {
        Ok(Some(Ok(answer))) => Ok(Json(answer)),
        Ok(Some(Err(why))) => {
            tracing::error!("cannot answer the API server: {why}");
            Err((StatusCode::INTERNAL_SERVER_ERROR, why))
        }
        Ok(None) => Err((StatusCode::NOT_FOUND, String::new())),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_about_the_certificate_is_an_error_in_time() {
        let silent = service_fn(|_: Request<Body>| pending::<io::Result<Response<Body>>>());
        let webhooks = Webhooks {
            address: ListenAddress::All(0),
            certificate: None,
            service: WebhookService::of("tents", "default"),
            valid: Duration::from_hours(24),
            lingers: Duration::ZERO,
        };
        let client = Client::new(silent, "default");
        let (monitoring, tokens) = (Monitoring::new(), Default::default());
        let served = serve(webhooks, client, Vec::new(), &monitoring, tokens);
        let served = timeout(Duration::from_hours(1), served).await;
        let served = served.expect("it waits no longer");
        let error = served.err().expect("there is no certificate").to_string();
        assert!(error.contains("no answer within 60 s"), "{error}");
    }
}
