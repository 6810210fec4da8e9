//! Renders position, conditions and extra fields as one status and writes it in one PATCH. Besides this file only
//! `unreadable` writes a status.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::Request;
use okt_core::conditions::{self, WaitWords, Words};
use okt_core::decide::{By, Go, Run, Verdict, Why};
use okt_core::facts::LifecycleFacts;
use okt_core::machine::Draft;
use okt_core::record::{Phase, Record};
use okt_core::request::RequestOutcome;
use okt_core::trail::Trail;
use okt_core::{Cause, Lifecycle, Mark, StateId, Taken, duration, reasons};
use okt_wire::api_timeout::answer;
use okt_wire::cause;
use okt_wire::desired::{Desired, StateName};
use okt_wire::digest;
use okt_wire::limits::{CHANGED_LIMIT, HISTORY_LIMIT};
use okt_wire::object::{LifecycleObject, LifecycleSpec, StatusOf, position_of};
use okt_wire::parts;
use okt_wire::read;
use okt_wire::scope::{api_of, merge_by, with_name};
use okt_wire::sealed::Sealed;
use okt_wire::status::{
    ActingTime, Position, RecordedAction, RecordedDesired, RecordedFailure, RecordedRequest,
    RecordedVisit, Status, Transition,
};
use okt_wire::texts::cut;
use serde::Serialize;
use serde_json::{Value, json};

use super::acting::{DeadlineLimits, Elapsed};
use super::gates::GateStates;
use super::leftover::unclaimed;
use crate::author::recording::ToRecord;
use crate::cache::guarded::Guarded;
use crate::resources::OwnedStatus;

/// The field manager of everything that OKT writes to a status.
pub const FIELD_MANAGER: &str = "okt";

/// The findings and the decision of a reconciliation, to be reported.
pub(crate) struct StatusReport<'a, K: LifecycleObject> {
    pub(crate) object: &'a K,
    pub(crate) now: Timestamp,

    pub(crate) draft: &'a Draft,
    pub(crate) facts: &'a LifecycleFacts<'a>,
    /// The observation as text.
    pub(crate) observed: &'a str,
    /// The failure of the action that this reconciliation takes.
    pub(crate) failed: Option<RecordedFailure>,
    /// The progress of the running work.
    pub(crate) progress: String,
    /// What a handler wants recorded now, if it wants anything.
    pub(crate) recording: Option<ToRecord>,
    /// The request that may begin with this write.
    pub(crate) begun: Option<RecordedRequest>,
    /// The gates.
    pub(crate) gates: &'a GateStates,
    /// The status of the owned resources.
    pub(crate) resources: &'a OwnedStatus,
    /// The record of the owned resources.
    pub(crate) recorded_resources: Vec<String>,
    /// Whether deadlines count the wall time.
    pub(crate) counts_wall_time: bool,
    /// How long observations have found no application.
    pub(crate) absent: Option<Duration>,
    /// A hash of the referred objects that are part of the revision.
    pub(crate) referred: Option<u64>,
    /// The conditions of the pass.
    pub(crate) of_pass: &'a [conditions::Condition],
    pub(crate) extra: K::Extra,
    /// The last transition that is delivered as a `CloudEvent`, which the next transition records.
    pub(crate) delivered: Option<u64>,
    /// A hash of the graph, which the next transition records.
    pub(crate) graph: &'a str,
}

impl<K: LifecycleObject> StatusReport<'_, K> {
    fn old(&self) -> Option<&Position<K::State>> {
        position_of(self.object)
    }

    /// Renders the whole status that OKT owns.
    pub(crate) fn status(&self) -> StatusOf<K> {
        let lifecycle = self.draft.record.at().map(|record| self.position(record));
        let action = lifecycle.as_ref().and_then(|it| it.action.as_ref());
        let led_here = lifecycle.as_ref().and_then(|it| it.failure.as_ref());
        let desired = self.object.spec_of().lifecycle().state.as_ref();
        let waits = self.gates.text::<K::State>(self.draft.record.at());
        let words = Words {
            state: self.old().map_or("", |old| old.state.as_str()),
            desired: desired.map_or("", StateName::as_str),
            failure: action.and_then(|it| it.failure.as_ref()).map(words_of),
            led_here: led_here.map(words_of),
            observed: self.observed,
            waits: match &waits {
                Ok(opens) => WaitWords::Opens(opens),
                Err(why) => WaitWords::Bad(why),
            },
            resources: self.resources.words(),
        };
        let conditions = conditions::conditions(
            K::State::GRAPH,
            &self.draft.record,
            self.facts,
            &self.draft.step,
            &words,
        );
        Status {
            observed_generation: Some(self.facts.generation),
            lifecycle,
            conditions: conditions
                .into_iter()
                .chain(self.of_pass.iter().cloned())
                .map(|condition| dated(self.object, self.now, condition))
                .collect(),
            recorded_resources: self.recorded_resources.clone(),
            extra: self.extra.clone(),
            remembers: PhantomData,
        }
    }

    fn position(&self, record: &Record) -> Position<K::State> {
        let old = self.old();
        let went = if let Verdict::Go(go) = self.draft.step {
            Some(go)
        } else {
            None
        };
        // What stays while the object is in one state.
        let kept = old.filter(|_| went.is_none());
        let desired = self.object.spec_of().lifecycle();
        let known_state = K::State::from_id(record.state).map(StateName::Known);
        let state = known_state.or_else(|| Some(old?.state.clone()));
        let is_current = record.revision == self.facts.revision;
        let taken = taken::<K::State>(record, went);
        Position {
            state: state.unwrap_or_else(|| StateName::Unknown(String::new())),
            // A status from another writer may lack it, and deadlines count from it.
            since: kept.and_then(|old| old.since).or(Some(self.now)),
            deadline_since: self.deadline_since(record),
            acting: self.acting(record, went),
            absent_since: self.absent.map(|time| {
                let known = old.and_then(|old| old.absent_since);
                known.unwrap_or_else(|| self.now.saturating_sub(time).unwrap_or(self.now))
            }),
            transition: record.transition,
            jumps: record.jumps,
            rounds: record.rounds,
            desired: Some(recorded(desired, record, old)),
            visit: visit(desired, record, old.and_then(|old| old.visit.as_ref())),
            request: self.request(record, old),
            revision: digest::text(record.revision),
            changed: digest::text(record.changed),
            revision_generation: if is_current {
                Some(self.facts.generation)
            } else {
                old.and_then(|old| old.revision_generation)
            },
            parts: parts::recorded(
                self.object,
                old,
                self.facts.parts,
                is_current.then_some(taken),
            ),
            referred: if is_current {
                self.referred.map(digest::text)
            } else {
                old.and_then(|old| old.referred.clone())
            },
            memory: self.memory(),
            action: self.action(record, kept),
            waiting: self.gates.recorded(record, old, self.now),
            returned: record.returned,
            failure: self.led_here(went),
            trail: self.trail(record, went),
            history: self.history(record, went, taken),
            delivered: kept.map_or(self.delivered, |old| old.delivered),
            graph: kept.map_or(self.graph, |old| old.graph.as_str()).to_owned(),
        }
    }

    /// Returns the names of the parts whose change raised an edge.
    fn changed(&self, taken: Taken) -> String {
        let parts = self.facts.parts.and(taken.parts);
        cut(&parts.text(K::State::GRAPH.parts), CHANGED_LIMIT)
    }

    /// Returns what is remembered of the object; what somebody has accepted without a checksum gets one.
    fn memory(&self) -> Option<Sealed> {
        let recording = self.recording.as_ref();
        if let Some(memory) = recording.and_then(|it| it.memory.as_ref()) {
            return Some(memory.clone());
        }
        let stored = self.old()?.memory.as_ref()?;
        Some(Sealed::new(stored.value.clone()))
    }

    /// Returns the request on record: the one that begins, or the last one with what became of it.
    fn request(
        &self,
        record: &Record,
        old: Option<&Position<K::State>>,
    ) -> Option<RecordedRequest> {
        let recorded = record.request?;
        let is_it = |it: &&RecordedRequest| read::hash(&it.uid) == recorded.token;
        let Some(old) = old.and_then(|old| old.request.as_ref()).filter(is_it) else {
            let begun = self.begun.clone().filter(|it| is_it(&it))?;
            return Some(RecordedRequest {
                transition: recorded.transition,
                ..begun
            });
        };
        let is_ended = old.outcome == RequestOutcome::Running && recorded.outcome.is_final();
        Some(RecordedRequest {
            outcome: recorded.outcome,
            result: match (&old.result, recorded.outcome) {
                (None, RequestOutcome::Reached) if is_ended => {
                    self.recording.as_ref().and_then(|it| it.result.clone())
                }
                (result, _) => result.as_ref().map(|it| Sealed::new(it.value.clone())),
            },
            failure: if is_ended && recorded.outcome == RequestOutcome::Failed {
                Some(self.why_request_failed(record))
            } else {
                old.failure.clone()
            },
            args: Sealed::new(old.args.value.clone()),
            ..old.clone()
        })
    }

    /// Returns why the work of the request failed, or why it did not begin.
    fn why_request_failed(&self, record: &Record) -> RecordedFailure {
        let went = match self.draft.step {
            Verdict::Go(go) => Some(go),
            _ => None,
        };
        let led_on = went.and_then(|go| self.led_here(Some(go)));
        let last = || self.old()?.action.as_ref()?.failure.clone();
        let failure = led_on.or_else(|| self.failed.clone()).or_else(last);
        failure.unwrap_or_else(|| {
            let here = K::State::GRAPH.name_of(record.state);
            let message = match went {
                Some(_) => format!("the object went on to {here}"),
                None => format!("the object stays in {here}"),
            };
            RecordedFailure::new(reasons::LEFT, &message)
        })
    }

    /// Returns when the object came under the deadline of its state: with the first state in a row that has it.
    fn deadline_since(&self, record: &Record) -> Option<Timestamp> {
        K::State::GRAPH.get(record.state)?.deadline()?;
        let kept = self.old().filter(|_| self.is_under_same_deadline(record));
        // A status from another writer, or of a graph without this deadline, may lack it.
        kept.and_then(|old| old.deadline_since).or(Some(self.now))
    }

    /// Returns whether the object was under the deadline already that the state has.
    fn is_under_same_deadline(&self, record: &Record) -> bool {
        let deadline = |state: StateId| K::State::GRAPH.get(state)?.deadline();
        let before = self.old().and_then(|old| {
            let state = K::State::from_name(old.state.as_str())?;
            deadline(state.id())
        });
        before.is_some() && before == deadline(record.state)
    }

    /// Returns the time that the deadlines of a state have counted.
    fn acting(&self, record: &Record, went: Option<Go>) -> Option<ActingTime> {
        if self.counts_wall_time {
            return None;
        }
        DeadlineLimits::of(K::State::GRAPH.get(record.state)?)?;
        let elapsed = Elapsed {
            in_state: if went.is_some() {
                Duration::ZERO
            } else {
                self.facts.in_state
            },
            in_deadline: if self.is_under_same_deadline(record) {
                self.facts.in_deadline
            } else {
                Duration::ZERO
            },
        };
        Some(elapsed.recorded(self.now))
    }

    fn action(&self, record: &Record, kept: Option<&Position<K::State>>) -> Option<RecordedAction> {
        let action = record.action?;
        let uid = self.object.meta().uid.as_deref().unwrap_or_default();
        let before = read::action_id(kept, uid, record.transition, action.run);
        let same = kept
            .and_then(|old| old.action.as_ref())
            .filter(|old| old.id == before);
        let id = match same {
            Some(_) => before,
            None => read::mint(uid, record.transition, action.run, self.now),
        };
        let phase = action.phase;
        Some(RecordedAction {
            attempt: action.attempt,
            phase,
            generation: action.generation,
            leaving: action.leaving,
            started_at: same.map_or(Some(self.now), |old| old.started_at),
            message: match phase {
                Phase::Pending => self.progress.clone(),
                Phase::Done | Phase::Failed => String::new(),
            },
            failure: self.failure(same, phase),
            steps: self.steps(same).filter(|_| phase != Phase::Done),
            id,
        })
    }

    /// Returns the steps of an action that are done; `old` is the same action as it is stored.
    fn steps(&self, old: Option<&RecordedAction>) -> Option<Sealed> {
        let stored = old?.steps.as_ref();
        let recording = self.recording.as_ref();
        let recorded = recording.and_then(|it| it.steps.clone());
        recorded.or_else(|| Some(Sealed::new(stored?.value.clone())))
    }

    /// Returns the failure of the action. The first message of a reason stays, so that a repetition is no news.
    fn failure(&self, old: Option<&RecordedAction>, phase: Phase) -> Option<RecordedFailure> {
        if phase == Phase::Done {
            return None;
        }
        let before = old.and_then(|old| old.failure.clone());
        match (&self.failed, before) {
            (Some(failed), Some(before)) if failed.reason == before.reason => Some(before),
            (Some(failed), _) => Some(failed.clone()),
            // The work begins again after a permanent failure.
            (None, _) if matches!(self.draft.step, Verdict::Run(Run::Amended | Run::Changed)) => {
                None
            }
            (None, before) => before,
        }
    }

    /// Returns the failure that led into the present state; it stays as long as the object is in that state.
    fn led_here(&self, went: Option<Go>) -> Option<RecordedFailure> {
        match went {
            Some(go) if go.why == Why::OnError => self.failed.clone(),
            Some(go) if go.why == Why::After => self.overdue(go),
            Some(_) => None,
            None => self.old()?.failure.clone(),
        }
    }

    /// Returns the failure that a deadline stands for: the last one of the work, if it failed, and the time that was
    /// over.
    fn overdue(&self, went: Go) -> Option<RecordedFailure> {
        let old = self.old()?;
        let from = K::State::from_name(old.state.as_str())?;
        let declared = K::State::GRAPH.get(from.id())?;
        let late = declared
            .triggers
            .iter()
            .find_map(|trigger| match trigger.cause {
                Cause::After(limit) if trigger.to == went.to && self.facts.in_state >= limit => {
                    Some(format!(
                        "{} took longer than {}",
                        declared.name,
                        duration::text(limit)
                    ))
                }
                Cause::Deadline(limit) if trigger.to == went.to => Some(format!(
                    "in {} when the deadline of {} was over",
                    declared.name,
                    duration::text(limit)
                )),
                _ => None,
            })?;
        let last = self
            .failed
            .as_ref()
            .or(old.action.as_ref()?.failure.as_ref());
        Some(match last {
            Some(failure) => {
                RecordedFailure::new(&failure.reason, &format!("{late}: {}", failure.message))
            }
            None => RecordedFailure::new(reasons::DEADLINE_EXCEEDED, &late),
        })
    }

    fn trail(&self, record: &Record, went: Option<Go>) -> String {
        let old = self.old().map_or("", |old| old.trail.as_str());
        if went.is_none() {
            return old.to_owned();
        }
        // A trail that does not parse begins again.
        let mut trail: Trail = old.parse().unwrap_or_default();
        trail.push(K::State::GRAPH.name_of(record.state));
        let state = K::State::GRAPH.get(record.state);
        if state.is_some_and(|state| state.is(Mark::Leaf)) {
            trail.end();
        }
        trail.to_string()
    }

    fn history(&self, record: &Record, went: Option<Go>, taken: Taken) -> Vec<Transition> {
        let old = self.old();
        let mut history = old.map_or_else(Vec::new, |old| old.history.clone());
        if let Some(go) = went {
            history.push(Transition {
                transition: record.transition,
                from: old.map_or_else(String::new, |old| old.state.to_string()),
                to: K::State::GRAPH.name_of(record.state).to_owned(),
                at: Some(self.now),
                cause: cause::words(go),
                changed: match go.why {
                    Why::OnChange => self.changed(taken),
                    _ => String::new(),
                },
                generation: Some(self.facts.generation),
            });
        }
        let surplus = history.len().saturating_sub(HISTORY_LIMIT);
        history.drain(..surplus);
        history
    }
}

/// Returns a condition with the time at which its status last changed.
pub(crate) fn dated<K: LifecycleObject>(
    object: &K,
    now: Timestamp,
    condition: conditions::Condition,
) -> Condition {
    let status = condition.status.as_str();
    let before = object
        .status_of()
        .and_then(|old| old.conditions.iter().find(|c| c.type_ == condition.name))
        .filter(|before| before.status == status);
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Condition {
        last_transition_time: before.map_or(Time(now), |c| c.last_transition_time.clone()),
        type_: condition.name,
        status: status.to_owned(),
        reason: condition.reason,
        message: condition.message,
        observed_generation: Some(object.meta().generation.unwrap_or(0)),
    }
}

/// Returns what a transition takes of a changed spec.
fn taken<S: Lifecycle>(record: &Record, went: Option<Go>) -> Taken {
    match went {
        Some(go) if matches!(go.by, By::Entry | By::Reentry) => Taken::ALL,
        Some(go) if go.why == Why::OnChange => S::GRAPH.taken(record.left, go.to),
        Some(_) | None => Taken::default(),
    }
}

fn words_of(failure: &RecordedFailure) -> (&str, &str) {
    (&failure.reason, &failure.message)
}

fn recorded<S: Lifecycle>(
    desired: &Desired<S>,
    record: &Record,
    old: Option<&Position<S>>,
) -> RecordedDesired {
    let old = old.and_then(|old| old.desired.as_ref());
    let name = read::desired_name(desired);
    // A renamed state is the same desired state: its new name is no reason to write.
    let same = old.filter(|old| name.as_ref() == Some(&StateName::of(&old.state)));
    RecordedDesired {
        state: match (same, &name) {
            (Some(old), _) => old.state.clone(),
            (None, Some(name)) => name.as_str().to_owned(),
            (None, None) => String::new(),
        },
        request: read::request(desired),
        transition: record.desired.transition,
        reached: record.desired.reached,
    }
}

fn visit<S: Lifecycle>(
    desired: &Desired<S>,
    record: &Record,
    old: Option<&RecordedVisit>,
) -> Option<RecordedVisit> {
    let recorded = record.visit?;
    let (state, request) = match (&desired.visit, old) {
        (Some(visit), old) => {
            // A renamed state is the same visit: its new name is no reason to write.
            let same = old.filter(|old| visit.state == StateName::of(&old.state));
            (
                same.map_or_else(
                    || read::bounded(visit.state.as_str()).into_owned(),
                    |old| old.state.clone(),
                ),
                read::bounded(&visit.request).into_owned(),
            )
        }
        (None, Some(old)) => (old.state.clone(), old.request.clone()),
        (None, None) => return None,
    };
    Some(RecordedVisit {
        state,
        request,
        transition: recorded.transition,
        outcome: recorded.outcome,
    })
}

/// The body of the PATCH.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusPatch<'a, S> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
    metadata: AppliedMetadata<'a>,
    status: &'a S,
}

impl<'a, S> StatusPatch<'a, S> {
    /// Returns the patch of a status for this version of an object.
    pub(crate) fn of<K: LifecycleObject>(version: Option<&'a str>, status: &'a S) -> Self {
        Self {
            api_version: K::api_version(&()),
            kind: K::kind(&()),
            metadata: AppliedMetadata {
                resource_version: version,
            },
            status,
        }
    }
}

/// The version of the object that a status is written for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppliedMetadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

/// Writes a status with server-side apply, if the object still has the version that was acted upon.
///
/// # Errors
///
/// 409 if it does not: a retry helps once the newer version is in the cache. 422 if the CRD does not allow the status:
/// a retry does not help. [`NotRecorded`] if the answer does not have the position that was sent.
pub(crate) async fn write<K: LifecycleObject>(
    client: &Client,
    object: &K,
    status: &StatusOf<K>,
) -> Result<Guarded<K>, kube::Error> {
    let version = object.meta().resource_version.as_deref();
    let body = StatusPatch::of::<K>(version, status);
    let (api, name) = api_of::<Guarded<K>>(client, object.meta());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let written = answer(api.patch_status(name, &params, &Patch::Apply(body))).await?;
    let confirmed = match written.get() {
        Ok(stored) => confirm(&**stored, status),
        Err(invalid) => Err(NotRecorded(format!("does not decode: {}", invalid.error))),
    };
    confirmed?;
    Ok(written)
}

/// A status was written, and the answer of the API server does not have it: something in between (an admission webhook,
/// a proxy) changed or dropped it.
///
/// A retry helps once that has stopped. The work on record must not begin.
/// It converts to a [`kube::Error`], for a `reconcile` function that returns one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("record a status: the answer {0}")]
pub struct NotRecorded(pub(crate) String);

impl From<NotRecorded> for kube::Error {
    fn from(error: NotRecorded) -> Self {
        Self::Service(error.into())
    }
}

/// Checks that an answer has the position that was sent: no work may begin for a position that is not recorded.
///
/// # Errors
///
/// What the answer has instead, because something between the operator and the storage (an admission webhook, a proxy)
/// changed or dropped it; a retry helps once that has stopped.
pub(crate) fn confirm<K: LifecycleObject>(
    answer: &K,
    sent: &StatusOf<K>,
) -> Result<(), NotRecorded> {
    let Some(sent) = &sent.lifecycle else {
        return Ok(());
    };
    let stored = position_of(answer);
    let Some(stored) = stored else {
        return Err(NotRecorded("has no `lifecycle`".to_owned()));
    };
    let action = |of: &Position<K::State>| {
        let action = of.action.as_ref();
        action.map(|it| (it.id.clone(), it.phase, it.steps.is_some()))
    };
    let request = |of: &Position<K::State>| {
        let request = of.request.as_ref();
        request.map(|it| {
            (
                it.uid.clone(),
                it.outcome,
                it.args.is_intact(),
                it.result.is_some(),
            )
        })
    };
    let is_changed = |it: Option<&Sealed>| it.is_some_and(|it| !it.is_intact());
    let steps = stored.action.as_ref().and_then(|it| it.steps.as_ref());
    if (&stored.state, stored.transition) != (&sent.state, sent.transition) {
        Err(NotRecorded(format!(
            "is in {} by transition {}; {} by transition {} was sent",
            stored.state, stored.transition, sent.state, sent.transition
        )))
    } else if action(stored) != action(sent) {
        Err(NotRecorded("has another action than was sent".to_owned()))
    } else if request(stored) != request(sent) {
        Err(NotRecorded("has another request than was sent".to_owned()))
    } else if stored.memory.is_some() != sent.memory.is_some()
        || is_changed(stored.memory.as_ref())
        || is_changed(steps)
    {
        Err(NotRecorded(
            "has another memory or other steps than were sent".to_owned(),
        ))
    } else {
        Ok(())
    }
}

/// Takes the position of an object away from other managers; returns the new object, or none if nobody else claims it, or
/// if it has changed since it was read.
///
/// # Errors
///
/// 409 if the object has changed meanwhile: a retry helps.
pub(crate) async fn take_claims<K: LifecycleObject>(
    client: &Client,
    meta: &ObjectMeta,
) -> Result<Option<Guarded<K>>, kube::Error> {
    let (api, name) = api_of::<Guarded<K>>(client, meta);
    let request = Request::new(api.resource_url())
        .list(&with_name(name))
        .map_err(kube::Error::BuildRequest)?;
    let found: Value = answer(client.request(request)).await?;
    let object = &found["items"][0];
    let Some(managers) = unclaimed(object, FIELD_MANAGER) else {
        return Ok(None);
    };
    let version = &object["metadata"]["resourceVersion"];
    if version.as_str() != meta.resource_version.as_deref() {
        return Ok(None);
    }
    let patch = json!({ "metadata": { "managedFields": managers, "resourceVersion": version } });
    let params = merge_by(FIELD_MANAGER);
    let taken = answer(api.patch(name, &params, &Patch::Merge(patch))).await?;
    Ok(Some(taken))
}

/// Removes what others left in the status, by the merge patch of [`removal`](crate::reconcile::leftover::removal);
/// returns the new object.
///
/// # Errors
///
/// Those of [`write`]; the status itself is written already.
pub(crate) async fn take_away<K: LifecycleObject>(
    client: &Client,
    meta: &ObjectMeta,
    removal: &Value,
) -> Result<Guarded<K>, kube::Error> {
    let (api, name) = api_of::<Guarded<K>>(client, meta);
    let params = merge_by(FIELD_MANAGER);
    answer(api.patch_status(name, &params, &Patch::Merge(removal))).await
}
