//! The outcome of work at an agent, as a result or failure of the operator.

use okt_agent::client::{ClientError, EndpointError};
use okt_agent::wire::{ActionReport, Code, Mender, Phase, Problem};
use okt_core::Lifecycle;
use okt_core::reasons;

use okt_reach::Failure;

/// Work that an agent has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Performed<S> {
    /// The next state that the agent names; an edge leads to it.
    pub event: Option<S>,
    /// The agent's message, for people.
    pub message: String,
}

/// Converts the report of an action that has ended.
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
            format!("the work of {} was cancelled at the agent", state.name()),
        )),
        // `Pending` and `Running` are no ends; a client does not return them as one.
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
    S::GRAPH
        .get(from.id())
        .is_some_and(|state| state.targets().any(|target| target == to.id()))
}

/// Returns the failure of work with an unknown outcome.
fn unknown<S: Lifecycle>(state: S, repeats: bool) -> Failure {
    let message = format!(
        "it is unknown whether the work of {} was done: its agent ended during the work; check the application, then change the spec to repeat the work",
        state.name()
    );
    if repeats {
        Failure::retry("OutcomeUnknown", message)
    } else {
        Failure::permanent("OutcomeUnknown", message)
    }
}

/// Returns the failure of work that the operator itself cancelled; it is ignored.
pub(super) fn withdrawn() -> Failure {
    Failure::retry(reasons::CANCELLED, "the work was cancelled")
}

/// Converts the error of a request to a failure.
pub(super) fn of_error<S: Lifecycle>(
    state: S,
    error: &ClientError,
    repeats_unknown: bool,
    awaits_work: bool,
) -> Failure {
    match error {
        ClientError::Refused(problem) => of_problem(problem, awaits_work),
        ClientError::Forgotten { .. } => unknown(state, repeats_unknown),
        ClientError::Endpoint(error) => of_endpoint(error),
        ClientError::Unsendable { detail } => Failure::permanent("BadRequest", detail),
        ClientError::NoCommonVersion { .. } => {
            Failure::retry("UnsupportedVersion", error.to_string())
        }
        error => Failure::retry("AgentUnreachable", error.to_string()),
    }
}

/// Converts a refusal to a failure.
///
/// A permanent failure ends the retries, or leads out of the state, so it is used only if nothing but another spec
/// helps. It is not used if an agent or operator of another version may be rolled out, or if this operator may have
/// lost the leadership.
fn of_problem(problem: &Problem, awaits_work: bool) -> Failure {
    let reason = match problem.code {
        Code::Other => "AgentRefused".to_owned(),
        code => format!("{code:?}"),
    };
    let message = problem.detail.clone();
    let permanent = match problem.code {
        Code::NoSuchWork => !awaits_work,
        Code::ForeignOwner => true,
        _ => problem.mender == Mender::Client && !problem.retry,
    };
    if permanent {
        Failure::permanent(reason, message)
    } else {
        Failure::retry(reason, message)
    }
}

/// Converts the error of an endpoint to a failure.
pub(super) fn of_endpoint(error: &EndpointError) -> Failure {
    let message = error.to_string();
    if error.is_permanent() {
        Failure::permanent("BadEndpoint", message)
    } else {
        Failure::retry("BadEndpoint", message)
    }
}
