//! A pass with attributes that only a lifecycle has.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(pass, crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lives {
    #[entry]
    #[trigger(End, after = "5m")]
    #[trigger(Tell, on_error(attempts = 3))]
    #[was("Look")]
    #[child(Apply)]
    Check,

    #[rest]
    #[no_route(Check, reason = "a pass does not go back")]
    #[child(End)]
    Apply,

    #[trigger(End, on_change)]
    #[child(Apply)]
    Tell,

    #[leaf]
    End,
}

fn main() {}
