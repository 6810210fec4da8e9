//! States and enums from whose names no method, module or wire name can be made.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crate {
    #[entry]
    #[child(End)]
    Super,

    #[leaf]
    #[was("no name")]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum r#loop {
    #[entry]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

fn main() {}
