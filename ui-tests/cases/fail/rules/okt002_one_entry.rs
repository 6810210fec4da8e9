//! One entry, neither none nor two.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum None {
    #[child(End)]
    Start,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Two {
    #[entry]
    #[child(Other)]
    Start,

    #[entry]
    #[child(End)]
    Other,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Twice {
    #[entry]
    #[entry]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

fn main() {}
