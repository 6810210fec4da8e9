//! The wrong examples of the page about OKT019, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core), pass)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BrokerPass {
    #[entry]
    #[child(Apply)]
    Check,

    #[trigger(Check)]
    #[child(End)]
    Apply,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core), pass)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyPass {
    #[entry]
    #[child(Apply)]
    Check,

    #[rest]
    #[trigger(Failed, after = "5m", on_error(attempts = 3))]
    #[child(End)]
    Apply,

    #[child(End)]
    Failed,

    #[leaf]
    End,
}

fn main() {}
