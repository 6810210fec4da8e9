//! `kubectl okt wait`: until an object is where it is to go.

use std::time::Duration;

use clap::Args;
use futures::StreamExt;
use jiff::SignedDuration;
use kube::Client;
use kube::runtime::watcher;
use okt_core::record::VisitOutcome;
use okt_core::{Graph, StateId};
use okt_view::{Kind, View};
use okt_wire::status::Transition;

use super::plan::state;
use crate::error::Error;
use crate::output::print;
use crate::select::{One, watch};

/// Wait until an object is in its desired state, or has reached a state or a visit; print each transition.
///
/// It ends early if the object cannot get on by itself.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt wait database/orders              until it is in its desired state
  kubectl okt wait database/orders Backup       until it reaches this state
  kubectl okt wait database/orders --timeout 1h")]
pub(crate) struct Wait {
    /// The object: TYPE/NAME, or NAME alone if only one object has it.
    #[arg(value_name = "TYPE/NAME")]
    object: String,
    /// A state or a visit [default: the desired state]
    #[arg(value_name = "STATE")]
    state: Option<String>,
    /// The longest time to wait.
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = duration)]
    timeout: Duration,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let time: SignedDuration = text
        .parse()
        .map_err(|_| "write a time such as 90s, 10m or 1h30m".to_owned())?;
    Duration::try_from(time).map_err(|_| "a time is not negative".to_owned())
}

impl Wait {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = One::named(&self.object).read(client, &kinds).await?;
        let target = match (&self.state, view.kind.graph()) {
            (Some(name), Some(graph)) => Some((graph, state(graph, name)?)),
            (Some(_), None) => super::plan::place(&view).map(|_| None)?,
            (None, _) => None,
        };
        let mut last = described(&view);
        let arguments = view.arguments();
        let waited = tokio::time::timeout(self.timeout, reach(client, view, target, &mut last));
        match waited.await {
            Ok(done) => done,
            Err(_) => Err(Error::TimedOut(format!(
                "the time to wait is over: {last}; `kubectl okt why {arguments}` says why"
            ))),
        }
    }
}

/// A graph, and one of its states.
type Target = (&'static Graph<'static>, StateId);

/// What stands where a state would.
const NO_STATE: &str = "no state";

/// Returns where an object is, and why.
fn described(view: &View<'_>) -> String {
    let (_, reason, message) = view.ready();
    let state = view.state().unwrap_or(NO_STATE);
    format!("{} is in {state}, {reason}: {message}", view.title())
}

/// Follows an object until it is where it is to go; `last` describes where it is.
async fn reach(
    client: &Client,
    view: View<'_>,
    target: Option<Target>,
    last: &mut String,
) -> Result<(), Error> {
    let (kind, uid) = (view.kind, view.meta.uid.clone());
    let first = view.position().map_or(0, |position| position.transition);
    let mut printed = first;
    let config = watcher::Config::default().fields(&format!("metadata.name={}", view.name()));
    let gone = || Error::Failed(format!("{} does not exist any more", view.title()));
    let mut events = watch(client, [kind], view.namespace(), config);
    let mut is_there = false;
    while let Some(event) = events.next().await {
        let object = match event?.1 {
            watcher::Event::Apply(object) | watcher::Event::InitApply(object) => object,
            watcher::Event::Init => {
                is_there = false;
                continue;
            }
            watcher::Event::InitDone if is_there => continue,
            watcher::Event::InitDone | watcher::Event::Delete(_) => return Err(gone()),
        };
        is_there = true;
        let view = View::of(kind, object);
        if view.meta.uid != uid {
            return Err(gone());
        }
        printed = print_later(&view, printed);
        *last = described(&view);
        if is_reached(&view, target, first, last)? {
            let state = view.state().unwrap_or(NO_STATE);
            let to = target.map(|(graph, to)| graph.name_of(to));
            let been = match to.filter(|to| *to != state) {
                Some(to) => format!("has been in {to}, and "),
                None => String::new(),
            };
            print(&format!("{} {been}is in {state}\n", view.title()));
            return Ok(());
        }
    }
    Err(gone())
}

/// Returns whether an object is where it is to go; an error if it does not get there.
fn is_reached(
    view: &View<'_>,
    target: Option<Target>,
    first: u64,
    last: &str,
) -> Result<bool, Error> {
    let is_reported = view.status.observed_generation == view.meta.generation;
    let is_ready = is_reported && view.ready().0 == "True";
    let is_reached = match target {
        Some((graph, to)) => match visited(view, graph, to) {
            Some(VisitOutcome::Reached) => true,
            Some(VisitOutcome::Pending) | None => has_been(view, graph, to, first),
            Some(outcome) => {
                return Err(Error::Refused(format!(
                    "the visit is over, and its outcome is {outcome:?}: {last}"
                )));
            }
        },
        None => is_ready,
    };
    if is_reached {
        return Ok(true);
    }
    let arguments = view.arguments();
    if view.is_paused() {
        return Err(Error::Refused(format!(
            "{last}; it is paused: `kubectl okt resume {arguments}` ends that"
        )));
    }
    let asks = view.pending_visit().is_some();
    if let Some((graph, to)) = target.filter(|_| is_ready && !asks) {
        let name = graph.name_of(to);
        return Err(Error::Refused(format!(
            "nothing asks for {name}: {last}; `kubectl okt go {arguments} {name}` does"
        )));
    }
    if is_reported && view.is_true("Stalled") {
        return Err(Error::Refused(format!(
            "{last}; `kubectl okt why {arguments}` says what to do"
        )));
    }
    Ok(false)
}

/// Prints the transitions after one, and returns the number of the last.
pub(super) fn print_later(view: &View<'_>, mut printed: u64) -> u64 {
    for transition in later(view, printed) {
        printed = transition.transition;
        print(&format!(
            "{} → {} ({})\n",
            transition.from,
            transition.to,
            transition.cause_text()
        ));
    }
    printed
}

/// Returns the transitions of the history after one.
fn later<'v>(view: &'v View<'_>, since: u64) -> impl Iterator<Item = &'v Transition> {
    let history = view.position().into_iter().flat_map(|it| &it.history);
    history.filter(move |transition| transition.transition > since)
}

/// Returns the outcome of the visit that the spec asks for, if it is to this state.
fn visited(view: &View<'_>, graph: &Graph<'_>, to: StateId) -> Option<VisitOutcome> {
    let asked = view.desired.visit.as_ref()?;
    let outcome = view.visit_outcome()?;
    (graph.named(asked.state.as_str()) == Some(to)).then_some(outcome)
}

/// Returns whether an object is in a state, or has been since a transition.
fn has_been(view: &View<'_>, graph: &Graph<'_>, to: StateId, since: u64) -> bool {
    let is_target = |name: &str| graph.named(name) == Some(to);
    let mut later = later(view, since);
    view.state().is_some_and(is_target) || later.any(|transition| is_target(&transition.to))
}
