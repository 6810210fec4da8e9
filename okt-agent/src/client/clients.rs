//! The clients of many agents in one process: one client for each, with shared transports.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Client;
use super::endpoint::{Address, Authorities, Endpoint, EndpointError};
use super::transport::Transport;

/// How long an unused client is kept.
const IDLE: Duration = Duration::from_mins(10);

/// How long certificates are used before they are read again.
const FRESH: Duration = Duration::from_mins(10);

/// The clients of many agents. Each is created on first use, and dropped after ten minutes without use.
///
/// The certificates are read again every ten minutes, so new ones need no restart.
///
/// ```
/// use okt_agent::client::{Clients, Endpoint};
///
/// let clients = Clients::default();
/// let client = clients.of(&Endpoint::parse("http://127.0.0.1:8470")?)?;
/// # Ok::<(), okt_agent::client::EndpointError>(())
/// ```
#[derive(Debug, Default)]
pub struct Clients(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    clients: HashMap<Endpoint, ClientEntry>,
    transports: HashMap<Trust, (Transport, Instant)>,
    /// The number of clients from which on unused ones are dropped.
    full: usize,
}

#[derive(Debug)]
struct ClientEntry {
    client: Client,
    made: Instant,
    used: Instant,
}

/// The certificates that the agents are verified with, and the client's own certificate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Trust {
    NoTls,
    Tls {
        /// `None` uses those of the machine.
        authorities: Option<Authorities>,
        identity: Option<(PathBuf, PathBuf)>,
    },
}

impl Clients {
    /// Returns the client of an agent.
    ///
    /// # Errors
    ///
    /// The certificates cannot be read, or TLS cannot be set up with them. A retry helps after they have changed.
    /// [`EndpointError::Unsafe`]: a retry does not help; use another endpoint.
    pub fn of(&self, endpoint: &Endpoint) -> Result<Client, EndpointError> {
        let mut kept = self.0.lock();
        let now = Instant::now();
        let trust = Trust::of(endpoint);
        if let Some(entry) = kept.clients.get_mut(endpoint)
            && !trust.is_stale(now, entry.made)
        {
            entry.used = now;
            return Ok(entry.client.clone());
        }
        let client = Client::with(endpoint, kept.transport(endpoint, trust, now)?);
        kept.make_room(now);
        let entry = ClientEntry {
            client: client.clone(),
            made: now,
            used: now,
        };
        kept.clients.insert(endpoint.clone(), entry);
        Ok(client)
    }
}

impl Kept {
    /// Returns a transport. Agents over TCP share one for each set of certificates; a socket has its own.
    fn transport(
        &mut self,
        endpoint: &Endpoint,
        trust: Trust,
        now: Instant,
    ) -> Result<Transport, EndpointError> {
        endpoint.check()?;
        if matches!(endpoint.address, Address::Unix(_)) {
            return Transport::of(endpoint);
        }
        if let Some((transport, made)) = self.transports.get(&trust)
            && !trust.is_stale(now, *made)
        {
            return transport.towards(endpoint);
        }
        let transport = Transport::shared(endpoint)?;
        let towards = transport.towards(endpoint);
        self.transports.insert(trust, (transport, now));
        towards
    }

    /// Drops unused clients, and transports that nobody would use again; rarely enough to be cheap.
    fn make_room(&mut self, now: Instant) {
        if self.clients.len() < self.full.max(64) {
            return;
        }
        let is_used = |entry: &ClientEntry| now.duration_since(entry.used) < IDLE;
        self.clients.retain(|_, entry| is_used(entry));
        self.full = self.clients.len() * 2;
        self.transports
            .retain(|trust, (_, made)| !trust.is_stale(now, *made));
    }
}

impl Trust {
    fn of(endpoint: &Endpoint) -> Self {
        if endpoint.is_tls() {
            Self::Tls {
                authorities: endpoint.authorities.clone(),
                identity: endpoint.identity.clone(),
            }
        } else {
            Self::NoTls
        }
    }

    fn is_stale(&self, now: Instant, made: Instant) -> bool {
        *self != Self::NoTls && now.duration_since(made) >= FRESH
    }
}
