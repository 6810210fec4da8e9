//! One target, one edge; once each as trigger and child needs a cause.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BothByName {
    #[entry]
    #[trigger(End)]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Twice {
    #[entry]
    #[trigger(Failed)]
    #[trigger(Failed, on_delete)]
    #[child(End)]
    #[child(End)]
    Start,

    #[child(End)]
    Failed,

    #[leaf]
    End,
}

fn main() {}
