//! The wrong examples of the page about OKT012, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Standby)]
    Start,

    #[rest]
    #[child(Running)]
    Standby,

    #[rest]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    #[entry]
    #[rest]
    #[child(Used)]
    #[child(Gone)]
    Spare,

    #[rest]
    #[child(Wiping)]
    #[child(Gone)]
    Used,

    #[visit]
    #[child(Spare)]
    Wiping,

    #[leaf]
    Gone,
}

fn main() {}
