//! An application whose work lasts until it is cancelled, with an agent on a real socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use okt_agent::wire::Sighting;
use okt_agent::{Agent, Bound, Done, Fault, Listen, Offer, ServeError, Task, Work};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An application whose work lasts until it is cancelled.
pub(crate) struct Endless;

impl Work for Endless {
    fn offers(&self) -> Vec<Offer> {
        vec![Offer {
            state: "Servicing".into(),
            repeatable: true,
        }]
    }

    async fn observe(&self) -> Sighting {
        Sighting::in_state("Running")
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        task.print(b"begun\n");
        task.cancelled().await;
        Err(Fault::retry("Cancelled", "it was no longer wanted"))
    }
}

/// An agent on real sockets, with its own directory.
pub(crate) struct Beside {
    pub(crate) directory: TempDir,
    pub(crate) token: PathBuf,
    addresses: Vec<SocketAddr>,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), ServeError>>,
}

/// The token that [`Beside::start`] writes.
pub(crate) const TOKEN: &str = "s3cret";

/// Returns a directory with a token in it, and an agent that uses both.
pub(crate) fn prepare() -> (TempDir, PathBuf, Agent<Endless>) {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let agent = Agent::new(Endless, directory.path().join("journal"))
        .observe_every(Duration::from_millis(50))
        .stop_limit(Duration::ZERO)
        .token_file(&token);
    (directory, token, agent)
}

/// Returns a free port of loopback.
pub(crate) fn loopback() -> Listen {
    Listen::tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}

impl Beside {
    /// Starts an agent with these settings and listeners.
    pub(crate) async fn start(
        set: impl FnOnce(Agent<Endless>) -> Agent<Endless>,
        listens: impl FnOnce(&TempDir) -> Vec<Listen>,
    ) -> Self {
        let (directory, token, agent) = prepare();
        let listens = listens(&directory);
        let bound: Bound<Endless> = set(agent).bind(listens).await.unwrap();
        let addresses = bound.addresses().collect();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        Self {
            directory,
            token,
            addresses,
            stop,
            serving: tokio::spawn(bound.run(stopped)),
        }
    }

    /// Starts an agent on loopback.
    pub(crate) async fn on_loopback() -> Self {
        Self::start(|agent| agent, |_| vec![loopback()]).await
    }

    /// The first TCP address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Stops the agent, which must succeed.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
        self.directory
    }
}
