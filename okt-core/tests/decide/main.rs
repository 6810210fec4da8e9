//! `decide`, clause by clause.

#[path = "../common/build.rs"]
mod build;
#[path = "../common/case.rs"]
mod case;
#[path = "../common/database.rs"]
mod database;
#[path = "../common/graphs.rs"]
mod graphs;
#[path = "../common/ids.rs"]
mod ids;
#[path = "../common/moment.rs"]
mod moment;
#[path = "../common/rng.rs"]
mod rng;
#[path = "../common/table.rs"]
mod table;
#[path = "../common/wild.rs"]
mod wild;

mod deletion;
mod desired;
mod ended;
mod failures;
mod flight;
mod gates;
mod leaves;
mod observation;
mod requests;
mod rounds;
mod total;
mod triggers;
mod visits;

use okt_core::decide::{Go, StayReason, Verdict};
use okt_core::record::WaitRecord;

use case::Case;

/// Checks a table of decisions: each is a move (`Up by Child for Visit`) or another [`Verdict`], and after it the parts of
/// the record that are named with their values.
fn decides(table: &'static str) {
    table::check(table, |case, expected| {
        let items = expected.split(", ").map(|item| {
            let name = item.split(' ').next().unwrap_or_default();
            if name.starts_with(char::is_uppercase) {
                verdict(case)
            } else {
                format!("{name} {}", recorded(case, name))
            }
        });
        items.collect::<Vec<_>>().join(", ")
    });
}

fn verdict(case: &Case) -> String {
    match case.decide() {
        Verdict::Go(Go { to, by, why }) => {
            format!("{} by {by:?} for {why:?}", case.graph.name_of(to))
        }
        Verdict::Stay(StayReason::LoopGuard(_)) => "Stay(LoopGuard)".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Returns a part of the record after the decision.
fn recorded(case: &Case, part: &str) -> String {
    let after = case.after();
    let after = after.at().expect("something recorded");
    let action = || after.action.expect("an action");
    let graph = &case.graph;
    let name = |id| graph.name_of(id);
    match part {
        "unchanged" => (Some(*after) == case.record).to_string(),
        "state" => name(after.state).to_owned(),
        "left" => name(after.left).to_owned(),
        "transition" => after.transition.to_string(),
        "jumps" => after.jumps.to_string(),
        "rounds" => after.rounds.to_string(),
        "deleting" => after.deleting.to_string(),
        "desired" => {
            let state = after.desired.state.known().map_or("?", name);
            format!("{state} {}", after.desired.transition)
        }
        "reached" => after.desired.reached.to_string(),
        "visit" => {
            let visit = after.visit.expect("a visit");
            format!("{:?} {}", visit.outcome, visit.transition)
        }
        "request" => {
            let request = after.request.expect("a request");
            format!(
                "{:?} {} {}",
                request.outcome, request.token, request.transition
            )
        }
        "waiting" => {
            let gate = |it: WaitRecord| graph.gates[it.gate.index()].name;
            let waiting = after
                .waiting
                .map(|it| format!("{} {} {:?}", gate(it), graph.name_of(it.to), it.why));
            waiting.unwrap_or_else(|| "-".to_owned())
        }
        "revision" => after.revision.to_string(),
        "changed" => after.changed.to_string(),
        "action" => format!("{:?}", after.action.map(|action| action.phase)),
        "run" => action().run.to_string(),
        "attempt" => action().attempt.to_string(),
        "generation" => action().generation.to_string(),
        "leaving" => action().leaving.to_string(),
        _ => panic!("no part of a record: {part}"),
    }
}
