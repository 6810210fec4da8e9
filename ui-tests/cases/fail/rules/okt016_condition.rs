//! A condition is one the API server takes and nobody else writes.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[condition(Ready)]
    #[condition("in service")]
    #[child(Running)]
    Start,

    #[rest]
    #[condition(Available, reason = "accepting connections")]
    #[condition(Available, status = "False")]
    #[condition(Tired, reason = "")]
    #[child(End)]
    Running,

    #[leaf]
    #[condition(TIRED)]
    End,
}

fn main() {}
