//! Plants bugs, one at a time: a model that does not find them proves nothing. A module of the machine, so that it can
//! change what only the machine may change; it exists in tests only.

use core::time::Duration;

use super::work::{WorkRun, WorkStage};
use super::{Draft, Facts, Machine, ResourceStatus, RunEnd, Setup, TaskId, Time, Version, Waits};
use crate::facts::{ActionResult, Observed};
use crate::gate::GateId;

/// A mistake in the machine, or in the shell that performs its effects.
///
/// Mistakes of the shell are planted in the world.
#[allow(dead_code, reason = "the unit tests of the crate plant none")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    // --- in a decision
    OldVersionActedUpon,
    /// Work that is not in flight according to the record is not cancelled.
    StaleWorkKept,
    ReleasedWithoutPass,
    /// A pass that gave up on the path for deletion counts as done.
    GiveUpTakenForDone,
    PrunedAfterJump,
    CreatedWhileDeleting,
    BegunBeforeRecorded,
    /// A handler goes on although what it asked for is not recorded.
    GoneOnBeforeRecorded,
    /// Nothing is recorded for a handler that waits for it.
    RecordForgotten,
    BegunAlthoughNotReady,
    /// An action starts although a cancelled one has not ended.
    BegunBesideEnding,
    BegunWhileStopping,
    PauseIgnored,
    TwoLeaders,
    NoResourceVersion,
    FailureNeverShown,
    RetryWithoutTime,
    /// A request begins although only the cache has it.
    RequestTakenFromCache,
    /// The next request replaces one whose outcome is not written.
    ReplacedUndelivered,
    /// A queue of requests skips one.
    RequestSkipped,
    OutcomeNeverDelivered,
    /// A request that is not in the cache counts as deleted.
    MissingTakenForGone,
    OutcomeLostAtDeletion,
    GateIgnored,
    /// A place by another version counts.
    OldPlaceUsed,
    /// A place that is not used is kept.
    UnusedPlaceKept,
    /// A move that is made in any case is not registered.
    PlaceUnregistered,
    OutdatedForgotten,
    /// If only an event can help, there is no requeue time in case the event is lost.
    SafetyForgotten,
    /// A time that has passed without effect is used again.
    PassedTimeNamed,

    // --- in the memory
    /// The status of the owned resources of one state counts in the next one too.
    StatusOfFormerStateKept,
    NewWorkKeptByFormerLeader,
    FailedWriteForgotten,
    WorkChangedAfterFailedWrite,
    ObservationNotSpent,
    /// The findings of a run of the pass count as written before they are.
    FindingsForgotten,
    /// The lack of a permit for an action is forgotten at once.
    PermitForgotten,
    OwnWriteForgotten,
    ResultTakenTwice,
    /// The findings of one reconciliation count in the next one too, which a reconcile request has caused.
    FindingKeptOverRequest,
    /// The end of a cancelled task counts as the answer of the work on record.
    AnswerOfOlderAttempt,
    DeadlineStartLost,
    /// A transition for another reason counts as the one for a changed part of the spec.
    PartTakenByAnyEdge,
    /// A write that changed nothing keeps the same write from other versions too.
    VersionOfVainWriteKept,
    /// A write that changed nothing stays enough although what others left in the status is not removed yet.
    VainWriteForGood,
    /// An object that once waited for a permit waits for ever.
    AbandonedPermitKept,
    /// A change of the leadership between two effects of a reconciliation.
    LeaderChangeMissed,
    /// A task whose work is no longer on record is not cancelled.
    OrphanForgotten,
    /// It is not remembered that a cancelled task has not ended.
    EndingForgotten,
    /// An object at rest is forgotten although a result waits for its write.
    ResultForgottenAtRest,
}

#[allow(dead_code, reason = "the unit tests of the crate plant none")]
impl Bug {
    /// Returns how the facts of a decision change.
    pub(crate) fn mistake(self) -> Option<fn(&mut Facts<'_>)> {
        Some(match self {
            Self::OldVersionActedUpon => |facts| facts.writes.behind = false,
            Self::StaleWorkKept => |facts| facts.work.stale = false,
            Self::GiveUpTakenForDone => |facts| {
                if let Some(ran) = &mut facts.pass.ran
                    && ran.leaving
                    && ran.end == RunEnd::GaveUp
                {
                    ran.end = RunEnd::Complete;
                }
            },
            Self::BegunAlthoughNotReady => |facts| {
                let status = &mut facts.resources.status;
                *status = status.and(Some(ResourceStatus::AsDeclared));
            },
            Self::BegunBesideEnding => |facts| {
                facts.work.waits.take_if(|waits| *waits == Waits::Ending);
            },
            Self::BegunWhileStopping => |facts| facts.operator.draining = false,
            Self::FailureNeverShown => |facts| facts.writes.unshown = false,
            Self::RetryWithoutTime => |facts| facts.work.due = None,
            Self::RecordForgotten => |facts| facts.work.to_record = false,
            Self::RequestTakenFromCache => |facts| {
                facts.requests.confirmed = facts.life.request.map(|next| next.token);
            },
            Self::OutcomeNeverDelivered => |facts| facts.requests.to_deliver = false,
            Self::UnusedPlaceKept => |facts| facts.life.has_unused_place = false,
            Self::PlaceUnregistered => |facts| {
                facts.forced_limits = facts.forced_limits.with(GateId(0));
            },
            Self::OutdatedForgotten => |facts| facts.life.outdated = None,
            Self::OutcomeLostAtDeletion => |facts| facts.requests.is_patient = false,
            Self::MissingTakenForGone => |facts| {
                facts.life.is_aborted = facts.object.requests.is_missing;
            },
            _ => return None,
        })
    }
}

/// A moment that every moment before it becomes.
const NOW: Time = Time::after_origin(Duration::from_hours(24));

#[allow(dead_code, reason = "the unit tests of the crate plant nothing")]
impl Machine {
    /// Changes the memory after it has taken something in. `before` is the memory before that.
    pub(crate) fn spoil(&mut self, bug: Bug, before: &Self) {
        let (writes, work) = (&mut self.writes, &mut self.work);
        match bug {
            Bug::OwnWriteForgotten => writes.last.version = before.writes.last.version,
            Bug::FailedWriteForgotten if writes.trouble.times > before.writes.trouble.times => {
                writes.trouble = before.writes.trouble;
            }
            Bug::VersionOfVainWriteKept if self.findings.is_begun => {
                if let Some(vain) = &mut writes.vain {
                    vain.version = self.findings.object.version;
                }
            }
            Bug::VainWriteForGood => {
                if let Some(vain) = &mut writes.vain {
                    vain.until = None;
                }
            }
            Bug::ResultTakenTwice if before.work.has_ended() && !work.has_ended() => {
                work.run = before.work.run;
            }
            Bug::NewWorkKeptByFormerLeader if work.run.is_none() => {
                let is_new = |run: &WorkRun| run.stage == WorkStage::New;
                work.run = before.work.run.filter(is_new);
            }
            Bug::OrphanForgotten => work.orphan = None,
            Bug::EndingForgotten => work.is_ending &= before.work.is_ending,
            Bug::StatusOfFormerStateKept => {
                let (resources, before) = (&mut self.resources, &before.resources);
                if before.found.is_some() && resources.found.is_none() {
                    resources.found = Some(resources.transition);
                    resources.status = before.status;
                }
            }
            Bug::FindingsForgotten => {
                writes.last.reported |= before.writes.last.reported;
                self.pass.is_unreported = false;
            }
            Bug::AbandonedPermitKept if self.findings.is_begun => {
                self.findings.waits = self.findings.waits.or(before.findings.waits);
            }
            Bug::FindingKeptOverRequest if self.findings.effects == 0 && self.findings.is_named => {
                self.findings.pass = before.findings.pass;
                self.findings.is_applied = before.findings.is_applied;
            }
            Bug::ObservationNotSpent if self.findings.is_observation_spent => {
                self.findings.is_observation_spent = false;
                self.findings.observed.get_or_insert(Observed::Unobserved);
            }
            Bug::PermitForgotten => self.findings.waits = None,
            _ => {}
        }
    }

    /// Changes the work as in a draft that was not written.
    pub(crate) fn change_work_anyway(&mut self, draft: &Draft, setup: &Setup<'_>, now: Time) {
        self.take_effect(draft, false, setup, now);
    }

    /// Takes an answer for whatever work runs.
    pub(crate) fn take_any_answer(&mut self) {
        if let Some(run) = &mut self.work.run {
            run.stage = WorkStage::Ended(ActionResult::Next);
        }
    }

    /// Returns the same machine with times and versions relative to the present, so that two machines that will do the
    /// same have the same hash. `newest` is the newest version, and `oldest` the oldest that can still be seen.
    pub(crate) fn normalized(&self, now: Time, oldest: u64, newest: u64) -> Self {
        let mut machine = self.clone();
        // Destructured, so that a new field has to be considered here.
        let Self {
            writes,
            work,
            observation,
            pass,
            resources,
            requests,
            is_named: _,
            findings,
        } = &mut machine;
        let is_over = writes
            .last
            .version
            .is_some_and(|last| age(last, oldest, newest) == Version::Other(0));
        let is_oldest = writes.last.version == Some(Version::Number(oldest));
        if !writes.last.reported && (is_over || is_oldest) {
            writes.last.version = None;
        }
        let mut versions = [
            writes.last.version.as_mut(),
            writes.trouble.reported_at.as_mut(),
            writes.vain.as_mut().and_then(|vain| vain.version.as_mut()),
            findings.object.version.as_mut(),
        ];
        for version in versions.iter_mut().flatten() {
            **version = age(**version, oldest, newest);
        }
        if let Some((_, super::writes::Scope::Version(Some(version)))) = &mut writes.trouble.wait {
            *version = age(*version, oldest, newest);
        }
        // What is compared with "five failures" or "more than one attempt".
        writes.trouble.times = writes.trouble.times.min(6);
        requests.reads.failures = 0;
        requests.deliveries.failures = requests.deliveries.failures.min(5);
        let run = work.run.as_mut();
        let due = run.and_then(|run| match &mut run.stage {
            WorkStage::Waiting { due, .. } => Some(due),
            WorkStage::New | WorkStage::Running(_) | WorkStage::Ended(_) => None,
        });
        let mut times = [
            due,
            writes.last.at.as_mut(),
            writes.trouble.since.as_mut(),
            writes.trouble.wait.as_mut().map(|(until, _)| until),
            writes.behind_since.as_mut(),
            writes.vain.as_mut().and_then(|vain| vain.until.as_mut()),
            writes.leftovers_removed.as_mut(),
            observation.absent_since.as_mut(),
            observation.absent_at.as_mut(),
            observation.silence.until.as_mut(),
            observation.extra_silence.until.as_mut(),
            pass.waits.as_mut().map(|(until, _)| until),
            pass.due.as_mut(),
            resources.due.as_mut(),
            resources.patience.as_mut(),
            resources.delivery_patience.as_mut(),
            requests.reads.until.as_mut(),
            requests.deliveries.until.as_mut(),
            Some(&mut findings.read_at),
        ];
        for time in times.iter_mut().flatten() {
            let has_passed = **time < now;
            **time = if has_passed {
                Time::default()
            } else {
                NOW.after(time.left(now))
            };
        }
        work.last_task = TaskId::default();
        if let Some(run) = &mut work.run
            && let WorkStage::Running(task) = &mut run.stage
        {
            *task = TaskId::default();
        }
        machine
    }
}

/// Returns how far a version is from the newest one; the same for all that are no longer seen.
fn age(version: Version, oldest: u64, newest: u64) -> Version {
    match version {
        Version::Number(number) if number >= oldest => Version::Number(newest.abs_diff(number)),
        Version::Number(_) | Version::Other(_) => Version::Other(0),
    }
}
