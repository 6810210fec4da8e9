//! A method of another shape, a future that is not `Send`, a context that is not `Sync`.
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
    type Context = std::cell::Cell<u8>;
    type Error = ();

    async fn start(&self, _: &Self::Context) -> Result<life::AfterRunning, ()> {
        Ok(life::AfterRunning::Stay)
    }

    async fn running(&self, _: &Self::Context) -> Result<life::AfterRunning, ()> {
        let kept = std::rc::Rc::new(0);
        std::future::ready(()).await;
        drop(kept);
        Ok(life::AfterRunning::Stay)
    }
}

fn main() {}
