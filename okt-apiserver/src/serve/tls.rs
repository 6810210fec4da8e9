//! A certificate for the API on the loopback interface, made anew for each server.

use std::fmt;
use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What the server shows to its clients.
#[derive(Clone)]
pub(super) struct ServingTls {
    acceptor: TlsAcceptor,
    /// The certificate in PEM, in base64: it is its own authority.
    authority: String,
}

impl ServingTls {
    pub(super) fn new() -> io::Result<Self> {
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
        let made = generate_simple_self_signed(names.map(str::to_owned));
        let CertifiedKey { cert, signing_key } = made.map_err(io::Error::other)?;
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into());
        let mut config = config.map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: Arc::new(config).into(),
            authority: BASE64_STANDARD.encode(cert.pem()),
        })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(stream).await
    }
}

impl fmt::Debug for ServingTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingTls").finish_non_exhaustive()
    }
}
