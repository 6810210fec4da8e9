//! A wrong graph that is used all over a program brings its own errors and no others.
use std::future::Future;

use okt_core::{Answer, Dispatch, Lifecycle};
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    #[entry]
    #[trigger(Failed, after = "soon")]
    #[child(Runing)]
    Start,

    #[rest]
    #[condition(Available)]
    #[child(Stopping)]
    Running,

    #[child(End)]
    Stopping,

    #[rest(idel)]
    #[child(Stopping)]
    Failed,

    #[leaf(idle)]
    #[leaf]
    End,
}

pub struct App;

impl LifeHandler for App {
    type Context = u8;
    type Error = String;

    async fn start(&self, _: &u8) -> Result<life::AfterStart, String> {
        Ok(life::AfterStart::Running)
    }

    async fn running(&self, cx: &u8) -> Result<life::AfterRunning, String> {
        Ok(match cx {
            0 => life::AfterRunning::Stay,
            1 => life::AfterRunning::Next,
            2 => life::AfterRunning::Wait(std::time::Duration::MAX),
            _ => life::AfterRunning::Stopping,
        })
    }

    async fn stopping(&self, _: &u8) -> Result<life::AfterStopping, String> {
        Ok(life::AfterStopping::End)
    }
}

pub fn run(state: Life) -> impl Future<Output = Result<Answer, String>> + Send {
    state.dispatch(&App, &7)
}

pub fn operate<S: Lifecycle + Dispatch<App, Context = u8>>(state: S) -> &'static str {
    state.name()
}

fn main() {
    let _ = operate(Life::Start);
    let _ = run(Life::from_name(life::conditions::AVAILABLE).unwrap_or(Life::End));
}
