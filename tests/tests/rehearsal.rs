//! The life of a database, rehearsed with everything that can go wrong.

use okt_runtime::__testing::Flaw;
use okt_testing::Rehearsal;
use okt_tests::{DatabaseState::*, Databases, Reply, Served, Sight};
use serde_json::json;

/// Everything that a database can live through.
fn rehearsal() -> Rehearsal<Databases> {
    Rehearsal::of(Databases::default)
        .object(Databases::object("db", json!({})))
        .wish(json!({ "visit": { "state": "Servicing", "request": "1" } }))
        .patch(json!({ "spec": { "storage": "2Gi" } }))
        .happens("the server breaks", |app| {
            app.sees("db", Sight::Event(Running, Failed));
        })
        .happens("the server is mended", |app| {
            app.sees("db", Sight::Unobserved);
        })
        .wish(json!({ "request": "mended" }))
        .delete()
}

/// A visit that never ends by itself, and so fails after half an hour.
fn overdue() -> Rehearsal<Databases> {
    let fresh = || {
        let databases = Databases::default();
        for _ in 0..20 {
            databases.next_time(Servicing, Reply::Hang);
        }
        databases
    };
    Rehearsal::of(fresh)
        .object(Databases::object("db", json!({})))
        .wish(json!({ "visit": { "state": "Servicing", "request": "1" } }))
}

#[test]
fn a_database_lives_through_everything() {
    rehearsal().check();
}

#[test]
fn a_deadline_is_kept_whatever_goes_wrong() {
    overdue().check();
}

/// What is found where a bug was planted.
fn found(rehearsal: Rehearsal<Databases>, flaw: Flaw) -> Vec<String> {
    let report = rehearsal.__flaw(flaw).run();
    println!("{report}");
    let found = report.found().flat_map(|(_, broken)| broken);
    found.cloned().collect()
}

fn has(found: &[String], words: &str) -> bool {
    found.iter().any(|found| found.contains(words))
}

#[test]
fn an_operator_that_writes_over_what_it_has_not_seen_is_found() {
    let found = found(rehearsal(), Flaw::NoResourceVersion);
    assert!(has(&found, "refused with 422"), "{found:#?}");
}

#[test]
fn an_operator_that_acts_before_it_has_written_is_found() {
    let found = found(rehearsal(), Flaw::ActsFirst);
    assert!(
        has(&found, "began before its position was written"),
        "{found:#?}"
    );
}

#[test]
fn an_operator_that_keeps_deadlines_in_memory_is_found() {
    let found = found(overdue(), Flaw::TimersInMemory);
    assert!(has(&found, "due after 1800 s"), "{found:#?}");
}
