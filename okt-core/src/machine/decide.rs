//! The decision of a reconciliation: from graphs, record and facts to one effect, or to rest.
//!
//! [`decide`](crate::decide()) decides about the lifecycle; [`decide`] here composes that with the pass, the owned
//! resources, the operator and the writes. Effects come in this order, and the first that is needed wins:
//!
//! | question | effect |
//! |---|---|
//! | may the operator act, and has it seen its own last write? | rest |
//! | does a task run that is not the work on record? | [`Cancel`] |
//! | is the operator shutting down, with nothing under way? | rest |
//! | was a write refused? | [`ShowFailure`], then rest until the retry |
//! | is the object abandoned while it is being deleted? | [`DropFinalizer`] |
//! | is the object unreadable, or recorded by a newer operator? | [`ShowUnreadable`], or rest |
//! | does the object lack the finalizer that it needs? | [`AddFinalizer`] |
//! | have others left something in the status that was just written? | [`RemoveLeftovers`] |
//! | does the handler that runs wait until something is recorded? | [`Record`] |
//! | is nothing recorded, and are there requests? | [`Deliver`] |
//! | in which state is the application? | [`Observe`] |
//! | must the pass run? | [`RunPass`] |
//! | may the object be deleted? | [`Deliver`], [`Clear`], then [`DropFinalizer`] |
//! | are the owned resources as the state declares? | [`Apply`] |
//! | is there a request that begins, or that may be gone? | [`ReadRequest`] |
//! | does a move lead into a limit, or wait before one? | [`TakePlace`] |
//! | is there anything to record or to report? | [`Render`], then [`TakeOver`] and [`Commit`], or [`ChangeWork`] |
//! | may the work on record start? | [`Start`] |
//! | must outcomes be written into requests? | [`Deliver`] |
//!
//! A crash between any two effects is a state of the model in `tests/reconcile`, which explores this function.

use core::time::Duration;

use super::draft::{Draft, NotReadyReason, ResourceStatus, RunEnd, WorkChange};
use super::effect::{
    AddFinalizer, Apply, Cancel, ChangeWork, Clear, Commit, Decision, Deliver, DropFinalizer,
    Observe, ReadRequest, Record, RemoveLeftovers, Render, RunPass, ShowFailure, ShowUnreadable,
    Start, TakeOver, TakePlace,
};
use super::facts::{Facts, StatusDiff};
use super::object::{Readable, TaskId, WorkId};
use super::requeue::{Requeue, requeue};
use crate::decide::{self as lifecycle, Ending, Run, StayReason, Verdict};
use crate::facts::{LifecycleFacts, Task};
use crate::gate::{GateId, GateKind};
use crate::graph::{Cause, Mark, StateId};
use crate::pass::PassRun;
use crate::record::Recorded;

/// The pass, as it matters for a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassStage {
    /// The pass runs now.
    Run { leaving: bool },
    /// Work may start, and an object may be deleted. `prunes`: everything that the pass declares is known.
    Open {
        not_ready: NotReadyReason,
        prunes: bool,
    },
    /// Work may not start, and an object may not be deleted.
    Shut(NotReadyReason),
}

/// Decides the next effect, or rest.
///
/// It is total and pure: any input gives a decision; the same input gives the same one; nothing panics or allocates.
pub(super) fn decide(f: &Facts<'_>) -> Decision {
    check_admission(f).unwrap_or_else(|| decide_work(f))
}

/// Decides what comes before the lifecycle and the pass: whether the operator may act upon the object at all.
fn check_admission(f: &Facts<'_>) -> Option<Decision> {
    let (object, writes) = (f.object, &f.writes);
    let rest = |next: Requeue| Some(Decision::Rest(next));
    if let Some(next) = Requeue::when_it_may_act(f.operator) {
        return rest(next);
    }
    if writes.behind {
        return rest(Requeue::while_behind(f.is_under_way()));
    }
    if f.work.stale {
        return Some(Cancel::decided(None, false));
    }
    if let Some(next) = Requeue::handover(f) {
        return rest(next);
    }
    if object.deleting && !f.finalizer {
        // Others may still hold the object, but the operator has nothing more to do with it.
        return match f.life.task {
            Task::Absent => rest(Requeue::settled(f)),
            Task::New | Task::Running | Task::Waiting | Task::Due | Task::Ended(_) => {
                Some(Cancel::decided(None, false))
            }
        };
    }
    if let Some(left) = writes.wait {
        return match (writes.unshown, object.inherits) {
            (true, true) => Some(TakeOver::decided()),
            (true, false) => Some(ShowFailure::decided()),
            (false, _) => rest(Requeue::after(left, f)),
        };
    }
    if object.deleting && object.abandoned {
        return Some(DropFinalizer::decided(true));
    }
    match object.readable {
        Readable::Yes => {}
        Readable::No {
            untouched: true, ..
        } if object.deleting && f.graphs.life.is_some() => {
            return Some(DropFinalizer::decided(false));
        }
        Readable::No { .. } if writes.is_unreadable_shown => return rest(Requeue::settled(f)),
        Readable::No { .. } => return Some(ShowUnreadable::decided()),
    }
    if object.newer {
        return rest(Requeue::settled(f));
    }
    if f.gates_change == Some(Duration::ZERO) {
        // The gates are read again.
        return rest(Requeue::after(Requeue::SHORTEST, f));
    }
    (f.graphs.needs_finalizer() && !f.finalizer).then(AddFinalizer::decided)
}

/// Decides for the lifecycle, the pass and the owned resources.
fn decide_work(f: &Facts<'_>) -> Decision {
    let (object, writes, life) = (f.object, &f.writes, f.graphs.life);
    let recorded = &object.recorded;
    let state = life.and_then(|life| life.get(recorded.at()?.state));
    if writes.leftovers {
        return RemoveLeftovers::decided();
    }
    if f.work.to_record {
        return Record::decided();
    }

    // Requests from before the first record may have been served before: they get their outcome while that can be known.
    let is_new = *recorded == Recorded::Nothing && !object.deleting && life.is_some();
    if is_new && f.requests.to_deliver {
        return Deliver::decided();
    }
    let is_blocked = is_new && object.requests.undelivered > 0;

    // --- the lifecycle
    if life.is_some()
        && !is_blocked
        && !state.is_some_and(|it| it.is(Mark::Leaf))
        && must_observe(f)
    {
        return Observe::decided(true);
    }
    let facts = f.for_decision();
    let mut step = verdict(is_blocked, &facts, f);
    let releases = step == Verdict::Release;
    let is_undelivered = object.requests.undelivered > 0 && f.requests.is_patient;

    // --- the pass
    let (opens, mut not_ready, prunes) = match pass_stage(f, releases) {
        _ if is_blocked => (false, NotReadyReason::Requests, false),
        PassStage::Run { leaving } => return RunPass::decided(leaving),
        PassStage::Open { not_ready, prunes } => (true, not_ready, prunes),
        PassStage::Shut(not_ready) => (false, not_ready, false),
    };

    // --- deletion: the path of the pass, then what Kubernetes does not delete, then the finalizer
    if releases {
        if opens {
            match f.resources.cleared {
                None if f.requests.to_deliver => return Deliver::decided(),
                None if is_undelivered => not_ready = NotReadyReason::Requests,
                None => return Clear::decided(),
                Some(true) => return DropFinalizer::decided(false),
                Some(false) => not_ready = NotReadyReason::Resources(ResourceStatus::Awaited),
            }
        }
        // The last work is over, and does not start again meanwhile.
        step = match f.life.task {
            Task::Ended(_) => Verdict::End(Ending::Well),
            Task::Absent | Task::New | Task::Running | Task::Waiting | Task::Due => {
                Verdict::Stay(StayReason::Settled)
            }
        };
    }

    // --- the resources of the state on record, unless the object leaves it
    let goes = matches!(step, Verdict::Go(_));
    let applies =
        state.is_some() && !goes && !releases && opens && !object.is_paused() && f.may_start();
    if applies && f.resources.status.is_none() {
        let position = recorded.at().zip(life);
        let may_prune = position.is_some_and(|(at, life)| at.may_prune(life));
        return Apply::decided(!object.deleting, prunes && may_prune);
    }
    if not_ready == NotReadyReason::None {
        not_ready = if object.deleting {
            needed_resources(&step, f)
        } else {
            unready_resources(&step, f)
        };
    }

    if let Some(token) = unconfirmed(&step, f) {
        return ReadRequest::decided(token);
    }

    // --- what is recorded and reported
    let after = life.map_or(*recorded, |life| recorded.after(life, &facts, &step));
    if let Some((gate, forced)) = missing_place(&step, &after, f) {
        return TakePlace::decided(gate, forced);
    }
    let is_stored = after == *recorded;
    // A pass without a lifecycle reports only if it ran.
    let silent =
        life.is_none() && f.pass.ran.is_none() && !object.is_paused() && !(releases && opens);
    let draft = Draft {
        record: after,
        step: reported(step),
        not_ready,
        work: work_change(&after, &step, f),
    };
    let mut write_wait = None;
    if !silent && !is_written(&draft, f) {
        if let Some(decision) = write_status(draft, is_stored, f) {
            return decision;
        }
        write_wait = wait_of_write(f);
    }

    // --- work starts only by a record that is written
    if let Verdict::Run(run) = step
        && is_stored
        && may_start_work(&step, opens, f)
    {
        let resumed = run == Run::Resume;
        return Start::decided(TaskId::default(), WorkId::default(), 1, resumed, false);
    }
    if f.requests.to_deliver {
        return Deliver::decided();
    }
    Decision::Rest(requeue(&step, not_ready, write_wait, f))
}

/// Returns the request that must be read now: the next one before the move that begins it, or the one on record, if its
/// deletion leads out of the state.
fn unconfirmed(step: &Verdict, f: &Facts<'_>) -> Option<u64> {
    let (record, life) = f.object.recorded.at().zip(f.graphs.life)?;
    let token = match step {
        Verdict::Go(go) if record.begins(*go) => f.life.request?.token,
        _ => {
            let served = record
                .served()
                .filter(|it| it.state.known() == Some(record.state));
            let mut triggers = life.get(record.state)?.triggers.iter();
            let aborts = triggers.any(|trigger| trigger.cause == Cause::OnAbort);
            let may_be_gone = f.object.requests.is_missing && f.requests.may_read;
            let served = served.filter(|_| aborts && may_be_gone && !f.life.is_aborted)?;
            served.token
        }
    };
    (f.requests.confirmed != Some(token)).then_some(token)
}

/// Returns what the lifecycle asks for; `is_blocked`: nothing, before outcomes of requests are delivered.
fn verdict(is_blocked: bool, facts: &LifecycleFacts<'_>, f: &Facts<'_>) -> Verdict {
    match f.graphs.life {
        _ if is_blocked => Verdict::Stay(StayReason::Unsure),
        Some(life) => lifecycle::decide(life, &f.object.recorded, facts),
        None if f.object.deleting => Verdict::Release,
        None => Verdict::Stay(StayReason::Settled),
    }
}

/// Returns the limit that must be asked for a place now, and whether the move into it is made in any case.
fn missing_place(step: &Verdict, after: &Recorded, f: &Facts<'_>) -> Option<(GateId, bool)> {
    let life = f.graphs.life.filter(|life| !life.gates.is_empty())?;
    let is_limit = |gate: GateId| {
        let gate = life.gates.get(gate.index());
        gate.is_some_and(|gate| gate.kind == GateKind::Limit)
    };
    if let Verdict::Go(go) = step {
        let from = f
            .object
            .recorded
            .at()
            .map_or(StateId::UNKNOWN, |at| at.state);
        let mut entered = life.gates_between(from, go.to).map(|(gate, _)| gate);
        let tried = f.forced_limits;
        let needs = |gate: GateId| !tried.has(gate) && !f.object.gates.places.has(gate);
        let gate = entered.find(|gate| is_limit(*gate) && needs(*gate))?;
        return Some((gate, true));
    }
    let waiting = after.at()?.waiting?;
    let may_ask = |gate: &GateId| is_limit(*gate) && !f.asked_limits.has(*gate);
    let gate = Some(waiting.gate).filter(|gate| may_ask(gate) && f.may_start())?;
    Some((gate, false))
}

/// Returns whether the state of the application must be known, and is not.
fn must_observe(f: &Facts<'_>) -> bool {
    // Once a write has acted upon an observation, the current state of the application is unknown, unless work runs.
    let is_known =
        f.is_observed && (!f.is_observation_spent || is_in_flight(&f.object.recorded, f));
    let has_ended = matches!(f.life.task, Task::Ended(_));
    !is_known && (!has_ended || f.object.is_paused())
}

fn is_in_flight(recorded: &Recorded, f: &Facts<'_>) -> bool {
    let position = recorded.at().zip(f.graphs.life);
    position.is_some_and(|(at, life)| at.in_flight(life))
}

/// Returns whether the owned resources and the operator let the work of a step start.
fn may_start_work(step: &Verdict, pass_is_open: bool, f: &Facts<'_>) -> bool {
    let is_free = if f.object.deleting {
        needed_resources(step, f) == NotReadyReason::None
    } else {
        pass_is_open && f.resources.status == Some(ResourceStatus::AsDeclared)
    };
    is_free && f.may_start() && f.work.waits.is_none()
}

/// Returns the effect that renders or writes a draft, if one is due.
fn write_status(draft: Draft, is_stored: bool, f: &Facts<'_>) -> Option<Decision> {
    if f.writes.draft.is_none_or(|(drafted, _)| drafted != draft) {
        return Some(Render::decided(draft, true));
    }
    let is_due = wait_of_write(f) == Some(Duration::ZERO);
    if is_due && f.object.inherits {
        return Some(TakeOver::decided());
    }
    if is_due {
        return Some(Commit::decided(draft));
    }
    // If a write did not change the stored record, the work stays as it is.
    let changes_work = is_stored && draft.work != WorkChange::Keep;
    changes_work.then(|| ChangeWork::decided(draft))
}

/// Returns how long until the last draft is to be written; none if it is not.
fn wait_of_write(f: &Facts<'_>) -> Option<Duration> {
    match f.writes.draft?.1 {
        StatusDiff::Main => Some(Duration::ZERO),
        StatusDiff::Side => Some(f.writes.side_wait),
        // The same write is repeated then, after another reconciliation.
        StatusDiff::Vain => f.writes.vain_wait.map(|wait| wait.max(Requeue::SHORTEST)),
        StatusDiff::None => None,
    }
}

/// Returns why the work on the way out of an object that is being deleted waits: of its resources only those count that
/// are made during the deletion. Work that has begun goes on: it may itself delete what it needed.
fn needed_resources(step: &Verdict, f: &Facts<'_>) -> NotReadyReason {
    match (step, f.resources.status) {
        (_, None | Some(ResourceStatus::AsDeclared)) => NotReadyReason::None,
        (Verdict::Run(Run::Begin), Some(status)) => NotReadyReason::Resources(status),
        (_, Some(_)) => NotReadyReason::None,
    }
}

/// Returns why the owned resources keep the object from being ready.
fn unready_resources(step: &Verdict, f: &Facts<'_>) -> NotReadyReason {
    let Some(life) = f.graphs.life else {
        return NotReadyReason::None;
    };
    if let Verdict::Go(go) = step {
        let is_idle = life.get(go.to).is_some_and(|to| to.is(Mark::Idle));
        // The idle state would be reported as reached before its resources are checked.
        return if f.resources.kinds && is_idle {
            NotReadyReason::Unchecked
        } else {
            NotReadyReason::None
        };
    }
    match f.resources.status.or(f.resources.last) {
        Some(ResourceStatus::AsDeclared) => NotReadyReason::None,
        Some(status) => NotReadyReason::Resources(status),
        None => NotReadyReason::AsBefore,
    }
}

fn pass_stage(f: &Facts<'_>, releases: bool) -> PassStage {
    let open = |not_ready, prunes| PassStage::Open { not_ready, prunes };
    let Some(graph) = f.graphs.pass else {
        return open(NotReadyReason::None, true);
    };
    let has_life = f.graphs.life.is_some();
    let leaving = releases && PassRun::finalizes(graph);
    if has_life && f.object.recorded == Recorded::Nothing && !releases {
        // The objects of the pass would look like a sign that the application exists.
        return PassStage::Shut(NotReadyReason::None);
    }
    if leaving && !f.may_start() {
        return PassStage::Shut(NotReadyReason::Stopping);
    }
    if f.object.deleting && !leaving {
        // The objects of the pass stay until the lifecycle has ended.
        return open(NotReadyReason::None, false);
    }
    let not_ready = |end| match end {
        RunEnd::Complete => NotReadyReason::None,
        end => NotReadyReason::Pass(end),
    };
    if f.object.is_paused() || !f.may_start() {
        return PassStage::Shut(f.pass.last.map_or(NotReadyReason::AsBefore, not_ready));
    }
    if let Some(ran) = f.pass.ran.filter(|ran| ran.leaving == leaving) {
        return match ran.end {
            RunEnd::Complete | RunEnd::Short => open(not_ready(ran.end), true),
            RunEnd::Held | RunEnd::GaveUp => PassStage::Shut(not_ready(ran.end)),
        };
    }
    let is_over = |left: Option<Duration>| left.is_some_and(|left| left.is_zero());
    let due = is_over(f.pass.due) || (!has_life && is_over(f.resources.due));
    let named = f.pass.named || due;
    if f.pass.backoff.is_some() && !named {
        // Events that have nothing to do with the failure do not bring the retry forward.
        return PassStage::Shut(NotReadyReason::Pass(RunEnd::Held));
    }
    if !has_life && !f.pass.changed && !named {
        // The result of the last run is reported; it lets nothing start.
        return PassStage::Shut(NotReadyReason::AsBefore);
    }
    PassStage::Run { leaving }
}

/// Returns the step as it is reported: without the parts that time or the start of work changes, so that one draft
/// serves for both.
fn reported(step: Verdict) -> Verdict {
    match step {
        Verdict::Stay(StayReason::LoopGuard(_)) => {
            Verdict::Stay(StayReason::LoopGuard(Duration::ZERO))
        }
        Verdict::Run(Run::Begin | Run::Resume | Run::Again) => Verdict::Stay(StayReason::Running),
        step => step,
    }
}

/// Returns whether the write of the move into this state reported everything: its work is only about to start.
fn is_written(draft: &Draft, f: &Facts<'_>) -> bool {
    f.writes.written.is_some_and(|written| {
        written.is_move()
            && draft.step == Verdict::Stay(StayReason::Running)
            && draft.work == WorkChange::Keep
            && (draft.record, draft.not_ready) == (written.record, written.not_ready)
    })
}

/// Returns how the work changes with the write of a step.
fn work_change(after: &Recorded, step: &Verdict, f: &Facts<'_>) -> WorkChange {
    match (step, f.life.task) {
        (Verdict::Go(_), _) if is_in_flight(after, f) => WorkChange::New,
        (Verdict::Go(_) | Verdict::End(_), _) => WorkChange::None,
        (Verdict::Run(Run::Changed | Run::Amended), _) => WorkChange::New,
        (Verdict::Retry { .. }, _) => WorkChange::Retry,
        // An answer that leads through a gate that is shut counts as `Wait`.
        (Verdict::Stay(StayReason::Waiting), Task::Ended(_)) => WorkChange::Wait,
        (Verdict::Run(_) | Verdict::Stay(_) | Verdict::Release, _) => WorkChange::Keep,
    }
}
