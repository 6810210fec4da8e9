//! From every resting state a route leads to every state a spec may wish for.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nowhere {
    #[entry]
    #[child(Warm)]
    Start,

    #[rest]
    #[child(Running)]
    Warm,

    #[rest]
    #[child(End)]
    Running,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnlyThrough {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Wiping)]
    Running,

    #[no_transit]
    #[child(Spare)]
    Wiping,

    #[rest]
    #[child(Running)]
    #[child(End)]
    Spare,

    #[leaf]
    End,
}

fn main() {}
