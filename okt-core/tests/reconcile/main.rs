//! `okt_core::machine`, model-checked: every order in which a user, an application, a cluster, a lagging cache, an API
//! server that fails, and an operator that crashes, shuts down or loses leadership can act on one object.
//!
//! One event is one decision of the operator and its effect, or something that happens around the operator, so a crash
//! can come between any two effects. Rules hold in every state (`rules.rs`). From every state the object comes to rest
//! when faults stop (`rest.rs`).
//!
//! By default the test explores only the states near the start, in some ten seconds. `OKT_MODEL=full` explores the
//! small cases completely, with every order of events to rest, and many states of the others, in a quarter of an hour.
//! `--nocapture` shows the number of states.
//! A random run that fails prints its seed; `OKT_SEED=<seed>` runs that one alone.

mod api;
#[path = "../common/build.rs"]
mod build;
mod cases;
mod coverage;
mod event;
mod explore;
#[path = "../common/graphs.rs"]
mod graphs;
mod happens;
mod lives;
mod object;
mod possible;
mod process;
mod requests;
mod rest;
#[path = "../common/rng.rs"]
mod rng;
mod rules;
mod shell;
mod status;
mod trace;
mod translate;
mod world;

/// The machine of the product, from the same source: as this is a test, mistakes can be planted in it.
#[path = "../../src"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "its inputs for other shells are not used here"
)]
mod product {
    pub(crate) mod machine;
}

extern crate alloc;

use std::time::Instant;

use expect_test::{expect, expect_file};
// What the machine uses of the crate.
use okt_core::{backoff, decide, facts, gate, graph, pass, record};

use cases::{CASES, Case};
use coverage::Coverage;
use explore::{Found, breadth_first, random_run, rich};
use plant::Bug;
use product::machine;
use product::machine::plant;
use rest::Rests;
use world::World;

/// The number of states that are explored of each case by default.
const STATES: usize = 8_000;

/// Every case has at least this many states, unless the model has shrunk.
const LEAST_STATES: usize = 6_000;

/// The same with `OKT_MODEL=full`, for cases that are not small.
const STATES_IN_FULL: usize = 400_000;

/// The number of random runs of each case, by default and with `OKT_MODEL=full`.
const RUNS: (usize, usize) = (1_500, 30_000);

/// The number of random graphs, by default and with `OKT_MODEL=full`.
const GRAPHS: (u64, u64) = (3_000, 100_000);

/// The number of states that are explored, and of random runs, until a planted bug counts as not found.
const STATES_OF_A_BUG: usize = 8_000;
const RUNS_OF_A_BUG: usize = 3_000;

/// Every bug, with the case in which it shows first.
const BUGS: [(Bug, &str); 50] = [
    (Bug::OldVersionActedUpon, "life alone"),
    (Bug::StaleWorkKept, "life, pass, lead and drain"),
    (Bug::ReleasedWithoutPass, "a leaf with work, pass, drain"),
    (Bug::GiveUpTakenForDone, "small: pass"),
    (Bug::PrunedAfterJump, "idle states, sights and crashes"),
    (Bug::CreatedWhileDeleting, "life, owned"),
    (Bug::BegunBeforeRecorded, "life alone"),
    (Bug::GoneOnBeforeRecorded, "small: records"),
    (Bug::RecordForgotten, "small: records"),
    (Bug::BegunAlthoughNotReady, "life, owned"),
    (Bug::BegunBesideEnding, "a former object of the same name"),
    (Bug::BegunWhileStopping, "life, pass, lead and drain"),
    (Bug::PauseIgnored, "life alone"),
    (Bug::TwoLeaders, "small: lead"),
    (Bug::NoResourceVersion, "pass alone with a way out"),
    (Bug::FailureNeverShown, "small: writes fail for ever"),
    (Bug::RetryWithoutTime, "deadlines"),
    (Bug::SafetyForgotten, "life, owned"),
    (Bug::PassedTimeNamed, "pass alone with a way out, cluster"),
    (Bug::StatusOfFormerStateKept, "an idle home, owned"),
    (Bug::NewWorkKeptByFormerLeader, "life, pass, lead and drain"),
    (Bug::FailedWriteForgotten, "small: fault"),
    (Bug::WorkChangedAfterFailedWrite, "life, owned"),
    (Bug::ObservationNotSpent, "idle states, sights"),
    (Bug::FindingsForgotten, "pass alone, writes fail for ever"),
    (Bug::PermitForgotten, "no permit for an action"),
    (Bug::OwnWriteForgotten, "life alone"),
    (Bug::ResultTakenTwice, "retries"),
    (
        Bug::FindingKeptOverRequest,
        "life, pass with a way out, owned",
    ),
    (
        Bug::AnswerOfOlderAttempt,
        "a former object of the same name",
    ),
    (Bug::DeadlineStartLost, "deadlines"),
    (Bug::PartTakenByAnyEdge, "parts of the spec"),
    (Bug::VersionOfVainWriteKept, "a webhook"),
    (Bug::VainWriteForGood, "leftovers of others and leaders"),
    (Bug::AbandonedPermitKept, "no permit for an action"),
    (Bug::LeaderChangeMissed, "life, pass, lead and drain"),
    (Bug::OrphanForgotten, "the loop guard"),
    (Bug::EndingForgotten, "life alone"),
    (Bug::ResultForgottenAtRest, "small: fault"),
    (Bug::RequestTakenFromCache, "requests"),
    (Bug::ReplacedUndelivered, "requests"),
    (Bug::RequestSkipped, "requests"),
    (Bug::OutcomeNeverDelivered, "requests"),
    (Bug::MissingTakenForGone, "requests of a settled object"),
    (Bug::OutcomeLostAtDeletion, "requests and a way out"),
    (Bug::GateIgnored, "gates"),
    (Bug::OutdatedForgotten, "gates, releases"),
    (Bug::OldPlaceUsed, "limits"),
    (Bug::UnusedPlaceKept, "small: limits, requests"),
    (Bug::PlaceUnregistered, "limits, answers"),
];

fn is_full() -> bool {
    std::env::var("OKT_MODEL").is_ok_and(|model| model == "full")
}

fn seconds(began: Instant) -> String {
    format!("{:.2} s", began.elapsed().as_secs_f32())
}

#[test]
fn rules_hold_in_every_state_and_from_every_state_the_object_comes_to_rest() {
    let mut coverage = Coverage::default();
    let (mut states, mut tried) = (0, 0);
    let began_all = Instant::now();
    for case in CASES.iter() {
        let (limit, rests) = match (is_full(), case.is_small()) {
            (false, _) => (STATES, Rests::default()),
            (true, false) => (STATES_IN_FULL, Rests::default()),
            (true, true) => (usize::MAX, Rests::in_every_order()),
        };
        let began = Instant::now();
        let explored = breadth_first(case, None, limit, rests);
        println!(
            "{:<36} {:>8} states{}, rest tried from {:>7}, {:>3} events deep, {}",
            case.name,
            explored.states,
            if explored.is_whole { " (all)" } else { "" },
            explored.rests,
            explored.depth,
            seconds(began),
        );
        if let Some(Found { rule, events }) = explored.found {
            let trace = trace::write(World::new(case, None), &events);
            panic!("{}: {rule}\n{trace}", case.name);
        }
        assert!(
            explored.states >= LEAST_STATES,
            "{}: the model has shrunk",
            case.name
        );
        coverage.extend(explored.coverage);
        states += explored.states;
        tried += explored.rests;
    }
    println!(
        "{states} states, rest tried from {tried}, {}",
        seconds(began_all)
    );
    // A full exploration takes more of them.
    if !is_full() {
        expect_file!["decisions.txt"].assert_eq(&coverage.to_string());
    }
}

/// Returns the seed of a run, from its case and its number there.
fn seed(case: usize, run: usize) -> u64 {
    (case as u64) << 32 | run as u64
}

fn run_or_panic(case: &'static Case, seed: u64) -> usize {
    let (count, found) = random_run(case, None, seed);
    if let Some(Found { rule, events }) = found {
        let trace = trace::write(rich(case, None), &events);
        panic!("{}: OKT_SEED={seed}: {rule}\n{trace}", case.name);
    }
    count
}

#[test]
fn rules_hold_in_random_orders_of_events_and_the_object_comes_to_rest() {
    let only = std::env::var("OKT_SEED").ok();
    if let Some(only) = only.and_then(|seed| seed.parse().ok()) {
        let case = usize::try_from(only >> 32).unwrap_or(usize::MAX);
        run_or_panic(CASES.get(case).expect("the seed of a run"), only);
        return;
    }
    let runs = if is_full() { RUNS.1 } else { RUNS.0 };
    let began_all = Instant::now();
    let mut all = 0;
    for (number, case) in CASES.iter().enumerate() {
        let began = Instant::now();
        let events: usize = (0..runs)
            .map(|run| run_or_panic(case, seed(number, run)))
            .sum();
        println!(
            "{:<36} {runs} runs, {events} events, seeds from {}, {}",
            case.name,
            seed(number, 0),
            seconds(began)
        );
        all += events;
    }
    println!("{all} events, {}", seconds(began_all));
}

#[test]
fn objects_of_random_graphs_reach_what_is_desired_stay_there_and_can_be_deleted() {
    let only = std::env::var("OKT_SEED").ok();
    let seeds = match only.and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..if is_full() { GRAPHS.1 } else { GRAPHS.0 },
    };
    for seed in seeds {
        if let Err(Found { rule, .. }) = lives::random_life(seed) {
            panic!("OKT_SEED={seed}: {rule}");
        }
    }
}

/// Searches a bug in one case. Returns how it was found.
fn search(bug: Bug, number: usize, case: &'static Case) -> Option<String> {
    let explored = breadth_first(case, Some(bug), STATES_OF_A_BUG, Rests::default());
    if let Some(Found { rule, events }) = explored.found {
        let (states, events) = (explored.states, events.len());
        return Some(format!(
            "{}, {states} states, {events} events: {rule}",
            case.name
        ));
    }
    (0..RUNS_OF_A_BUG).find_map(|run| {
        let seed = seed(number, run);
        let (_, found) = random_run(case, Some(bug), seed);
        let Found { rule, events } = found?;
        let events = events.len();
        Some(format!(
            "{}, seed {seed}, {events} events: {rule}",
            case.name
        ))
    })
}

#[test]
fn every_planted_bug_is_found() {
    for (bug, name) in BUGS {
        let began = Instant::now();
        let mut cases = CASES.iter().enumerate();
        let (number, case) = cases
            .find(|(_, case)| case.name == name)
            .expect("the name of a case");
        let found = search(bug, number, case);
        println!(
            "{:<32} {}, {}",
            format!("{bug:?}"),
            found.as_deref().unwrap_or("not found"),
            seconds(began)
        );
        assert!(found.is_some(), "{bug:?} is not found");
        if is_full() {
            let cases = CASES.iter().enumerate();
            let finding = cases.filter(|(number, case)| search(bug, *number, case).is_some());
            println!("{:<32} found in {} cases", "", finding.count());
        }
    }
}

#[test]
fn a_life_costs_one_write_of_the_status_per_change() {
    let costs: String = CASES
        .iter()
        .filter(|case| !case.is_small() && case.special == cases::Special::Nothing)
        .map(lives::cost)
        .collect();
    expect![[r"
        life alone                           to rest: 2 transitions, 3 writes; deleted: 2 transitions, 2 writes
        life, owned                          to rest: 2 transitions, 5 writes; deleted: 2 transitions, 2 writes
        life, pass with a way out, owned     to rest: 2 transitions, 5 writes; deleted: 2 transitions, 2 writes
        life, pass with a way out, faults    to rest: 2 transitions, 5 writes; deleted: 2 transitions, 2 writes
        life, plain pass, owned              to rest: 2 transitions, 5 writes; deleted: 2 transitions, 3 writes
        life, pass, lead and drain           to rest: 2 transitions, 5 writes; deleted: 2 transitions, 2 writes
        idle states, owned                   to rest: 1 transitions, 2 writes; deleted: 2 transitions, 2 writes
        idle states, pass, owned, sights     to rest: 1 transitions, 2 writes; deleted: 2 transitions, 2 writes
        idle states, failures                to rest: 1 transitions, 2 writes; deleted: 2 transitions, 2 writes
        idle states, sights and crashes      to rest: 1 transitions, 2 writes; deleted: 2 transitions, 2 writes
        idle states, lead and faults         to rest: 1 transitions, 2 writes; deleted: 2 transitions, 2 writes
        idle states, sights                  to rest: 1 transitions, 1 writes; deleted: 2 transitions, 2 writes
        an idle home, owned                  to rest: 2 transitions, 4 writes; deleted: 1 transitions, 1 writes
        deadlines                            to rest: 2 transitions, 5 writes; deleted: 1 transitions, 1 writes
        parts of the spec                    to rest: 2 transitions, 5 writes; deleted: 1 transitions, 1 writes
        retries                              to rest: 1 transitions, 2 writes; deleted: 1 transitions, 1 writes
        a failure and another spec           to rest: 1 transitions, 2 writes; deleted: 1 transitions, 1 writes
        pass alone with a way out            to rest: 0 transitions, 1 writes; deleted: 0 transitions, 0 writes
        plain pass alone                     to rest: 0 transitions, 1 writes; deleted: 0 transitions, 0 writes
        pass alone with a way out, cluster   to rest: 0 transitions, 1 writes; deleted: 0 transitions, 0 writes
        a leaf with work, pass, drain        to rest: 1 transitions, 2 writes; deleted: 1 transitions, 1 writes
        no permit for an action              to rest: 2 transitions, 5 writes; deleted: 1 transitions, 1 writes
        handlers that record                 to rest: 2 transitions, 5 writes; deleted: 2 transitions, 2 writes
        handlers that record, lead and drain to rest: 2 transitions, 3 writes; deleted: 2 transitions, 2 writes
        requests                             to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        requests, lead and drain             to rest: 2 transitions, 5 writes; deleted: 1 transitions, 1 writes
        requests and a way out               to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        requests, sights                     to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        gates                                to rest: 2 transitions, 5 writes; deleted: 1 transitions, 1 writes
        gates, faults and answers            to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        gates, lead and drain                to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        gates, sights                        to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        gates, releases                      to rest: 2 transitions, 5 writes; deleted: 1 transitions, 1 writes
        limits                               to rest: 2 transitions, 5 writes; deleted: 1 transitions, 1 writes
        limits, answers                      to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        limits, lead and drain               to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        limits, requests                     to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
        limits, sights                       to rest: 2 transitions, 3 writes; deleted: 1 transitions, 1 writes
    "]].assert_eq(&costs);
}
