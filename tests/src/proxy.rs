//! A proxy that forwards connections, or swallows what comes from both sides, without a word.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A proxy that forwards connections, or swallows what comes from both sides, without a word: as a node that is gone does.
pub struct Proxy {
    address: SocketAddr,
    swallows: Arc<AtomicBool>,
}

impl Proxy {
    /// Starts a proxy of a server, on a free port.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let swallows = Arc::new(AtomicBool::new(false));
        let address = listener.local_addr().expect("an address");
        let is_silent = Arc::clone(&swallows);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let is_silent = Arc::clone(&is_silent);
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(server).await else {
                        return;
                    };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    let there = pipe(from_client, to_server, &is_silent);
                    let back = pipe(from_server, to_client, &is_silent);
                    // A connection that was swallowed once stays silent, and open.
                    tokio::join!(there, back);
                });
            }
        });
        Self { address, swallows }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes it swallow, or forward new connections again.
    pub fn swallow(&self, swallows: bool) {
        self.swallows.store(swallows, Ordering::SeqCst);
    }
}

/// Passes bytes on until the proxy swallows; from then on they are read and dropped.
async fn pipe(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    swallows: &AtomicBool,
) {
    let (mut buffer, mut is_silent) = (vec![0; 64 << 10], false);
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        is_silent |= swallows.load(Ordering::SeqCst);
        if !is_silent && to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
