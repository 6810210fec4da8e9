//! A wire name is one state.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Former {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[was("Start")]
    #[was("Up")]
    #[child(End)]
    Running,

    #[leaf]
    #[was("Up")]
    End,
}

fn main() {}
