//! A handler has a method for every state that is not idle, names declared successors only, and stays at rest only.
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
        Ok(life::AfterStart::End)
    }

    async fn running(&self, _: &()) -> Result<life::AfterRunning, ()> {
        Ok(life::AfterRunning::Start)
    }
}

fn stays() -> life::AfterStart {
    life::AfterStart::Stay
}

struct Half;

impl LifeHandler for Half {
    type Context = ();
    type Error = ();

    async fn start(&self, _: &()) -> Result<life::AfterStart, ()> {
        Ok(life::AfterStart::Next)
    }
}

fn main() {}
