//! The graph of docs/lifecycles.md.
use okt::lifecycle_graph;

/// The lifecycle of a database server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseState {
    /// The data directory is created and the server started.
    #[entry]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Start,

    /// Clients can connect.
    #[rest]
    #[condition(Available, reason = "AcceptingConnections")]
    #[trigger(Start)]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Servicing)]
    #[child(Stopping)]
    Running,

    /// A backup is made while clients are connected.
    #[visit]
    #[condition(Available, reason = "AcceptingConnections")]
    #[trigger(Failed, after = "30m")]
    #[child(Running)]
    Servicing,

    /// The server disconnects its clients and stops.
    #[child(End)]
    Stopping,

    /// The database needs a person.
    #[rest(hold, idle)]
    #[condition(Available, status = "False", reason = "Broken")]
    #[child(Start)]
    #[child(Stopping)]
    Failed,

    /// The server is gone; its volume stays.
    #[leaf(idle)]
    End,
}
