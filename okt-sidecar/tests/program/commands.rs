//! Commands, well-behaved and misbehaving.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::site::{Site, peak, report};

/// Returns a configuration with one shell script for each state, and further fields for each.
fn scripts(states: &[(&str, &str, &str)]) -> String {
    let mut text = "probe: { command: [echo, Running] }\nstates:\n".to_owned();
    for (state, script, rest) in states {
        let script = json!(script);
        text += &format!("  {state}: {{ command: [sh, -c, {script}]{rest} }}\n");
    }
    text
}

#[test]
fn a_command_gets_its_input_and_reports_its_result() {
    let script = "\
        echo \"$OKT_ACTION_ID $OKT_STATE $OKT_ATTEMPT $OKT_RESUMED $OKT_OWNER_NAMESPACE/$OKT_OWNER_NAME $COLOUR\"; \
        cat \"$OKT_INPUT\"; pwd >&2; \
        echo '40% copied' > \"$OKT_PROGRESS\"; \
        while [ ! -e {dir}/go ]; do sleep 0.02; done; \
        echo 'event: Reviewing' > \"$OKT_RESULT\"; echo 'message: 3 files' >> \"$OKT_RESULT\"";
    let rest = ", environment: { COLOUR: red }, directory: /usr";
    let mut site = Site::running(&scripts(&[("Servicing", script, rest)]));
    let id = site.put_with("Servicing", &json!({ "spec": { "size": 3 } }));
    site.until("the progress is reported", |site| {
        site.action(&id)["progress"] == json!({ "percent": 40, "message": "copied" })
    });
    site.write("go", "");
    let action = site.wait(&id);
    assert_eq!(action["phase"], "Succeeded", "{action}");
    assert_eq!(action["event"], "Reviewing");
    assert_eq!(action["message"], "3 files");
    let output = site.output(&id);
    let environment = "u1.1 Servicing 1 false shop/orders red\n";
    for part in [environment, "{\"spec\":{\"size\":3}}", "/usr\n"] {
        assert!(output.contains(part), "{output}");
    }
    let left = std::fs::read_dir(site.path("data/scratch")).expect("it is there");
    assert_eq!(left.count(), 0, "the files of the action are left");
}

#[test]
fn a_failure_has_a_cause_and_tells_whether_a_retry_helps() {
    let full =
        "printf 'reason: DiskFull\\nmessage: no room\\npermanent: true\\n' > $OKT_RESULT; exit 1";
    let flood = "head -c 10000000 /dev/zero | tr '\\0' x > $OKT_RESULT";
    let states = [
        ("Plain", "exit 3", ""),
        ("Permanent", "exit 4", ", permanent: [4]"),
        ("Told", full, ""),
        ("Killed", "kill -9 $$", ""),
        ("Wrong", "echo 'evnt: Running' > $OKT_RESULT", ""),
        ("Flood", flood, ""),
    ];
    let mut site = Site::running(&scripts(&states));
    for (state, begin) in [
        ("Plain", "CommandFailed false: sh exited with 3"),
        ("Permanent", "CommandFailed true: sh exited with 4"),
        ("Told", "DiskFull true: no room"),
        (
            "Killed",
            "CommandFailed false: sh was ended by signal 9 (KILL)",
        ),
        (
            "Wrong",
            "BadResult false: line 1 of OKT_RESULT: unknown key",
        ),
        (
            "Flood",
            "BadResult false: line 1 of OKT_RESULT is not `key: text`",
        ),
    ] {
        let action = site.done(state);
        assert_eq!(action["phase"], "Failed", "{action}");
        let text = |key: &str| action[key].as_str().unwrap_or_default();
        let permanent = action["permanent"].as_bool().unwrap_or_default();
        let failure = format!("{} {permanent}: {}", text("reason"), text("message"));
        assert!(failure.starts_with(begin), "{failure}");
    }
}

#[test]
fn steps_follow_each_other_and_end_with_the_first_that_fails() {
    let mut site = Site::running(
        "probe: { command: [echo, Running] }\nstates:\n  Both:\n    steps:\n      - command: [sh, -c, echo one]\n      \
         - command: [sh, -c, echo two; exit 1]\n      - command: [sh, -c, echo three]\n",
    );
    let id = site.put("Both");
    assert_eq!(site.wait(&id)["phase"], "Failed");
    assert_eq!(site.output(&id), "one\ntwo\n");
}

#[test]
fn a_program_that_was_removed_is_reported() {
    let mut site = Site::new(
        "probe: { command: [echo, Running] }\nstates: { Go: { command: [\"{dir}/tool\"] } }\n",
    );
    site.write("tool", "#!/bin/sh\n");
    site.set_mode("tool", 0o755);
    site.start();
    std::fs::remove_file(site.path("tool")).expect("it is there");
    let action = site.done("Go");
    assert_eq!(action["reason"], "CannotRun", "{action}");
    let message = action["message"].as_str().expect("a text");
    assert!(
        message.ends_with("No such file or directory (os error 2)"),
        "{message}"
    );
}

#[test]
fn a_command_with_endless_progress_is_ended_within_its_limits() {
    let script = "yes > \"$OKT_PROGRESS\"";
    let mut site = Site::running(&scripts(&[
        ("Slow", script, ", timeout: 300ms, grace: 200ms"),
        ("Unwanted", script, ", grace: 200ms"),
    ]));
    let id = site.put("Slow");
    assert_eq!(site.wait(&id)["reason"], "TimedOut");
    let id = site.put("Unwanted");
    site.until("it runs", |site| {
        site.action(&id)["progress"]["message"] == "y"
    });
    assert_eq!(site.cancel(&id), 202);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
}

#[test]
fn a_command_that_ignores_sigterm_is_ended_with_all_that_it_has_started() {
    let script = "trap '' TERM; sleep 1000 & (trap '' TERM; sleep 1000) & echo up; while :; do sleep 0.1; done";
    let mut site = Site::running(&scripts(&[
        ("Slow", script, ", timeout: 300ms, grace: 200ms"),
        ("Unwanted", script, ", grace: 200ms"),
    ]));
    let id = site.put("Slow");
    let action = site.wait(&id);
    assert_eq!(action["reason"], "TimedOut", "{action}");
    assert_eq!(action["message"], "sh took longer than 300ms");
    assert!(site.of(&id).is_empty(), "one of its processes still runs");

    let id = site.put("Unwanted");
    site.until("it runs", |site| site.output(&id) == "up\n");
    assert_eq!(site.cancel(&id), 202);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
    assert!(site.of(&id).is_empty(), "one of its processes still runs");
}

#[test]
fn a_command_may_clean_up_when_it_is_cancelled() {
    let script = "trap 'echo cleaned; exit 1' TERM; echo up; while :; do sleep 0.05; done";
    let mut site = Site::running(&scripts(&[("Unwanted", script, "")]));
    let id = site.put("Unwanted");
    site.until("it runs", |site| site.output(&id) == "up\n");
    site.cancel(&id);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
    let output = site.output(&id);
    // Between the two, the shell may print that its `sleep` was ended.
    assert!(
        output.starts_with("up\n") && output.contains("cleaned\n"),
        "{output}"
    );
}

#[test]
fn what_a_command_leaves_in_its_group_ends_with_it_though_it_holds_the_output_open() {
    let mut site = Site::running(&scripts(&[("Forgetful", "sleep 1000 & echo done", "")]));
    let id = site.put("Forgetful");
    let action = site.wait(&id);
    assert_eq!(action["phase"], "Succeeded", "{action}");
    assert_eq!(site.output(&id), "done\n");
    assert!(site.of(&id).is_empty(), "one of its processes still runs");
}

#[test]
fn what_leaves_the_group_lives_on_and_holds_nothing_up() {
    let script = "setsid sh -c 'echo > {dir}/away; exec sleep 1000' & while [ ! -e {dir}/away ]; do sleep 0.02; done; echo up";
    let mut site = Site::running(&scripts(&[("Daemon", script, "")]));
    let begun = Instant::now();
    let id = site.put("Daemon");
    let action = site.wait(&id);
    assert_eq!(action["phase"], "Succeeded", "{action}");
    assert!(
        begun.elapsed() < Duration::from_mins(5),
        "the daemon's pipe delayed the end"
    );
    assert_eq!(site.of(&id).len(), 1, "the daemon is gone");
}

#[test]
fn orphans_do_not_stay_as_zombies() {
    // Each of them ends after its parent, so the agent adopts it.
    let script = "for n in 1 2 3 4 5; do (setsid sh -c 'sleep 0.2' &) ; done";
    let mut site = Site::running(&scripts(&[("Orphans", script, "")]));
    assert_eq!(site.done("Orphans")["phase"], "Succeeded");
    let zombies = |site: &Site| {
        let zombie = format!(") Z {} ", site.pid());
        let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
        let stats = processes.map(|it| std::fs::read_to_string(it.path().join("stat")));
        stats
            .flatten()
            .filter(|stat| stat.contains(&zombie))
            .count()
    };
    site.until("the orphans have ended", |site| site.below(None).is_empty());
    site.until("no zombie is left", |site| zombies(site) == 0);
}

#[test]
fn gigabytes_of_output_cost_no_memory() {
    let script = "yes | head -c 3G; yes wrong | head -c 100M >&2";
    let mut site = Site::running(&scripts(&[("Loud", script, ", timeout: 30m")]));
    let before = peak(site.pid());
    let begun = Instant::now();
    let id = site.put("Loud");
    let action = loop {
        // The agent answers the status meanwhile.
        assert_eq!(site.seen()["seen"].as_str().map(str::is_empty), Some(false));
        let action = site.action(&id);
        if action["phase"] != "Running" && action["phase"] != "Pending" {
            break action;
        }
        assert!(begun.elapsed() < Duration::from_mins(30), "{action}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let (after, took) = (peak(site.pid()), begun.elapsed());
    println!("3.1 GiB printed in {took:.1?}: {before} KiB before, {after} KiB at most");
    assert_eq!(action["phase"], "Succeeded", "{action}");
    assert_eq!(
        action["outputBytes"],
        3 * 1024 * 1024 * 1024_u64 + 100 * 1024 * 1024
    );
    assert!(after < 50 * 1024, "{after} KiB");
}

#[test]
fn root_runs_a_command_as_the_configured_user_and_other_users_are_refused() {
    let text = scripts(&[(
        "Who",
        "id -un; id -Gn; cat $OKT_INPUT; echo 7 > $OKT_PROGRESS; echo 'event: Done' > $OKT_RESULT",
        ", user: nobody",
    )]);
    let mut site = Site::new(&text);
    if rustix::process::geteuid().is_root() {
        // Other users must be able to reach the agent's directory.
        site.set_mode("", 0o755);
        site.start();
        let id = site.put("Who");
        let (action, output) = (site.wait(&id), site.output(&id));
        assert_eq!(action["event"], "Done", "{action} {output}");
        assert!(output.starts_with("nobody\nnogroup\n{}"), "{output}");
    } else {
        let err = site.run(&["check", "okt.yaml"]).err;
        let why = "only root can run something as another user";
        assert!(err.contains(why), "{err}");
    }
}

#[test]
fn a_command_has_nothing_of_the_agents_environment_but_a_few_harmless_variables() {
    let rest = ", environment: { COLOUR: red }";
    let mut site = Site::new(&scripts(&[("Who", "env", rest)]));
    let own = [
        ("AGENT_TOKEN", "secret"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
    ];
    site.start_with(&own);
    let id = site.put("Who");
    site.wait(&id);
    let output = site.output(&id);
    let variables = output.lines().filter_map(|line| line.split_once('='));
    let names: Vec<&str> = variables.map(|(name, _)| name).collect();
    assert!(!output.contains("secret"), "{output}");
    for name in ["COLOUR", "LANG", "LC_SITE", "OKT_RUN", "PATH", "TZ"] {
        assert!(names.contains(&name), "{name} is missing: {output}");
    }
    // The last three are the shell's.
    let known = [
        "COLOUR", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "TZ", "USER", "PWD", "SHLVL", "_",
    ];
    for name in names {
        assert!(
            known.contains(&name) || name.starts_with("LC_") || name.starts_with("OKT_"),
            "{name} is inherited"
        );
    }
}

#[test]
fn root_never_loads_what_the_environment_of_a_command_names() {
    if !rustix::process::geteuid().is_root() {
        report("not root: not tested that root loads nothing for a command");
        return;
    }
    // The loader of a process logs what it loads, as the user of the process.
    let rest =
        ", user: nobody, environment: { LD_DEBUG: libs, LD_DEBUG_OUTPUT: \"{dir}/loads/of\" }";
    let mut site = Site::new(&scripts(&[("Who", "id -u", rest)]));
    site.set_mode("", 0o755);
    std::fs::create_dir(site.path("loads")).expect("a directory");
    site.set_mode("loads", 0o777);
    site.start();
    let id = site.put("Who");
    let (action, output) = (site.wait(&id), site.output(&id));
    assert_eq!(action["phase"], "Succeeded", "{action} {output}");
    let loads = std::fs::read_dir(site.path("loads")).expect("it is there");
    let owner = |file: std::fs::DirEntry| file.metadata().expect("it is there").uid();
    let owners: BTreeSet<u32> = loads.flatten().map(owner).collect();
    if owners.is_empty() {
        report(
            "the loader of this machine writes nothing down: not tested that root loads nothing for a command",
        );
        return;
    }
    let uid: u32 = output.trim().parse().expect("a number");
    assert_eq!(owners, BTreeSet::from([uid]));
}

#[test]
fn a_link_in_the_agents_directory_makes_it_change_no_other_file() {
    let site = Site::new(&scripts(&[("Go", "true", "")]));
    std::fs::create_dir(site.path("data")).expect("a directory");
    site.write("precious", "kept");
    std::os::unix::fs::symlink(site.path("precious"), site.path("data/lock")).expect("a link");
    assert_eq!(site.run(&["run", "okt.yaml"]).code, Some(1));
    assert_eq!(site.read("precious"), "kept");
}

#[test]
fn a_scratch_directory_that_others_could_have_put_there_is_refused() {
    let scratch = "scratch: \"{dir}/shared/scratch\"\n".to_owned();
    let mut site = Site::new(&(scratch + &scripts(&[("Go", "true", "")])));
    let refused = |site: &Site, why: &str| {
        let run = site.run(&["run", "okt.yaml"]);
        assert_eq!(run.code, Some(1));
        let why = format!("shared/scratch: {why}");
        assert!(run.err.contains(&why), "{}", run.err);
    };
    std::fs::create_dir_all(site.path("shared/theirs")).expect("a directory");
    let link = site.path("shared/scratch");
    std::os::unix::fs::symlink(site.path("shared/theirs"), &link).expect("a link");
    refused(&site, "it is no directory, or a symbolic link");
    std::fs::remove_file(&link).expect("it is there");
    std::fs::create_dir(&link).expect("a directory");
    site.set_mode("shared/scratch", 0o777);
    refused(&site, "everybody can write to it");
    site.set_mode("shared/scratch", 0o755);
    site.start();
    assert_eq!(site.done("Go")["phase"], "Succeeded");
}

#[test]
fn a_link_in_place_of_the_result_shows_no_file_of_another_user() {
    let script = "ln -sf {dir}/secret \"$OKT_RESULT\"";
    let mut site = Site::running(&scripts(&[("Go", script, "")]));
    site.write("secret", "message: of root\n");
    let action = site.done("Go");
    assert_eq!(action["reason"], "BadResult", "{action}");
    let message = action["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("cannot read OKT_RESULT"), "{message}");
}

#[test]
fn the_last_output_of_a_command_is_kept() {
    let mut site = Site::running(&scripts(&[("Short", "printf first; printf last >&2", "")]));
    for _ in 0..40 {
        let id = site.put("Short");
        site.wait(&id);
        let output = site.output(&id);
        assert_eq!(output.len(), "firstlast".len(), "{output}");
    }
}
