//! What a decision has done, once it is written: work is started, put off, forgotten.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use okt_core::decide::{Decision, Run, Stand};
use okt_core::record::Record;
use okt_core::{Answer, Lifecycle};

use crate::application::{Application, StateOf};
use crate::cached::{Cached, named};
use crate::clock::after;
use crate::context::{Action, Context, Work};
use crate::memory::{Hold, Inner, Known, Stage};
use crate::object::LifecycleObject;
use crate::places::{Place, Purpose, Wait};
use crate::progress::Progress;
use crate::read;
use crate::shared::Shared;
use crate::work;

/// The shortest `Wait`: one of nothing would spin.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The object whose position was just written, and what is known of it.
pub(crate) struct Actor<'a, A: Application> {
    pub(crate) shared: &'a Arc<Shared<A>>,
    pub(crate) known: &'a Known,
    pub(crate) inner: &'a mut Inner,
    pub(crate) cx: &'a Context<A::Resource>,
}

impl<A: Application> Actor<'_, A> {
    /// Carries out what was decided, now that it is written.
    ///
    /// Where what the object owns in the cluster is not as the state asks for, `held`, no work begins.
    pub(crate) fn act(&mut self, record: &Record, decision: &Decision, held: bool) {
        match decision {
            Decision::Go(_) => {
                self.inner.leave();
                if record.action.is_some() {
                    self.begin(record, false, held);
                }
            }
            Decision::Run(run) => {
                if matches!(run, Run::Changed | Run::Amended) {
                    self.inner.begin_anew();
                }
                self.begin(record, *run == Run::Resume, held);
            }
            Decision::Retry { .. } => {
                if let Stage::Ended(Err(failure)) = &self.inner.stage
                    && !self.inner.has_told(failure.reason())
                {
                    let reason = failure.reason().to_owned();
                    self.inner.told.push(reason);
                }
                self.inner.failures = self.inner.failures.saturating_add(1);
                let failures = self.inner.failures.max(self.inner.attempt);
                let wait = self.shared.backoff.wait(failures, read::seed(self.uid()));
                self.inner.stage = Stage::Waiting {
                    due: after(wait),
                    asked: false,
                };
            }
            Decision::End(_) => self.inner.leave(),
            Decision::Stand(Stand::Waiting) => match self.inner.stage {
                Stage::Held { resumed, .. } if !held => self.start(record, resumed),
                Stage::Absent
                | Stage::Running
                | Stage::Waiting { .. }
                | Stage::Held { .. }
                | Stage::Ended(_) => self.wait(),
            },
            Decision::Stand(_) | Decision::Release { .. } => {}
        }
    }

    /// Starts the work of the state on record, or holds it back.
    fn begin(&mut self, record: &Record, resumed: bool, held: bool) {
        if held {
            self.hold(record, resumed, Hold::Resources);
        } else {
            self.start(record, resumed);
        }
    }

    /// Holds the work of the state on record back, until the next reconciliation that finds nothing in the way.
    fn hold(&mut self, record: &Record, resumed: bool, why: Hold) {
        let (resumed, asked) = match self.inner.stage {
            Stage::Held { resumed, asked, .. } => (resumed, asked),
            Stage::Waiting { asked, .. } => (resumed, asked),
            Stage::Absent | Stage::Running | Stage::Ended(_) => (resumed, false),
        };
        if let Some(action) = record.action {
            self.inner.work = self.id(record, action.run);
            self.inner.stage = Stage::Held {
                resumed,
                asked,
                why,
            };
        }
    }

    /// A place for an attempt; none where it has to wait for one.
    fn place(&mut self, record: &Record, resumed: bool) -> Option<Place> {
        let purpose = match (self.cx.is_deleting(), resumed) {
            (true, _) => Purpose::Leaving,
            (false, true) => Purpose::Resuming,
            (false, false) => Purpose::Working,
        };
        let wake = {
            let (shared, object) = (Arc::clone(self.shared), self.reference());
            move || shared.look_at(object)
        };
        let why = match self.shared.places.take(self.uid(), purpose, wake) {
            Ok(place) => return Some(place),
            Err(Wait::For(time)) => Hold::Slot(after(time)),
            Err(Wait::UntilWoken) => Hold::Place,
        };
        self.hold(record, resumed, why);
        None
    }

    /// The handler asked to be called again.
    fn wait(&mut self) {
        let Stage::Ended(Ok(Answer::Wait(wait))) = self.inner.stage else {
            return;
        };
        // What was named while the handler ran may be what it now waits for.
        let wait = if self.inner.poked {
            Duration::ZERO
        } else {
            wait
        };
        self.inner.poked = false;
        self.inner.failures = 0;
        self.inner.stage = Stage::Waiting {
            due: after(wait.max(SHORTEST_WAIT)),
            asked: true,
        };
    }

    /// Starts the work of the state on record; without the lead, or while stopping, it is left to whoever comes next.
    fn start(&mut self, record: &Record, resumed: bool) {
        let (Some(state), Some(action)) = (StateOf::<A>::from_id(record.state), record.action)
        else {
            return;
        };
        if !self.shared.may_start() {
            return;
        }
        let Some(place) = self.place(record, resumed) else {
            return;
        };
        let id = self.id(record, action.run);
        // `Wait` asks for the same attempt again; everything else is a new one.
        let same = matches!(
            self.inner.stage,
            Stage::Waiting { asked: true, .. } | Stage::Held { asked: true, .. }
        );
        if !same {
            self.inner.attempt = self.inner.attempt.max(action.attempt.saturating_sub(1)) + 1;
        }
        let was_held = matches!(self.inner.stage, Stage::Held { .. });
        let before = self.inner.running.take();
        let progress = match &before {
            Some(before) if self.inner.work == id && !was_held => before.progress.text(),
            Some(_) | None => String::new(),
        };
        let look = {
            let (shared, object) = (Arc::clone(self.shared), self.reference());
            move || shared.look_at(object.clone())
        };
        let work = Action::new(
            self.cx.clone(),
            Work {
                id: id.clone(),
                attempt: self.inner.attempt,
                resumed,
            },
            self.known.gone.child_token(),
            Progress::new(progress, look.clone()),
        );
        self.inner.work = id;
        self.inner.poked = false;
        self.inner.started_under = self.cx.object().meta().generation.unwrap_or(0);
        self.inner.running = Some(work::start(self.shared, state, work, place, before, look));
        self.inner.stage = Stage::Running;
    }

    /// The id of the work, as the position that was just written has it.
    fn id(&self, record: &Record, run: u32) -> String {
        let status = self.cx.object().status_of();
        let position = status.and_then(|status| status.lifecycle.as_ref());
        read::action_id(position, self.uid(), record.transition, run)
    }

    fn uid(&self) -> &str {
        self.cx.object().meta().uid.as_deref().unwrap_or_default()
    }

    fn reference(&self) -> ObjectRef<Cached<A::Resource>> {
        named(self.cx.object().meta())
    }
}
