//! Items that cannot be a lifecycle graph.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generic<const N: usize> {
    #[entry]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
struct Struct {
    #[entry]
    start: bool,
}

#[lifecycle_graph(crate(okt_core))]
fn function() {}

fn main() {}
