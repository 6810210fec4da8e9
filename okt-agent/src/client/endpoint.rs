//! The address of an agent, and how to connect to it.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// The default timeout for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// The address of an agent, and how to connect to it.
///
/// ```
/// use okt_agent::client::Endpoint;
///
/// let beside = Endpoint::unix("/run/orders/agent.sock");
/// let over_there = Endpoint::parse("https://orders.shop.svc:8470")?
///     .ca_file("/run/agents/ca.crt")
///     .token_file("/run/agents/tokens/shop/orders");
/// assert_eq!(beside, "unix:/run/orders/agent.sock".parse()?);
/// assert!(Endpoint::parse("orders-0:8470").is_err());
/// # Ok::<(), okt_agent::client::EndpointError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub(super) address: Address,
    pub(super) token: Option<TokenSource>,
    pub(super) authorities: Option<Authorities>,
    pub(super) server_name: Option<String>,
    /// The client's certificate and its key.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
    pub(super) timeout: Duration,
}

/// The address.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Address {
    /// The prefix of every URL, without a trailing slash.
    Url(String),
    /// The path of a socket.
    Unix(PathBuf),
}

/// The certificates that verify the agent, instead of the machine's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Authorities {
    Pem(String),
    File(PathBuf),
}

/// The source of the token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum TokenSource {
    Text(String),
    File(PathBuf),
}

/// An error of an endpoint.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The text is not an address of an agent. A retry does not help.
    #[error("`{address}` is no address of an agent: {why}")]
    Address {
        /// The text.
        address: String,
        /// The cause, and how to fix it.
        why: &'static str,
    },
    /// The endpoint would send a token or skip a verification that is not safe at its address. A retry does not help;
    /// use another endpoint.
    #[error("cannot speak to `{address}`: {why}")]
    Unsafe {
        /// The address.
        address: String,
        /// The cause, and how to fix it.
        why: &'static str,
    },
    /// A file cannot be read or used. A retry helps after it has changed.
    #[error("cannot use {}: {why}", .path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The token has characters that a header cannot carry. A retry does not help.
    #[error("the token has characters that no header may have")]
    Token,
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {why}")]
    Tls {
        /// The cause.
        why: String,
    },
}

impl EndpointError {
    /// Returns whether only another endpoint helps.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Address { .. } | Self::Unsafe { .. } | Self::Token => true,
            Self::File { .. } | Self::Tls { .. } => false,
        }
    }
}

impl Endpoint {
    /// Returns the endpoint of an agent at a URL (`http://host:port` or `https://host:port`, optionally with a path
    /// prefix), or at a socket (`unix:/path`).
    ///
    /// # Errors
    ///
    /// The text is neither. A retry does not help.
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
        let uri: Uri = address.parse().map_err(|_| wrong("it is no URL"))?;
        let schemes = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)];
        if !schemes.contains(&uri.scheme()) {
            return Err(wrong("it begins with http://, https:// or unix:"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(wrong("it names no host"));
        }
        if uri.query().is_some() || address.contains(['@', '#']) {
            return Err(wrong("it must not have a user, a query or a fragment"));
        }
        let scheme = uri.scheme_str().unwrap_or_default();
        let after_scheme = address.get(scheme.len()..).unwrap_or_default();
        let rest = after_scheme.trim_end_matches('/');
        Ok(Self::at(Address::Url(scheme.to_ascii_lowercase() + rest)))
    }

    /// Returns the endpoint of an agent at a Unix socket.
    pub fn unix(path: impl AsRef<Path>) -> Self {
        Self::at(Address::Unix(path.as_ref().to_owned()))
    }

    fn at(address: Address) -> Self {
        Self {
            address,
            token: None,
            authorities: None,
            server_name: None,
            identity: None,
            timeout: TIMEOUT,
        }
    }

    /// Sets the token; see [`token_file`](Self::token_file).
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(TokenSource::Text(token.into()));
        self
    }

    /// Sets the file with the token. The client reads it again when the agent refuses the last token.
    ///
    /// The client sends a token only over `https://`, over a Unix socket, or to a loopback address.
    /// Give each agent its own token, in a file named after the namespace and name of its object: a stolen token then
    /// opens only one agent.
    #[must_use]
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = Some(TokenSource::File(path.into()));
        self
    }

    /// Sets the authority certificates (PEM) that verify the agent, instead of the machine's. They are read when a
    /// client is created.
    #[must_use]
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities = Some(Authorities::File(path.into()));
        self
    }

    /// Sets the authority certificates (PEM) themselves; see [`ca_file`](Self::ca_file). The certificate that an agent
    /// signed itself is its own authority.
    #[must_use]
    pub fn ca_pem(mut self, certificates: impl Into<String>) -> Self {
        self.authorities = Some(Authorities::Pem(certificates.into()));
        self
    }

    /// Sets the name that the agent's certificate must have, instead of the host of the address.
    /// If the host comes from the spec of an object, the user who writes the spec could enter their own host with a
    /// valid certificate.
    /// A name made of the namespace and name of the object can be proved by its agent only.
    ///
    /// ```
    /// use okt_agent::client::Endpoint;
    ///
    /// let endpoint = Endpoint::parse("https://10.0.0.7:8470")?.server_name("orders.shop");
    /// # Ok::<(), okt_agent::client::EndpointError>(())
    /// ```
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets the client's certificate (its chain) and key, both as PEM files. They are read when a client is created.
    #[must_use]
    pub fn identity_files(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Sets the timeout for an answer, in addition to the time that the agent was asked to wait. The default is 10 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// A connection over any transport.
pub(crate) trait EndpointStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> EndpointStream for S {}

impl Endpoint {
    /// Refuses to send a token where others can read it, and to skip a verification that was asked for.
    pub(super) fn check(&self) -> Result<(), EndpointError> {
        let refuse = |why| {
            Err(EndpointError::Unsafe {
                address: self.to_string(),
                why,
            })
        };
        if self.is_tls() {
            return Ok(());
        }
        if self.authorities.is_some() || self.server_name.is_some() || self.identity.is_some() {
            return refuse("certificates and names are proved over https:// only");
        }
        if self.token.is_some() && !self.is_local() {
            return refuse(
                "a token is sent only over https://, over a Unix socket, or to a loopback address such as 127.0.0.1",
            );
        }
        Ok(())
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(&self.address, Address::Url(url) if url.starts_with("https:"))
    }

    /// Returns whether requests stay on this machine, independent of name resolution.
    fn is_local(&self) -> bool {
        let url = match &self.address {
            Address::Unix(_) => return true,
            Address::Url(url) => url,
        };
        let uri = url.parse::<Uri>().unwrap_or_default();
        let host = host_of(&uri).parse::<IpAddr>();
        host.is_ok_and(|ip| ip.is_loopback())
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Opens a raw connection, without TLS.
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn EndpointStream>> {
        Ok(match &self.address {
            Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Address::Url(url) => {
                let uri = url.parse::<Uri>().map_err(io::Error::other)?;
                let address = (host_of(&uri), uri.port_u16().unwrap_or(80));
                Box::new(TcpStream::connect(address).await?)
            }
        })
    }
}

/// Returns the host of a URL, an IPv6 address without its brackets.
fn host_of(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.trim_matches(['[', ']'])
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

/// Formats the endpoint without its token.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &format_args!("{self}"))
            .field("authorities", &self.authorities)
            .field("server_name", &self.server_name)
            .field("identity", &self.identity)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
