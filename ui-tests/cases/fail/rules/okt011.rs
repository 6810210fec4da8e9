//! The wrong examples of the page about OKT011, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[trigger(Slow, after = "5m")]
    #[trigger(Failed, after = "10m")]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Gone)]
    Running,

    #[child(Running)]
    Slow,

    #[child(Gone)]
    Failed,

    #[leaf]
    Gone,
}

fn main() {}
