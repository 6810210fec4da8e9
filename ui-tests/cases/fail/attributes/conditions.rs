//! Conditions that the API server would refuse, that the operator writes itself, or that would be one constant.
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
