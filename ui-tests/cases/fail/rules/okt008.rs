//! The wrong examples of the page about OKT008, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[rest]
    #[trigger(Stopping)]
    #[child(Stopping)]
    Running,

    #[child(Gone)]
    Stopping,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Database {
    #[entry]
    #[trigger(Failed)]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Running)]
    #[child(Running)]
    Start,

    #[rest]
    #[trigger(Start)]
    #[trigger(Start)]
    #[child(Gone)]
    Running,

    #[child(Gone)]
    Failed,

    #[leaf]
    Gone,
}

fn main() {}
