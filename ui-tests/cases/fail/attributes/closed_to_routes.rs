//! States that no route leads through.
use okt_macros::lifecycle_graph;

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

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    #[entry]
    #[rest]
    #[child(Failed)]
    #[child(End)]
    Running,

    #[rest(hold)]
    #[child(Running)]
    #[child(ReadOnly)]
    Failed,

    #[rest]
    #[child(Running)]
    #[child(End)]
    ReadOnly,

    #[leaf]
    End,
}

fn main() {}
