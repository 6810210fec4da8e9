//! `kubectl okt trail`: where an object has been.

use clap::Args;
use jiff::Timestamp;
use kube::Client;
use okt_view::{Kind, age};
use okt_wire::status::Transition;

use crate::error::Error;
use crate::output::{OutputFormat, TextTable, print_as};
use crate::select::One;

/// Show the last transitions of an object: from where to where, when, why, and how long it stayed.
#[derive(Args)]
pub(crate) struct Trail {
    #[command(flatten)]
    object: One,
    /// The format of the output.
    #[arg(short, long, value_enum)]
    output: Option<OutputFormat>,
}

impl Trail {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        let Some(position) = view.position() else {
            return Err(Error::Failed(format!(
                "{} has made no transition yet",
                view.title()
            )));
        };
        print_as(self.output, &position.history, [view.id()], || {
            format!("{}\n{}\n", table(&position.history).text(), position.trail)
        })
    }
}

fn table(history: &[Transition]) -> TextTable {
    let mut table = TextTable::new(&["NO.", "FROM", "TO", "WHY", "AT", "STAYED"]);
    let ends = history.iter().skip(1).map(|it| it.at);
    for (transition, end) in history.iter().zip(ends.chain([Some(Timestamp::now())])) {
        let stay = transition.at.zip(end);
        let stayed = stay.map(|(at, end)| age(end.duration_since(at)));
        let at = transition.at.map(|at| at.strftime("%F %TZ").to_string());
        table.row(&[
            transition.transition.to_string(),
            or_none(&transition.from),
            transition.to.clone(),
            or_none(&transition.cause_text()),
            or_none(&at.unwrap_or_default()),
            or_none(&stayed.unwrap_or_default()),
        ]);
    }
    table
}

fn or_none(text: &str) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text.to_owned()
    }
}
