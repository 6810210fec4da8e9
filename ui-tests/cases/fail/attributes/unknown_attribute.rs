//! A misspelt attribute is rustc's own error.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[chlid(End)]
    Start,

    #[leaf]
    End,
}

fn main() {}
