//! `kubectl okt why`: why an object is not where it is to go, and what would move it.

mod causes;
mod surroundings;

use clap::Args;
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;

use self::causes::{Cause, causes};
use self::surroundings::Surroundings;
use crate::draw::way;
use crate::error::Error;
use crate::kind::Kind;
use crate::output::{BOLD, Format, age, print, print_value, styled};
use crate::select::One;
use crate::view::{Goal, View};

/// Say why an object is not where it is to go, and what would move it.
#[derive(Args)]
pub(crate) struct Why {
    #[command(flatten)]
    object: One,
    /// The format of the output.
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

#[derive(Serialize)]
struct Answer<'v> {
    object: String,
    state: Option<&'v str>,
    goal: String,
    causes: &'v [Cause],
    events: &'v [String],
}

impl Why {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        let now = Timestamp::now();
        let around = Surroundings::read(client, &view).await;
        let causes = causes(&view, &around, now);
        match self.output {
            Some(format @ (Format::Json | Format::Yaml)) => print_value(
                &Answer {
                    object: view.id(),
                    state: view.state(),
                    goal: goal(&view),
                    causes: &causes,
                    events: &around.events,
                },
                format == Format::Yaml,
            ),
            Some(Format::Name) => {
                print(&format!("{}\n", view.id()));
                Ok(())
            }
            Some(Format::Wide) | None => {
                print(&text(&view, &causes, &around, now));
                Ok(())
            }
        }
    }
}

/// Returns in words where an object is to go.
fn goal(view: &View<'_>) -> String {
    let graph = view.kind.graph();
    let name = |id| graph.map_or("", |graph| graph.name_of(id));
    match view.goal() {
        Some(Goal::Deletion) => "its end, because it is being deleted".to_owned(),
        Some(Goal::Visit(to)) => format!("{}, for a visit", name(to)),
        Some(Goal::Desired(to)) => name(to).to_owned(),
        None => view
            .desired()
            .unwrap_or("what its operator makes of it")
            .to_owned(),
    }
}

fn text(view: &View<'_>, causes: &[Cause], around: &Surroundings, now: Timestamp) -> String {
    let time = view
        .time_in_state(now)
        .map(|time| format!(", for {}", age(time)));
    let time = time.unwrap_or_default();
    let mut text = match view.state() {
        Some(state) => format!(
            "{} is in {}{time}, and is to be in {}.\n",
            styled(BOLD, &view.title()),
            styled(BOLD, state),
            styled(BOLD, &goal(view))
        ),
        None => format!("{} is in no state yet.\n", styled(BOLD, &view.title())),
    };
    if let Some((graph, at)) = view.place() {
        let route = view.route();
        if !route.is_empty() {
            text.push_str(&format!(
                "The route: {}\n",
                way(graph, std::iter::once(at).chain(route))
            ));
        }
    }
    for cause in causes {
        text.push_str(&format!("\n{}\n", cause.what));
        for remedy in &cause.remedies {
            text.push_str(&format!("  → {remedy}\n"));
        }
    }
    if !around.events.is_empty() {
        text.push_str("\nThe last warnings about the object:\n");
        for event in &around.events {
            text.push_str(&format!("  {event}\n"));
        }
    }
    for unread in &around.unread {
        text.push_str(&format!("\nNot looked at: {unread}\n"));
    }
    text
}
