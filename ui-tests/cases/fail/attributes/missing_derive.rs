//! A state enum is a small, comparable value.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    #[entry]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

fn main() {}
