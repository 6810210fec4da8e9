//! Every state that is not idle has a method.
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

impl LifeHandler for App {
    type Context = ();
    type Error = ();

    async fn start(&self, _: &()) -> Result<life::AfterStart, ()> {
        Ok(life::AfterStart::Next)
    }
}

fn main() {}
