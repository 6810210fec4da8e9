//! A link to the API server that can be cut: nothing passes then, and neither side notices.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A link, with a kubeconfig that uses it.
pub(crate) struct Link {
    open: watch::Sender<bool>,
    directory: TempDir,
}

impl Link {
    /// Creates a link to the server of a kubeconfig.
    pub(crate) async fn to(kubeconfig: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = Kubeconfig::read_from(kubeconfig).unwrap();
        let cluster = config.clusters[0].cluster.as_mut().unwrap();
        let server = cluster.server.replace(format!("https://{address}"));
        let server: SocketAddr = server
            .and_then(|url| url.strip_prefix("https://")?.parse().ok())
            .expect("the address of a server on loopback");
        let directory = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&config).unwrap();
        std::fs::write(directory.path().join("kubeconfig"), text).unwrap();
        let (open, opened) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(join(client, server, opened.clone()));
            }
        });
        Self { open, directory }
    }

    /// Returns the kubeconfig that uses the link.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Holds back everything that is sent from now on.
    pub(crate) fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Lets everything pass that was held back.
    pub(crate) fn mend(&self) {
        self.open.send_replace(true);
    }
}

async fn join(client: TcpStream, server: SocketAddr, open: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(
        pump(from_client, to_server, open.clone()),
        pump(from_server, to_client, open),
    );
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut open: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let sent = async {
            open.wait_for(|open| *open).await.ok()?;
            to.write_all(&buffer[..read]).await.ok()
        };
        if sent.await.is_none() {
            break;
        }
    }
    // However it ends, the other side has to notice once the link is open.
    let _ = open.wait_for(|open| *open).await;
    let _ = to.shutdown().await;
}
