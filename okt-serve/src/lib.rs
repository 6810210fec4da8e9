//! An HTTP server that nobody who reaches it can hold up: it limits its connections, and the time in which a request comes
//! and an answer is read.
//!
//! | module | content |
//! |---|---|
//! | `connections` | limits the connections |
//! | `tls/authority` | certificates that an authority signs, which several servers share |
//! | `tls` | certificates of servers: from files that may be replaced, or made for this process |
//!
//! ```no_run
//! use axum::Router;
//!
//! # async fn example() -> std::io::Result<()> {
//! let listener = okt_serve::bind(":8080".parse().expect("an address"), "metrics").await?;
//! okt_serve::server(listener, 128).serve(Router::new().into_make_service()).await
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
// A duration from user code must not cause a panic: durations saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod connections;
#[cfg(feature = "tls")]
pub mod tls;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

pub use axum_server::Handle;
use axum_server::Server;
use tokio::net::TcpListener;

pub use self::connections::Connections;

/// How long a connection waits for its next request: longer than any usual interval between scrapes.
const REQUEST: Duration = Duration::from_mins(2);

/// Where to listen: `:8080` for all addresses of the host, or `127.0.0.1:8080`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenAddress {
    /// All addresses of the host, IPv6 and IPv4.
    All(u16),
    /// One address.
    One(SocketAddr),
}

/// A text that is no address to listen on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write `:8080` for all addresses of the host, or one such as `127.0.0.1:8080`")]
pub struct ListenAddressError;

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        match text.strip_prefix(':') {
            Some(port) => port.parse().map(Self::All).map_err(|_| ListenAddressError),
            None => text.parse().map(Self::One).map_err(|_| ListenAddressError),
        }
    }
}

impl ListenAddress {
    /// Listens, at all addresses of the host for IPv4 only where there is no IPv6.
    ///
    /// # Errors
    ///
    /// If the address is in use, or the process may not listen on it; a retry helps once that has changed.
    pub async fn bind(self) -> io::Result<TcpListener> {
        match self {
            Self::One(address) => TcpListener::bind(address).await,
            // Where there is no IPv6.
            Self::All(port) => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
                }
                bound => bound,
            },
        }
    }
}

/// Returns a server of HTTP/1.1 with limits: of its connections, and of the time in which a request comes and an answer is
/// read.
pub fn server(listener: TcpListener, limit: usize) -> Server<SocketAddr, Connections> {
    let mut server = Server::from_listener(listener).http1_only();
    server.http_builder().http1().header_read_timeout(REQUEST);
    server.acceptor(Connections::new(limit))
}

/// Listens, and logs where, and what is served there.
///
/// # Errors
///
/// If the address cannot be listened on: it is in use, or the process may not; a retry helps once that has changed. The
/// error names the address.
pub async fn bind(address: ListenAddress, what: &str) -> io::Result<TcpListener> {
    let listener = address.bind().await.map_err(|error| {
        let at = match address {
            ListenAddress::All(port) => format!(":{port}"),
            ListenAddress::One(address) => address.to_string(),
        };
        io::Error::new(error.kind(), format!("cannot listen on {at}: {error}"))
    })?;
    tracing::info!(address = %listener.local_addr()?, "serves {what}");
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_may_leave_out_the_host() {
        assert_eq!(":8080".parse(), Ok(ListenAddress::All(8080)));
        let one = "127.0.0.1:80".parse().expect("an address");
        assert_eq!("127.0.0.1:80".parse(), Ok(ListenAddress::One(one)));
        assert!("[::1]:80".parse::<ListenAddress>().is_ok());
        for wrong in ["", ":", "8080", ":65536", "localhost:80", "127.0.0.1"] {
            assert_eq!(
                wrong.parse::<ListenAddress>(),
                Err(ListenAddressError),
                "{wrong}"
            );
        }
    }
}
