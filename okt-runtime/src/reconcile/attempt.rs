//! Work outside the reconciliation: one task per object. Panics are contained, the task can be cancelled, and its
//! result is kept until a reconciliation takes it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Resource;
use okt_core::{Answer, Dispatch, Lifecycle, Mark, reasons};
use okt_reach::Failure;
use okt_telemetry::event::{self, Occurrence, Outcome};
use okt_telemetry::traces;
use okt_wire::object::LifecycleObject;
use okt_wire::texts::{panic_text, seconds};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::author::application::{Application, StateOf};
use crate::author::context::Action;
use crate::reconcile::permits::Permit;
use crate::reconcile::shared::Shared;
use crate::reconcile::tasks::Running;
use crate::resources::name_of;
use crate::test_hooks::{Attempt, AttemptFault, TestHooks};

/// How long cancelled work may take to clean up before it is dropped.
const GRACE: Duration = Duration::from_secs(30);

/// Starts the work of a state; the task before it has ended. `ended` is called when this one ends.
pub(crate) fn start<A: Application>(
    shared: &Arc<Shared<A>>,
    state: StateOf<A>,
    action: Action<A::Resource>,
    permit: Permit,
    dropped: CancellationToken,
    ended: impl FnOnce() + Send + 'static,
) -> Running {
    let application = Arc::clone(&shared.application);
    let end = Arc::new(Mutex::new(None));
    let cancellation = action.cancellation.clone();
    let limit = application.attempt_limit(state);
    let slot = Arc::clone(&end);
    let is_elsewhere = Arc::clone(&action.is_elsewhere);
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    shared.tasks.note(name_of(action.object()), over.clone());
    let sharing = Arc::clone(shared);
    let span = span(state, &action);
    let counted = shared.telemetry.running(state.name());
    let work = async move {
        let attempt = attempt(&*application, &sharing.test_hooks, state, &action, limit);
        let answer = tokio::select! {
            answer = attempt => answer,
            () = dropped.cancelled() => None,
        };
        if answer.is_none() && action.cancellation.is_cancelled() {
            sharing.telemetry.record::<A::Resource>(
                action.object().meta(),
                Occurrence::AttemptEnded {
                    attempt: event::Attempt::new(action.id(), action.attempt(), state.name()),
                    outcome: Outcome::Cancelled,
                    took: action.attempt_age(),
                },
            );
        }
        *slot.lock() = answer;
        drop((guard, permit, counted));
        ended();
    };
    shared.tasks.spawn(work.instrument(span));
    Running {
        end,
        cancellation,
        over,
        is_elsewhere,
    }
}

fn span<K: LifecycleObject>(state: K::State, action: &Action<K>) -> tracing::Span {
    let meta = action.object().meta();
    let uid = meta.uid.as_deref().unwrap_or_default();
    // At this level, so that errors have it whatever is logged.
    let span = tracing::error_span!(
        "action",
        kind = %K::kind(&()),
        namespace = meta.namespace,
        name = meta.name,
        uid,
        state = state.name(),
        id = action.id(),
        attempt = action.attempt(),
    );
    traces::join(&span, uid, traces::generation(action.object()));
    span
}

/// Makes one attempt; returns none if it was cancelled.
async fn attempt<A: Application>(
    application: &A,
    test_hooks: &TestHooks,
    state: StateOf<A>,
    action: &Action<A::Resource>,
    limit: Duration,
) -> Option<Result<Answer, Failure>> {
    if action.cancellation.is_cancelled() {
        return None;
    }
    let fault = test_hooks.fault(|| Attempt {
        id: action.id().to_owned(),
        number: action.attempt(),
        state: state.name(),
        resumed: action.resumed(),
        continues: action.continues,
    });
    // The conversion of its error to a failure is the application's code too.
    let work = || async {
        action.begin_steps();
        if takes_args(state) {
            action.args.as_ref().map_err(Clone::clone)?;
        }
        let answer = state.dispatch(application, action).await;
        let answer = answer.map_err(Into::into)?;
        action.recording.check_result()?;
        Ok(answer)
    };
    let work = AssertUnwindSafe(spoiled(fault, work)).catch_unwind();
    let overdue = async {
        action.cancellation.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let answer = tokio::select! {
        biased;
        done = work => match done {
            Ok(done) => done,
            Err(panic) => Err(Failure::retry(reasons::PANICKED, panic_text(&*panic))),
        },
        () = overdue => return None,
        () = tokio::time::sleep(limit) => Err(Failure::retry(
            reasons::TIMED_OUT,
            format!("the work of {} took longer than {}", state.name(), seconds(limit)),
        )),
    };
    (!action.cancellation.is_cancelled()).then_some(answer)
}

fn takes_args<S: Lifecycle>(state: S) -> bool {
    let declared = S::GRAPH.get(state.id());
    declared.is_some_and(|state| state.is(Mark::Args))
}

/// Runs the handler with this fault; only tests set another than `Runs`.
async fn spoiled<T, F: Future<Output = T>>(fault: AttemptFault, handler: impl Fn() -> F) -> T {
    match fault {
        AttemptFault::Runs => handler().await,
        AttemptFault::Lost => std::future::pending().await,
        AttemptFault::Unanswered => {
            handler().await;
            std::future::pending().await
        }
        AttemptFault::Twice => {
            handler().await;
            handler().await
        }
    }
}
