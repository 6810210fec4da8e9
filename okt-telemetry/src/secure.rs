//! Serves the metrics over TLS, to those whom the API server permits.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use kube::Client;
use okt_serve::tls::{CertificateFiles, RustlsAcceptor, RustlsConfig, own_certificate};
use okt_serve::{ListenAddress, bind, server};

use super::monitoring::Monitoring;
use super::permission::{Permission, check};
use super::serve::SCRAPERS;

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
        let (first, files) = match certificate.map(CertificateFiles::in_directory) {
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
