//! `kubectl okt get`: one object on its graph.

use clap::Args;
use jiff::Timestamp;
use kube::Client;
use okt_view::{Goal, Kind, ObjectRequests, QueuedRequest, Turn, View, age, request_title};
use okt_wire::texts::cut;
use serde_json::json;

use super::list::coloured;
use crate::draw::{Marks, draw, legend};
use crate::error::Error;
use crate::output::{BOLD, OutputFormat, TextTable, print_as, styled};
use crate::select::One;

/// Show one object on its graph: state, route, deadline, work, trail.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt get database orders
  kubectl okt get orders -o json | jq -r .state")]
pub(crate) struct Get {
    #[command(flatten)]
    object: One,
    /// The format of the output.
    #[arg(short, long, value_enum)]
    output: Option<OutputFormat>,
}

impl Get {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        let (namespace, name) = (view.namespace(), view.name());
        let requests = ObjectRequests::read(client, view.kind, namespace, name, Some(&view)).await;
        let requests = requests.unwrap_or_else(|error| {
            eprintln!("warning: {error}");
            ObjectRequests::default()
        });
        let mut details = view.details();
        if !view.kind.requests.is_empty() {
            details["requests"] = json!(requests.queue);
        }
        print_as(self.output, &details, [view.id()], || {
            text(&view, &requests, Timestamp::now())
        })
    }
}

/// Returns the text for people.
fn text(view: &View<'_>, requests: &ObjectRequests, now: Timestamp) -> String {
    let resource = &view.kind.resource;
    let generation = view.meta.generation.unwrap_or_default();
    let observed = match view.status.observed_generation {
        Some(observed) if observed == generation => String::new(),
        Some(observed) if observed >= 0 => format!(" (the operator has seen {observed})"),
        _ => " (no operator has seen it)".to_owned(),
    };
    let mut text = format!(
        "{}   {}, generation {generation}{observed}\n\n",
        styled(BOLD, &view.title()),
        resource.api_version
    );
    let mut table = TextTable::untitled();
    for (title, words) in facts(view, requests, now) {
        table.row(&[format!("{title}:"), words]);
    }
    text.push_str(&table.text());
    match &view.kind.graph {
        Ok(graph) if !graph.states.is_empty() => {
            let marks = Marks {
                at: view.place().map(|(_, at)| at),
                route: view.route(),
            };
            text.push('\n');
            text.push_str(&draw(graph, &marks));
            text.push_str(&legend());
        }
        Ok(_) => text.push_str("\nIts operator runs a pass: objects of this kind have no state.\n"),
        Err(why) => text.push_str(&format!("\nThe graph is left out: {why}\n")),
    }
    text
}

/// A line about an object: a title and words.
type Fact = (&'static str, String);

/// Returns the lines about an object.
fn facts(view: &View<'_>, requests: &ObjectRequests, now: Timestamp) -> Vec<Fact> {
    let mut facts = vec![("State", state(view, now))];
    if view.is_deleting() {
        facts.push(("Deletion", "requested".to_owned()));
    }
    facts.extend(desired(view));
    facts.extend(visit(view));
    facts.extend(served(view, requests, now));
    facts.extend(queue(requests));
    facts.extend(route(view));
    facts.extend(deadline(view, now));
    facts.extend(work(view, now));
    if view.is_paused() {
        facts.push(("Paused", "by the annotation okt.dev/paused".to_owned()));
    }
    let (ready, reason, message) = view.ready();
    let separator = if message.is_empty() { "" } else { ": " };
    let ready = coloured(view, ready);
    facts.push(("Ready", format!("{ready}, {reason}{separator}{message}")));
    facts.extend(trail(view));
    facts
}

fn state(view: &View<'_>, now: Timestamp) -> String {
    let state = match (view.state(), view.place()) {
        (None, _) => return "none recorded yet".to_owned(),
        (Some(state), Some(_)) => styled(BOLD, state),
        (Some(state), None) => {
            let state = styled(BOLD, state);
            format!("{state}, which the graph of the CRD does not have")
        }
    };
    match view.time_in_state(now) {
        Some(time) => format!("{state}, for {}", age(time)),
        None => state,
    }
}

fn desired(view: &View<'_>) -> Option<Fact> {
    let desired = view.desired()?;
    let default = match view.desired.state {
        Some(_) => "",
        None => " (default)",
    };
    let recorded = view
        .position()
        .and_then(|position| position.desired.as_ref());
    let reached = match recorded {
        Some(recorded) if recorded.state != desired => ", not seen by the operator yet",
        Some(recorded) if recorded.reached => ", reached",
        _ => "",
    };
    Some(("Desired", format!("{desired}{default}{reached}")))
}

fn visit(view: &View<'_>) -> Option<Fact> {
    let visit = view.desired.visit.as_ref()?;
    let name = visit.state.as_str();
    let recorded = view.position().and_then(|position| position.visit.as_ref());
    let same = recorded.filter(|it| it.state == name && it.request == visit.request);
    let outcome = match same {
        Some(recorded) => format!("{:?}", recorded.outcome),
        None => "not seen by the operator yet".to_owned(),
    };
    let request = match visit.request.as_str() {
        "" => String::new(),
        request => format!(" (request {request})"),
    };
    Some(("Visit", format!("{name}{request}: {outcome}")))
}

/// How many waiting requests are shown, and how much of arguments.
const WAITING: usize = 10;
const ARGS: usize = 100;

fn served(view: &View<'_>, requests: &ObjectRequests, now: Timestamp) -> Option<Fact> {
    let served = view.served()?;
    let title = request_title(&served.kind, &served.name);
    let begun = served.transition.checked_add(1);
    let mut history = view.position()?.history.iter();
    let since = history.find(|it| Some(it.transition) == begun);
    let since = since.and_then(|transition| transition.at);
    let since = since.map_or_else(String::new, |since| {
        format!(", for {}", age(now.duration_since(since)))
    });
    let gone = if requests.is_served_gone {
        ", which was deleted"
    } else {
        ""
    };
    let args = served.args.value.to_string();
    let words = match cut(&args, ARGS) {
        short if short == args => short,
        short => format!("{short}…"),
    };
    Some(("Request", format!("{title}{gone}{since}: {words}")))
}

fn queue(requests: &ObjectRequests) -> Vec<Fact> {
    let waiting = requests.queue.iter().filter(|it| it.turn != Turn::Running);
    let mut lines: Vec<String> = waiting.map(QueuedRequest::line).collect();
    let more = lines.len().saturating_sub(WAITING);
    lines.truncate(WAITING);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.into_iter().map(|line| ("Queue", line)).collect()
}

fn route(view: &View<'_>) -> Option<Fact> {
    let (graph, at) = view.place()?;
    let words = match (view.goal(), view.way()) {
        (None, _) => "none: the graph does not have the desired state".to_owned(),
        (Some(_), Some(way)) => way,
        (Some(Goal::Desired(to) | Goal::Visit(to)), None) if to != at => {
            format!("none from {} to {}", graph.name_of(at), graph.name_of(to))
        }
        (Some(_), None) => return None,
    };
    Some(("Route", words))
}

fn deadline(view: &View<'_>, now: Timestamp) -> Option<Fact> {
    let (graph, _) = view.place()?;
    let deadline = view.deadline()?;
    let left = deadline.at.duration_since(now);
    let when = if left.is_positive() {
        format!("in {}", age(left))
    } else {
        format!("due since {}", age(-left))
    };
    Some((
        "Deadline",
        format!("{}, {when}", graph.name_of(deadline.to)),
    ))
}

fn work(view: &View<'_>, now: Timestamp) -> Vec<Fact> {
    let Some(action) = view.action() else {
        return Vec::new();
    };
    let mut words = format!("{:?}, attempt {}", action.phase, action.attempt);
    if let Some(started) = action.started_at {
        let ago = age(now.duration_since(started));
        words.push_str(&format!(", recorded {ago} ago"));
    }
    if !action.message.is_empty() {
        words.push_str(&format!(": {}", action.message));
    }
    let recorded = action.failure.as_ref();
    let failure = recorded.map(|it| ("Last error", format!("{}: {}", it.reason, it.message)));
    [("Work", words)].into_iter().chain(failure).collect()
}

fn trail(view: &View<'_>) -> Vec<Fact> {
    let Some(position) = view.position().filter(|it| !it.trail.is_empty()) else {
        return Vec::new();
    };
    let jumps = match position.jumps {
        0 => String::new(),
        1 => ", 1 of them a jump".to_owned(),
        jumps => format!(", {jumps} of them jumps"),
    };
    vec![
        ("Trail", position.trail.clone()),
        ("Transitions", format!("{}{jumps}", position.transition)),
    ]
}
