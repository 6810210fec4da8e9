//! Types of a request that do not exist.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[rest]
    #[child(Asking)]
    #[child(End)]
    Running,

    #[visit(args = Agrs, result = Fuond)]
    #[child(Running)]
    Asking,

    #[leaf(idle)]
    End,
}

fn main() {}
