//! A target that is no variant, in each attribute that names states.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[trigger(Stoped, after = "1h")]
    #[child(Runing)]
    Start,

    #[rest]
    #[no_route(Strat, reason = "it is started once")]
    #[child(Stopped)]
    Running,

    #[leaf]
    Stopped,
}

fn main() {}
