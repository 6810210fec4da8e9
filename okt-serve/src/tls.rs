//! Certificates of servers: from files that may be replaced, or made for this process.

mod authority;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use okt_wire::provider::provider;
use okt_wire::texts::chain;
pub use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

pub use self::authority::{PemPair, authority, signed};

/// The files of a certificate, as cert-manager and Kubernetes name them in a Secret.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// How often the files are read again. The kubelet brings a new Secret within about a minute.
const REREAD: Duration = Duration::from_secs(10);

/// Returns a certificate for this process, signed by itself.
///
/// # Errors
///
/// If none can be made; a retry does not help.
#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
pub fn own_certificate() -> io::Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let rcgen::CertifiedKey { cert, signing_key } = made.map_err(io::Error::other)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(io::Error::other)?;
    config(vec![cert.der().clone()], key)
}

/// Without a crypto provider OKT does not compile, and rcgen has no such function: so that there is one error, which
/// `provider` reports.
///
/// # Errors
///
/// Always.
#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
pub fn own_certificate() -> io::Result<ServerConfig> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the configuration of a server with this certificate, for HTTP/1.1.
///
/// # Errors
///
/// If the key is not that of the certificate; a retry does not help.
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

/// Returns the configuration of a server with a certificate and its key as PEM.
///
/// # Errors
///
/// Why the certificate or the key (`true`) cannot be used; a retry does not help.
pub fn config_of_pem(certificate: &[u8], key: &[u8]) -> Result<ServerConfig, (bool, String)> {
    let parsed = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let chain_of = parsed.map_err(|error| (false, chain(&error)))?;
    if chain_of.is_empty() {
        return Err((false, "there is no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| (true, chain(&error)))?;
    config(chain_of, key).map_err(|error| (false, format!("with its key: {error}")))
}

/// The files of a certificate and its key.
#[derive(Clone)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl CertificateFiles {
    /// The files `tls.crt` and `tls.key` of a directory.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            certificate: directory.join(CERTIFICATE),
            key: directory.join(KEY),
        }
    }

    /// Reads the files; the digest changes when they do.
    ///
    /// # Errors
    ///
    /// If they cannot be read; a retry helps once they can.
    pub fn read(&self) -> io::Result<([u8; 32], ServerConfig)> {
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
        let config = config_of_pem(&certificate, &key).map_err(|(is_key, why)| {
            let file = if is_key { &self.key } else { &self.certificate };
            cannot(file, &why, io::ErrorKind::InvalidData)
        })?;
        Ok((digest, config))
    }

    /// Takes each new certificate; one that cannot be read changes nothing, for example while it is being replaced.
    pub async fn follow(self, mut known: [u8; 32], tls: &RustlsConfig) {
        let mut logged = String::new();
        loop {
            sleep(REREAD).await;
            let taken = self.read().map(|(digest, config)| {
                if digest != known {
                    known = digest;
                    tls.reload_from_config(Arc::new(config));
                    tracing::info!(file = %self.certificate.display(), "took the new certificate");
                }
            });
            let taken = taken.map_err(|error| format!("{error}; the last one stays"));
            warn_once(&mut logged, taken);
        }
    }
}

/// Logs what goes wrong, once as long as it is the same.
pub fn warn_once(logged: &mut String, outcome: Result<(), String>) {
    match outcome {
        Ok(()) => logged.clear(),
        Err(why) if why == *logged => {}
        Err(why) => {
            tracing::warn!("{why}");
            *logged = why;
        }
    }
}

fn cannot(file: &Path, why: &str, kind: io::ErrorKind) -> io::Error {
    let why = format!("cannot use the certificate {}: {why}", file.display());
    io::Error::new(kind, why)
}
