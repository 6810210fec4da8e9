//! Where an agent is, and how it is spoken to.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// How long an answer is waited for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Where an agent is, and how it is spoken to.
///
/// ```
/// use okt_sidecar::client::Endpoint;
///
/// let beside = Endpoint::unix("/run/orders/agent.sock");
/// let over_there = Endpoint::parse("https://orders-0.orders:8470")?
///     .token_file("/var/run/secrets/agents/token")
///     .ca_file("/var/run/secrets/agents/ca.crt");
/// assert_eq!(beside, "unix:/run/orders/agent.sock".parse()?);
/// assert!(Endpoint::parse("orders-0:8470").is_err());
/// # Ok::<(), okt_sidecar::client::EndpointError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub(super) address: Address,
    pub(super) token: Option<TokenSource>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) timeout: Duration,
}

/// Where requests go.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Address {
    /// The beginning of every URL, without the last slash.
    Url(String),
    /// The path of a socket.
    Unix(PathBuf),
}

/// Where the token comes from.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum TokenSource {
    Text(String),
    File(PathBuf),
}

/// What an endpoint names cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// It is no address of an agent; only another one helps.
    #[error("`{address}` is no address of an agent: {why}")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it, and what would be right.
        why: &'static str,
    },
    /// A file cannot be read, or holds nothing that can be used; a retry helps when it has changed.
    #[error("cannot use {}: {why}", .path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The token cannot stand in a header; only another one helps.
    #[error("the token has characters that no header may have")]
    Token,
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {why}")]
    Tls {
        /// Why.
        why: String,
    },
}

impl EndpointError {
    /// Whether only another endpoint helps.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Address { .. } | Self::Token => true,
            Self::File { .. } | Self::Tls { .. } => false,
        }
    }
}

impl Endpoint {
    /// An agent at a URL (`http://host:port`, `https://host:port`, a path before the protocol's own is allowed),
    /// or behind a socket (`unix:/path`).
    ///
    /// # Errors
    ///
    /// The text is neither; only another one helps.
    pub fn parse(address: &str) -> Result<Self, EndpointError> {
        let wrong = |why| EndpointError::Address {
            address: address.to_owned(),
            why,
        };
        if let Some(path) = address.strip_prefix("unix:") {
            return if path.starts_with('/') {
                Ok(Self::unix(path))
            } else {
                Err(wrong("a socket is named by its whole path, unix:/..."))
            };
        }
        let uri: Uri = (address.parse()).map_err(|_| wrong("it is no URL"))?;
        let schemes = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)];
        if !schemes.contains(&uri.scheme()) {
            return Err(wrong("it begins with http://, https:// or unix:"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(wrong("it names no host"));
        }
        if uri.query().is_some() || address.contains(['@', '#']) {
            return Err(wrong("a user, a query or a fragment has no place in it"));
        }
        Ok(Self::at(Address::Url(
            address.trim_end_matches('/').to_owned(),
        )))
    }

    /// An agent behind a Unix socket.
    pub fn unix(path: impl AsRef<Path>) -> Self {
        Self::at(Address::Unix(path.as_ref().to_owned()))
    }

    fn at(address: Address) -> Self {
        Self {
            address,
            token: None,
            ca_file: None,
            timeout: TIMEOUT,
        }
    }

    /// The token that the agent asks for.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(TokenSource::Text(token.into()));
        self
    }

    /// The file that holds the token; read again when the agent refuses what it held.
    #[must_use]
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = Some(TokenSource::File(path.into()));
        self
    }

    /// The certificates (PEM) that the agent's is checked against, instead of the machine's; read when a client
    /// is made.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// How long an answer is waited for, beyond what the agent was asked to wait; 10 s by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// A connection, whatever it goes over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Endpoint {
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// A connection on which anything can be sent; none where that needs TLS.
    pub(crate) async fn connect(&self) -> Option<std::io::Result<Box<dyn Stream>>> {
        Some(match &self.address {
            Address::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(error),
            },
            Address::Url(url) => {
                let rest = url.strip_prefix("http://")?;
                let host = rest.split('/').next().unwrap_or_default();
                let host = if host.contains("]:") || host.matches(':').count() == 1 {
                    host.to_owned()
                } else {
                    format!("{host}:80")
                };
                match TcpStream::connect(host).await {
                    Ok(stream) => Ok(Box::new(stream)),
                    Err(error) => Err(error),
                }
            }
        })
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(address: &str) -> Result<Self, EndpointError> {
        Self::parse(address)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Url(url) => f.write_str(url),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The token is not shown.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &format_args!("{self}"))
            .field("ca_file", &self.ca_file)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
