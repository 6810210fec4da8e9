//! The wrong examples of the page about OKT014, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[was("Start")]
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
    Start,

    #[rest]
    #[was("Running")]
    #[was("Up")]
    #[child(Gone)]
    Running,

    #[leaf]
    #[was("Up")]
    Gone,
}

fn main() {}
