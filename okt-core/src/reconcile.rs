//! The only judge of a reconciliation: from graphs, record and facts to one effect, or to rest.
//!
//! A reconciliation is a loop that cannot decide:
//!
//! ```text
//!   facts ──▶ decide ──▶ an effect ──▶ its result is a fact of the next decision ──▶ decide ──▶ … ──▶ rest
//! ```
//!
//! [`decide`](crate::decide()) says where a lifecycle goes; [`decide`] here composes that with the pass, the owned
//! resources, the operator and the writes. Effects come in this order, and the first that is needed wins:
//!
//! | question | effect |
//! |---|---|
//! | may the operator act at all, and has it seen its own last write? | rest |
//! | does a task run that is not the work on record? | [`Cancel`](Effect::Cancel) |
//! | is the operator stopping, with nothing under way? | rest |
//! | was a write refused? | [`ShowFailure`](Effect::ShowFailure), then rest until it is tried again |
//! | is the object given up, unreadable, of a newer operator, without finalizer? | the finalizer, or rest |
//! | where is the application? | [`Observe`](Effect::Observe) |
//! | what does the pass say? | [`RunPass`](Effect::RunPass) |
//! | may the object go? | [`Clear`](Effect::Clear), then [`DropFinalizer`](Effect::DropFinalizer) |
//! | are the owned resources as the state declares? | [`Apply`](Effect::Apply) |
//! | is there anything to record or to report? | [`Draft`](Effect::Draft), then [`Commit`](Effect::Commit) |
//! | may the work on record begin? | [`Start`](Effect::Start) |
//!
//! A crash between any two effects is a state of the model in `tests/reconcile`, which explores this very function.

mod draft;
mod effect;
mod facts;
mod requeue;

use core::time::Duration;

pub use self::draft::{Draft, Hold, RunEnd, Standing, WorkChange};
pub use self::effect::{Decision, Effect};
pub use self::facts::{
    Asked, Facts, Graphs, News, Operator, Owned, Pass, Ran, Readable, Sight, Time, Waits, Work,
    Writes,
};
pub use self::requeue::Requeue;
use self::requeue::requeue;
use crate::decide::{self as life, Decision as Step, Ending, Run, Stand};
use crate::facts::{Said, Task};
use crate::graph::Mark;
use crate::pass::PassRun;
use crate::record::Recorded;

/// What the pass means for a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassStage {
    /// It is to run now.
    Run { leaving: bool },
    /// Work may begin, and an object may go; `prunes`: all is known that the pass declares.
    Open { hold: Hold, prunes: bool },
    /// Neither.
    Shut(Hold),
}

/// Decides what is done next.
///
/// # Guarantees
///
/// - Total and pure: any input gives a decision; the same input gives the same one; nothing panics.
/// - No allocation.
/// - A decision to rest says when the object is reconciled next, and leaves it to events only where nothing is undone.
pub fn decide(graphs: Graphs<'_>, recorded: &Recorded, facts: &Facts<'_>) -> Decision {
    match first(graphs, facts) {
        Some(decision) => decision,
        None => second(graphs, recorded, facts),
    }
}

/// What comes before the lifecycle and the pass: whether the object may be acted upon at all.
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
        // Others may still hold the object; nothing of it is the operator's any more.
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

/// What the lifecycle, the pass and the owned resources ask for.
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
        // Where the application is now is not known: what was said of it led here. The next reconciliation asks.
        return Decision::Rest(Requeue::after(Requeue::SHORTEST, f));
    }
    let mut step = match graphs.life {
        Some(life) => life::decide(life, recorded, &f.life()),
        None if asked.deleting => Step::Release { abandoned: false },
        None => Step::Stand(Stand::Settled),
    };
    let releases = step == (Step::Release { abandoned: false });

    // --- the pass
    let (opens, mut hold, prunes) = match pass_stage(graphs, recorded, f, releases) {
        PassStage::Run { leaving } => return Decision::Do(Effect::RunPass { leaving }),
        PassStage::Open { hold, prunes } => (true, hold, prunes),
        PassStage::Shut(hold) => (false, hold, false),
    };

    // --- it may go: the pass's way for deletion, then what Kubernetes does not delete, then the finalizer
    if releases {
        if opens {
            match f.owned.cleared {
                None => return Decision::Do(Effect::Clear),
                Some(true) => return Decision::Do(Effect::DropFinalizer { abandoned: false }),
                Some(false) => hold = Hold::Resources(Standing::Awaited),
            }
        }
        // The last work is over, and does not begin again meanwhile.
        step = if ended {
            Step::End(Ending::Well)
        } else {
            Step::Stand(Stand::Settled)
        };
    }

    // --- what the state on record owns, unless it is being left
    let goes = matches!(step, Step::Go(_));
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
    // A pass without a lifecycle has something to report where it ran.
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
        // A record that is written in vain is not stored, and the work stays as it is.
        if patch || (is_stored && draft.work != WorkChange::Keep) {
            return Decision::Do(Effect::Commit { draft, patch });
        }
    }

    // --- work begins only by a record that is written
    if let (Step::Run(run), true) = (step, is_stored) {
        let free = asked.deleting || (opens && f.owned.standing == Some(Standing::AsDeclared));
        if free && f.may_start() && f.work.waits.is_none() {
            return Decision::Do(Effect::Start {
                resumed: run == Run::Resume,
            });
        }
    }
    Decision::Rest(requeue(graphs, recorded, &step, hold, side, f))
}

/// Why the owned resources keep the object from being ready.
fn hold_of_resources(graphs: Graphs<'_>, step: &Step, f: &Facts<'_>) -> Hold {
    let Some(life) = graphs.life else {
        return Hold::None;
    };
    if let Step::Go(go) = step {
        let is_idle = life.get(go.to).is_some_and(|to| to.is(Mark::Idle));
        // It would be reported as reached before anything of it is there.
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
        // What the pass makes would be taken for a sign that the application is there.
        return PassStage::Shut(Hold::None);
    }
    if leaving && !f.may_start() {
        return PassStage::Shut(Hold::Stopping);
    }
    if f.asked.deleting && !leaving {
        // What the pass put outlives the life.
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
        // Events that have nothing to do with what failed do not bring it forward.
        return PassStage::Shut(Hold::Pass(RunEnd::Held));
    }
    if !has_life && !f.pass.changed && !named {
        // What the last run found is reported; it opens nothing.
        return PassStage::Shut(Hold::AsBefore);
    }
    PassStage::Run { leaving }
}

/// The step as it is reported: without what time or the start of work changes, so that one draft serves for both.
fn reported(step: Step) -> Step {
    match step {
        Step::Stand(Stand::Braking(_)) => Step::Stand(Stand::Braking(Duration::ZERO)),
        Step::Run(Run::Begin | Run::Resume | Run::Again) => Step::Stand(Stand::Running),
        step => step,
    }
}

/// Whether the write of the move into this state has reported all there is: its work is only about to begin.
fn is_written(draft: &Draft, f: &Facts<'_>) -> bool {
    (f.writes.written).is_some_and(|written| {
        written.is_move()
            && draft.step == Step::Stand(Stand::Running)
            && draft.work == WorkChange::Keep
            && (draft.record, draft.hold) == (written.record, written.hold)
    })
}

/// What the work becomes with the write of a step.
fn work_change(graphs: Graphs<'_>, after: &Recorded, step: &Step, f: &Facts<'_>) -> WorkChange {
    let in_flight = (after.at().zip(graphs.life)).is_some_and(|(at, life)| at.in_flight(life));
    match (step, f.work.task) {
        (Step::Go(_), _) if in_flight => WorkChange::New,
        (Step::Go(_) | Step::End(_), _) => WorkChange::None,
        (Step::Run(Run::Changed | Run::Amended), _) => WorkChange::New,
        (Step::Retry { .. }, _) => WorkChange::Retry,
        (Step::Stand(Stand::Waiting), Task::Ended(Said::Wait)) => WorkChange::Wait,
        (Step::Run(_) | Step::Stand(_) | Step::Release { .. }, _) => WorkChange::Keep,
    }
}
