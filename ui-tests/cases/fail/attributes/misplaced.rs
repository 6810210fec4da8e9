//! An attribute of states on something else.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[entry]
enum Life {
    #[entry]
    #[child = "End"]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

fn main() {}
