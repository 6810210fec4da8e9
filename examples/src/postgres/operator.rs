//! The operator of PostgreSQL servers; it only has to know where their agents are.

use std::env;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use kube::{Client, ResourceExt};
use okt::sidecar::{Agents, Delegated, Endpoint};

use super::life::Postgres;
use super::server::Server;

/// The environment variable that names the directory of all servers.
pub const HOME_VARIABLE: &str = "POSTGRES_HOME";

/// Creates the operator from the environment: servers below `POSTGRES_HOME`.
///
/// # Errors
///
/// None: the operator waits for agents that do not exist yet.
#[expect(
    clippy::unused_async,
    reason = "an operator that needs more than its environment connects here"
)]
pub async fn connect(_: Client) -> io::Result<Delegated<Agents<Postgres>>> {
    let home = PathBuf::from(env::var_os(HOME_VARIABLE).unwrap_or_else(|| "postgres-home".into()));
    let agents = Agents::at(move |postgres: &Postgres| {
        let namespace = postgres.namespace().unwrap_or_default();
        let server = Server::new(&home, &namespace, &postgres.name_any());
        Ok(Endpoint::unix(server.agent()))
    });
    // An observation is a call on this machine, cheap enough for every second.
    Ok(Delegated(agents.observe_every(|_| Duration::from_secs(1))))
}
