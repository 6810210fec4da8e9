//! Of two triggers with one kind of cause the second is never taken.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[trigger(Failed, after = "5m")]
    #[trigger(End, after = "10m")]
    #[child(Failed)]
    Start,

    #[child(End)]
    Failed,

    #[leaf]
    End,
}

fn main() {}
