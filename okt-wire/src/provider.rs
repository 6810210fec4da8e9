//! The crypto provider of TLS.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// Returns the crypto provider that the process has installed, or else the one that the features choose: as in kube,
/// `aws-lc-rs` before `ring`.
pub fn provider() -> Arc<CryptoProvider> {
    if let Some(installed) = CryptoProvider::get_default() {
        return Arc::clone(installed);
    }
    #[cfg(feature = "aws-lc-rs")]
    let chosen = rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    let chosen = rustls::crypto::ring::default_provider();
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let chosen = compile_error!(
        "the features `reach`, `secure-metrics` and `webhooks` need a crypto provider of rustls: add the feature `ring` or `aws-lc-rs` of `okt`, also with `openssl-tls`"
    );
    Arc::new(chosen)
}
