//! Runs of a pass: the path through the graph, the results, and the conditions of the object.

#[path = "common/build.rs"]
mod build;

use std::time::Duration;

use build::graph;
use okt_core::ConditionStatus::{False, True};
use okt_core::conditions::{Condition, OwnedWords, Requested, Way, of_pass_run};
use okt_core::pass::{Failed, Operations, PassOutcome, PassRun, Step};
use okt_core::{Answer, ConditionStatus, Declared, Graph, Kind, State, StateId};

/// The ancestor's Stepper, without its faults.
fn stepper() -> Graph<'static> {
    let graph = graph(&[
        "entry Check !Finalize:delete !Error:error1 !GiveUp:give-up >Get",
        "Get !Error:error1 !GiveUp:give-up >Mutate",
        "Mutate !Error:error1 !GiveUp:give-up >Update",
        "Update !Error:error1 !GiveUp:give-up >Success",
        "Success !Error:error1 !GiveUp:give-up >End",
        "Finalize !Error:error1 !GiveUp:give-up >End",
        "Error !GiveUp:give-up >End",
        "GiveUp >End",
        "leaf idle End",
    ]);
    Graph {
        kind: Kind::Pass,
        ..graph
    }
}

/// The Stepper with these conditions of its states.
fn with_conditions(all: &[(usize, &'static str, ConditionStatus)]) -> Graph<'static> {
    let plain = stepper();
    let states = plain.iter().map(|(id, state)| {
        let own = all.iter().filter(|(state, ..)| *state == id.index());
        let declared = own.map(|&(_, name, status)| Declared {
            name,
            status,
            reason: "",
            message: "",
        });
        State {
            conditions: declared.collect::<Vec<_>>().leak(),
            ..*state
        }
    });
    let states = states.collect::<Vec<_>>().leak();
    Graph { states, ..plain }
}

fn two_conditions() -> Graph<'static> {
    with_conditions(&[(1, "Gathered", True), (3, "Updated", True)])
}

/// Runs a pass of an object, which may be `deleting`; some steps give unusual answers, all others are done
/// (e.g. `deleting, Get fails NoSecret, Error gives up`).
fn run<'g>(graph: &'g Graph<'g>, words: &str) -> PassRun<'g> {
    let mut run = PassRun::begin(graph, words.starts_with("deleting"));
    while let Some(here) = run.at() {
        let all = words.split(", ").map(|it| it.split(' '));
        let own = all
            .map(Vec::from_iter)
            .find(|it| it[0] == graph.name_of(here));
        let (done, time) = (Step::done(Answer::Next), Duration::from_secs(5));
        run.take(match own.as_deref() {
            None => Ok(done),
            Some([_, "fails", reason]) => Err(Failed::retry(*reason, "it failed")),
            Some([_, "alarms", reason]) => Err(Failed::permanent(*reason, "it failed permanently")),
            Some([_, "gives", "up"]) => Ok(Step::give_up()),
            Some([_, "waits", reason]) => Ok(Step::wait(*reason, time)),
            Some([_, "requeues", times]) => {
                Ok(done.requeue_after(time * times.parse::<u32>().expect("a number")))
            }
            Some([_, "is", "True"]) => Ok(done.condition(True, "Own", "")),
            Some([_, "is", "False"]) => Ok(done.condition(False, "Own", "")),
            Some([_, "says", text]) => Ok(done.text(*text)),
            Some([_, "names", to]) => Ok(Step::done(Answer::To(graph.named(to).expect("a state")))),
            Some(other) => panic!("no answer: {other:?}"),
        });
    }
    run
}

fn conditions(run: &PassRun<'_>, graph: &Graph<'_>) -> Vec<Condition> {
    of_pass_run(
        graph,
        Way::Ran(run),
        OwnedWords::AsDeclared,
        Requested::default(),
    )
}

fn path(run: &PassRun<'_>, graph: &Graph<'_>) -> String {
    let visited = run.visited().iter();
    let names = visited.map(|visited| graph.name_of(visited.state));
    names.collect::<Vec<_>>().join(">")
}

fn outcome(run: &PassRun<'_>, _: &Graph<'_>) -> String {
    match run.outcome() {
        PassOutcome::Complete => "Complete".to_owned(),
        PassOutcome::Short { what, .. } => format!("Short {what}"),
        PassOutcome::Waits { reason, .. } => format!("Waits {reason}"),
        PassOutcome::Failed(failure) => format!("Failed {}", failure.reason),
        PassOutcome::GaveUp { reason, .. } => format!("GaveUp {reason}"),
    }
}

/// Returns all conditions except those that are about the object.
fn conditions_of(run: &PassRun<'_>, graph: &Graph<'_>) -> String {
    let all = conditions(run, graph).into_iter();
    let asked = all.filter(|it| !["Deleting", "Paused"].contains(&it.name.as_str()));
    let texts = asked.map(|it| format!("{} {:?} {}", it.name, it.status, it.reason));
    texts.collect::<Vec<_>>().join(", ")
}

/// Returns the text of `Ready`.
fn text(run: &PassRun<'_>, graph: &Graph<'_>) -> String {
    let mut all = conditions(run, graph).into_iter();
    let ready = all.find(|it| it.name == "Ready");
    ready.expect("it is always there").message
}

/// Checks rows of a run and what is reported of it.
fn table(graph: &Graph<'_>, describe: fn(&PassRun<'_>, &Graph<'_>) -> String, rows: &str) {
    for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (words, expected) = row.split_once(" -> ").expect("a row");
        assert_eq!(describe(&run(graph, words), graph), expected, "{words}");
    }
}

#[test]
fn the_nine_paths_of_the_stepper() {
    let rows = "
        nothing wrong -> Check>Get>Mutate>Update>Success>End
        deleting -> Check>Finalize>End
        deleting, Check fails E -> Check>Finalize>End
        deleting, Check alarms E -> Check>Finalize>End
        deleting, Finalize fails E -> Check>Finalize>Error>End
        Get fails E -> Check>Get>Error>End
        Mutate gives up -> Check>Get>Mutate>GiveUp>End
        Update alarms E -> Check>Get>Mutate>Update>Error>GiveUp>End
        Success fails E -> Check>Get>Mutate>Update>Success>Error>End
        Success gives up -> Check>Get>Mutate>Update>Success>GiveUp>End
        Get fails E, Error gives up -> Check>Get>Error>GiveUp>End
    ";
    table(&stepper(), path, rows);
}

#[test]
fn the_first_failure_wins_and_a_give_up_overrides_it() {
    let graph = stepper();
    let rows = "
        Get fails First -> Failed First
        Get fails First, Error gives up -> GaveUp First
        Update alarms First, Error fails Second -> GaveUp First
    ";
    table(&graph, outcome, rows);
    let two = run(&graph, "Update alarms First, Error fails Second");
    assert_eq!(two.results().failures, 2);
    assert!(two.results().gave_up);
}

#[test]
fn the_shortest_requeue_time_counts() {
    let graph = stepper();
    let ran = run(
        &graph,
        "Check requeues 3, Get requeues 1, Update requeues 2",
    );
    assert_eq!(ran.results().requeue_after, Some(Duration::from_secs(5)));
    assert_eq!(ran.outcome(), PassOutcome::Complete);
}

#[test]
fn a_finalizer_is_removed_only_after_a_deletion_that_ended_with_nothing_pending() {
    let graph = stepper();
    let is_over = |words: String| run(&graph, &words).outcome() == PassOutcome::Complete;
    for result in ["fails E", "waits ForChild", "requeues 1"] {
        assert!(is_over(format!("deleting, Check {result}")), "{result}");
        assert!(!is_over(format!("deleting, Finalize {result}")), "{result}");
    }
    for result in ["alarms E", "gives up"] {
        assert!(!is_over(format!("deleting, Finalize {result}")), "{result}");
    }
}

#[test]
fn a_deletion_that_misses_its_path_is_not_over() {
    let graph = Graph {
        kind: Kind::Pass,
        ..graph(&[
            "entry Check !Report >Work",
            "Work !Finalize:delete >End",
            "Report >End",
            "Finalize >End",
            "leaf idle End",
        ])
    };
    let past = "deleting, Check names Report -> ";
    table(&graph, path, &format!("{past}Check>Report>End"));
    table(&graph, outcome, &format!("{past}Failed NotFinalized"));
    table(&graph, outcome, "deleting -> Complete");
}

#[test]
fn ready_has_the_text_of_the_last_step_without_a_condition() {
    let rows = "
        nothing wrong -> every step of the pass is done
        Update says two -> every step of the pass is done
        Success says two -> two
        Mutate says early, Success says late -> late
    ";
    table(&two_conditions(), text, rows);
}

#[test]
fn a_condition_that_was_not_reached_is_unknown_and_one_not_as_declared_counts() {
    let rows = "
        nothing wrong -> Ready True Complete, Gathered True Get, Updated True Update
        Mutate fails NoSecret -> Ready False NoSecret, Reconciling True NoSecret, Gathered True Get, Updated Unknown NotReached
        Get waits ForSecret -> Ready False ForSecret, Reconciling True ForSecret, Gathered False ForSecret, Updated Unknown NotReached
        Get alarms BadSpec -> Ready False BadSpec, Stalled True BadSpec, Gathered False BadSpec, Updated Unknown NotReached
        Get is False -> Ready False Own, Reconciling True Own, Gathered False Own, Updated True Update
    ";
    table(&two_conditions(), conditions_of, rows);
    let path_of_short = "Get is False -> Check>Get>Mutate>Update>Success>End";
    table(&two_conditions(), path, path_of_short);
}

#[test]
fn each_of_two_conditions_of_a_state_is_compared_with_its_own_declared_status() {
    let graph = with_conditions(&[
        (1, "Gathered", True),
        (1, "Degraded", False),
        (3, "Updated", True),
    ]);
    table(&graph, outcome, "Get is True -> Short Degraded");
    table(&graph, outcome, "Get is False -> Short Gathered");
}

#[test]
fn a_permanent_failure_is_the_reason_to_give_up_and_a_state_fails_once() {
    let graph = two_conditions();
    let mut ran = run(&graph, "");
    let (get, update) = (StateId::at(1), StateId::at(3));
    ran.blame(get, &Failed::retry("NotOwned", "another has it"));
    ran.blame(get, &Failed::retry("NotOwned", "and this one too"));
    assert_eq!(ran.results().failures, 1);
    ran.blame(update, &Failed::permanent("BadResource", "no kind"));
    let (reason, message) = ("BadResource".to_owned(), "no kind".to_owned());
    assert_eq!(ran.outcome(), PassOutcome::GaveUp { reason, message });
    ran.hold(get, "Waiting", "for it");
    let result = conditions_of(&ran, &graph);
    assert!(result.contains("Gathered False NotOwned"), "{result}");
}

#[test]
fn operations_are_counted_over_a_run() {
    let graph = stepper();
    let mut run = PassRun::begin(&graph, true);
    let operations = |applied, deleted, failed| Operations {
        applied,
        deleted,
        failed,
    };
    run.count(operations(2, 0, 1));
    run.take(Ok(Step::done(Answer::Next)));
    // The path for deletion drops earlier results, but not the counts of operations.
    run.count(operations(1, 3, 0));
    assert_eq!(run.results().operations, operations(3, 3, 1));
}

#[test]
fn a_condition_is_not_true_before_its_objects_are_applied() {
    let graph = two_conditions();
    let mut ran = run(&graph, "Update fails Forbidden");
    ran.unapplied(graph.named("Get").expect("a state"));
    let result = conditions_of(&ran, &graph);
    assert!(result.contains("Gathered False NotApplied"), "{result}");
}
