//! One reconciliation of one object, as a sequence of effects that your code carries out.

use std::sync::Arc;
use std::time::Duration;

use kube::api::Patch;
use okt_core::facts::Observed;
use okt_core::reconcile::{
    self as core, Asked, Decision, Draft, Facts, Graphs, News, OperatorFacts, OwnedFacts,
    PassFacts, Requeue, Standing, WorkChange, WriteFacts,
};
use okt_core::record::Recorded;
use okt_core::{Answer, Lifecycle, LifecycleFacts};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::effect::{Content, Effect, StatusWrite, Work};
use super::memory::{Memory, Settings, Taken};
use crate::author::application::without_lifecycle;
use crate::author::observation::Observation;
use crate::failure::Failure;
use crate::reconcile::FUSE;
use crate::reconcile::change::change;
use crate::reconcile::draft::failed;
use crate::reconcile::finalizer;
use crate::reconcile::leftover::{inherited, removal};
use crate::reconcile::memory::Stage;
use crate::reconcile::observe::Findings;
use crate::reconcile::report::{NotRecorded, Report, confirm};
use crate::reconcile::stored::Stored;
use crate::resources::OwnedStatus;
use crate::wire::object::{LifecycleObject, lifecycle_of};
use crate::wire::read;
use crate::wire::status::Status;

/// One reconciliation of one object: it decides, and your code carries out the effects; see the [module](super).
///
/// ```
/// # use std::sync::Arc;
/// # use kube::Api;
/// # use kube::api::{Patch, PatchParams};
/// # use okt::lifecycle::{Effect, Memory, Reconciliation};
/// # use okt::{Answer, Failure, LifecycleObject, Observation};
/// # async fn example<K: LifecycleObject>(memory: &Memory<K>, object: Arc<K>, api: Api<K>) -> Result<(), Box<dyn std::error::Error>> {
/// let mut object = Reconciliation::of(memory, object);
/// while let Effect::AddFinalizer(patch) = object.decide() {
///     object.patched(api.patch("red", &PatchParams::default(), &patch).await?)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reconciliation<K: LifecycleObject> {
    object: Arc<K>,
    stored: Stored,
    revision: u64,
    memory: Taken,
    settings: Settings,
    seed: u64,
    findings: Option<Findings>,
    draft: Option<Drafted<K>>,
    /// The draft that was written last.
    written: Option<Draft>,
    /// The merge patch that removes what others left in the status.
    leftover: Option<Value>,
    /// The content of the last patch.
    sent: Sent,
    extra: Option<K::Extra>,
}

/// The content of a patch.
#[derive(Clone, Copy, Default)]
enum Sent {
    #[default]
    Finalizers,
    Status,
    Removal,
}

struct Drafted<K: LifecycleObject> {
    draft: Draft,
    news: News,
    status: Status<K::State, K::Extra>,
}

impl<K: LifecycleObject> Reconciliation<K> {
    /// Begins the reconciliation of an object, as it is in the cache of your controller.
    ///
    /// An object must not be reconciled twice at the same time, which the `Controller` of kube never does.
    pub fn of(memory: &Memory<K>, object: Arc<K>) -> Self {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        let revision = read::revision(&without_lifecycle(&*object));
        let seed = read::seed(uid);
        let mut taken = memory.take(uid);
        // The event that led here may be the one that a handler waits for.
        taken.work.name();
        Self {
            stored: Stored::read(&*object, revision, false),
            revision,
            memory: taken,
            settings: memory.settings.clone(),
            seed,
            findings: None,
            draft: None,
            written: None,
            leftover: None,
            sent: Sent::default(),
            extra: None,
            object,
        }
    }

    /// Sets the part of the object that your handlers act upon; a change of it is a new revision. By default it is the
    /// spec without its lifecycle field. Call it before the first decision.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use okt::LifecycleObject;
    /// # use okt::lifecycle::{Memory, Reconciliation};
    /// # fn example<K: LifecycleObject>(memory: &Memory<K>, object: Arc<K>) -> Reconciliation<K> {
    /// // An autoscaler may change everything but the labels.
    /// let labels = object.meta().labels.clone();
    /// Reconciliation::of(memory, object).revision(&labels)
    /// # }
    /// ```
    #[must_use]
    pub fn revision(mut self, of: &impl Serialize) -> Self {
        self.revision = read::revision(of);
        self.stored = Stored::read(&*self.object, self.revision, false);
        self
    }

    /// Sets the fields that your application adds to the status. By default the stored ones stay.
    ///
    /// They are written with every transition, and otherwise at most every ten seconds.
    #[must_use]
    pub fn extra(mut self, extra: K::Extra) -> Self {
        self.extra = Some(extra);
        self
    }

    /// Returns the object, as the last answer of the API server has it.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// Returns the state on record; none for a new object, or in a state that the graph does not have.
    pub fn state(&self) -> Option<K::State> {
        K::State::from_id(self.recorded().at()?.state)
    }

    /// Returns the record that decisions are made from.
    pub fn recorded(&self) -> &Recorded {
        &self.stored.recorded
    }

    /// Returns the facts of this moment, for a decision about the lifecycle.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use okt::{Lifecycle, LifecycleObject, lifecycle};
    /// # use okt::lifecycle::{Memory, Reconciliation, Verdict};
    /// # fn example<K: LifecycleObject>(memory: &Memory<K>, object: Arc<K>) -> Verdict {
    /// let object = Reconciliation::of(memory, object);
    /// lifecycle::decide(K::State::GRAPH, object.recorded(), &object.facts())
    /// # }
    /// ```
    pub fn facts(&self) -> LifecycleFacts<'_> {
        self.all_facts().life()
    }

    /// Returns the next effect. Until its result is reported, each call returns the same one.
    pub fn decide(&mut self) -> Effect<K> {
        if let Some(time) = self.behind() {
            return Effect::Rest(Some(time));
        }
        self.sent = Sent::default();
        let graphs = Graphs {
            life: lifecycle_of::<K>(),
            pass: None,
        };
        for _ in 0..FUSE {
            if let Some(leftover) = &self.leftover {
                self.sent = Sent::Removal;
                return Effect::WriteStatus(StatusWrite {
                    version: None,
                    content: Content::Removal(leftover.clone()),
                });
            }
            self.observe_again(graphs);
            let effect = match core::decide(graphs, &self.stored.recorded, &self.all_facts()) {
                Decision::Do(effect) => effect,
                Decision::Rest(requeue) => return Effect::Rest(rest(requeue)),
            };
            match effect {
                core::Effect::AddFinalizer => {
                    let patch = finalizer::addition(self.object.meta());
                    return Effect::AddFinalizer(Patch::Merge(patch));
                }
                core::Effect::DropFinalizer { .. } => {
                    let patch = finalizer::removal(self.object.meta());
                    return Effect::RemoveFinalizer(Patch::Merge(patch));
                }
                core::Effect::Observe => return Effect::Observe,
                core::Effect::Draft(draft) => self.draft(draft),
                core::Effect::Commit {
                    draft,
                    patch: false,
                } => self.commit(&draft, false),
                core::Effect::Commit { .. } => {
                    self.leftover = inherited(&*self.object, &self.stored.recorded);
                    if self.leftover.is_none()
                        && let Some(drafted) = &self.draft
                    {
                        self.sent = Sent::Status;
                        return Effect::WriteStatus(self.write(drafted));
                    }
                }
                core::Effect::Start { resumed } => match self.work(resumed) {
                    Some(work) => return Effect::Work(work),
                    None => break,
                },
                core::Effect::Cancel => self.memory.work.cancel(),
                // They are about passes, owned resources and failed writes, which the facts leave out.
                core::Effect::RunPass { .. }
                | core::Effect::Apply { .. }
                | core::Effect::Clear
                | core::Effect::ShowFailure
                | core::Effect::ShowUnreadable => break,
            }
        }
        // Every decision leads to an effect before; a reconciliation never spins in any case.
        Effect::Rest(Some(Requeue::SAFETY))
    }

    /// Takes the object in the answer to a patch.
    ///
    /// # Errors
    ///
    /// If the patch was a status that the answer does not have: return the error, so that your controller reconciles the
    /// object again.
    pub fn patched(&mut self, answer: K) -> Result<(), NotRecorded> {
        let before = Arc::clone(&self.object);
        let drafted = self.draft.take();
        let wrote = match std::mem::take(&mut self.sent) {
            Sent::Status => drafted,
            Sent::Removal => {
                self.leftover = None;
                None
            }
            Sent::Finalizers => None,
        };
        if let Some(drafted) = &wrote {
            confirm(&answer, &drafted.status)?;
        }
        self.object = Arc::new(answer);
        self.stored = Stored::read(&*self.object, self.revision, false);
        let after = self.object.meta();
        (self.memory.seen.version).clone_from(&after.resource_version);
        if after.deletion_timestamp.is_some() && !finalizer::is_set(after) {
            self.memory.release();
        }
        let Some(Drafted { draft, status, .. }) = wrote else {
            return Ok(());
        };
        if self.stored.recorded != draft.record {
            return Err(NotRecorded("has another record than was sent".to_owned()));
        }
        let left = removal(&*self.object, &status, None);
        let waits = left.is_some() && !self.memory.writes.may_tidy();
        if left.is_some() && !waits {
            self.memory.writes.tidied = Some(Instant::now());
            self.leftover = left;
        }
        let after = self.object.meta();
        (self.memory).status_written(before.meta(), after, &status, waits);
        self.commit(&draft, true);
        Ok(())
    }

    /// Takes an observation of the application.
    pub fn observed(&mut self, observation: Observation<K::State>) {
        self.findings = Some(self.found(Ok(observation)));
    }

    /// Notes that the application could not be observed: the object does not move, and after three such failures in a
    /// row conditions become Unknown.
    pub fn not_observed(&mut self, failure: impl Into<Failure>) {
        self.findings = Some(self.found(Err(failure.into())));
    }

    /// Takes the result of the work that [`decide`](Self::decide) asked for.
    ///
    /// It is kept in the [`Memory`] until it is written, so a write that fails does not repeat the work.
    pub fn ended<E: Into<Failure>>(&mut self, result: Result<Answer, E>) {
        if let Some(piece) = &mut self.memory.work.piece {
            piece.stage = Stage::Ended(result.map_err(Into::into));
        }
        // An observation from before counts neither for the next decision nor for the conditions.
        self.findings = None;
        self.draft = None;
        self.written = None;
    }

    /// Returns how long the object waits because it is older than the last write; the event of that write ends it.
    fn behind(&mut self) -> Option<Duration> {
        let version = self.object.meta().resource_version.as_deref();
        if !self.memory.seen.is_newer_than(version) {
            self.memory.writes.behind = None;
            return None;
        }
        let since = *(self.memory.writes.behind).get_or_insert_with(Instant::now);
        if since.elapsed() < Requeue::SAFETY {
            return Some(Requeue::SAFETY);
        }
        // The history of the API server went back. The version in each patch keeps an old object from being acted upon.
        (self.memory.seen, self.memory.writes) = Default::default();
        None
    }

    /// Drops an observation that a write has acted upon, unless work runs: the application may be elsewhere by now.
    fn observe_again(&mut self, graphs: Graphs<'_>) {
        let at = self.stored.recorded.at().zip(graphs.life);
        if !at.is_some_and(|(at, life)| at.in_flight(life)) {
            self.findings.take_if(|findings| findings.spent);
        }
    }

    fn all_facts(&self) -> Facts<'_> {
        let meta = self.object.meta();
        let findings = self.findings.as_ref();
        let is_unobserved = findings.is_some_and(|it| it.observed == Observed::Unobserved);
        let usual = if is_unobserved {
            Duration::MAX
        } else {
            self.settings.observe_every
        };
        Facts {
            asked: Asked {
                finalizer: self.stored.asked.finalizer && !self.memory.writes.released,
                ..self.stored.asked
            },
            sight: findings.map_or_else(Default::default, Findings::facts),
            work: self.stored.work(&self.memory.work),
            pass: PassFacts::default(),
            owned: OwnedFacts {
                standing: Some(Standing::AsDeclared),
                last: Some(Standing::AsDeclared),
                cleared: Some(true),
                ..OwnedFacts::default()
            },
            operator: OperatorFacts {
                may_act: true,
                draining: false,
            },
            writes: WriteFacts {
                written: self.written,
                draft: self.draft.as_ref().map(|it| (it.draft, it.news)),
                ..self.memory.facts_of_writes(meta)
            },
            time: self.stored.times(
                &self.settings.clock,
                self.memory.sight.observe_after(usual),
                self.settings.backoff,
                self.seed,
            ),
        }
    }

    fn found(&mut self, outcome: Result<Observation<K::State>, Failure>) -> Findings {
        let times = self.all_facts().time;
        Findings::of(outcome, &mut self.memory.sight, times.in_state)
    }

    /// Renders the status of a draft, and compares it with the stored one.
    fn draft(&mut self, draft: Draft) {
        let facts = self.all_facts();
        let stored = self.object.status_of();
        let nothing = Findings::nothing();
        let extra = self.extra.clone();
        let extra = extra.or_else(|| Some(stored?.extra.clone()));
        let report = Report {
            object: &*self.object,
            now: self.settings.clock.now(),
            after: &draft.record,
            facts: &facts.for_conditions(),
            decision: &draft.step,
            observed: &self.findings.as_ref().unwrap_or(&nothing).words,
            failed: failed::<K::State>(&draft.step, &self.memory.work),
            progress: String::new(),
            resources: &OwnedStatus::AsDeclared,
            recorded_resources: stored.map_or_else(Vec::new, |it| it.recorded_resources.clone()),
            of_pass: &[],
            extra: extra.unwrap_or_default(),
            delivered: (stored.and_then(|it| it.lifecycle.as_ref())).and_then(|it| it.delivered),
            graph: &self.settings.graph,
        };
        let status = report.status();
        let news = match change(&*self.object, &status, None) {
            News::Side | News::Main if self.memory.is_in_vain(self.object.meta(), &status) => {
                News::Vain
            }
            news => news,
        };
        self.draft = Some(Drafted {
            draft,
            news,
            status,
        });
    }

    fn write(&self, drafted: &Drafted<K>) -> StatusWrite<K> {
        StatusWrite {
            version: self.object.meta().resource_version.clone(),
            content: Content::Status {
                status: Box::new(drafted.status.clone()),
                record: drafted.draft.record,
                verdict: drafted.draft.step,
            },
        }
    }

    /// Changes the work as a draft says, once it is written.
    fn commit(&mut self, draft: &Draft, is_written: bool) {
        if draft.work != WorkChange::Keep {
            // An observation that a write acts upon serves one decision.
            self.findings.get_or_insert_with(Findings::nothing).spent = true;
        }
        self.draft = None;
        self.written = is_written.then_some(*draft);
        let (backoff, seed) = (self.settings.backoff, self.seed);
        let stored = &self.stored;
        (self.memory.work).change(draft.work, || stored.piece(), backoff, seed);
    }

    /// Returns the work on record, and notes that it begins.
    fn work(&mut self, resumed: bool) -> Option<Work<K>> {
        let state = self.state()?;
        let generation = self.stored.asked.generation;
        let piece = match self.memory.work.piece.take() {
            Some(piece) => piece,
            None => self.stored.piece()?,
        };
        let piece = self.memory.work.piece.insert(piece);
        piece.started_under = generation;
        piece.named = false;
        Some(Work {
            object: Arc::clone(&self.object),
            state,
            id: piece.id.clone(),
            attempt: piece.attempt,
            resumed,
        })
    }
}

/// Returns the time until the next reconciliation; none if only an event leads to one.
fn rest(requeue: Requeue) -> Option<Duration> {
    // Where nothing is observed, the next observation never comes.
    requeue.wait().filter(|time| *time < Duration::MAX)
}
