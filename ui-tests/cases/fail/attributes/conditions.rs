//! Conditions that are declared twice, that would be one constant, or whose reason is empty.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[condition(Available)]
    #[condition(Available, status = "False")]
    #[condition(Tired, reason = "")]
    #[child(End)]
    Start,

    #[leaf]
    #[condition(TIRED)]
    End,
}

fn main() {}
