//! The options of the attribute itself.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core), modul = "life")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    #[entry]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core), pass, pass = 1, module = "my life", handler = Handler)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    #[entry]
    #[child(End)]
    Start,

    #[leaf]
    End,
}

fn main() {}
