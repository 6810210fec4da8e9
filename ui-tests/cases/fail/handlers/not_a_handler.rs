//! A type that should handle the states and does not.
use okt_macros::lifecycle_graph;

/// A life.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[child(End)]
    Running,

    #[leaf(idle)]
    End,
}

struct App;

fn operate<H>()
where
    Life: okt_core::Dispatch<H>,
{
}

fn handle<H: LifeHandler>() {}

fn main() {
    operate::<App>();
    handle::<App>();
}
