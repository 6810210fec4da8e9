//! An answer without the result of a visit, one of another type, and an answer that names a visit with arguments.
use okt_macros::lifecycle_graph;

struct Restore;
struct Restored;

/// A life.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[rest]
    #[child(Restoring)]
    #[child(End)]
    Running,

    #[visit(args = Restore, result = Restored)]
    #[trigger(Running, on_error)]
    #[child(Running)]
    Restoring,

    #[leaf(idle)]
    End,
}

struct Given;

struct App;

impl LifeHandler for App {
    type Context = Given;
    type Error = ();

    async fn running(&self, _: &Given) -> Result<life::AfterRunning, ()> {
        Ok(life::AfterRunning::Restoring)
    }

    async fn restoring(
        &self,
        _: &Given,
        _: &Restore,
    ) -> Result<life::AfterRestoring<Restored>, ()> {
        match 1 {
            1 => Ok(life::AfterRestoring::Running),
            2 => Ok(life::AfterRestoring::Running(())),
            _ => Ok(life::AfterRestoring::Next(Restored)),
        }
    }
}

struct Half;

impl LifeHandler for Half {
    type Context = Given;
    type Error = ();

    async fn running(&self, _: &Given) -> Result<life::AfterRunning, ()> {
        Ok(life::AfterRunning::Stay)
    }

    async fn restoring(&self, _: &Given) -> Result<life::AfterRestoring, ()> {
        Ok(life::AfterRestoring::Next(Restored))
    }
}

impl okt_core::Visited<Restore> for Given {
    fn args(&self) -> &Restore {
        &Restore
    }

    fn finish(&self, (): &()) {}
}

fn main() {}
