//! One reconciliation of one object, as a sequence of effects that your code carries out.

use std::sync::Arc;
use std::time::Duration;

use okt_core::machine::{
    self as core, ApplyResult, ClearResult, Decision, Draft, Effect as Asked, ExtraResult, Graphs,
    MAX_EFFECTS, ObservationResult, OperatorFacts, PlaceResult, Render, Requeue, ResourceStatus,
    Setup, Start, StartResult, Stored,
};
use okt_core::record::Recorded;
use okt_core::{Answer, Lifecycle, LifecycleFacts};
use okt_reach::Failure;
use okt_wire::clock::moment;
use okt_wire::digest;
use okt_wire::object::{LifecycleObject, StatusOf, lifecycle_of, memory_of, position_of};
use okt_wire::read;
use okt_wire::revision::{Referred, Revision};
use serde::Serialize;
use serde_json::Value;

use super::effect::{Effect, Work, Write, WriteContent};
use super::memory::{LifecycleSettings, Memory, Taken};
use crate::author::observation::Observation;
use crate::author::recording::Recording;
use crate::author::windows::Windows;
use crate::reconcile::change::change;
use crate::reconcile::finalizer;
use crate::reconcile::gates::{GateStates, PlaceState};
use crate::reconcile::leftover::{inherited, removal};
use crate::reconcile::observe::Sighting;
use crate::reconcile::reading;
use crate::reconcile::render::{failed, recording};
use crate::reconcile::report::{NotRecorded, StatusReport, confirm};
use crate::resources::OwnedStatus;

/// What is applied of no resources.
const NO_RESOURCES: ApplyResult = ApplyResult::Applied {
    status: ResourceStatus::AsDeclared,
    due: None,
    outdated: None,
    content: Some(0),
};

/// Why an object gets no place in a limit.
const NO_PLACES: &str =
    "of its graph: a controller of your own gives out no places, so leave the limit to an operator";

/// The only facts about a controller of its own: it would not reconcile if it might not act.
const ACTS: OperatorFacts = OperatorFacts {
    may_act: true,
    draining: false,
};

/// Returns the group of an object in a limit, and its place there.
fn no_place() -> (String, PlaceState) {
    (String::new(), PlaceState::None)
}

/// One reconciliation of one object: it decides, and your code carries out the effects; see the [module](super).
///
/// ```
/// # use std::sync::Arc;
/// # use kube::Api;
/// # use okt::lifecycle::{Effect, Memory, Reconciliation};
/// # use okt::{Answer, Failure, LifecycleObject, Observation};
/// # async fn example<K: LifecycleObject>(memory: &Memory<K>, object: Arc<K>, api: Api<K>) -> Result<(), Box<dyn std::error::Error>> {
/// let mut object = Reconciliation::of(memory, object);
/// while let Effect::Write(write) = object.decide() {
///     object.patched(write.send(&api, "paint-shop").await?)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reconciliation<K: LifecycleObject> {
    object: Arc<K>,
    revision: Revision,
    memory: Taken,
    settings: LifecycleSettings,
    setup: Setup<'static>,
    /// The effect whose result is not reported yet.
    asked: Option<Asked>,
    /// The observation that was passed before it was asked for.
    sighting: Option<Sighting>,
    /// The observation as text.
    observed: String,
    /// The status that was rendered last.
    rendered: Option<StatusOf<K>>,
    /// The merge patch that removes what others left in the status.
    leftovers: Option<Value>,
    extra: Option<K::Extra>,
    gates: GateStates,
}

impl<K: LifecycleObject> Reconciliation<K> {
    /// Begins the reconciliation of an object, as it is in the cache of your controller.
    ///
    /// An object must not be reconciled twice at the same time, which the `Controller` of kube never does.
    pub fn of(memory: &Memory<K>, object: Arc<K>) -> Self {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        let mut begun = Self {
            revision: Revision::of_spec(&*object),
            memory: memory.take(uid),
            setup: Setup {
                graphs: Graphs {
                    life: lifecycle_of::<K>(),
                    pass: None,
                },
                backoff: memory.settings.backoff,
                owns_kinds: false,
            },
            settings: memory.settings.clone(),
            asked: None,
            sighting: None,
            observed: String::new(),
            rendered: None,
            leftovers: None,
            extra: None,
            gates: GateStates::of::<K::State>(
                memory.settings.clock.now(),
                |_| Windows::always(),
                |_| true,
                |_, _| no_place(),
            ),
            object,
        };
        // The event that led here may be the one that a handler waits for.
        begun.memory.machine.name();
        begun.read();
        begun
    }

    fn read(&mut self) {
        let object = Arc::clone(&self.object);
        let object = self.translated(&object);
        self.memory.machine.read(&object, moment());
    }

    fn translated(&mut self, object: &K) -> core::Object {
        let revision = self
            .revision
            .counted(object, Referred::None, &mut self.memory.revision);
        let position = position_of(object);
        let begun = self.memory.acts_since(position, self.settings.clock.now());
        let read = reading::read(
            object,
            revision,
            &mut self.memory.parts,
            begun,
            &self.settings.clock,
        );
        let state = read.recorded.at().map(|at| at.state);
        core::Object {
            observe_every: self.settings.observe_every,
            gates: self.gates.times::<K::State>(state),
            ..read
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
        self.revision = Revision::OnPurpose(digest::revision(of));
        self.read();
        self
    }

    /// Says when the object may pass the gates of its graph, as [`Application::windows`] and
    /// [`Application::needs_approval`] do. By default a window is always open, and each approval is needed. An object never
    /// gets a place in a limit here. Call it before the first decision.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use okt::{LifecycleObject, Window, Windows};
    /// # use okt::lifecycle::{Memory, Reconciliation};
    /// # fn example<K: LifecycleObject>(memory: &Memory<K>, object: Arc<K>, maintenance: &[Window]) -> Reconciliation<K> {
    /// Reconciliation::of(memory, object).gates(|_| Windows::of(maintenance), |_| true)
    /// # }
    /// ```
    ///
    /// [`Application::windows`]: crate::Application::windows
    /// [`Application::needs_approval`]: crate::Application::needs_approval
    #[must_use]
    pub fn gates(
        mut self,
        windows: impl Fn(<K::State as Lifecycle>::Gate) -> Windows,
        needs_approval: impl Fn(<K::State as Lifecycle>::Gate) -> bool,
    ) -> Self {
        let now = self.settings.clock.now();
        self.gates = GateStates::of::<K::State>(now, windows, needs_approval, |_, _| no_place());
        self.read();
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
        &self.memory.machine.object().recorded
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
        self.all_facts().for_decision()
    }

    fn all_facts(&self) -> core::Facts<'_> {
        self.memory.machine.facts(&self.setup, ACTS, moment())
    }

    /// Returns the next effect. Until its result is reported, each call returns the same one.
    pub fn decide(&mut self) -> Effect<K> {
        if self.asked.is_none()
            && let Some(time) = self.behind()
        {
            return Effect::Rest(Some(time));
        }
        // A reconciliation has fewer effects; each of yours is one.
        for _ in 0..=MAX_EFFECTS {
            let asked = match self.asked.take() {
                Some(asked) => asked,
                None => match self.memory.machine.decide(&self.setup, ACTS, moment()) {
                    Decision::Do(asked) => asked,
                    Decision::Rest(requeue) => return Effect::Rest(rest(requeue)),
                },
            };
            if let Some(effect) = self.perform(asked) {
                return effect;
            }
        }
        Effect::Rest(Some(Requeue::SAFETY))
    }

    /// Performs an effect, or returns it for your code, and keeps it until its result is reported.
    fn perform(&mut self, asked: Asked) -> Option<Effect<K>> {
        let (meta, now) = (self.object.meta(), moment());
        let effect = match &asked {
            Asked::AddFinalizer(_) => {
                self.write(WriteContent::Finalizers(finalizer::addition(meta)))
            }
            Asked::DropFinalizer(_) => {
                self.write(WriteContent::Finalizers(finalizer::removal(meta)))
            }
            Asked::Observe(_) if self.sighting.is_none() => Effect::Observe,
            Asked::TakeOver(_) => {
                let patch = inherited(&*self.object, self.recorded()).unwrap_or_default();
                self.write(WriteContent::Removal(patch))
            }
            Asked::RemoveLeftovers(_) => {
                let patch = self.leftovers.clone().unwrap_or_default();
                self.write(WriteContent::Removal(patch))
            }
            Asked::Commit(commit) => self.write(WriteContent::Status {
                status: Box::new(self.rendered.clone().unwrap_or_default()),
                record: commit.draft.record,
                verdict: commit.draft.step,
            }),
            Asked::Start(start) => Effect::Work(self.work(start)?),
            _ => {
                let machine = &mut self.memory.machine;
                match asked {
                    Asked::Observe(observe) => {
                        let sighting = self.sighting.take()?;
                        let (result, events) = (sighting.result, sighting.events.clone());
                        let counts_as = machine.observed(observe, result, events, now);
                        self.observed = sighting.into_words(counts_as);
                    }
                    Asked::Render(render) => self.render(render),
                    Asked::ChangeWork(change) => {
                        let draft = change.draft;
                        machine.work_changed(change, &self.setup, now);
                        self.memory.work.take_effect(&draft);
                    }
                    Asked::Cancel(cancel) => machine.cancelled(cancel),
                    Asked::TakePlace(place) => {
                        self.gates.no_place = Some(NO_PLACES.to_owned());
                        machine.place_taken(place, PlaceResult::None);
                    }
                    // A controller of its own has no owned resources that OKT knows.
                    Asked::Apply(apply) => machine.applied(apply, NO_RESOURCES, now),
                    Asked::Clear(clear) => {
                        machine.cleared(clear, ClearResult::Cleared, now);
                    }
                    // They are about passes, requests, failed writes and objects that do not decode: nothing of these is
                    // reported to the machine here.
                    other => self.asked = Some(other),
                }
                return None;
            }
        };
        self.asked = Some(asked);
        Some(effect)
    }

    /// Takes the object in the answer to a patch.
    ///
    /// # Errors
    ///
    /// If the patch was a status that the answer does not have: return the error, so that your controller reconciles the
    /// object again.
    pub fn patched(&mut self, answer: K) -> Result<(), NotRecorded> {
        let (object, now) = (self.translated(&answer), moment());
        let asked = self.asked.take();
        if let (Some(Asked::Commit(commit)), Some(status)) = (&asked, &self.rendered)
            && let Err(error) = confirm_record(&answer, status, &object.recorded, &commit.draft)
        {
            if let Some(asked) = asked {
                self.memory.machine.not_done(asked);
            }
            return Err(error);
        }
        self.object = Arc::new(answer);
        let stored = Stored {
            version: object.version,
            object: Some(object),
        };
        let memory = &mut *self.memory;
        let machine = &mut memory.machine;
        match asked {
            Some(Asked::AddFinalizer(effect)) => machine.finalizer_added(effect, &stored, now),
            Some(Asked::DropFinalizer(effect)) => machine.finalizer_dropped(effect),
            Some(Asked::TakeOver(effect)) => machine.taken_over(effect, &stored, now),
            Some(Asked::RemoveLeftovers(effect)) => {
                machine.leftovers_removed(effect, Some(&stored), now);
            }
            Some(Asked::Commit(commit)) => {
                let status = self.rendered.take().unwrap_or_default();
                self.leftovers = removal(&*self.object, &status, None);
                let draft = commit.draft;
                let run = memory.work.run.as_ref();
                if let Some(recording) = run.and_then(|run| run.recording.as_ref()) {
                    recording.recorded(&recording.get());
                }
                let (leftovers, hash) = (self.leftovers.is_some(), || digest::revision(&status));
                // The record was confirmed.
                let _ = machine.committed(commit, &stored, leftovers, hash, &self.setup, now);
                memory.work.take_effect(&draft);
            }
            other => self.asked = other,
        }
        Ok(())
    }

    /// Takes an observation of the application; [`Observation::unreachable`] if it could not be observed.
    pub fn observed(&mut self, observation: Observation<K::State>) {
        let mut sighting = Sighting::of(Ok(observation));
        if let ObservationResult::Unobserved { again } = &mut sighting.result {
            // Nothing would be found later either.
            *again = false;
        }
        self.sighting = Some(sighting);
    }

    /// Changes what is remembered of the object, during the work that [`decide`](Self::decide) asked for. It is recorded
    /// with the result of the work; see [`Action::remember`](crate::Action::remember).
    ///
    /// # Errors
    ///
    /// If the memory takes more than 16 KiB as JSON. A retry does not help.
    pub fn remember(&mut self, change: impl FnOnce(&mut K::Memory)) -> Result<(), Failure> {
        let recorded = || self.memory().unwrap_or_default();
        let run = self.memory.work.run.as_ref();
        match run.and_then(|run| run.recording.as_ref()) {
            Some(recording) => recording.remember(recorded, change),
            None => Ok(()),
        }
    }

    /// Returns what is remembered of the object, as it is recorded.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, or that somebody else has changed it. Do nothing then: a retry helps once a person has
    /// mended it.
    pub fn memory(&self) -> Result<K::Memory, String> {
        memory_of(self.object())
    }

    /// Takes the result of the work that [`decide`](Self::decide) asked for.
    ///
    /// It is kept in the [`Memory`] until it is written, so a write that fails does not repeat the work.
    pub fn ended<E: Into<Failure>>(&mut self, result: Result<Answer, E>) {
        match self.asked.take() {
            Some(Asked::Start(start)) => {
                let (memory, task) = (&mut *self.memory, start.task);
                memory.machine.started(start, StartResult::Started);
                let result = Some(result.map_err(Into::into));
                memory.work.end(task, result, &mut memory.machine);
                // An observation from before counts neither for the next decision nor for the conditions.
                self.observed.clear();
            }
            other => self.asked = other,
        }
    }

    /// Returns how long the object waits because it is older than the last write; the event of that write ends it.
    fn behind(&mut self) -> Option<Duration> {
        let version = read::version(self.object.meta());
        let (_, lasts) = self.memory.machine.check_version(version, moment())?;
        if !lasts {
            return Some(Requeue::SAFETY);
        }
        // The history of the API server went back. The version in each patch keeps an old object from being acted upon.
        self.memory.machine.rewind();
        None
    }

    /// Renders the status of a draft, and compares it with the stored one.
    fn render(&mut self, effect: Render) {
        let status = self.status(&effect.draft);
        let diff = change(&*self.object, &status, None);
        let (hash, asked) = (|| digest::revision(&status), ExtraResult::NotAsked);
        let machine = &mut self.memory.machine;
        machine.rendered(effect, diff, hash, asked, &self.setup, moment());
        self.rendered = Some(status);
    }

    fn status(&self, draft: &Draft) -> StatusOf<K> {
        let stored = self.object.status_of();
        let extra = self.extra.clone().or_else(|| Some(stored?.extra.clone()));
        let report = StatusReport {
            object: &*self.object,
            now: self.settings.clock.now(),
            draft,
            facts: &self.all_facts().life,
            observed: &self.observed,
            failed: failed::<K::State>(&draft.step, &self.memory),
            progress: String::new(),
            recording: recording(draft, &self.memory),
            begun: None,
            gates: &self.gates,
            resources: &OwnedStatus::AsDeclared,
            recorded_resources: stored.map_or_else(Vec::new, |it| it.recorded_resources.clone()),
            counts_wall_time: false,
            absent: self.memory.machine.absent_for(moment()),
            referred: None,
            of_pass: &[],
            extra: extra.unwrap_or_default(),
            delivered: position_of(&*self.object).and_then(|it| it.delivered),
            graph: &self.settings.graph,
        };
        report.status()
    }

    fn write(&self, content: WriteContent<K>) -> Effect<K> {
        Effect::Write(Write::of(self.object.meta(), content))
    }

    /// Returns the work on record.
    fn work(&mut self, start: &Start) -> Option<Work<K>> {
        let state = self.state()?;
        let position = position_of(&*self.object);
        let uid = self.object.meta().uid.as_deref().unwrap_or_default();
        let (transition, number) = (start.work.transition, start.work.run);
        let id = || read::action_id(position, uid, transition, number);
        let run = self.memory.work.begin(start, id, state.name());
        let nothing = || Recording::new(Vec::new(), None);
        run.recording.get_or_insert_with(nothing);
        Some(Work {
            object: Arc::clone(&self.object),
            state,
            id: run.id.clone(),
            attempt: start.attempt,
            resumed: start.resumed,
        })
    }
}

/// Checks that an answer has the status that was sent, and that its record is that of the draft.
fn confirm_record<K: LifecycleObject>(
    answer: &K,
    sent: &StatusOf<K>,
    recorded: &Recorded,
    draft: &Draft,
) -> Result<(), NotRecorded> {
    confirm(answer, sent)?;
    if *recorded == draft.record {
        Ok(())
    } else {
        Err(NotRecorded("has another record than was sent".to_owned()))
    }
}

/// Returns the time until the next reconciliation; none if only an event leads to one.
fn rest(requeue: Requeue) -> Option<Duration> {
    // Where nothing is observed, the next observation never comes.
    requeue.wait().filter(|time| *time < Duration::MAX)
}
