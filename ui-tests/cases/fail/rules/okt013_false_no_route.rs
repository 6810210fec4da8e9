//! A `no_route` is a claim, and it is checked.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[no_route(End, reason = "it is passing")]
    #[child(Running)]
    Start,

    #[rest]
    #[no_route(End, Start, reason = "nobody leaves")]
    #[no_route(Running, reason = "it is here")]
    #[child(End)]
    Running,

    #[leaf]
    End,
}

fn main() {}
