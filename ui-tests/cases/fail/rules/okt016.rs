//! The wrong examples of the page about OKT016, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[condition(Ready)]
    #[condition("in service")]
    #[condition(Available, reason = "accepting connections")]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

fn main() {}
