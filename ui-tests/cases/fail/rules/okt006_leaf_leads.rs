//! No edge leads out of a leaf.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(End)]
    Start,

    #[leaf]
    #[trigger(Start)]
    End,
}

fn main() {}
