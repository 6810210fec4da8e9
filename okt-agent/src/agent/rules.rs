//! The rules of `docs/sidecar.md`: they decide from the memory how to answer a request.
//!
//! They use no I/O and no clock. The actor carries out a verdict.

use super::memory::{AgentMemory, REMEMBERED_LIMIT, Remembered, fingerprint};
use crate::wire::{
    Acknowledgement, ActionId, ActionRequest, Code, EPOCH_LIMIT, Fence, ObjectRef, Phase, Problem,
    Seen,
};
use crate::work::Offer;

/// The input of the rules besides the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleInput<'a> {
    pub(super) memory: &'a AgentMemory,
    pub(super) offers: &'a [Offer],
    /// The namespace and name that the agent's settings bind it to.
    pub(super) object: Option<&'a ObjectRef>,
    pub(super) graph: Option<&'a str>,
    pub(super) stopping: bool,
    pub(super) seen: &'a Seen,
}

/// The verdict on a request for work that is not refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RuleVerdict {
    /// Answer with the known report.
    Report,
    /// Record this attempt, then begin it.
    Begin { attempt: u32 },
    /// Record it as cancelled, and do not begin it.
    Withdrawn,
}

/// The verdict on a request to cancel that is not refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cancelled {
    /// Answer with the known report, because the action has ended.
    Report,
    /// Cancel the running action.
    End,
    /// Remember the id, because it was not requested yet: if the request still arrives, nothing begins.
    Remember,
}

/// The verdict on an acknowledgement that is not refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Acknowledged {
    /// Answer with the known report, because it was acknowledged before.
    Report,
    /// Record it.
    Take,
}

/// Applies rules 2 to 11 to a request for work, and chooses between 13 and 14. Rule 1 is applied before, rule 12 after.
pub(super) fn asked(
    input: RuleInput<'_>,
    id: &ActionId,
    request: &ActionRequest,
) -> Result<RuleVerdict, Problem> {
    let memory = input.memory;
    let refuse = |code, detail: String| Err(Problem::new(code, detail));

    // 1 and 2: an implausible epoch, or an operator that has lost the leadership.
    epoch(memory, request.fence.epoch)?;

    // 3 and 4: an id always names the same work, which begins again only after its end was acknowledged.
    let known = memory.action(id);
    if let Some(known) = known {
        if let Some(what) = difference(known, request) {
            let detail = format!("{id} names work with another {what}");
            return refuse(Code::OtherWork, detail);
        }
        let again = match known.report.phase {
            Phase::Pending | Phase::Running | Phase::Succeeded => false,
            Phase::Failed | Phase::Unknown | Phase::Cancelled => known.report.acknowledged,
        };
        if !again {
            return Ok(RuleVerdict::Report);
        }
    }

    belongs(memory, input.object, request)?;

    fits_together(input, request)?;
    may_begin_now(input, request)?;

    // 12, as far as it does not need the disk: the number of actions that must not be forgotten is limited.
    let forgotten = memory.forgettable(&request.owner, request.fence).len();
    if known.is_none() && memory.actions().len() - forgotten >= REMEMBERED_LIMIT {
        let detail = format!("{REMEMBERED_LIMIT} actions are not acknowledged");
        return refuse(Code::CannotRecord, detail);
    }
    if memory.is_withdrawn(id) {
        return Ok(RuleVerdict::Withdrawn);
    }
    Ok(RuleVerdict::Begin {
        attempt: known.map_or(1, |known| known.report.attempt.saturating_add(1)),
    })
}

/// Applies rules 5 and 6: the agent belongs to the owner of the request, and the request is not stale.
///
/// The request may be of another object, of a deleted one, or made with a stale view of the object.
fn belongs(
    memory: &AgentMemory,
    object: Option<&ObjectRef>,
    request: &ActionRequest,
) -> Result<(), Problem> {
    let ActionRequest {
        owner: theirs,
        fence,
        ..
    } = request;
    let refuse = |code, detail: String| Err(Problem::new(code, detail));
    let object = memory.object(object).unwrap_or_else(|| theirs.object());
    if object != theirs.object() {
        let detail = format!("this agent belongs to {object}, not to {}", theirs.object());
        return refuse(Code::ForeignOwner, detail);
    }
    let Some(owner) = &memory.owner else {
        return Ok(());
    };
    if owner.uid == theirs.uid {
        if fence.is_older_than(&memory.fence) {
            let Fence {
                transition,
                run,
                recorded_at,
                ..
            } = memory.fence;
            let detail = format!(
                "run {run} of transition {transition}, recorded at {recorded_at}, was taken"
            );
            return refuse(Code::Fenced, detail);
        }
    } else if memory.is_superseded(&theirs.uid) {
        let detail = format!("{} has taken the place of {}", owner.uid, theirs.uid);
        return refuse(Code::ForeignOwner, detail);
    } else if theirs.created_at < owner.created_at {
        let detail = format!(
            "{} of {} is newer than {}",
            owner.uid, owner.created_at, theirs.created_at
        );
        return refuse(Code::ForeignOwner, detail);
    }
    Ok(())
}

/// Applies rules 7 and 8: the agent does this work, for the graph of the operator.
fn fits_together(input: RuleInput<'_>, request: &ActionRequest) -> Result<(), Problem> {
    let mut offered = input.offers.iter().map(|offer| &offer.state);
    if !offered.any(|state| *state == request.state) {
        let detail = format!("this agent does no work of {}", request.state);
        return Err(Problem::new(Code::NoSuchWork, detail));
    }
    match (input.graph, &request.graph) {
        (Some(own), Some(theirs)) if own != theirs => {
            let detail = format!("this agent was made for the graph {own}");
            Err(Problem::new(Code::OtherGraph, detail))
        }
        (_, _) => Ok(()),
    }
}

/// Applies rules 9 to 11: the agent does not stop, no other action runs, and the application is where the work begins.
fn may_begin_now(input: RuleInput<'_>, request: &ActionRequest) -> Result<(), Problem> {
    if input.stopping {
        return Err(Problem::new(Code::Stopping, "the agent is being stopped"));
    }
    if let Some(running) = input.memory.under_way() {
        let running = &running.report;
        let detail = format!("{} ({}) is under way", running.id, running.state);
        let mut problem = Problem::new(Code::Busy, detail);
        problem.running = Some(running.id.clone());
        return Err(problem);
    }
    let is_there = match input.seen {
        Seen::In { state } => request.from.contains(state),
        Seen::Unobserved | Seen::Absent | Seen::Unreachable { .. } => false,
    };
    if is_there || request.from.is_empty() {
        return Ok(());
    }
    let (place, from) = (place(input.seen), request.from.join(" or "));
    let detail = format!("the application is {place}, not in {from}");
    Err(Problem::new(Code::WrongState, detail))
}

/// Returns in which field a request differs from the known work of its id.
fn difference(known: &Remembered, request: &ActionRequest) -> Option<&'static str> {
    let (own, theirs) = (known.fence, request.fence);
    if known.report.state != request.state {
        Some("state")
    } else if known.owner.uid != request.owner.uid {
        Some("owner.uid")
    } else if (own.transition, own.run) != (theirs.transition, theirs.run) {
        Some("fence")
    } else if known.fingerprint != fingerprint(&request.input) {
        Some("input")
    } else {
        None
    }
}

/// Decides about a request to cancel.
pub(super) fn cancelled(
    memory: &AgentMemory,
    id: &ActionId,
    of_epoch: u64,
) -> Result<Cancelled, Problem> {
    epoch(memory, of_epoch)?;
    Ok(match memory.action(id) {
        None => Cancelled::Remember,
        Some(known) if known.report.phase.is_final() => Cancelled::Report,
        Some(_) => Cancelled::End,
    })
}

/// Decides about an acknowledgement.
pub(super) fn acknowledged(
    memory: &AgentMemory,
    id: &ActionId,
    acknowledgement: Acknowledgement,
) -> Result<Acknowledged, Problem> {
    let refuse = |code, detail: String| Err(Problem::new(code, detail));
    epoch(memory, acknowledgement.epoch)?;
    let known = memory.action(id).ok_or_else(|| no_such_action(id))?;
    let last = known.report.attempt;
    if acknowledgement.attempt != last {
        let detail = format!("the last attempt of {id} is {last}");
        return refuse(Code::OtherAttempt, detail);
    }
    if !known.report.phase.is_final() {
        return refuse(Code::NotEnded, format!("{id} is under way"));
    }
    Ok(if known.report.acknowledged {
        Acknowledged::Report
    } else {
        Acknowledged::Take
    })
}

/// Returns the refusal of an unknown id.
pub(super) fn no_such_action(id: &ActionId) -> Problem {
    Problem::new(Code::NoSuchAction, format!("nothing is known of {id}"))
}

/// Refuses an epoch that is below the highest one taken, or above the limit.
fn epoch(memory: &AgentMemory, epoch: u64) -> Result<(), Problem> {
    let highest = memory.fence.epoch;
    if epoch < highest {
        let detail = format!("a request of the epoch {highest} was taken, this one is of {epoch}");
        return Err(Problem::new(Code::Fenced, detail));
    }
    if epoch > EPOCH_LIMIT {
        let detail = format!("the epoch {epoch} is above {EPOCH_LIMIT}");
        return Err(Problem::new(Code::BadRequest, detail));
    }
    Ok(())
}

fn place(seen: &Seen) -> String {
    match seen {
        Seen::Unobserved => "not observed yet".to_owned(),
        Seen::In { state } => format!("in {state}"),
        Seen::Absent => "absent".to_owned(),
        Seen::Unreachable { .. } => "unreachable".to_owned(),
    }
}

#[cfg(test)]
mod tests;
