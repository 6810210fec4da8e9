//! The wrong examples of the page about OKT002, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[child(Running)]
    Start,

    #[rest]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Database {
    #[entry]
    #[child(Running)]
    Create,

    #[entry]
    #[child(Running)]
    Restore,

    #[rest]
    #[child(Restore)]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    #[entry]
    #[entry]
    #[child(Done)]
    Work,

    #[leaf]
    Done,
}

fn main() {}
