//! The wrong examples of the page about OKT001, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[trigger(Failed, on_error)]
    #[child(Runing)]
    Start,

    #[rest]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

fn main() {}
