//! The wrong examples of the page about OKT010, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[trigger(Start, after = "5m")]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Running)]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

fn main() {}
