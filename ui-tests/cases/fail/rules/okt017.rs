//! The wrong examples of the page about OKT017, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[trigger(Gone, on_eror(attempts = 3))]
    #[child(Running)]
    Start,

    #[rest(hodl)]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Database {
    #[entry]
    #[trigger(Gone, after = "soon", on_error(attempts = 0))]
    #[child(Running)]
    Start,

    #[rest]
    #[trigger(Start, after = "0s")]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    #[entry]
    #[rest]
    #[child(Filling, Gone)]
    Running,

    #[child(Running)]
    Filling,

    #[leaf]
    Gone,
}

fn main() {}
