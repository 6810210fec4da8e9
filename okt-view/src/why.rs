//! Why an object is not where it is to go, and what would move it.

mod causes;
mod requests;
mod surroundings;

use jiff::Timestamp;
use kube::Client;
use serde::Serialize;

pub use self::causes::Cause;
use self::causes::causes;
use self::requests::of_requests;
use self::surroundings::ObjectSurroundings;
use super::object::{Goal, View};
use super::requests::request_title;
use super::text::age;

/// Why an object is not where it is to go, in words that a person on call understands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Why {
    /// Where the object is to go.
    pub goal: String,
    /// What keeps it; what must be mended first comes first.
    pub causes: Vec<Cause>,
    /// The last warnings about the object, oldest first.
    pub events: Vec<String>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

impl Why {
    /// Reads what surrounds an object and returns why it is where it is.
    ///
    /// What may not be read is left out, and listed in [`unread`](Self::unread).
    pub async fn of(client: &Client, view: &View<'_>, now: Timestamp) -> Self {
        let around = ObjectSurroundings::read(client, view).await;
        let mut causes = causes(view, &around, now);
        if let Some(requests) = &around.requests {
            causes.extend(of_requests(view, requests));
        }
        Self {
            goal: goal(view),
            causes,
            events: around.events,
            unread: around.unread,
        }
    }

    /// Returns what follows the name of the object in a sentence about its place (e.g. `is in Start, for 3m, and is to
    /// be in Running`).
    pub fn place(&self, view: &View<'_>, now: Timestamp) -> String {
        match view.state() {
            Some(state) => {
                let stay = view.time_in_state(now);
                let time = stay.map_or_else(String::new, |time| format!(", for {}", age(time)));
                let change = view.change_that_led_here();
                let change = change.map_or_else(String::new, |it| format!(", since {it} changed"));
                format!("is in {state}{time}{change}, and is to be in {}", self.goal)
            }
            None if view.kind.has_no_states() => {
                "has no states: its operator runs a pass".to_owned()
            }
            None => "is in no state yet".to_owned(),
        }
    }
}

/// Returns in words where an object is to go.
fn goal(view: &View<'_>) -> String {
    let graph = view.kind.graph();
    let name = |id| graph.map_or("", |graph| graph.name_of(id));
    match view.goal() {
        Some(Goal::Visit(to)) if let Some(served) = view.served() => {
            let request = request_title(&served.kind, &served.name);
            format!("{}, for {request}", name(to))
        }
        Some(Goal::Deletion) => "its end, because it is being deleted".to_owned(),
        Some(Goal::Visit(to)) => format!("{}, for a visit", name(to)),
        Some(Goal::Desired(to)) => name(to).to_owned(),
        None => view
            .desired()
            .unwrap_or("what its operator makes of it")
            .to_owned(),
    }
}
