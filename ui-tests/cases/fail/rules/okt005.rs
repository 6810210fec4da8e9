//! The wrong examples of the page about OKT005, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Broken)]
    #[child(Gone)]
    Running,

    #[rest]
    Broken,

    #[leaf]
    Gone,
}

fn main() {}
