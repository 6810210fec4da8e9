//! A wrong graph that is used all over a program brings its own errors and no others.
use std::future::Future;

use okt_core::{Answer, Dispatch, Lifecycle, Serves, StateId};
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
    #[child(Restoring)]
    #[child(Tuning)]
    #[child(Stopping)]
    Running,

    #[visit(args = u32, result = String)]
    #[trigger(Faild, on_error)]
    #[trigger(Stopping, on_abort)]
    #[child(Running)]
    Restoring,

    #[visit(args = u32)]
    #[child(Running)]
    Tuning,

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
            2 => life::AfterRunning::Restoring,
            3 => life::AfterRunning::Wait(std::time::Duration::MAX),
            _ => life::AfterRunning::Stopping,
        })
    }

    async fn restoring(&self, _: &u8, args: &u32) -> Result<life::AfterRestoring<String>, String> {
        Ok(match args {
            0 => life::AfterRestoring::Failed,
            1 => life::AfterRestoring::Stopping,
            2 => life::AfterRestoring::Next("some".into()),
            _ => life::AfterRestoring::Running("all".into()),
        })
    }

    async fn tuning(&self, _: &u8, _: &u32) -> Result<life::AfterTuning, String> {
        Ok(life::AfterTuning::Running)
    }

    async fn stopping(&self, _: &u8) -> Result<life::AfterStopping, String> {
        Ok(life::AfterStopping::End)
    }
}

pub fn run(state: Life) -> impl Future<Output = Result<Answer, String>> + Send {
    state.dispatch(&App, &7)
}

pub fn request<Args, S: Serves<Args, Result = String>>(_: Args) -> StateId {
    S::STATE
}

pub fn operate<S: Lifecycle + Dispatch<App, Context = u8>>(state: S) -> &'static str {
    state.name()
}

fn main() {
    let _ = operate(Life::Start);
    let _ = request::<u32, Life>(7);
    let _ = run(Life::from_name(life::conditions::AVAILABLE).unwrap_or(Life::End));
}
