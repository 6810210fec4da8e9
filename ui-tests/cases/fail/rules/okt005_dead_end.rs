//! A state without an edge out is a leaf or a mistake.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(Running)]
    #[child(End)]
    Start,

    Running,

    #[leaf]
    End,
}

fn main() {}
