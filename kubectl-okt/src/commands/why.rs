//! `kubectl okt why`: why an object is not where it is to go, and what would move it.

use clap::Args;
use jiff::Timestamp;
use kube::Client;
use okt_view::{Kind, View, Why};
use serde::Serialize;

use crate::error::Error;
use crate::output::{BOLD, OutputFormat, print_as, styled};
use crate::select::One;

/// Say why an object is not where it is to go, and what would move it.
#[derive(Args)]
pub(crate) struct WhyCommand {
    #[command(flatten)]
    object: One,
    /// The format of the output.
    #[arg(short, long, value_enum)]
    output: Option<OutputFormat>,
}

#[derive(Serialize)]
struct WhyAnswer<'v> {
    object: String,
    state: Option<&'v str>,
    #[serde(flatten)]
    why: &'v Why,
}

impl WhyCommand {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        let now = Timestamp::now();
        let why = Why::of(client, &view, now).await;
        let answer = WhyAnswer {
            object: view.id(),
            state: view.state(),
            why: &why,
        };
        print_as(self.output, &answer, [view.id()], || text(&view, &why, now))
    }
}

fn text(view: &View<'_>, why: &Why, now: Timestamp) -> String {
    let place = why.place(view, now);
    let mut text = format!("{} {place}.\n", styled(BOLD, &view.title()));
    if let Some(way) = view.way() {
        text.push_str(&format!("The route: {way}\n"));
    }
    for cause in &why.causes {
        text.push_str(&format!("\n{}\n", cause.what));
        for remedy in &cause.remedies {
            text.push_str(&format!("  → {remedy}\n"));
        }
    }
    if !why.events.is_empty() {
        text.push_str("\nThe last warnings about the object:\n");
        for event in &why.events {
            text.push_str(&format!("  {event}\n"));
        }
    }
    for unread in &why.unread {
        text.push_str(&format!("\nNot looked at: {unread}\n"));
    }
    text
}
