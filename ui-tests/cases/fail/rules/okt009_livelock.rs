//! Next does not circle through passing states.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(Running)]
    Start,

    #[child(End)]
    #[child(Servicing)]
    Running,

    #[child(Running)]
    Servicing,

    #[leaf]
    End,
}

fn main() {}
