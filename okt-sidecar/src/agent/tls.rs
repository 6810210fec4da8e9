//! The certificate of an agent: from files, read again when they change.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate and its key.
pub(super) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Current>,
}

struct Current {
    digest: [u8; 32],
    acceptor: TlsAcceptor,
}

/// A certificate cannot be used; a retry helps once somebody has mended the files.
#[derive(Debug, thiserror::Error)]
#[error("read the certificate {} and its key {}: {why}", .certificate.display(), .key.display())]
pub struct TlsError {
    certificate: PathBuf,
    key: PathBuf,
    why: String,
}

impl Tls {
    /// Reads the files.
    pub(super) fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        match read(&certificate, &key, None) {
            Ok(Some(current)) => Ok(Self {
                certificate,
                key,
                current: RwLock::new(current),
            }),
            Ok(None) => Err(TlsError {
                certificate,
                key,
                why: "they are empty".to_owned(),
            }),
            Err(why) => Err(TlsError {
                certificate,
                key,
                why,
            }),
        }
    }

    /// Reads the files again, where they have changed; the certificate stays as it is where that fails.
    ///
    /// # Errors
    ///
    /// The files do not fit together, such as between the writing of the one and the other; later they may.
    pub(super) fn refresh(&self) -> Result<(), TlsError> {
        let digest = (self.current.read())
            .unwrap_or_else(PoisonError::into_inner)
            .digest;
        match read(&self.certificate, &self.key, Some(digest)) {
            Ok(None) => Ok(()),
            Ok(Some(new)) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
                tracing::info!(certificate = %self.certificate.display(), "took the new certificate");
                Ok(())
            }
            Err(why) => Err(TlsError {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                why,
            }),
        }
    }

    /// What takes the next connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.acceptor.clone()
    }
}

/// Nothing where the files are as they were.
fn read(
    certificate: &PathBuf,
    key: &PathBuf,
    known: Option<[u8; 32]>,
) -> Result<Option<Current>, String> {
    let certificate = std::fs::read(certificate).map_err(|error| error.to_string())?;
    let key = std::fs::read(key).map_err(|error| error.to_string())?;
    let digest = Sha256::new()
        .chain_update(certificate.len().to_le_bytes())
        .chain_update(&certificate)
        .chain_update(&key)
        .finalize()
        .into();
    if known == Some(digest) {
        return Ok(None);
    }
    let chain = CertificateDer::pem_slice_iter(&certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("the certificate: {error}"))?;
    if chain.is_empty() {
        return Err("the file holds no certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| format!("the key: {error}"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Ok(Some(Current { digest, acceptor }))
}
