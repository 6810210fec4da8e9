//! The agent is killed at any moment and started again: no work is done twice, and no work overlaps.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::site::{Run, Site};

/// Returns states whose work records its beginning and its end, and whether another work ran at the same time.
///
/// All processes of the script hold the lock, and the last of them releases it.
fn states() -> String {
    let script = json!(
        "exec 9>{dir}/lock; flock -n 9 || echo overlap >> {dir}/notes; \
         echo \"begin $OKT_ACTION_ID $OKT_RESUMED\" >> {dir}/notes; \
         (trap '' TERM; sleep 0.15) & sleep 0.1; wait; \
         echo \"end $OKT_ACTION_ID\" >> {dir}/notes"
    );
    format!(
        "probe: {{ command: [echo, Running] }}\nstates:\n  \
         Once: {{ command: [sh, -c, {script}], grace: 50ms }}\n  \
         Again: {{ command: [sh, -c, {script}], grace: 50ms, repeatable: true }}\n"
    )
}

fn count(notes: &str, line: &str) -> usize {
    notes.lines().filter(|it| it.starts_with(line)).count()
}

#[test]
fn a_killed_agent_leaves_processes_that_the_next_one_ends_without_guessing() {
    let text = "trap '' TERM; echo $$ >> {dir}/pids; sleep 1000 & while :; do sleep 0.05; done";
    let script = json!(text);
    let mut site = Site::running(&format!(
        "probe: {{ command: [echo, Running] }}\nstates:\n  \
         Once: {{ command: [sh, -c, {script}], grace: 100ms }}\n  \
         Again: {{ command: [sh, -c, {script}], grace: 100ms, repeatable: true }}\n"
    ));

    let id = site.put("Once");
    site.until("it runs", |site| site.read("pids").lines().count() == 1);
    site.kill();
    assert!(!site.of(&id).is_empty(), "the command outlives the agent");
    site.start();
    assert_eq!(site.wait(&id)["phase"], "Unknown");
    assert!(site.of(&id).is_empty(), "something of it runs still");

    let id = site.put("Again");
    site.until("it runs", |site| site.read("pids").lines().count() == 2);
    let old = site.of(&id);
    site.kill();
    site.start();
    site.until("it runs again", |site| {
        site.read("pids").lines().count() == 3
    });
    let survived = site.of(&id).iter().any(|pid| old.contains(pid));
    assert!(!survived, "an old process still runs");
    let action = site.action(&id);
    assert_eq!(action["phase"], "Running");
    assert_eq!(action["resumed"], true);
    site.cancel(&id);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
    assert!(site.of(&id).is_empty());
}

#[test]
fn an_agent_killed_at_any_moment_neither_overlaps_nor_repeats_its_work() {
    let mut site = Site::running(&states());
    // Measure how long it takes on this machine, at best.
    let mut whole = Duration::MAX;
    for _ in 0..3 {
        let since = Instant::now();
        let id = site.put("Once");
        assert_eq!(site.wait(&id)["phase"], "Succeeded");
        whole = whole.min(since.elapsed());
    }
    // The moments are not random: they step unevenly through the life of an action.
    let mut moment = 0;
    let mut unknown = 0;
    for round in 0..24 {
        let state = if round % 2 == 0 { "Once" } else { "Again" };
        let id = site.put(state);
        moment = (moment + 61) % 240;
        match round % 12 {
            10 => _ = site.wait(&id),
            // The machine may be faster by now.
            4 => site.until("it has begun", |site| {
                count(&site.read("notes"), &format!("begin {id} ")) > 0
            }),
            _ => sleep(whole * moment / 160),
        }
        site.kill();
        site.start();
        let action = site.wait(&id);
        let notes = site.read("notes");
        let begun = count(&notes, &format!("begin {id} "));
        let ended = count(&notes, &format!("end {id}"));
        assert!(site.of(&id).is_empty(), "{id} still runs");
        match (state, action["phase"].as_str()) {
            ("Once", Some("Succeeded")) => assert_eq!((begun, ended), (1, 1), "{id}\n{notes}"),
            ("Once", Some("Unknown")) => {
                unknown += 1;
                assert!(begun <= 1 && ended <= 1, "{id}\n{notes}");
            }
            ("Again", Some("Succeeded")) => {
                assert!(begun >= 1 && ended >= 1 && begun >= ended, "{id}\n{notes}");
            }
            _ => panic!("{id}: {action}"),
        }
        let overlaps = count(&notes, "overlap");
        assert_eq!(overlaps, 0, "{id} overlapped itself\n{notes}");
        let body = json!({ "attempt": action["attempt"] }).to_string();
        let path = format!("/lifecycle/v1/actions/{id}/acknowledgement");
        assert_eq!(site.ask("PUT", &path, &body).expect("an answer").0, 200);
    }
    println!("24 kills: {unknown} of 12 actions that are not repeatable are unknown");
    let is_hit = (1..12).contains(&unknown);
    assert!(is_hit, "the moments miss the work: {unknown}");
}

#[test]
fn a_signal_makes_the_agent_wait_for_its_action_and_exit_with_0() {
    let script = json!("sleep 0.3; echo done > {dir}/done");
    let mut site = Site::running(&format!(
        "probe: {{ command: [echo, Running] }}\nstates: {{ Once: {{ command: [sh, -c, {script}] }} }}\n"
    ));
    let id = site.put("Once");
    site.until("it runs", |site| {
        !site.of(&id).is_empty() || site.path("done").exists()
    });
    site.signal(Signal::TERM);
    assert_eq!(site.ended().code(), Some(0));
    assert_eq!(site.read("done"), "done\n");
    site.start();
    assert_eq!(site.wait(&id)["phase"], "Succeeded");
}

#[test]
fn a_second_signal_ends_the_agent_at_once_and_the_next_agent_cleans_up() {
    let script = json!("trap '' TERM; while :; do sleep 0.05; done");
    let mut site = Site::running(&format!(
        "probe: {{ command: [echo, Running] }}\nstates: {{ Once: {{ command: [sh, -c, {script}], grace: 100ms }} }}\n"
    ));
    let id = site.put("Once");
    site.until("it runs", |site| !site.of(&id).is_empty());
    site.signal(Signal::TERM);
    site.until("it is stopping", |site| {
        site.ask("GET", "/readyz", "").is_ok_and(|it| it.0 == 503)
    });
    site.signal(Signal::TERM);
    assert_eq!(site.ended().code(), Some(4));
    site.start();
    assert_eq!(site.wait(&id)["phase"], "Unknown");
    assert!(site.of(&id).is_empty());
}

#[test]
fn two_agents_do_not_share_a_directory() {
    let mut site = Site::running("probe: { command: [echo, Running] }\n");
    let Run { code, err, .. } = site.run(&["run", "okt.yaml"]);
    assert_eq!(code, Some(3));
    assert!(err.contains("another agent uses"), "{err}");
    site.kill();
    // The lock of a killed agent does not block the next one.
    site.start();
}

#[test]
fn a_wrong_file_exits_with_2_and_a_right_one_is_confirmed() {
    let site = Site::new("probe: { command: [echo, Running], evry: 1s }\n");
    for command in ["check", "run"] {
        let Run { code, err, .. } = site.run(&[command, "okt.yaml"]);
        assert_eq!(code, Some(2), "{command}");
        let mistake = "okt.yaml:3:36: probe.evry: unknown key, did you mean `every`?\n";
        assert_eq!(err, mistake);
    }
    let right = Site::new("probe: { command: [echo, Running] }\n");
    let Run { code, out, .. } = right.run(&["check", "okt.yaml"]);
    assert_eq!(code, Some(0));
    assert_eq!(out, "okt.yaml: nothing is wrong\n");
    let expected = format!("okt-sidecar {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(right.run(&["--version"]).out, expected);
}
