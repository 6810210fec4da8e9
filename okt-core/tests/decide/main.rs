//! `decide`, clause by clause: each test is named after its clause.

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
#[path = "../common/wild.rs"]
mod wild;

mod deletion;
mod desired;
mod ended;
mod failures;
mod flight;
mod leaves;
mod observation;
mod rounds;
mod total;
mod triggers;
mod visits;

use okt_core::decide::{By, Go, StayReason, Verdict, Why};

use case::Case;

/// Checks that the object moves to a state.
fn goes(case: &Case, to: &str, by: By, why: Why) {
    let to = case.id(to);
    assert_eq!(case.decide(), Verdict::Go(Go { to, by, why }));
}

/// Checks that the object stays as it is.
fn stands(case: &Case, stand: StayReason) {
    assert_eq!(case.decide(), Verdict::Stay(stand));
}
