//! Serves the API over HTTP on the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

#[cfg(feature = "tls")]
use self::tls::ServingTls;
use crate::endpoint::Endpoint;

#[cfg(feature = "tls")]
mod tls;

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
        Served::start(self.clone(), port, ServedTransport::Plain).await
    }

    /// Serves the API over TLS on this port of 127.0.0.1, with a certificate that the kubeconfig of the result trusts; 0 is
    /// a free port.
    ///
    /// # Errors
    /// The port cannot be opened, or no certificate can be made.
    #[cfg(feature = "tls")]
    pub async fn serve_tls_on(&self, port: u16) -> io::Result<Served> {
        let tls = ServingTls::new()?;
        Served::start(self.clone(), port, ServedTransport::Tls(tls)).await
    }
}

/// What connections begin with.
#[derive(Clone, Debug)]
enum ServedTransport {
    Plain,
    #[cfg(feature = "tls")]
    Tls(ServingTls),
}

impl ServedTransport {
    /// Returns the lines of a kubeconfig that name the server.
    fn cluster(&self, address: SocketAddr) -> String {
        match self {
            Self::Plain => format!("server: http://{address}"),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => {
                let authority = tls.authority();
                format!("server: https://{address}\n    certificate-authority-data: {authority}")
            }
        }
    }
}

/// The API on a socket; it is served until this handle is dropped or shut down.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    transport: ServedTransport,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start(endpoint: Endpoint, port: u16, transport: ServedTransport) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(accept(listener, endpoint, transport.clone()));
        Ok(Self {
            address,
            transport,
            serving,
        })
    }

    /// Returns the address on which the API listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> String {
        let scheme = match self.transport {
            ServedTransport::Plain => "http",
            #[cfg(feature = "tls")]
            ServedTransport::Tls(_) => "https",
        };
        format!("{scheme}://{}", self.address)
    }

    /// Returns a kubeconfig (YAML) for this API. Its token is any text, since kubectl asks for a name and a password where there
    /// is none.
    ///
    /// # Example
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let served = okt_apiserver::ApiServer::new().serve().await?;
    /// let kubeconfig = kube::config::Kubeconfig::from_yaml(&served.kubeconfig())?;
    /// let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    /// assert_eq!(config.cluster_url.port_u16(), Some(served.address().port()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn kubeconfig(&self) -> String {
        let name = "okt-apiserver";
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: {name}\n\
             clusters:\n\
             - name: {name}\n  cluster:\n    {}\n\
             contexts:\n\
             - name: {name}\n  context:\n    cluster: {name}\n    user: {name}\n    namespace: default\n\
             users:\n\
             - name: {name}\n  user:\n    token: anyone\n",
            self.transport.cluster(self.address)
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

async fn accept(listener: TcpListener, endpoint: Endpoint, transport: ServedTransport) {
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
        let (endpoint, transport) = (endpoint.clone(), transport.clone());
        connections.spawn(async move {
            match transport {
                ServedTransport::Plain => serve_connection(stream, endpoint).await,
                #[cfg(feature = "tls")]
                ServedTransport::Tls(tls) => match tls.accept(stream).await {
                    Ok(stream) => serve_connection(stream, endpoint).await,
                    Err(error) => tracing::debug!(%error, "a handshake failed"),
                },
            }
        });
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    endpoint: Endpoint,
) {
    let service = TowerToHyperService::new(endpoint);
    let served = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(error, "a connection ended badly");
    }
}
