//! The address of a port in the cluster: the port itself, or a local port that is forwarded while the route lives.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use kube::Client;
use tokio::io;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::error::ReachError;
use super::forward::Forwarded;
use super::target::ReachTarget;

/// How long the application may continue to send after the client has stopped sending.
const GRACE: Duration = Duration::from_secs(10);

/// The pause before the next `accept` after an error.
const PAUSE: Duration = Duration::from_millis(50);

/// The address of a port of a Service or a pod; `Display` writes `host:port`.
///
/// Outside the cluster it is a port on the loopback interface, forwarded as long as this value lives: keep the value,
/// and drop it when you are done. Each connection goes to a pod that is ready at that moment.
#[must_use = "dropped, it forwards nothing any more"]
pub struct Route {
    host: String,
    port: u16,
    _forwarding: Option<AbortOnDropHandle<()>>,
}

impl Route {
    pub(super) fn direct(host: String, port: u16) -> Self {
        Self {
            host,
            port,
            _forwarding: None,
        }
    }

    pub(super) async fn forwarded(client: Client, target: ReachTarget) -> Result<Self, ReachError> {
        // Open one connection now, so that a missing target or permission is an error of this call.
        drop(Forwarded::open(&client, &target).await?);
        let unbound = |error: io::Error| ReachError::Refused {
            what: target.what(),
            why: format!("cannot listen on the loopback interface: {error}"),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(unbound)?;
        let address = listener.local_addr().map_err(unbound)?;
        let forwarding = tokio::spawn(forward(listener, client, target));
        Ok(Self {
            host: address.ip().to_string(),
            port: address.port(),
            _forwarding: Some(AbortOnDropHandle::new(forwarding)),
        })
    }

    /// Returns the host name or IP address to connect to.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route({self})")
    }
}

/// Forwards each connection; dropping the future ends all of them.
async fn forward(listener: TcpListener, client: Client, target: ReachTarget) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!("cannot accept a connection to {}: {error}", target.what());
                    // A missing resource (e.g. a file descriptor) may be available again in a moment.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let (client, target) = (client.clone(), target.clone());
        connections.spawn(async move {
            match Forwarded::open(&client, &target).await {
                Err(error) => tracing::warn!("cannot forward a connection: {error}"),
                Ok(there) => {
                    if let Err(error) = carry(stream, there).await {
                        tracing::warn!("{}: {error}", target.what());
                    }
                }
            }
        });
    }
}

/// Copies bytes in both directions until the application has sent everything.
async fn carry(mut here: TcpStream, there: Forwarded) -> io::Result<()> {
    let (mut from_here, mut to_here) = here.split();
    let (mut from_there, mut to_there) = io::split(there);
    let mut down = std::pin::pin!(io::copy(&mut from_there, &mut to_here));
    tokio::select! {
        ended = &mut down => return ended.map(drop),
        ended = io::copy(&mut from_here, &mut to_there) => ended?,
    };
    // The protocol has no way to signal the application that the client sends no more, and the client may be gone.
    match tokio::time::timeout(GRACE, down).await {
        Ok(ended) => ended.map(drop),
        Err(_) => Ok(()),
    }
}
