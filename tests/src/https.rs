//! HTTPS requests like those of a scraper of metrics.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Sends a GET request with these lines of headers to `localhost`, and trusts this certificate, or any; returns the
/// whole answer, in HTTP/1.0.
///
/// # Errors
///
/// If there is no connection, or the server's certificate is another one.
///
/// # Panics
///
/// If `trusted` is no certificate.
pub async fn https_get(
    address: SocketAddr,
    path: &str,
    headers: &str,
    trusted: Option<&CertificateDer<'static>>,
) -> io::Result<String> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = match trusted {
        Some(trusted) => {
            let mut roots = RootCertStore::empty();
            roots.add(trusted.clone()).expect("a certificate");
            config.with_root_certificates(roots)
        }
        None => config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(default_provider()))),
    };
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let stream = TcpStream::connect(address).await?;
    let mut stream = connector.connect(name, stream).await?;
    let request = format!("GET {path} HTTP/1.0\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await?;
    // Without it a request may stay in the buffers of the client.
    stream.flush().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Trusts any certificate, as `insecure_skip_verify` of Prometheus does.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
