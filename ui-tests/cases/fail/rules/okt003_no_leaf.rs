//! A life ends in a leaf.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Start)]
    Running,
}

fn main() {}
