//! The life of a PostgreSQL server: its states, its resource.

use std::collections::BTreeMap;

use kube::CustomResource;
use okt_runtime::{Desired, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The life of a PostgreSQL server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostgresState {
    /// The data directory is made.
    #[entry]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Starting)]
    Start,

    /// The server starts; after a crash it plays back what it had written ahead.
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Reconfiguring)]
    Starting,

    /// The settings of the spec are judged and read anew.
    ///
    /// Settings that PostgreSQL does not take stop it here until they are changed; those before stay in force.
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

    /// The newest backup takes the place of the data, with every commit since.
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

    /// Somebody has to look, and then ask again.
    #[rest(hold, idle)]
    #[condition(Available, status = "False", reason = "Broken")]
    #[child(Starting)]
    #[child(Stopping)]
    Failed,

    /// The data is gone; the backups stay.
    #[leaf]
    End,
}

/// What a user asks for.
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
    /// Where the server should be in its life, and what should be done to it once.
    #[serde(default)]
    pub lifecycle: Desired<PostgresState>,
    /// Settings of `postgresql.conf`, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}
