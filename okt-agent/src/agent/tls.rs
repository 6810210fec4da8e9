//! The certificate of an agent, and the authority for client certificates: from files that are read again when they
//! change.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::server::WebPkiClientVerifier;

use crate::provider::{authorities, certificates, provider};

/// The files for TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TlsFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// The authority that must have signed client certificates; `None` asks clients for no certificate.
    pub(super) client_ca: Option<PathBuf>,
}

/// The certificates from the files.
pub(super) struct Tls {
    files: TlsFiles,
    current: RwLock<Current>,
}

struct Current {
    digest: [u8; 32],
    acceptor: TlsAcceptor,
}

/// A certificate cannot be used. A retry helps after the files are fixed.
#[derive(Debug, thiserror::Error)]
#[error("read the certificates of TLS, {files}: {why}")]
pub struct TlsError {
    files: TlsFiles,
    why: String,
}

impl fmt::Display for TlsFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} with the key {}",
            self.certificate.display(),
            self.key.display()
        )?;
        if let Some(client_ca) = &self.client_ca {
            write!(f, " and {} for clients", client_ca.display())?;
        }
        Ok(())
    }
}

impl Tls {
    /// Reads the files.
    pub(super) fn read(files: TlsFiles) -> Result<Self, TlsError> {
        match read(&files, None) {
            Ok(Some(current)) => Ok(Self {
                files,
                current: RwLock::new(current),
            }),
            Ok(None) => Err(TlsError {
                files,
                why: "they are empty".to_owned(),
            }),
            Err(why) => Err(TlsError { files, why }),
        }
    }

    /// Reads the files again if they have changed. If that fails, the certificates stay as they are.
    ///
    /// # Errors
    ///
    /// The files do not fit together, for example while they are being replaced. A retry may help later.
    pub(super) fn refresh(&self) -> Result<(), TlsError> {
        let known = self.current.read().digest;
        let current = read(&self.files, Some(known)).map_err(|why| TlsError {
            files: self.files.clone(),
            why,
        })?;
        if let Some(current) = current {
            *self.current.write() = current;
            tracing::info!(files = %self.files, "took the new certificates");
        }
        Ok(())
    }

    /// Returns whether clients must present a certificate.
    pub(super) fn asks_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Returns the acceptor for the next connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().acceptor.clone()
    }
}

/// Reads the files. Returns `None` if they have not changed.
fn read(files: &TlsFiles, known: Option<[u8; 32]>) -> Result<Option<Current>, String> {
    let content = |file: &PathBuf| {
        std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
    };
    let certificate = content(&files.certificate)?;
    let key = content(&files.key)?;
    let client_ca = files.client_ca.as_ref().map(content).transpose()?;
    let mut digest = Sha256::new();
    for content in [&certificate, &key].into_iter().chain(&client_ca) {
        digest.update(content.len().to_le_bytes());
        digest.update(content);
    }
    let digest = digest.finalize().into();
    if known == Some(digest) {
        return Ok(None);
    }
    let chain = certificates(&certificate).map_err(|why| format!("the certificate: {why}"))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| format!("the key: {error}"))?;
    let provider = provider();
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let clients = match client_ca {
        None => versions.with_no_client_auth(),
        Some(pem) => {
            let wrong = |why: String| format!("that of clients: {why}");
            let roots = Arc::new(authorities(&pem).map_err(wrong)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            versions.with_client_cert_verifier(verifier.map_err(|error| wrong(error.to_string()))?)
        }
    };
    let built = clients.with_single_cert(chain, key);
    let mut config = built.map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Ok(Some(Current { digest, acceptor }))
}
