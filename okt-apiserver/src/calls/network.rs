//! Sends requests over TLS, as the server sends them to webhooks that are no Services of the test.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use kube::client::Body;

/// Sends a request, to another host and port than those of its address if some are given.
///
/// It takes real time: the clock of a paused test stands still meanwhile, because the request has a thread of its own.
///
/// # Errors
/// There is no answer: why, in the words of a Go client.
#[cfg(feature = "tls")]
pub(super) async fn send(
    request: Request<Body>,
    to: Option<(&str, u16)>,
    authorities: &[u8],
    limit: Duration,
) -> Result<Response<Bytes>, String> {
    let to = to.map(|(host, port)| (host.to_owned(), port));
    let authorities = authorities.to_vec();
    let sent = tokio::task::spawn_blocking(move || tls::send(request, to, &authorities, limit));
    sent.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Without TLS there is no such server.
///
/// # Errors
/// Always.
#[cfg(not(feature = "tls"))]
#[expect(clippy::unused_async, reason = "the other one waits for an answer")]
pub(super) async fn send(
    _: Request<Body>,
    _: Option<(&str, u16)>,
    _: &[u8],
    _: Duration,
) -> Result<Response<Bytes>, String> {
    Err(
        "okt-apiserver calls webhooks over the network with its feature `tls`, and answers for a Service of the test with `ApiServer::set_service`"
            .to_owned(),
    )
}

#[cfg(feature = "tls")]
mod tls {
    use std::error::Error;
    use std::io;
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use http::uri::Authority;
    use http::{Request, Response, Uri};
    use http_body_util::BodyExt;
    use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    use kube::client::Body;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{CertificateError, ClientConfig, RootCertStore};

    use crate::calls::LATE;
    use crate::calls::trust::AuthorityTrust;

    pub(super) fn send(
        mut request: Request<Body>,
        to: Option<(String, u16)>,
        authorities: &[u8],
        limit: Duration,
    ) -> Result<Response<Bytes>, String> {
        let host = request.uri().host().unwrap_or_default();
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        if let Some((host, port)) = to {
            *request.uri_mut() = at(request.uri(), &host, port).map_err(|it| it.to_string())?;
        }
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trusting(authorities)?)
            .https_only()
            .with_server_name_resolver(FixedServerNameResolver::new(name))
            .enable_http1()
            .build();
        let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let sent = async {
            let response = client.request(request).await.map_err(|error| why(&error))?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| why(&error))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        // The time is that of this runtime only if the future is made within it.
        runtime.block_on(async {
            let sent = tokio::time::timeout(limit, sent).await;
            sent.unwrap_or_else(|_| Err(LATE.to_owned()))
        })
    }

    /// Returns the same address at another host.
    fn at(uri: &Uri, host: &str, port: u16) -> Result<Uri, http::Error> {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let mut parts = uri.clone().into_parts();
        parts.authority = Some(Authority::try_from(format!("{host}:{port}"))?);
        Ok(Uri::from_parts(parts)?)
    }

    fn trusting(authorities: &[u8]) -> Result<ClientConfig, String> {
        let authorities: Vec<_> = CertificateDer::pem_slice_iter(authorities)
            .flatten()
            .collect();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        if authorities.is_empty() {
            // Nobody is trusted.
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?;
            let nobody = RootCertStore::empty();
            return Ok(config.with_root_certificates(nobody).with_no_client_auth());
        }
        let trust = AuthorityTrust::in_authorities(authorities, Arc::clone(&provider))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = config.dangerous();
        let config = config.with_custom_certificate_verifier(Arc::new(trust));
        Ok(config.with_no_client_auth())
    }

    /// Returns the error that a Go client has in this case.
    fn why(error: &(dyn Error + 'static)) -> String {
        let mut source = Some(error);
        let mut last = error.to_string();
        while let Some(error) = source {
            last = error.to_string();
            if let Some(error) = error.downcast_ref::<io::Error>()
                && error.kind() == io::ErrorKind::ConnectionRefused
            {
                return "connect: connection refused".to_owned();
            }
            if let Some(rustls::Error::InvalidCertificate(wrong)) = error.downcast_ref() {
                return format!("tls: failed to verify certificate: x509: {}", x509(wrong));
            }
            // The source of such an error is not the error in it, but that one's source.
            let inner = error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref);
            source = match inner {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        last
    }

    fn x509(wrong: &CertificateError) -> String {
        match wrong {
            CertificateError::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "certificate has expired or is not yet valid".to_owned()
            }
            other => other.to_string(),
        }
    }
}
