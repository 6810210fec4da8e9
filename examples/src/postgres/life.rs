//! The lifecycle of a PostgreSQL server: its states and its resource.

use std::collections::BTreeMap;

use kube::CustomResource;
use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lifecycle of a PostgreSQL server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostgresState {
    /// The data directory is made.
    #[entry]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Starting)]
    Start,

    /// The server starts; after a crash it replays its write-ahead log.
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Reconfiguring)]
    Starting,

    /// The settings of the spec are checked and reloaded.
    ///
    /// Settings that PostgreSQL rejects stop it here until they change; the previous settings stay in force.
    #[condition(Available, reason = "Serving")]
    #[trigger(Restarting)]
    #[trigger(Starting)]
    #[child(Running)]
    Reconfiguring,

    /// PostgreSQL says that a setting needs a restart.
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Restarting,

    /// Connections are served.
    #[rest(idle)]
    #[condition(Available, reason = "Serving")]
    #[trigger(Reconfiguring, on_change)]
    #[trigger(Starting)]
    #[child(Servicing)]
    #[child(Restoring)]
    #[child(Stopping)]
    Running,

    /// A base backup is made and verified while connections are served.
    #[visit]
    #[condition(Available, reason = "Serving")]
    #[trigger(Failed, on_error(attempts = 5))]
    #[trigger(Starting)]
    #[child(Running)]
    Servicing,

    /// The newest backup and every commit since replace the data.
    #[visit]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Starting)]
    Restoring,

    /// Connections are ended, and then the server.
    #[child(Hibernated)]
    #[child(End)]
    Stopping,

    /// The data is kept, and nothing runs.
    #[rest(idle)]
    #[child(Starting)]
    #[child(End)]
    Hibernated,

    /// A person has to check the server and then send a new request.
    #[rest(hold, idle)]
    #[condition(Available, status = "False", reason = "Broken")]
    #[child(Starting)]
    #[child(Stopping)]
    Failed,

    /// The data is gone; the backups stay.
    #[leaf]
    End,
}

/// The desired state of a PostgreSQL server.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Postgres",
    plural = "postgreses",
    namespaced,
    status = "Status<PostgresState>"
)]
#[serde(rename_all = "camelCase")]
pub struct PostgresSpec {
    /// The desired lifecycle state of the server, and a visit.
    #[serde(default)]
    pub lifecycle: Desired<PostgresState>,
    /// Settings of `postgresql.conf`, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}
