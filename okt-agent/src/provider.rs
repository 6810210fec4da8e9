//! What TLS needs on both sides: the crypto provider, and certificates in PEM.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Returns the crypto provider that the process has installed, or else the one that the features choose: as in kube,
/// `aws-lc-rs` before `ring`.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    if let Some(installed) = CryptoProvider::get_default() {
        return Arc::clone(installed);
    }
    #[cfg(feature = "aws-lc-rs")]
    let chosen = rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    let chosen = rustls::crypto::ring::default_provider();
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let chosen = compile_error!(
        "agents and their clients need a crypto provider of rustls: add the feature `ring` or `aws-lc-rs` (of `okt` in an operator, also with `openssl-tls`)"
    );
    Arc::new(chosen)
}

/// Returns the certificates of a file, at least one.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
        Ok(found) if found.is_empty() => Err("it holds no certificate".to_owned()),
        found => found.map_err(|error| error.to_string()),
    }
}

/// Returns the certificates of a file as authorities.
pub(crate) fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(pem)? {
        store.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(store)
}
