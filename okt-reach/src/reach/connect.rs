//! Opens connections for HTTP: over TCP or a forwarded port, with TLS or without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use kube::Client;
use okt_wire::provider::provider;
use okt_wire::texts::chain;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::BoxError;

use super::forward::Forwarded;
use super::target::ReachTarget;

/// The timeout of opening a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Connects to the host of a URL.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    /// The client that forwards ports of the cluster; none inside the cluster.
    forwards: Option<Client>,
}

impl Connector {
    pub(super) fn new(forwards: Option<Client>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        Self { tcp, forwards }
    }

    /// Adds TLS for `https` URLs.
    pub(super) fn with_tls(self, tls: ClientConfig) -> HttpsConnector<Self> {
        HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(self)
    }

    /// Returns the forwarding client and the target for a URL whose host is in the cluster.
    fn forwarding(&self, uri: &Uri) -> Option<(Client, ReachTarget)> {
        let client = self.forwards.clone()?;
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Some((client, ReachTarget::named(uri.host()?, port)?))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<ReachStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if let Some((client, target)) = self.forwarding(&uri) {
            return Box::pin(async move {
                let forwarded = Forwarded::open(&client, &target).await?;
                Ok(TokioIo::new(ReachStream::Forwarded(forwarded)))
            });
        }
        let connecting = self.tcp.call(uri);
        Box::pin(async move {
            Ok(TokioIo::new(ReachStream::Tcp(
                connecting.await?.into_inner(),
            )))
        })
    }
}

/// An open connection.
pub(super) enum ReachStream {
    Tcp(TcpStream),
    Forwarded(Forwarded),
}

impl Connection for ReachStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for ReachStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Forwarded(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ReachStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buffer),
            Self::Forwarded(stream) => Pin::new(stream).poll_write(cx, buffer),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Forwarded(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Forwarded(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Trusts the root certificates of the machine; if there are none, trusts nothing and returns why.
pub(super) fn machine_tls() -> (ClientConfig, Option<String>) {
    let nothing = |why: String| {
        let tls = builder().with_root_certificates(RootCertStore::empty());
        (tls.with_no_client_auth(), Some(why))
    };
    match builder().with_native_roots() {
        Ok(tls) => (tls.with_no_client_auth(), None),
        Err(error) => nothing(format!("no certificates of this machine: {error}")),
    }
}

/// Trusts these root certificates (PEM) and no others.
pub(super) fn tls_of(pem: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| chain(&error))?;
        roots.add(certificate).map_err(|error| chain(&error))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(builder()
        .with_root_certificates(roots)
        .with_no_client_auth())
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("a crypto provider has cipher suites of a default version of TLS")
}
