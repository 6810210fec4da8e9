//! The wrong examples of the page about OKT009, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Running)]
    Start,

    #[child(Gone)]
    #[child(Checking)]
    Running,

    #[child(Running)]
    Checking,

    #[leaf]
    Gone,
}

fn main() {}
