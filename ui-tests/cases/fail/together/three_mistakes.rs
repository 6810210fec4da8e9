//! The three mistakes of the README, told in one build.

use okt_macros::lifecycle_graph;

/// The life of a database server.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseState {
    #[entry]
    #[trigger(Failed, on_eror(attempts = 5))]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Servicing)]
    #[child(Stopping)]
    Running,

    #[visit]
    #[child(Running)]
    Servicing,

    #[child(End)]
    #[child(Waiting)]
    Stopping,

    #[child(Stopping)]
    Waiting,

    #[rest(hold, idle)]
    #[child(End)]
    Failed,

    #[leaf(idle)]
    End,
}

fn main() {}
