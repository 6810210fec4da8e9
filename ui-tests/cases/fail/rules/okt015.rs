//! The wrong examples of the page about OKT015, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Gone)]
    Running(u16),

    #[leaf]
    Gone { code: i32 },
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task<const LIMIT: usize> {
    #[entry]
    #[child(Done)]
    Work,

    #[leaf]
    Done,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug)]
enum Job {
    #[entry]
    #[child(Done)]
    Work,

    #[leaf]
    Done,
}

#[lifecycle_graph(crate(okt_core))]
struct Database {
    #[rest]
    running: bool,
}

fn main() {}
