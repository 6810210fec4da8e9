//! Many agents, spoken to from one process: one client for each, what they have in common shared.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Client;
use super::endpoint::{Address, Endpoint, EndpointError};
use super::transport::Transport;

/// How long a client is kept that nobody asks for.
const IDLE: Duration = Duration::from_mins(10);

/// How long certificates are used before they are read again.
const FRESH: Duration = Duration::from_mins(10);

/// The clients of many agents; each is made when it is first asked for, and forgotten when it was not for ten minutes.
///
/// Certificates are read again every ten minutes, so that new ones need no restart.
///
/// ```
/// use okt_sidecar::client::{Clients, Endpoint};
///
/// let clients = Clients::default();
/// let client = clients.of(&Endpoint::parse("http://127.0.0.1:8470")?)?;
/// # Ok::<(), okt_sidecar::client::EndpointError>(())
/// ```
#[derive(Debug, Default)]
pub struct Clients(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    clients: HashMap<Endpoint, Entry>,
    transports: HashMap<Trust, (Transport, Instant)>,
    /// With how many clients the unused ones are looked for.
    full: usize,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    made: Instant,
    used: Instant,
}

/// What the certificates of agents are checked against, and with which one the client proves itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Trust {
    NoTls,
    Tls {
        /// None: the machine's.
        ca_file: Option<PathBuf>,
        identity: Option<(PathBuf, PathBuf)>,
    },
}

impl Clients {
    /// The client of an agent.
    ///
    /// # Errors
    ///
    /// The certificates cannot be read, or TLS cannot be set up with them; a retry helps when they have changed.
    /// [`EndpointError::Unsafe`]: only another endpoint helps.
    pub fn of(&self, endpoint: &Endpoint) -> Result<Client, EndpointError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let entry = Entry {
            client: client.clone(),
            made: now,
            used: now,
        };
        kept.clients.insert(endpoint.clone(), entry);
        Ok(client)
    }
}

impl Kept {
    /// All agents over TCP share what the same certificates make possible; a socket has a client of its own.
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

    /// Forgets those that nobody has used; looked for rarely enough to cost nothing.
    fn make_room(&mut self, now: Instant) {
        if self.clients.len() < self.full.max(64) {
            return;
        }
        (self.clients).retain(|_, entry| now.duration_since(entry.used) < IDLE);
        self.full = self.clients.len() * 2;
    }
}

impl Trust {
    fn of(endpoint: &Endpoint) -> Self {
        if endpoint.is_tls() {
            Self::Tls {
                ca_file: endpoint.ca_file.clone(),
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
