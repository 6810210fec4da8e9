//! What came of work at an agent, in the words of the operator.

use okt_core::Lifecycle;
use okt_core::reasons;
use okt_sidecar::client::{ClientError, EndpointError};
use okt_sidecar::wire::{ActionReport, Code, Mender, Phase, Problem};

use crate::failure::Failure;

/// Work that an agent has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Performed<S> {
    /// The state that the agent names as the next one: one that an edge leads to from here.
    pub event: Option<S>,
    /// What there is to say of it, for people.
    pub message: String,
}

/// What an action that has ended comes to.
pub(super) fn of_report<S: Lifecycle>(
    state: S,
    report: ActionReport,
    repeats_unknown: bool,
) -> Result<Performed<S>, Failure> {
    match report.phase {
        Phase::Succeeded => performed(state, report),
        Phase::Failed => {
            let reason = report.reason.unwrap_or_else(|| "Failed".to_owned());
            Err(if report.permanent {
                Failure::permanent(reason, report.message)
            } else {
                Failure::retry(reason, report.message)
            })
        }
        Phase::Cancelled => Err(Failure::retry(
            reasons::CANCELLED,
            format!(
                "somebody cancelled the work of {} at the agent",
                state.name()
            ),
        )),
        // The two others are no ends; a client does not take them for one.
        Phase::Unknown | Phase::Pending | Phase::Running => Err(unknown(state, repeats_unknown)),
    }
}

fn performed<S: Lifecycle>(state: S, report: ActionReport) -> Result<Performed<S>, Failure> {
    let event = match &report.event {
        None => None,
        Some(name) => Some(S::from_name(name).filter(|to| leads(state, *to)).ok_or_else(
            || {
                Failure::permanent(
                    reasons::NO_EDGE,
                    format!(
                        "the agent's work of {} names `{name}` as the next state, to which no edge leads from there",
                        state.name()
                    ),
                )
            },
        )?),
    };
    Ok(Performed {
        event,
        message: report.message,
    })
}

fn leads<S: Lifecycle>(from: S, to: S) -> bool {
    (S::GRAPH.get(from.id())).is_some_and(|state| state.targets().any(|target| target == to.id()))
}

/// Nobody knows whether the work was done.
fn unknown<S: Lifecycle>(state: S, repeats: bool) -> Failure {
    let message = format!(
        "nobody knows whether the work of {} was done: its agent ended while it was under way; look at the application, then change the spec to have it done again",
        state.name()
    );
    if repeats {
        Failure::retry("OutcomeUnknown", message)
    } else {
        Failure::permanent("OutcomeUnknown", message)
    }
}

/// The operator itself did not want the work any more; nobody looks at this.
pub(super) fn withdrawn() -> Failure {
    Failure::retry(reasons::CANCELLED, "the work was no longer wanted")
}

/// What a request that got no good answer comes to.
pub(super) fn of_error<S: Lifecycle>(
    state: S,
    error: &ClientError,
    repeats_unknown: bool,
) -> Failure {
    match error {
        ClientError::Refused(problem) => of_problem(problem),
        ClientError::Forgotten { .. } => unknown(state, repeats_unknown),
        ClientError::Endpoint(error) => of_endpoint(error),
        ClientError::Unsendable { detail } => Failure::permanent("BadRequest", detail),
        ClientError::NoCommonVersion { .. } => {
            Failure::retry("UnsupportedVersion", error.to_string())
        }
        error => Failure::retry("AgentUnreachable", error.to_string()),
    }
}

/// What a refusal comes to.
///
/// A permanent failure ends the waiting for good, or leads out of the state, so it stands only where nothing but
/// another spec helps: not where an agent or an operator of another version is rolled out, and not where this
/// operator may be the one that leads no more.
fn of_problem(problem: &Problem) -> Failure {
    let reason = match problem.code {
        Code::Other => "AgentRefused".to_owned(),
        code => format!("{code:?}"),
    };
    let message = problem.detail.clone();
    let permanent = match problem.code {
        Code::NoSuchWork | Code::ForeignOwner => true,
        _ => problem.mender == Mender::Client && !problem.retry,
    };
    if permanent {
        Failure::permanent(reason, message)
    } else {
        Failure::retry(reason, message)
    }
}

/// What an endpoint that cannot be used comes to.
pub(super) fn of_endpoint(error: &EndpointError) -> Failure {
    let message = error.to_string();
    if error.is_permanent() {
        Failure::permanent("BadEndpoint", message)
    } else {
        Failure::retry("BadEndpoint", message)
    }
}
