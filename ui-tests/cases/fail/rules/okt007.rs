//! The wrong examples of the page about OKT007, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    #[entry]
    #[child(Open)]
    Start,

    #[rest]
    #[trigger(Closed, after = "8h")]
    #[child(Renewing)]
    Open,

    #[child(Open)]
    Renewing,

    #[leaf]
    Closed,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    #[entry]
    #[rest]
    #[child(Wiping)]
    #[child(Checking)]
    Used,

    #[child(Used)]
    Checking,

    #[no_transit]
    #[child(Gone)]
    Wiping,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[rest]
    #[child(Stopping)]
    Running,

    #[trigger(Backup, on_delete)]
    #[child(Gone)]
    Stopping,

    #[child(Stopping)]
    Backup,

    #[leaf]
    Gone,
}

fn main() {}
