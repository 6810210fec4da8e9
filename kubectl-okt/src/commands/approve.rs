//! `kubectl okt approve`: the approval of a planned move.

use clap::Args;
use kube::Client;
use okt_core::GateKind;
use okt_view::{Kind, View};
use okt_wire::status::RecordedWait;
use serde_json::json;

use super::go;
use crate::error::Error;
use crate::output::print;
use crate::select::One;

/// The field manager of approvals: it owns nothing else of a spec, so an approval takes no field from others.
const MANAGER: &str = "okt-approve";

/// Approve the plan of a move that waits for an approval. Without a plan, show it.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt approve database/orders             shows the plan
  kubectl okt approve database/orders 9c1f20aa    approves it")]
pub(crate) struct Approve {
    /// The object: TYPE/NAME, or NAME alone if only one object has it.
    #[arg(value_name = "TYPE/NAME")]
    object: String,
    /// The plan, as it is shown.
    #[arg(value_name = "PLAN")]
    plan: Option<String>,
    /// Let the API server check the change without storing it.
    #[arg(long)]
    dry_run: bool,
}

impl Approve {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = One::named(&self.object).read(client, &kinds).await?;
        let waiting = waiting(&view)?;
        let id = view.arguments();
        let Some(present) = &waiting.plan else {
            return Err(Error::Refused(format!(
                "the plan of {} is not known yet: it is once its resources are applied",
                view.title()
            )));
        };
        let Some(plan) = &self.plan else {
            print(&format!(
                "{} waits for the approval of plan {present}: {} → {}, cause {}{}\n`kubectl okt approve {id} {present}` approves it\n",
                view.title(),
                view.state().unwrap_or_default(),
                waiting.to,
                waiting.cause,
                changes(&view)
            ));
            return Ok(());
        };
        if plan != present {
            return Err(Error::Refused(format!(
                "{plan} is not the plan of {}, which is {present}: `kubectl okt approve {id}` shows it",
                view.title()
            )));
        }
        let approve = json!({ "approve": plan });
        go::apply(client, &view, MANAGER, approve, self.dry_run).await?;
        let done = if self.dry_run {
            "may be approved"
        } else {
            "is approved"
        };
        print(&format!("plan {plan} of {} {done}\n", view.title()));
        Ok(())
    }
}

/// Returns the wait of an object that waits for an approval.
fn waiting<'v>(view: &'v View<'_>) -> Result<&'v RecordedWait, Error> {
    let waiting = view.position().and_then(|it| it.waiting.as_ref());
    let title = view.title();
    let Some(waiting) = waiting else {
        return Err(Error::Refused(format!("{title} waits for no approval")));
    };
    let gates = view.kind.graph().map_or(&[][..], |graph| graph.gates);
    let gate = gates.iter().find(|gate| gate.name == waiting.gate);
    match gate.map(|gate| gate.kind) {
        Some(kind @ (GateKind::Window { .. } | GateKind::Limit)) => Err(Error::Refused(format!(
            "{title} waits for the {} {}, and not for an approval",
            kind.as_str(),
            waiting.gate
        ))),
        Some(GateKind::Approval) | None => Ok(waiting),
    }
}

/// Returns the parts of the spec that have changed, in brackets.
fn changes(view: &View<'_>) -> String {
    match view.waiting_parts().as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    }
}
