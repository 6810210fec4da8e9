//! The decision of a reconciliation: from graphs, record and facts to one effect, or to rest.
//!
//! A reconciliation is a loop that makes no decisions of its own:
//!
//! ```text
//!   facts ──▶ decide ──▶ an effect ──▶ its result is a fact of the next decision ──▶ decide ──▶ … ──▶ rest
//! ```
//!
//! [`decide`](crate::decide()) decides about the lifecycle; [`decide`] here composes that with the pass, the owned
//! resources, the operator and the writes. Effects come in this order, and the first that is needed wins:
//!
//! | question | effect |
//! |---|---|
//! | may the operator act, and has it seen its own last write? | rest |
//! | does a task run that is not the work on record? | [`Cancel`](Effect::Cancel) |
//! | is the operator shutting down, with nothing under way? | rest |
//! | was a write refused? | [`ShowFailure`](Effect::ShowFailure), then rest until the retry |
//! | is the object abandoned while it is being deleted? | [`DropFinalizer`](Effect::DropFinalizer) |
//! | is the object unreadable, or recorded by a newer operator? | [`ShowUnreadable`](Effect::ShowUnreadable), or rest |
//! | does the object lack the finalizer that it needs? | [`AddFinalizer`](Effect::AddFinalizer) |
//! | in which state is the application? | [`Observe`](Effect::Observe) |
//! | must the pass run? | [`RunPass`](Effect::RunPass) |
//! | may the object be deleted? | [`Clear`](Effect::Clear), then [`DropFinalizer`](Effect::DropFinalizer) |
//! | are the owned resources as the state declares? | [`Apply`](Effect::Apply) |
//! | is there anything to record or to report? | [`Draft`](Effect::Draft), then [`Commit`](Effect::Commit) |
//! | may the work on record start? | [`Start`](Effect::Start) |
//!
//! A crash between any two effects is a state of the model in `tests/reconcile`, which explores this function.

mod draft;
mod effect;
mod facts;
mod requeue;

use core::time::Duration;

pub use self::draft::{Draft, Hold, RunEnd, Standing, WorkChange};
pub use self::effect::{Decision, Effect};
pub use self::facts::{
    Asked, Facts, Graphs, News, ObservedFacts, OperatorFacts, OwnedFacts, PassFacts, Ran, Readable,
    TimeFacts, Waits, WorkFacts, WriteFacts,
};
pub use self::requeue::Requeue;
use self::requeue::requeue;
use crate::decide::{self as life, Ending, Run, Stand, Verdict};
use crate::facts::{ActionResult, Task};
use crate::graph::Mark;
use crate::pass::PassRun;
use crate::record::Recorded;

/// The pass, as it matters for a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassStage {
    /// The pass runs now.
    Run { leaving: bool },
    /// Work may start, and an object may be deleted. `prunes`: everything that the pass declares is known.
    Open { hold: Hold, prunes: bool },
    /// Work may not start, and an object may not be deleted.
    Shut(Hold),
}

/// Decides the next effect, or rest.
///
/// # Guarantees
///
/// - Total and pure: any input gives a decision; the same input gives the same one; nothing panics.
/// - No allocation.
/// - A decision to rest says when the object is reconciled next. It relies on events alone only if nothing is left to
///   do.
pub fn decide(graphs: Graphs<'_>, recorded: &Recorded, facts: &Facts<'_>) -> Decision {
    match first(graphs, facts) {
        Some(decision) => decision,
        None => second(graphs, recorded, facts),
    }
}

/// Decides what comes before the lifecycle and the pass: whether the operator may act upon the object at all.
fn first(graphs: Graphs<'_>, f: &Facts<'_>) -> Option<Decision> {
    let (asked, writes) = (&f.asked, &f.writes);
    let rest = |next: Requeue| Some(Decision::Rest(next));
    if let Some(next) = Requeue::when_it_may_act(f.operator) {
        return rest(next);
    }
    if writes.behind {
        return rest(Requeue::while_behind(f.is_under_way()));
    }
    if f.work.stale {
        return Some(Decision::Do(Effect::Cancel));
    }
    if let Some(next) = Requeue::handover(f) {
        return rest(next);
    }
    if asked.deleting && !asked.finalizer {
        // Others may still hold the object, but the operator has nothing more to do with it.
        return match f.work.task {
            Task::Absent => rest(Requeue::not_ours(f)),
            Task::New | Task::Running | Task::Waiting | Task::Due | Task::Ended(_) => {
                Some(Decision::Do(Effect::Cancel))
            }
        };
    }
    if let Some(left) = writes.wait {
        return if writes.unshown {
            Some(Decision::Do(Effect::ShowFailure))
        } else {
            rest(Requeue::after(left, f))
        };
    }
    let drop = |abandoned| Some(Decision::Do(Effect::DropFinalizer { abandoned }));
    if asked.deleting && asked.abandoned {
        return drop(true);
    }
    match asked.readable {
        Readable::Yes => {}
        Readable::No {
            untouched: true, ..
        } if asked.deleting && graphs.life.is_some() => return drop(false),
        Readable::No { reported: true, .. } => return rest(Requeue::not_ours(f)),
        Readable::No { .. } => return Some(Decision::Do(Effect::ShowUnreadable)),
    }
    if asked.newer {
        return rest(Requeue::not_ours(f));
    }
    if graphs.needs_finalizer() && !asked.finalizer {
        return Some(Decision::Do(Effect::AddFinalizer));
    }
    None
}

/// Decides for the lifecycle, the pass and the owned resources.
fn second(graphs: Graphs<'_>, recorded: &Recorded, f: &Facts<'_>) -> Decision {
    let (asked, writes) = (&f.asked, &f.writes);
    let state = (graphs.life).and_then(|life| life.get(recorded.at()?.state));
    let ended = matches!(f.work.task, Task::Ended(_));

    // --- the lifecycle
    let observes = graphs.life.is_some()
        && !state.is_some_and(|it| it.is(Mark::Leaf))
        && (!ended || f.asked.is_paused());
    if observes && f.sight.observed.is_none() {
        return Decision::Do(Effect::Observe);
    }
    let in_flight = (recorded.at().zip(graphs.life)).is_some_and(|(at, life)| at.in_flight(life));
    if observes && f.sight.spent && !in_flight {
        // The current state of the application is unknown: a write has acted upon the observation. The next
        // reconciliation observes.
        return Decision::Rest(Requeue::after(Requeue::SHORTEST, f));
    }
    let mut step = match graphs.life {
        Some(life) => life::decide(life, recorded, &f.life()),
        None if asked.deleting => Verdict::Release,
        None => Verdict::Stand(Stand::Settled),
    };
    let releases = step == (Verdict::Release);

    // --- the pass
    let (opens, mut hold, prunes) = match pass_stage(graphs, recorded, f, releases) {
        PassStage::Run { leaving } => return Decision::Do(Effect::RunPass { leaving }),
        PassStage::Open { hold, prunes } => (true, hold, prunes),
        PassStage::Shut(hold) => (false, hold, false),
    };

    // --- deletion: the path of the pass, then what Kubernetes does not delete, then the finalizer
    if releases {
        if opens {
            match f.owned.cleared {
                None => return Decision::Do(Effect::Clear),
                Some(true) => return Decision::Do(Effect::DropFinalizer { abandoned: false }),
                Some(false) => hold = Hold::Resources(Standing::Awaited),
            }
        }
        // The last work is over, and does not start again meanwhile.
        step = if ended {
            Verdict::End(Ending::Well)
        } else {
            Verdict::Stand(Stand::Settled)
        };
    }

    // --- the resources of the state on record, unless the object leaves it
    let goes = matches!(step, Verdict::Go(_));
    let applies =
        state.is_some() && !goes && !releases && opens && !f.asked.is_paused() && f.may_start();
    if applies && f.owned.standing.is_none() {
        let may_prune =
            (recorded.at().zip(graphs.life)).is_some_and(|(at, life)| at.may_prune(life));
        return Decision::Do(Effect::Apply {
            creates: !asked.deleting,
            prunes: prunes && may_prune,
        });
    }
    if hold == Hold::None && !asked.deleting {
        hold = hold_of_resources(graphs, &step, f);
    }

    // --- what is recorded and reported
    let after = match graphs.life {
        Some(life) => recorded.after(life, &f.life(), &step),
        None => *recorded,
    };
    let is_stored = after == *recorded;
    // A pass without a lifecycle reports only if it ran.
    let silent = graphs.life.is_none()
        && f.pass.ran.is_none()
        && !f.asked.is_paused()
        && !(releases && opens);
    let mut side = None;
    let draft = Draft {
        record: after,
        step: reported(step),
        hold,
        work: work_change(graphs, &after, &step, f),
    };
    if !silent && !is_written(&draft, f) {
        let news = match writes.draft {
            Some((drafted, news)) if drafted == draft => news,
            Some(_) | None => return Decision::Do(Effect::Draft(draft)),
        };
        let patch = match news {
            News::Main => true,
            News::Side if writes.side_wait.is_zero() => true,
            News::Side => {
                side = Some(writes.side_wait);
                false
            }
            News::None | News::Vain => false,
        };
        // If a write did not change the stored record, the work stays as it is.
        if patch || (is_stored && draft.work != WorkChange::Keep) {
            return Decision::Do(Effect::Commit { draft, patch });
        }
    }

    // --- work starts only by a record that is written
    if let (Verdict::Run(run), true) = (step, is_stored) {
        let free = asked.deleting || (opens && f.owned.standing == Some(Standing::AsDeclared));
        if free && f.may_start() && f.work.waits.is_none() {
            return Decision::Do(Effect::Start {
                resumed: run == Run::Resume,
            });
        }
    }
    Decision::Rest(requeue(graphs, recorded, &step, hold, side, f))
}

/// Returns why the owned resources keep the object from being ready.
fn hold_of_resources(graphs: Graphs<'_>, step: &Verdict, f: &Facts<'_>) -> Hold {
    let Some(life) = graphs.life else {
        return Hold::None;
    };
    if let Verdict::Go(go) = step {
        let is_idle = life.get(go.to).is_some_and(|to| to.is(Mark::Idle));
        // The idle state would be reported as reached before its resources are checked.
        return if f.owned.kinds && is_idle {
            Hold::Unchecked
        } else {
            Hold::None
        };
    }
    match f.owned.standing.or(f.owned.last) {
        Some(Standing::AsDeclared) => Hold::None,
        Some(standing) => Hold::Resources(standing),
        None => Hold::AsBefore,
    }
}

fn pass_stage(graphs: Graphs<'_>, recorded: &Recorded, f: &Facts<'_>, releases: bool) -> PassStage {
    let Some(graph) = graphs.pass else {
        return PassStage::Open {
            hold: Hold::None,
            prunes: true,
        };
    };
    let has_life = graphs.life.is_some();
    let leaving = releases && PassRun::finalizes(graph);
    if has_life && *recorded == Recorded::Nothing && !releases {
        // The objects of the pass would look like a sign that the application exists.
        return PassStage::Shut(Hold::None);
    }
    if leaving && !f.may_start() {
        return PassStage::Shut(Hold::Stopping);
    }
    if f.asked.deleting && !leaving {
        // The objects of the pass stay until the lifecycle has ended.
        return PassStage::Open {
            hold: Hold::None,
            prunes: false,
        };
    }
    if f.asked.is_paused() || !f.may_start() {
        return PassStage::Shut(match f.pass.last {
            None => Hold::AsBefore,
            Some(RunEnd::Complete) => Hold::None,
            Some(end) => Hold::Pass(end),
        });
    }
    if let Some(ran) = f.pass.ran.filter(|ran| ran.leaving == leaving) {
        return match ran.end {
            RunEnd::Complete => PassStage::Open {
                hold: Hold::None,
                prunes: true,
            },
            RunEnd::Short => PassStage::Open {
                hold: Hold::Pass(ran.end),
                prunes: true,
            },
            RunEnd::Held | RunEnd::GaveUp => PassStage::Shut(Hold::Pass(ran.end)),
        };
    }
    let is_over = |left: Option<Duration>| left.is_some_and(|left| left.is_zero());
    let due = is_over(f.pass.due) || (!has_life && is_over(f.owned.due));
    let named = f.pass.named || due;
    if f.pass.backoff.is_some() && !named {
        // Events that have nothing to do with the failure do not bring the retry forward.
        return PassStage::Shut(Hold::Pass(RunEnd::Held));
    }
    if !has_life && !f.pass.changed && !named {
        // The result of the last run is reported; it lets nothing start.
        return PassStage::Shut(Hold::AsBefore);
    }
    PassStage::Run { leaving }
}

/// Returns the step as it is reported: without the parts that time or the start of work changes, so that one draft
/// serves for both.
fn reported(step: Verdict) -> Verdict {
    match step {
        Verdict::Stand(Stand::LoopGuard(_)) => Verdict::Stand(Stand::LoopGuard(Duration::ZERO)),
        Verdict::Run(Run::Begin | Run::Resume | Run::Again) => Verdict::Stand(Stand::Running),
        step => step,
    }
}

/// Returns whether the write of the move into this state reported everything: its work is only about to start.
fn is_written(draft: &Draft, f: &Facts<'_>) -> bool {
    (f.writes.written).is_some_and(|written| {
        written.is_move()
            && draft.step == Verdict::Stand(Stand::Running)
            && draft.work == WorkChange::Keep
            && (draft.record, draft.hold) == (written.record, written.hold)
    })
}

/// Returns how the work changes with the write of a step.
fn work_change(graphs: Graphs<'_>, after: &Recorded, step: &Verdict, f: &Facts<'_>) -> WorkChange {
    let in_flight = (after.at().zip(graphs.life)).is_some_and(|(at, life)| at.in_flight(life));
    match (step, f.work.task) {
        (Verdict::Go(_), _) if in_flight => WorkChange::New,
        (Verdict::Go(_) | Verdict::End(_), _) => WorkChange::None,
        (Verdict::Run(Run::Changed | Run::Amended), _) => WorkChange::New,
        (Verdict::Retry { .. }, _) => WorkChange::Retry,
        (Verdict::Stand(Stand::Waiting), Task::Ended(ActionResult::Wait)) => WorkChange::Wait,
        (Verdict::Run(_) | Verdict::Stand(_) | Verdict::Release, _) => WorkChange::Keep,
    }
}
