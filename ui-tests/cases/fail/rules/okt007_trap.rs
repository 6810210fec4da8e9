//! Deletion finds a way out of every state.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoChildren {
    #[entry]
    #[child(Stuck)]
    #[child(End)]
    Start,

    #[trigger(End)]
    Stuck,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circles {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Stopping)]
    Running,

    #[trigger(Running, on_delete)]
    #[child(End)]
    Stopping,

    #[leaf]
    End,
}

fn main() {}
