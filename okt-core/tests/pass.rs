//! Runs of a pass: the path through the graph, the results, and the conditions of the object.

#[path = "common/build.rs"]
mod build;

use std::time::Duration;

use build::graph;
use okt_core::conditions::{Condition, OwnedWords, Way, of_pass_run};
use okt_core::pass::{Failed, Operations, PassOutcome, PassRun, Step};
use okt_core::{Answer, ConditionStatus, Graph, Kind};

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

type StepResult = Result<Step<Answer>, Failed>;

/// A row of a table: its name, whether the object is being deleted, the unusual answers, and the expected path.
type Row = (
    &'static str,
    bool,
    Vec<(&'static str, StepResult)>,
    &'static str,
);

fn failed(reason: &str) -> StepResult {
    Err(Failed::retry(reason, "it failed"))
}

fn alarming(reason: &str) -> StepResult {
    Err(Failed::permanent(reason, "it failed for good"))
}

/// Runs a pass in which the named states give these answers; all others are done.
fn run<'g>(graph: &'g Graph<'g>, deleting: bool, say: &[(&str, StepResult)]) -> PassRun<'g> {
    let mut run = PassRun::begin(graph, deleting);
    while let Some(here) = run.at() {
        let name = graph.name_of(here);
        let said = say.iter().find(|(state, _)| *state == name);
        let done = || Ok(Step::done(Answer::Next));
        run.take(said.map_or_else(done, |(_, said)| said.clone()));
    }
    run
}

fn path(graph: &Graph<'_>, run: &PassRun<'_>) -> String {
    let names = (run.visited().iter()).map(|visited| graph.name_of(visited.state));
    names.collect::<Vec<_>>().join(">")
}

#[test]
fn the_nine_paths_of_the_stepper() {
    let graph = stepper();
    let quiet = || Ok(Step::give_up());
    let rows: [Row; 11] = [
        (
            "nothing wrong",
            false,
            vec![],
            "Check>Get>Mutate>Update>Success>End",
        ),
        ("finalizing", true, vec![], "Check>Finalize>End"),
        (
            "finalizing + error in Check: finalization is not skipped",
            true,
            vec![("Check", failed("E"))],
            "Check>Finalize>End",
        ),
        (
            "finalizing + error in Finalize",
            true,
            vec![("Finalize", failed("E"))],
            "Check>Finalize>Error>End",
        ),
        (
            "error in Get",
            false,
            vec![("Get", failed("E"))],
            "Check>Get>Error>End",
        ),
        (
            "quiet give-up in Mutate",
            false,
            vec![("Mutate", quiet())],
            "Check>Get>Mutate>GiveUp>End",
        ),
        (
            "alarming give-up in Update",
            false,
            vec![("Update", alarming("E"))],
            "Check>Get>Mutate>Update>Error>GiveUp>End",
        ),
        (
            "error in Success",
            false,
            vec![("Success", failed("E"))],
            "Check>Get>Mutate>Update>Success>Error>End",
        ),
        (
            "give-up in Success",
            false,
            vec![("Success", quiet())],
            "Check>Get>Mutate>Update>Success>GiveUp>End",
        ),
        (
            "give-up raised inside Error",
            false,
            vec![("Get", failed("E")), ("Error", quiet())],
            "Check>Get>Error>GiveUp>End",
        ),
        (
            "finalizing + alarming error in Check",
            true,
            vec![("Check", alarming("E"))],
            "Check>Finalize>End",
        ),
    ];
    for (what, deleting, say, expected) in rows {
        let ran = run(&graph, deleting, &say);
        assert_eq!(path(&graph, &ran), expected, "{what}");
    }
}

#[test]
fn the_first_failure_wins_and_a_give_up_overrides_it() {
    let graph = stepper();
    let two = [("Update", alarming("First")), ("Error", failed("Second"))];
    let ran = run(&graph, false, &two);
    assert_eq!(ran.results().failures, 2);
    assert!(ran.results().gave_up);
    assert!(matches!(ran.outcome(), PassOutcome::GaveUp { reason, .. } if reason == "First"));

    let tried_again = run(&graph, false, &[("Get", failed("First"))]);
    assert!(
        matches!(tried_again.outcome(), PassOutcome::Failed(failure) if failure.reason == "First")
    );

    let given_up = [("Get", failed("First")), ("Error", Ok(Step::give_up()))];
    let given_up = run(&graph, false, &given_up);
    assert!(matches!(given_up.outcome(), PassOutcome::GaveUp { reason, .. } if reason == "First"));
}

#[test]
fn the_shortest_requeue_time_counts() {
    let graph = stepper();
    let at = |seconds| Ok(Step::done(Answer::Next).requeue_after(Duration::from_secs(seconds)));
    let ran = run(
        &graph,
        false,
        &[("Check", at(90)), ("Get", at(30)), ("Update", at(60))],
    );
    assert_eq!(ran.results().requeue_after, Some(Duration::from_secs(30)));
    assert_eq!(ran.outcome(), PassOutcome::Complete);
}

#[test]
fn a_finalizer_is_removed_only_after_a_deletion_that_ended_with_nothing_pending() {
    let graph = stepper();
    let complete =
        |say: &[(&str, StepResult)]| run(&graph, true, say).outcome() == PassOutcome::Complete;
    let requeue_after = Ok(Step::done(Answer::Next).requeue_after(Duration::from_secs(5)));
    let wait = Ok(Step::wait(
        "WaitingForChildDeletion",
        Duration::from_secs(5),
    ));
    assert!(complete(&[]));
    assert!(complete(&[("Check", failed("Invalid"))]));
    assert!(complete(&[("Check", wait.clone())]));
    assert!(complete(&[("Check", requeue_after.clone())]));
    assert!(!complete(&[("Finalize", failed("E"))]));
    assert!(!complete(&[("Finalize", alarming("E"))]));
    assert!(!complete(&[("Finalize", wait)]));
    assert!(!complete(&[("Finalize", requeue_after)]));
    assert!(!complete(&[("Finalize", Ok(Step::give_up()))]));
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
    let report = graph.named("Report").expect("a state");
    let past = run(
        &graph,
        true,
        &[("Check", Ok(Step::done(Answer::To(report))))],
    );
    assert_eq!(path(&graph, &past), "Check>Report>End");
    assert!(matches!(past.outcome(), PassOutcome::Failed(why) if why.reason == "NotFinalized"));
    assert_eq!(run(&graph, true, &[]).outcome(), PassOutcome::Complete);
}

fn two_conditions() -> Graph<'static> {
    let plain = stepper();
    let declared = |name| okt_core::Declared {
        name,
        status: ConditionStatus::True,
        reason: "",
        message: "",
    };
    let mut states = plain.states.to_vec();
    for (state, name) in [(1, "Gathered"), (3, "Updated")] {
        states[state].conditions = Box::leak(Box::new([declared(name)]));
    }
    Graph {
        states: Box::leak(states.into_boxed_slice()),
        ..plain
    }
}

fn said(run: &PassRun<'_>, graph: &Graph<'_>) -> Vec<(String, ConditionStatus, String)> {
    let all = of_pass_run(graph, Way::Ran(run), OwnedWords::AsDeclared, false, false);
    let told = |it: Condition| (it.name, it.status, it.reason);
    let asked = |it: &Condition| !["Deleting", "Paused"].contains(&it.name.as_str());
    all.into_iter().filter(asked).map(told).collect()
}

fn row(name: &str, status: ConditionStatus, reason: &str) -> (String, ConditionStatus, String) {
    (name.to_owned(), status, reason.to_owned())
}

#[test]
fn ready_has_the_text_of_the_last_step_without_a_condition() {
    let graph = two_conditions();
    let ready = |say: &[(&str, StepResult)]| {
        let run = run(&graph, false, say);
        let (way, resources) = (Way::Ran(&run), OwnedWords::AsDeclared);
        let all = of_pass_run(&graph, way, resources, false, false);
        let ready = all.into_iter().find(|it| it.name == "Ready");
        ready.expect("it is always there").message
    };
    let says = |text: &str| Ok(Step::done(Answer::Next).text(text));
    assert_eq!(ready(&[]), "every step of the pass is done");
    // A step with a condition reports its text there.
    assert_eq!(
        ready(&[("Update", says("2 maps"))]),
        "every step of the pass is done"
    );
    assert_eq!(ready(&[("Success", says("2 of 2"))]), "2 of 2");
    assert_eq!(
        ready(&[("Mutate", says("early")), ("Success", says("late"))]),
        "late"
    );
}

#[test]
fn a_condition_of_a_state_that_was_not_reached_is_unknown() {
    use ConditionStatus::{False, True, Unknown};
    let graph = two_conditions();
    assert_eq!(
        said(&run(&graph, false, &[]), &graph),
        [
            row("Ready", True, "Complete"),
            row("Gathered", True, "Get"),
            row("Updated", True, "Update"),
        ]
    );
    assert_eq!(
        said(
            &run(&graph, false, &[("Mutate", failed("NoSecret"))]),
            &graph
        ),
        [
            row("Ready", False, "NoSecret"),
            row("Reconciling", True, "NoSecret"),
            row("Gathered", True, "Get"),
            row("Updated", Unknown, "NotReached"),
        ]
    );
    let waits = Ok(Step::wait("WaitingForSecret", Duration::from_secs(5)).text("no db-password"));
    assert_eq!(
        said(&run(&graph, false, &[("Get", waits)]), &graph),
        [
            row("Ready", False, "WaitingForSecret"),
            row("Reconciling", True, "WaitingForSecret"),
            row("Gathered", False, "WaitingForSecret"),
            row("Updated", Unknown, "NotReached"),
        ]
    );
    assert_eq!(
        said(&run(&graph, false, &[("Get", alarming("BadSpec"))]), &graph),
        [
            row("Ready", False, "BadSpec"),
            row("Stalled", True, "BadSpec"),
            row("Gathered", False, "BadSpec"),
            row("Updated", Unknown, "NotReached"),
        ]
    );
}

#[test]
fn a_step_that_is_done_but_not_as_declared_keeps_the_object_from_being_ready() {
    use ConditionStatus::{False, True};
    let graph = two_conditions();
    let short = Ok(Step::done(Answer::Next).condition(False, "Degraded", "2 of 3"));
    let ran = run(&graph, false, &[("Get", short)]);
    assert_eq!(path(&graph, &ran), "Check>Get>Mutate>Update>Success>End");
    assert_eq!(
        said(&ran, &graph),
        [
            row("Ready", False, "Degraded"),
            row("Reconciling", True, "Degraded"),
            row("Gathered", False, "Degraded"),
            row("Updated", True, "Update"),
        ]
    );
}

#[test]
fn each_of_two_conditions_of_a_state_is_compared_with_its_own_declared_status() {
    use ConditionStatus::{False, True};
    let plain = two_conditions();
    let mut states = plain.states.to_vec();
    let declared = |name, status| okt_core::Declared {
        name,
        status,
        reason: "",
        message: "",
    };
    states[1].conditions = Box::leak(Box::new([
        declared("Gathered", True),
        declared("Degraded", False),
    ]));
    let graph = Graph {
        states: Box::leak(states.into_boxed_slice()),
        ..plain
    };
    for (own, short) in [(True, "Degraded"), (False, "Gathered")] {
        let done = Ok(Step::done(Answer::Next).condition(own, "Own", ""));
        let ran = run(&graph, false, &[("Get", done)]);
        let outcome = ran.outcome();
        assert!(
            matches!(&outcome, PassOutcome::Short { what, .. } if what == short),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_permanent_failure_is_the_reason_to_give_up_and_a_state_fails_once() {
    let graph = two_conditions();
    let mut ran = run(&graph, false, &[]);
    let (get, update) = (okt_core::StateId::at(1), okt_core::StateId::at(3));
    ran.blame(get, &Failed::retry("NotOwned", "another has it"));
    ran.blame(get, &Failed::retry("NotOwned", "and this one too"));
    assert_eq!(ran.results().failures, 1);
    ran.blame(update, &Failed::permanent("BadResource", "no kind"));
    let gave_up = PassOutcome::GaveUp {
        reason: "BadResource".to_owned(),
        message: "no kind".to_owned(),
    };
    assert_eq!(ran.outcome(), gave_up);
    ran.hold(get, "Waiting", "for it");
    let said = said(&ran, &graph);
    let row = row("Gathered", ConditionStatus::False, "NotOwned");
    assert!(said.contains(&row), "{said:?}");
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
    let mut ran = run(&graph, false, &[("Update", failed("Forbidden"))]);
    ran.unapplied(graph.named("Get").expect("a state"));
    let gathered = &said(&ran, &graph)[2];
    assert_eq!(
        *gathered,
        row("Gathered", ConditionStatus::False, "NotApplied")
    );
}
