//! Visits whose work takes arguments: one gives a result, one gives none.
#![deny(warnings, missing_docs)]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use okt_core::{Answer, Cause, Dispatch, Lifecycle, Mark, Serves, Visited};
use okt_macros::lifecycle_graph;

/// The arguments of a restore.
pub struct Restore {
    /// The number of the backup.
    pub backup: u32,
}

/// What a restore finds out.
#[derive(Debug, PartialEq, Eq)]
pub struct Restored {
    /// The number of rows.
    pub rows: u32,
}

/// The life of a database.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// It is being made.
    #[entry]
    #[child(Running)]
    Start,

    /// Clients may connect.
    #[rest]
    #[child(Restoring)]
    #[child(Tuning)]
    #[child(End)]
    Running,

    /// A backup is read.
    #[visit(args = self::Restore, result = Restored)]
    #[trigger(Failed, on_error(attempts = 3))]
    #[trigger(Running, on_abort)]
    #[child(Running)]
    Restoring,

    /// Settings are changed.
    #[visit(args = BTreeMap<String, u32>)]
    #[child(Running)]
    Tuning,

    /// Somebody has to look.
    #[rest(hold, idle)]
    #[child(Restoring)]
    #[child(Tuning)]
    #[child(Running)]
    Failed,

    /// The database is gone.
    #[leaf(idle)]
    End,
}

/// What a handler is given: the arguments of either request, and a place for the result.
pub struct Given {
    restore: Restore,
    settings: BTreeMap<String, u32>,
    found: Mutex<Option<u32>>,
}

impl Visited<Restore, Restored> for Given {
    fn args(&self) -> &Restore {
        &self.restore
    }

    fn finish(&self, result: &Restored) {
        *self.found.lock().expect("nothing panics") = Some(result.rows);
    }
}

impl Visited<BTreeMap<String, u32>> for Given {
    fn args(&self) -> &BTreeMap<String, u32> {
        &self.settings
    }

    fn finish(&self, (): &()) {
        unreachable!("the work has no result");
    }
}

/// The operator.
pub struct Databases;

impl DatabaseHandler for Databases {
    type Context = Given;
    type Error = String;

    async fn start(&self, _: &Given) -> Result<database::AfterStart, String> {
        Ok(database::AfterStart::Running)
    }

    async fn running(&self, _: &Given) -> Result<database::AfterRunning, String> {
        Ok(database::AfterRunning::Stay)
    }

    async fn restoring(
        &self,
        _: &Given,
        args: &Restore,
    ) -> Result<database::AfterRestoring<Restored>, String> {
        use database::AfterRestoring::{Failed, Next, Running, Wait};

        let rows = args.backup * 100;
        Ok(match args.backup {
            0 => return Err("no backup".into()),
            1 => Running(Restored { rows }),
            2 => Next(Restored { rows }),
            3 => Failed,
            _ => Wait(Duration::from_secs(1)),
        })
    }

    async fn tuning(
        &self,
        _: &Given,
        args: &BTreeMap<String, u32>,
    ) -> Result<database::AfterTuning, String> {
        assert_eq!(args["work_mem"], 4);
        Ok(database::AfterTuning::Running)
    }
}

/// Runs the handler of a state; returns its answer, and the result.
fn run(state: Database, backup: u32) -> (Result<Answer, String>, Option<u32>) {
    let given = Given {
        restore: Restore { backup },
        settings: BTreeMap::from([("work_mem".into(), 4)]),
        found: Mutex::default(),
    };
    let answer = now(state.dispatch(&Databases, &given));
    (answer, given.found.into_inner().expect("nothing panics"))
}

fn now<T>(work: impl Future<Output = T> + Send) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("this work waits for nothing"),
    }
}

/// A graph in a function takes types of the function.
fn local() {
    struct Args;
    struct Found;

    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Local {
        #[entry]
        #[rest]
        #[child(Asking)]
        #[child(End)]
        Start,

        #[visit(args = Args, result = Vec<Found>)]
        #[child(Start)]
        Asking,

        #[leaf(idle)]
        End,
    }

    fn rows<S: Serves<Args, Result = Vec<Found>>>() -> okt_core::StateId {
        S::STATE
    }
    assert_eq!(rows::<Local>(), Local::Asking.id());
    let answer = local::AfterAsking::Start(vec![Found]);
    assert_eq!(format!("{answer:?}"), "Start");
    let _: local::AfterAsking<Vec<Found>> = answer;
}

fn main() {
    use Database::{Failed, Restoring, Running, Start, Tuning};

    let to = |state: Database| Ok(Answer::To(state.id()));
    assert_eq!(run(Start, 1), (to(Running), None));
    assert_eq!(run(Restoring, 0), (Err("no backup".into()), None));
    assert_eq!(run(Restoring, 1), (to(Running), Some(100)));
    assert_eq!(run(Restoring, 2), (Ok(Answer::Next), Some(200)));
    assert_eq!(run(Restoring, 3), (to(Failed), None));
    let wait = Answer::Wait(Duration::from_secs(1));
    assert_eq!(run(Restoring, 4), (Ok(wait), None));
    assert_eq!(run(Tuning, 1), (to(Running), None));

    let graph = Database::GRAPH;
    let restoring = &graph.states[Restoring.id().index()];
    assert!(restoring.is(Mark::Visit) && restoring.is(Mark::Args));
    let aborted = |cause: Cause| cause == Cause::OnAbort;
    assert!(restoring.triggers.iter().any(|it| aborted(it.cause)));
    // The edge to a visit is in the graph, although no answer names it.
    assert!(
        graph.states[Running.id().index()]
            .children
            .contains(&Restoring.id())
    );
    assert_eq!(<Database as Serves<Restore>>::STATE, Restoring.id());
    assert_eq!(
        <Database as Serves<BTreeMap<String, u32>>>::STATE,
        Tuning.id()
    );
    local();
}
