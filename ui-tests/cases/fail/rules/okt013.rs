//! The wrong examples of the page about OKT013, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[rest]
    #[no_route(Gone, reason = "only a deletion ends a server")]
    #[child(Stopping)]
    Running,

    #[child(Gone)]
    Stopping,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    #[entry]
    #[no_route(Done, reason = "the work comes first")]
    #[child(Waiting)]
    Working,

    #[rest]
    #[child(Done)]
    Waiting,

    #[leaf]
    Done,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Database {
    #[entry]
    #[child(Standby)]
    Start,

    #[rest]
    #[child(Running)]
    Standby,

    #[rest]
    #[no_route(Start, Running, Standby, reason = "a running database stays one")]
    #[no_route(Standby, reason = "it has clients")]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

fn main() {}
