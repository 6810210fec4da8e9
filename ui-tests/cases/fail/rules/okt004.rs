//! The wrong examples of the page about OKT004, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Gone)]
    Running,

    #[child(Running)]
    Repairing,

    #[leaf]
    Gone,
}

fn main() {}
