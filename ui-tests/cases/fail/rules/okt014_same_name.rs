//! A wire name is one state.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Former {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[was("Start")]
    #[was("Up")]
    #[child(End)]
    Running,

    #[leaf]
    #[was("Up")]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(serde::Serialize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renamed {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[serde(rename = "Start")]
    #[child(End)]
    Running,

    #[leaf]
    #[serde(rename(serialize = "Over", deserialize = "Gone"))]
    End,
}

fn main() {}
