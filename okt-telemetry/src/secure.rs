//! Serves the metrics over TLS, to those whom the API server permits.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn_with_state;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use kube::Client;
use okt_serve::{ListenAddress, bind, server};
use okt_wire::provider::provider;
use okt_wire::texts::chain;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::monitoring::Monitoring;
use super::permission::{Permission, check};
use super::serve::SCRAPERS;

/// The files of a certificate, as cert-manager and Kubernetes name them in a Secret.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// How often the files are read again. The kubelet brings a new Secret within about a minute.
const REREAD: Duration = Duration::from_secs(10);

impl Monitoring {
    /// Serves `/metrics` over TLS, to those only who may read it, until the returned future is dropped.
    ///
    /// A request needs the token of a user of the cluster, or of a service account, whom a role lets `get` the path
    /// `/metrics` (`nonResourceURLs`). The API server decides that: the client must be allowed to create
    /// `tokenreviews` and `subjectaccessreviews`. Its answers are kept for one minute.
    ///
    /// The certificate is in the files `tls.crt` and `tls.key` (PEM) of a directory, which are read again every 10 s.
    /// Without a directory it is made at the start and signed by itself, so that nobody can check it.
    ///
    /// ```no_run
    /// # async fn example(monitoring: okt::Monitoring, client: kube::Client) -> std::io::Result<()> {
    /// let address = ":8443".parse().expect("an address");
    /// let served = monitoring.serve_securely(address, &client, None).await?;
    /// tokio::spawn(served);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the certificate cannot be read, or the address cannot be listened on; a retry helps once that has changed.
    pub async fn serve_securely(
        &self,
        metrics: ListenAddress,
        client: &Client,
        certificate: Option<&Path>,
    ) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        let routes = self
            .metrics_routes()
            // Not for paths that are not there: about these nobody need ask.
            .route_layer(from_fn_with_state(Permission::new(client.clone()), check));
        let (first, files) = match certificate.map(Files::in_directory) {
            None => (own_certificate()?, None),
            Some(files) => {
                let (digest, first) = files.read()?;
                (first, Some((files, digest)))
            }
        };
        let tls = RustlsConfig::from_config(Arc::new(first));
        let listener = bind(metrics, "metrics with TLS").await?;
        let server = server(listener, SCRAPERS)
            .map(|connections| RustlsAcceptor::new(tls.clone()).acceptor(connections))
            .serve(routes.into_make_service_with_connect_info::<SocketAddr>());
        Ok(async move {
            let rereading = async {
                match files {
                    Some((files, digest)) => files.follow(digest, &tls).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // It only ends with an error if the listener is gone.
                ended = server => drop(ended),
                () = rereading => {}
            }
        })
    }
}

/// Returns a certificate for this process, signed by itself.
#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
fn own_certificate() -> io::Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let rcgen::CertifiedKey { cert, signing_key } = made.map_err(io::Error::other)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(io::Error::other)?;
    config(vec![cert.der().clone()], key)
}

/// Without a crypto provider OKT does not compile, and rcgen has no such function: so that there is one error, which
/// `provider` reports.
#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
fn own_certificate() -> io::Result<ServerConfig> {
    Err(io::ErrorKind::Unsupported.into())
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> io::Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The files of a certificate and its key.
#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn in_directory(directory: &Path) -> Self {
        Self {
            certificate: directory.join(CERTIFICATE),
            key: directory.join(KEY),
        }
    }

    /// Reads the files; the digest changes when they do.
    fn read(&self) -> io::Result<([u8; 32], ServerConfig)> {
        let content = |file: &PathBuf| {
            std::fs::read(file).map_err(|error| cannot(file, &error.to_string(), error.kind()))
        };
        let (certificate, key) = (content(&self.certificate)?, content(&self.key)?);
        let digest = Sha256::new()
            .chain_update(certificate.len().to_le_bytes())
            .chain_update(&certificate)
            .chain_update(&key)
            .finalize()
            .into();
        let invalid = |file: &PathBuf, why: &str| cannot(file, why, io::ErrorKind::InvalidData);
        let parsed = CertificateDer::pem_slice_iter(&certificate).collect::<Result<Vec<_>, _>>();
        let chain_of = parsed.map_err(|error| invalid(&self.certificate, &chain(&error)))?;
        if chain_of.is_empty() {
            return Err(invalid(&self.certificate, "there is no certificate in it"));
        }
        let key = PrivateKeyDer::from_pem_slice(&key)
            .map_err(|error| invalid(&self.key, &chain(&error)))?;
        let config = config(chain_of, key)
            .map_err(|error| invalid(&self.certificate, &format!("with its key: {error}")))?;
        Ok((digest, config))
    }

    /// Takes each new certificate; one that cannot be read changes nothing, for example while it is being replaced.
    async fn follow(self, mut known: [u8; 32], tls: &RustlsConfig) {
        let mut logged = None;
        loop {
            sleep(REREAD).await;
            match self.read() {
                Ok((digest, config)) => {
                    logged = None;
                    if digest != known {
                        known = digest;
                        tls.reload_from_config(Arc::new(config));
                        tracing::info!(file = %self.certificate.display(), "took the new certificate");
                    }
                }
                Err(error) => {
                    let text = error.to_string();
                    if logged.as_ref() != Some(&text) {
                        tracing::warn!("{text}; the last one stays");
                        logged = Some(text);
                    }
                }
            }
        }
    }
}

fn cannot(file: &Path, why: &str, kind: io::ErrorKind) -> io::Error {
    let why = format!("cannot use the certificate {}: {why}", file.display());
    io::Error::new(kind, why)
}
