//! An attribute of states on something else, one that does not exist, and the attribute of the graph on no enum.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[entry]
enum Life {
    #[entry]
    #[child = "End"]
    #[chlid(End)]
    Start,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
fn function() {}

fn main() {}
