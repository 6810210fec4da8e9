//! What requests have to do with where an object is, and what a request waits for.

use okt_core::request::RequestOutcome;
use okt_core::{Cause as TriggerCause, Graph};

use super::causes::Cause;
use crate::object::View;
use crate::requests::{ObjectRequests, RequestReport, Turn, request_title};

/// How many waiting requests are named.
const NAMED: usize = 5;

/// Returns a cause for each request that waits for something else than another one, and one if the request that the object
/// serves was deleted.
pub(super) fn of_requests(view: &View<'_>, requests: &ObjectRequests) -> Vec<Cause> {
    let gone = view.served().filter(|_| requests.is_served_gone);
    let gone = gone.map(|served| {
        let title = request_title(&served.kind, &served.name);
        let then = match view
            .place()
            .and_then(|(graph, at)| aborts(graph, graph.get(at)?))
        {
            Some(to) => format!("the object leaves for {to}"),
            None => "its work ends as usual".to_owned(),
        };
        Cause {
            what: format!("The request {title} was deleted while the object serves it: {then}."),
            remedies: Vec::new(),
        }
    });
    let waiting = requests.queue.iter();
    let waiting = waiting.filter(|it| matches!(it.turn, Turn::Next | Turn::Passed));
    let waiting = waiting.take(NAMED).map(|it| Cause {
        what: format!("The request {}.", it.line()),
        remedies: Vec::new(),
    });
    gone.into_iter().chain(waiting).collect()
}

/// Returns the state to which a state is left when its request is deleted.
fn aborts<'g>(graph: &Graph<'g>, state: &okt_core::State<'_>) -> Option<&'g str> {
    let mut triggers = state.triggers.iter();
    let trigger = triggers.find(|it| it.cause == TriggerCause::OnAbort)?;
    Some(graph.name_of(trigger.to))
}

impl Cause {
    /// Returns what a request waits for, or what became of it.
    pub fn of_request(report: &RequestReport<'_>) -> Self {
        let request = &report.request;
        let delete = || format!("or withdraw it: kubectl delete {}", request.arguments());
        if let Some(queued) = &report.queued {
            let object = report.object.as_ref();
            let mut remedies: Vec<String> = match object.map(View::arguments) {
                Some(id) => vec![format!(
                    "kubectl okt why {id} says why {} is where it is",
                    request.target
                )],
                None => vec![format!(
                    "create {}: after ten minutes without it, the operator gives the request up",
                    request.target
                )],
            };
            if object.is_none() || queued.turn == Turn::Passed {
                remedies.push(delete());
            }
            return Self {
                what: format!("It {}.", queued.verb()),
                remedies,
            };
        }
        let remedy = request.outcome().and_then(remedy).map(str::to_owned);
        Self {
            what: format!("Its outcome is {}.", request.told()),
            remedies: remedy.into_iter().collect(),
        }
    }
}

/// Returns what to do about a request that did not reach its state: no request is served twice.
const fn remedy(outcome: RequestOutcome) -> Option<&'static str> {
    match outcome {
        RequestOutcome::Failed => Some("mend the cause, then make a new request"),
        RequestOutcome::Refused => Some("make a new request that fits"),
        RequestOutcome::Expired => Some("make a new request, with a later `startBefore` or none"),
        RequestOutcome::Aborted | RequestOutcome::NotReplayed => {
            Some("make a new request if its work is still to be done")
        }
        RequestOutcome::TargetGone => Some("create its object, then make a new request"),
        RequestOutcome::Queued
        | RequestOutcome::Running
        | RequestOutcome::Reached
        | RequestOutcome::Overtaken => None,
    }
}
