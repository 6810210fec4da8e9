//! Every state is reached from the entry.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(End)]
    Start,

    #[child(End)]
    Lost,

    #[leaf]
    End,
}

fn main() {}
