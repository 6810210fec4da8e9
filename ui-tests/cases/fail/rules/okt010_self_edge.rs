//! A state does not lead to itself.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[trigger(Start, after = "5m")]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Running)]
    #[child(End)]
    Running,

    #[leaf]
    End,
}

fn main() {}
