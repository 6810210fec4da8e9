//! The wrong examples of the page about OKT018, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[rest]
    #[child(Backup)]
    #[child(Gone)]
    Running,

    #[visit]
    #[rest]
    #[child(Running)]
    Backup,

    #[leaf]
    #[rest]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    #[entry]
    #[child(Done)]
    Work,

    #[leaf(idle)]
    #[leaf]
    Done,
}

fn main() {}
