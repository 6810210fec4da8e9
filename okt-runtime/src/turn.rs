//! One turn of one object: observe, decide, act, report.
//!
//! ```text
//!   the object, from the cache
//!        │  older than the own last write? not ready, not leading? ──▶ nothing
//!        ▼
//!   observe   ask the application where it is              (not in a turn that takes a result)
//!        ▼
//!   decide    record + facts ──▶ decision ──▶ next record   (okt-core; no I/O, no clock)
//!        ▼
//!   report    one PATCH of the status, if anything is new   (position first: a no means no act)
//!        ▼
//!   act       start the work beside the reconciler, or drop the finalizer
//!        ▼
//!   when to look again
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::runtime::controller::Action as Again;
use kube::{Resource, ResourceExt};
use okt_core::decide::{Decision, Run, Stand, decide};
use okt_core::facts::{Facts, Observed};
use okt_core::record::{Record, Recorded};
use okt_core::{Answer, Cause, Lifecycle, Mark, StateId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::application::{Application, ExtraOf, StateOf};
use crate::context::{Action, Context, Work};
use crate::failure::Failure;
use crate::finalizer;
use crate::guarded::Guarded;
use crate::memory::{Inner, Known, SIDE_WRITES, Stage};
use crate::object::{LifecycleObject, LifecycleSpec};
use crate::observation::Observation;
use crate::operator::Shared;
use crate::progress::Progress;
use crate::read;
use crate::refusal;
use crate::report::{self, Change, Report};
use crate::status::RecordedFailure;
use crate::work::{self, panic_text};

/// Pauses an object: `okt.dev/paused: "true"`.
pub const PAUSED_ANNOTATION: &str = "okt.dev/paused";

/// Gives an object up while it is being deleted: `okt.dev/abandon: <its uid>`.
pub const ABANDON_ANNOTATION: &str = "okt.dev/abandon";

/// How long a look at the application may take.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

/// How long until an object is looked at again whose next event must come, in case it does not.
const SAFETY: Duration = Duration::from_mins(1);

/// Brings one object on its way, and says when to look again.
pub(crate) async fn turn<A: Application>(
    shared: Arc<Shared<A>>,
    stored: Arc<Guarded<A::Resource>>,
) -> Again {
    let uid = stored.meta().uid.clone().unwrap_or_default();
    if !shared.may_act() {
        return Again::await_change();
    }
    let known = shared.memory.of(&uid);
    let mut inner = known.inner.lock().await;
    if inner.is_behind(stored.meta().resource_version.as_deref()) {
        return Again::requeue(SAFETY);
    }
    let object = match stored.get() {
        Ok(object) => Arc::new(object.clone()),
        Err(invalid) => {
            return refusal::undecodable(&shared, &stored, &invalid.error, &mut inner).await;
        }
    };
    inner.undecodable = None;
    let deleting = object.meta().deletion_timestamp.is_some();
    if let Some(wait) = inner.refused_for(object.meta().generation) {
        return Again::requeue(wait);
    }
    let object = match (finalizer::is_set(&*object), deleting) {
        (true, _) => object,
        // Others may still hold the object; nothing of it is ours any more.
        (false, true) => {
            shared.memory.forget(&uid);
            return Again::await_change();
        }
        (false, false) => match finalizer::add(&shared.client, &*object).await {
            Ok(object) => {
                inner.seen = object.resource_version();
                inner.trouble.times = 0;
                Arc::new(object)
            }
            Err(error) => return refusal::unwritten(&shared, &*object, &mut inner, &error),
        },
    };
    Turn {
        shared: &shared,
        known: &known,
        inner: &mut inner,
        cx: Context::new(Arc::clone(&object), shared.client.clone()),
        object,
        uid,
        deleting,
    }
    .take()
    .await
}

/// What the application said in this turn.
struct Look {
    observed: Observed,
    words: String,
    events: Vec<StateId>,
}

struct Turn<'a, A: Application> {
    shared: &'a Arc<Shared<A>>,
    known: &'a Arc<Known>,
    inner: &'a mut Inner,
    cx: Context<A::Resource>,
    object: Arc<A::Resource>,
    uid: String,
    deleting: bool,
}

impl<A: Application> Turn<'_, A> {
    async fn take(mut self) -> Again {
        let graph = StateOf::<A>::GRAPH;
        let position = self
            .object
            .status_of()
            .and_then(|status| status.lifecycle.as_ref());
        let recorded = read::record(position, self.is_deletion_known());
        let poked = self.known.take_poke();
        self.inner.catch_up();
        // An observation that was begun before the work ended must not judge what the work has done.
        let look = if self.inner.has_ended() || self.is_in_leaf(&recorded) {
            Look::nothing()
        } else {
            self.observe().await
        };
        self.inner.catch_up();
        let look = if self.inner.has_ended() {
            Look::nothing()
        } else {
            look
        };
        let facts = self.facts(&look, poked);
        let decision = decide(graph, &recorded, &facts);
        if decision == Decision::Stand(Stand::HandsOff) {
            return Again::await_change();
        }
        let after = recorded.after(graph, &facts, &decision);
        if let Decision::Release { abandoned } = decision {
            return self.release(&recorded, abandoned).await;
        }
        let report = Report {
            object: &*self.object,
            now: self.shared.clock.now(),
            after: &after,
            facts: &facts,
            decision: &decision,
            observed: &look.words,
            failed: self.failed(),
            progress: self.progress(&decision),
            extra: self.extra().await,
        };
        let status = report.status();
        let side = match report::change(&*self.object, &status) {
            Change::None => Side::Done,
            Change::Side if self.side_is_due() => Side::Write,
            Change::Side => Side::Later,
            Change::Main => Side::Write,
        };
        if side == Side::Write {
            match report::write(&self.shared.client, &*self.object, &status).await {
                Ok(written) => self.written(written),
                Err(error) => {
                    return refusal::of_status(
                        self.shared,
                        &*self.object,
                        self.inner,
                        &report,
                        &error,
                    )
                    .await;
                }
            }
        }
        self.tell(&recorded, &after, &decision, &status);
        self.act(&after, &decision);
        self.again(&after, &decision, &facts, side)
    }

    fn is_deletion_known(&self) -> bool {
        let conditions = self.object.status_of().map(|status| &status.conditions);
        conditions.is_some_and(|conditions| {
            (conditions.iter()).any(|c| c.type_ == "Deleting" && c.status == "True")
        })
    }

    fn is_in_leaf(&self, recorded: &Recorded) -> bool {
        recorded
            .at()
            .and_then(|record| StateOf::<A>::GRAPH.get(record.state))
            .is_some_and(|state| state.is(Mark::Leaf))
    }

    /// Asks the application where it is; what hangs or panics counts as a failed look.
    async fn observe(&mut self) -> Look {
        let asked = self.shared.application.observe(&self.cx);
        let contained = std::panic::AssertUnwindSafe(asked).catch_unwind();
        let outcome = match tokio::time::timeout(LOOK_LIMIT, contained).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(Failure::retry("Panicked", panic_text(&*panic))),
            Err(_) => Ok(Observation::unreachable("no answer within 10 s")),
        };
        let failed = match &outcome {
            Ok(observation) => observation.is_unreachable(),
            Err(_) => true,
        };
        self.inner.failed_looks = if failed {
            self.inner.failed_looks.saturating_add(1)
        } else {
            0
        };
        let looks = self.inner.failed_looks;
        match outcome {
            Ok(observation) => {
                let (observed, words) = observation.facts(looks);
                Look {
                    observed,
                    words,
                    events: observation.events().map(Lifecycle::id).collect(),
                }
            }
            Err(failure) => {
                tracing::warn!(object = %self.object.name_any(), "cannot observe: {failure}");
                Look {
                    observed: Observed::Failed { looks },
                    words: failure.to_string(),
                    ..Look::nothing()
                }
            }
        }
    }

    fn facts<'f>(&self, look: &'f Look, poked: bool) -> Facts<'f> {
        let desired = self.object.spec_of().lifecycle();
        let position = self
            .object
            .status_of()
            .and_then(|status| status.lifecycle.as_ref());
        let annotation = |name: &str| self.object.annotations().get(name).map(String::as_str);
        let since = position.and_then(|position| position.since);
        let newer = position.is_some_and(|position| {
            position.state.known().is_none()
                && self
                    .shared
                    .readiness
                    .borrow()
                    .knows(position.state.as_str())
        });
        let recorded_attempt = position
            .and_then(|position| position.action.as_ref())
            .map_or(1, |action| action.attempt.max(1));
        Facts {
            wish: read::wish(
                desired,
                position.and_then(|position| position.desired.as_ref()),
            ),
            visit: read::visit(
                desired,
                position.and_then(|position| position.visit.as_ref()),
            ),
            generation: self.object.meta().generation.unwrap_or(0),
            revision: read::revision(&A::revision(&self.object)),
            deleting: self.deleting,
            abandoned: annotation(ABANDON_ANNOTATION) == Some(self.uid.as_str()),
            paused: annotation(PAUSED_ANNOTATION) == Some("true"),
            newer,
            observed: look.observed,
            events: &look.events,
            owned: false,
            task: self.inner.task(poked),
            attempt: self.inner.attempt.max(recorded_attempt),
            started_under: self.inner.started_under,
            in_state: since.map_or(Duration::ZERO, |since| self.shared.clock.since(since)),
            backoff: self.shared.backoff,
            seed: read::seed(&self.uid),
        }
    }

    /// The failure that this turn takes.
    fn failed(&self) -> Option<RecordedFailure> {
        let Stage::Ended(ended) = &self.inner.stage else {
            return None;
        };
        let failure = match ended {
            Err(failure) => failure,
            Ok(Answer::To(_) | Answer::Next | Answer::Stay | Answer::Wait(_)) => return None,
        };
        Some(RecordedFailure {
            reason: okt_core::conditions::bounded(failure.reason().to_owned()),
            message: okt_core::conditions::bounded(failure.message().to_owned()),
        })
    }

    fn progress(&self, decision: &Decision) -> String {
        match (decision, &self.inner.running) {
            (Decision::Go(_), _) | (_, None) => String::new(),
            (_, Some(running)) => running.progress.text(),
        }
    }

    async fn extra(&self) -> ExtraOf<A> {
        let asked = std::panic::AssertUnwindSafe(self.shared.application.extra(&self.cx));
        let why = match tokio::time::timeout(LOOK_LIMIT, asked.catch_unwind()).await {
            Ok(Ok(Ok(extra))) => return extra,
            Ok(Ok(Err(failure))) => failure.to_string(),
            Ok(Err(panic)) => panic_text(&*panic),
            Err(_) => "no answer within 10 s".to_owned(),
        };
        tracing::warn!(object = %self.object.name_any(), "cannot compute the extra status: {why}");
        self.object
            .status_of()
            .map(|status| status.extra.clone())
            .unwrap_or_default()
    }

    fn side_is_due(&self) -> bool {
        self.inner
            .side_written
            .is_none_or(|written| written.elapsed() >= SIDE_WRITES)
    }

    /// The server said yes: from now on the object is what it answered.
    fn written(&mut self, written: Guarded<A::Resource>) {
        self.inner.seen = written.meta().resource_version.clone();
        self.inner.side_written = Some(Instant::now());
        self.inner.trouble = crate::memory::Trouble::default();
        // What was just written decodes; otherwise the next event says what is wrong.
        if let Ok(object) = written.into_inner() {
            self.object = Arc::new(object);
            self.cx = Context::new(Arc::clone(&self.object), self.shared.client.clone());
        }
    }

    fn tell(
        &self,
        before: &Recorded,
        after: &Recorded,
        decision: &Decision,
        status: &crate::Status<StateOf<A>, ExtraOf<A>>,
    ) {
        let graph = StateOf::<A>::GRAPH;
        if let (Decision::Go(go), Some(record)) = (decision, after.at()) {
            let from = before.at().map_or("", |record| graph.name_of(record.state));
            let trail = status
                .lifecycle
                .as_ref()
                .map_or("", |position| &position.trail);
            tracing::info!(
                object = %self.object.name_any(),
                namespace = self.object.namespace().unwrap_or_default(),
                transition = record.transition,
                from,
                to = graph.name_of(go.to),
                cause = go.why.as_str(),
                trail,
                "transition"
            );
            self.shared.warn_of_jump(&self.object, go, from);
        }
        if let Decision::End(okt_core::decide::Ending::Refused(to)) = decision {
            tracing::error!(
                object = %self.object.name_any(),
                to = graph.name_of(*to),
                "a handler named a state that no edge leads to"
            );
        }
    }

    /// Carries out what was decided, now that it is written.
    fn act(&mut self, after: &Recorded, decision: &Decision) {
        let Recorded::At(record) = after else {
            return;
        };
        match decision {
            Decision::Go(go) => {
                self.inner.leave();
                if record.action.is_some() {
                    self.start(record, Some(go.why), false);
                }
            }
            Decision::Run(run) => {
                if matches!(run, Run::Changed | Run::Amended) {
                    self.inner.attempt = 0;
                    self.inner.failures = 0;
                }
                self.start(record, None, *run == Run::Resume);
            }
            Decision::Retry { .. } => {
                self.inner.failures = self.inner.failures.saturating_add(1);
                let failures = self.inner.failures.max(self.inner.attempt);
                let wait = self.shared.backoff.wait(failures, read::seed(&self.uid));
                self.inner.stage = Stage::Waiting {
                    due: Instant::now() + wait,
                    asked: false,
                };
            }
            Decision::End(_) => self.inner.leave(),
            Decision::Stand(Stand::Waiting) => {
                if let Stage::Ended(Ok(Answer::Wait(wait))) = &self.inner.stage {
                    self.inner.failures = 0;
                    self.inner.stage = Stage::Waiting {
                        // A wait of nothing would spin.
                        due: Instant::now() + (*wait).max(Duration::from_millis(100)),
                        asked: true,
                    };
                }
            }
            Decision::Stand(_) | Decision::Release { .. } => {}
        }
    }

    /// Starts the work of the state on record; the write that recorded it has been taken.
    fn start(&mut self, record: &Record, cause: Option<okt_core::decide::Why>, resumed: bool) {
        let (Some(state), Some(action)) = (StateOf::<A>::from_id(record.state), record.action)
        else {
            return;
        };
        let again = matches!(&self.inner.stage, Stage::Waiting { asked: true, .. });
        // `Wait` asks for the same attempt again; everything else is a new one.
        if !again {
            self.inner.attempt = self.inner.attempt.max(action.attempt.saturating_sub(1)) + 1;
        }
        self.inner.started_under = self.object.meta().generation.unwrap_or(0);
        let cancellation: CancellationToken = self.known.gone.child_token();
        let (shared, object) = (Arc::clone(self.shared), self.reference());
        let show = {
            let (shared, object) = (Arc::clone(&shared), object.clone());
            move || shared.look_at(object.clone())
        };
        let work = Action::new(
            self.cx.clone(),
            Work {
                id: read::action_id(&self.uid, record.transition, action.run),
                attempt: self.inner.attempt,
                cause,
                resumed,
            },
            cancellation,
            Progress::new(show),
        );
        let before = self.inner.running.take();
        self.inner.running = Some(work::start(
            &self.shared.application,
            state,
            work,
            before,
            move || shared.look_at(object),
        ));
        self.inner.stage = Stage::Running;
    }

    fn reference(&self) -> kube::runtime::reflector::ObjectRef<Guarded<A::Resource>> {
        let mut reference = kube::runtime::reflector::ObjectRef::new(&self.object.name_any());
        reference.namespace = self.object.namespace();
        reference
    }

    /// Drops the finalizer: the application is gone, or somebody gave it up.
    async fn release(&mut self, recorded: &Recorded, abandoned: bool) -> Again {
        match finalizer::remove(&self.shared.client, &*self.object).await {
            Ok(()) => {
                let state = recorded
                    .at()
                    .map_or("", |record| StateOf::<A>::GRAPH.name_of(record.state));
                tracing::info!(object = %self.object.name_any(), state, abandoned, "released");
                if abandoned {
                    self.shared.warn_of_abandoning(&self.object, state);
                }
                self.shared.memory.forget(&self.uid);
                Again::await_change()
            }
            Err(error) => refusal::unwritten(self.shared, &*self.object, self.inner, &error),
        }
    }

    /// The nearest of all the times at which something may be due; each is computed anew in every turn.
    fn again(&self, after: &Recorded, decision: &Decision, facts: &Facts<'_>, side: Side) -> Again {
        let mut due = Vec::new();
        let now = Instant::now();
        if let Some(record) = after.at()
            && let Some(state) = StateOf::<A>::GRAPH.get(record.state)
        {
            let in_state = match decision {
                Decision::Go(_) => Duration::ZERO,
                _ => facts.in_state,
            };
            for trigger in state.triggers {
                if let Cause::After(time) = trigger.cause {
                    due.push(time.saturating_sub(in_state));
                }
            }
            if !state.is(Mark::Leaf)
                && let Some(state) = StateOf::<A>::from_id(record.state)
            {
                due.push(self.shared.application.look_again(state));
            }
        } else {
            due.push(SAFETY / 2);
        }
        match &self.inner.stage {
            Stage::Waiting { due: at, .. } => due.push(at.saturating_duration_since(now)),
            // Held back by a pause or the brake; the brake says for how long.
            Stage::Ended(_) | Stage::Absent | Stage::Running => {}
        }
        if let Decision::Stand(Stand::Braking(left)) = decision {
            due.push(*left);
        }
        if side == Side::Later {
            let since = self
                .inner
                .side_written
                .map_or(Duration::ZERO, |at| at.elapsed());
            due.push(SIDE_WRITES.saturating_sub(since));
        }
        match due.into_iter().min() {
            // Never at once: what is due now was done in this turn, or something is wrong.
            Some(soonest) => Again::requeue(soonest.max(Duration::from_millis(10))),
            None => Again::await_change(),
        }
    }
}

/// What becomes of what is written at most every ten seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Done,
    Write,
    Later,
}

impl Look {
    fn nothing() -> Self {
        Self {
            observed: Observed::Unobserved,
            words: String::new(),
            events: Vec::new(),
        }
    }
}
