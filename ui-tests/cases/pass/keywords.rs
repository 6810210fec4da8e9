//! States whose methods are keywords, and names that are raw.
use okt_core::{Dispatch, Lifecycle};
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Async {
    #[entry]
    #[child(r#Loop)]
    Type,

    #[rest]
    #[child(Await)]
    Loop,

    #[child(r#Yield)]
    Await,

    #[leaf]
    Yield,
}

struct App;

impl AsyncHandler for App {
    type Context = ();
    type Error = ();

    async fn r#type(&self, (): &()) -> Result<r#async::AfterType, ()> {
        Ok(r#async::AfterType::Loop)
    }

    async fn r#loop(&self, (): &()) -> Result<r#async::AfterLoop, ()> {
        Ok(r#async::AfterLoop::Stay)
    }

    async fn r#await(&self, (): &()) -> Result<r#async::AfterAwait, ()> {
        Ok(r#async::AfterAwait::Next)
    }

    async fn r#yield(&self, (): &()) -> Result<(), ()> {
        Ok(())
    }
}

fn main() {
    fn handled<H>(_: &H) -> &'static str
    where
        Async: Dispatch<H>,
    {
        Async::Yield.name()
    }
    assert_eq!(handled(&App), "Yield");
    assert_eq!(Async::from_name("Loop"), Some(Async::Loop));
}
