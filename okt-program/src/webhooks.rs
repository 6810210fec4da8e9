//! The webhooks of a program, over TLS: the API server asks them to convert objects to other versions.
//!
//! | module | content |
//! |---|---|
//! | `certificate` | the certificate that the replicas of the program share, in a Secret, and renew |
//! | `definitions` | which certificates the definitions trust |
//!
//! They answer on every replica, whether it acts on objects or not.

mod certificate;
mod definitions;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use kube::Client;
use kube::core::conversion::ConversionReview;
use okt_serve::tls::{CertificateFiles, RustlsAcceptor, RustlsConfig, warn_once};
use okt_serve::{ListenAddress, bind, server};
use okt_wire::versions::KindVersions;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use self::certificate::SharedCertificate;
use self::definitions::trust;
use crate::install::webhooks::WebhookService;

/// How many connections the API servers may have.
const CONNECTIONS: usize = 128;

/// The largest request, in bytes: a list of all objects is converted at once.
const LARGEST: usize = 256 * 1024 * 1024;

/// How many requests are read and answered at the same time.
const AT_ONCE: usize = 8;

/// How often it is checked that the definitions trust the certificate.
const REVISIT: Duration = Duration::from_secs(10);

/// A kind whose objects are converted.
pub(crate) struct ConvertedKind {
    /// The name of its definition.
    pub(crate) crd: &'static str,
    pub(crate) versions: KindVersions,
}

/// How the webhooks are served.
pub(crate) struct Webhooks {
    pub(crate) address: ListenAddress,
    /// The directory of the certificate; without one the replicas make a certificate that they share.
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) service: WebhookService,
    /// How long a certificate is valid that the replicas make.
    pub(crate) valid: Duration,
}

type Kinds = Arc<Vec<ConvertedKind>>;

/// Serves the webhooks, until the returned future is dropped.
///
/// # Errors
///
/// If the certificate cannot be had, or the address cannot be listened on; a retry helps once that has changed.
pub(crate) async fn serve(
    webhooks: Webhooks,
    client: Client,
    kinds: Vec<ConvertedKind>,
) -> io::Result<impl Future<Output = ()> + Send> {
    let crds: Vec<_> = kinds.iter().map(|kind| kind.crd).collect();
    let routes = routes(kinds);
    let (first, source) = if let Some(directory) = &webhooks.certificate {
        let files = CertificateFiles::in_directory(directory);
        let (digest, first) = files.read()?;
        (first, CertificateSource::Files(files, digest))
    } else {
        let certificate = SharedCertificate::get(&client, &webhooks.service, webhooks.valid);
        let certificate = certificate.await.map_err(io::Error::other)?;
        let first = certificate.config().map_err(io::Error::other)?;
        (first, CertificateSource::Secret(Box::new(certificate)))
    };
    let tls = RustlsConfig::from_config(Arc::new(first));
    let listener = bind(webhooks.address, "webhooks").await?;
    let server = server(listener, CONNECTIONS)
        .map(|connections| RustlsAcceptor::new(tls.clone()).acceptor(connections))
        .serve(routes.into_make_service_with_connect_info::<SocketAddr>());
    Ok(async move {
        let renewing = async {
            match source {
                CertificateSource::Files(files, digest) => {
                    let trusting = trust_file(&client, &crds, &webhooks);
                    tokio::join!(files.follow(digest, &tls), trusting);
                }
                CertificateSource::Secret(certificate) => {
                    certificate.keep(&client, &tls, &crds).await;
                }
            }
        };
        tokio::select! {
            // It only ends with an error if the listener is gone.
            ended = server => drop(ended),
            () = renewing => {}
        }
    })
}

/// Where the certificate comes from.
enum CertificateSource {
    /// Files, and a digest of what was read.
    Files(CertificateFiles, [u8; 32]),
    Secret(Box<SharedCertificate>),
}

/// Lets the definitions trust the authority in the file beside the certificate; without this file, cert-manager or a
/// person tells the API server what to trust.
async fn trust_file(client: &Client, crds: &[&str], webhooks: &Webhooks) {
    let mut logged = String::new();
    loop {
        let authority = webhooks.certificate.as_deref().map(|it| it.join("ca.crt"));
        if let Some(Ok(authority)) = authority.map(std::fs::read) {
            let trusted = trust(client, crds, &webhooks.service, &authority).await;
            warn_once(&mut logged, trusted);
        }
        sleep(REVISIT).await;
    }
}

fn routes(kinds: Vec<ConvertedKind>) -> Router {
    let state = (Arc::new(kinds), Arc::new(Semaphore::new(AT_ONCE)));
    Router::new()
        .route("/convert/{crd}", post(convert))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(state)
}

/// Converts objects. A large list takes long, so it has a thread of its own.
async fn convert(
    State((kinds, turns)): State<(Kinds, Arc<Semaphore>)>,
    Path(crd): Path<String>,
    Json(review): Json<ConversionReview>,
) -> Result<Json<ConversionReview>, StatusCode> {
    let Some(index) = kinds.iter().position(|kind| kind.crd == crd) else {
        return Err(StatusCode::NOT_FOUND);
    };
    let turn = turns.acquire_owned().await;
    let answer = tokio::task::spawn_blocking(move || {
        let answer = kinds[index].versions.review(review);
        drop(turn);
        answer
    });
    let answer = answer
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(Json(answer))
}
