//! Serves the API over HTTP on the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::api::endpoint::Endpoint;

/// The pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(50);

impl Endpoint {
    /// Serves the API over HTTP on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub async fn serve(&self) -> io::Result<Served> {
        self.serve_on(0).await
    }

    /// Serves the API over HTTP on this port of 127.0.0.1; 0 is a free one.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub async fn serve_on(&self, port: u16) -> io::Result<Served> {
        Served::start(self.clone(), port).await
    }
}

/// The API on a socket; it is served until this handle is dropped or shut down.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start(endpoint: Endpoint, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(accept(listener, endpoint));
        Ok(Self { address, serving })
    }

    /// Returns the address on which the API listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a kubeconfig (YAML) for this API, without credentials.
    ///
    /// # Example
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let served = okt_testing::ApiServer::new().serve().await?;
    /// let kubeconfig = kube::config::Kubeconfig::from_yaml(&served.kubeconfig())?;
    /// let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    /// assert_eq!(config.cluster_url.port_u16(), Some(served.address().port()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn kubeconfig(&self) -> String {
        let name = "okt-testing";
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: {name}\n\
             clusters:\n\
             - name: {name}\n  cluster:\n    server: http://{}\n\
             contexts:\n\
             - name: {name}\n  context:\n    cluster: {name}\n    user: {name}\n    namespace: default\n\
             users:\n\
             - name: {name}\n  user: {{}}\n",
            self.address
        )
    }

    /// Writes the kubeconfig to a file (for `KUBECONFIG` or `kubectl --kubeconfig`) and creates
    /// missing folders.
    ///
    /// # Errors
    /// The file cannot be written; a retry does not help.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(path, self.kubeconfig()));
        written.map_err(|error| {
            let what = format!("cannot write the kubeconfig {}: {error}", path.display());
            io::Error::new(error.kind(), what)
        })
    }

    /// Stops serving and waits until all connections are closed; the store stays.
    pub async fn shutdown(mut self) {
        self.serving.abort();
        // The task ends by the abort above, so its error is expected.
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(listener: TcpListener, endpoint: Endpoint) {
    // The set is dropped with this task and aborts all connections.
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection");
                    // A shortage (e.g. of file descriptors) may be over in a moment.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let service = TowerToHyperService::new(endpoint.clone());
        connections.spawn(async move {
            let served = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(error, "a connection ended badly");
            }
        });
    }
}
