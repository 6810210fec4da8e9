//! The wrong examples of the page about OKT020, from which this file is written.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    #[entry]
    #[child(Running)]
    Wait,

    #[rest]
    #[child(Gone)]
    Running,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proxy {
    #[entry]
    #[child(HTTPReady)]
    HttpReady,

    #[rest]
    #[child(Gone)]
    HTTPReady,

    #[leaf]
    Gone,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serveur {
    #[entry]
    #[child(Arrêté)]
    Lancement,

    #[leaf]
    Arrêté,
}

fn main() {}
