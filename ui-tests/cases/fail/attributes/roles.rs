//! States with two roles, or with one role twice.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Short {
    #[entry]
    #[leaf]
    Start,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Long {
    #[entry]
    #[no_transit]
    #[child(Running)]
    Start,

    #[rest]
    #[visit]
    #[child(End)]
    Running,

    #[leaf]
    #[rest]
    #[leaf]
    End,
}

fn main() {}
