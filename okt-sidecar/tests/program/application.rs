//! The application as a process: started, found again and stopped; only an action starts it.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::site::{Site, report};

/// Returns a configuration of an application that records its beginning and its stop; `trap` handles the stop.
fn application(trap: &str, rest: &str) -> String {
    let script = json!(format!(
        "trap '{trap}' TERM; echo $$ >> {{dir}}/begun; touch {{dir}}/up; while :; do sleep 0.02; done"
    ));
    let probe = json!("[ -e {dir}/up ] && echo Running || echo Starting");
    format!(
        "application:\n  command: [sh, -c, {script}]\n  down: Down\n  \
         stop: [{{ signal: TERM, wait: 1m }}]\n{rest}\
         probe: {{ command: [sh, -c, {probe}], every: 50ms }}\n\
         states:\n  Starting: {{ application: start, until: Running }}\n  \
         Stopping: {{ application: stop }}\n  Restarting: {{ application: restart, until: Running }}\n"
    )
}

const KIND: &str = "rm -f {dir}/up; echo bye >> {dir}/bye; exit 0";

fn begun(site: &Site) -> Vec<i32> {
    site.read("begun")
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect()
}

fn main_process(site: &Site) -> i32 {
    *begun(site).last().expect("it has begun")
}

fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn is_seen(site: &Site, state: &str) {
    let seen = |site: &Site| site.seen()["state"] == *state;
    site.until(format!("{state} is observed"), seen);
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("it is there");
}

#[test]
fn one_action_starts_it_and_another_stops_it_gracefully() {
    let mut site = Site::running(&application(KIND, ""));
    is_seen(&site, "Down");
    let action = site.done("Starting");
    assert_eq!(action["phase"], "Succeeded", "{action}");
    is_seen(&site, "Running");
    assert_eq!(site.done("Starting")["phase"], "Succeeded");
    assert_eq!(begun(&site).len(), 1, "it was started again");
    let first = main_process(&site);

    assert_eq!(site.done("Restarting")["phase"], "Succeeded");
    assert_eq!(begun(&site).len(), 2);
    assert!(!lives(first));

    assert_eq!(site.done("Stopping")["phase"], "Succeeded");
    is_seen(&site, "Down");
    assert!(!lives(main_process(&site)));
    assert_eq!(site.read("bye"), "bye\nbye\n");
    assert_eq!(site.done("Stopping")["phase"], "Succeeded");
}

#[test]
fn an_application_that_does_not_stop_is_killed_with_its_whole_group() {
    let script = json!(
        "trap '' TERM; (trap '' TERM; echo $$ > /dev/null; sleep 1000) & echo $$ >> {dir}/begun; wait; while :; do sleep 1; done"
    );
    let mut site = Site::running(&format!(
        "application:\n  command: [sh, -c, {script}]\n  environment: {{ PART: app }}\n  \
         stop: [{{ signal: TERM, wait: 100ms }}]\n\
         probe: {{ command: [echo, Running], every: 50ms }}\n\
         states: {{ Starting: {{ application: start }}, Stopping: {{ application: stop }} }}\n"
    ));
    assert_eq!(site.done("Starting")["phase"], "Succeeded");
    site.until("all of it runs", |site| {
        site.below(Some("PART=app")).len() >= 2
    });
    assert_eq!(site.done("Stopping")["phase"], "Succeeded");
    assert!(site.below(Some("PART=app")).is_empty());
}

#[test]
fn it_is_not_restarted_when_it_ends_by_itself() {
    let mut site = Site::running(&application(KIND, ""));
    site.done("Starting");
    is_seen(&site, "Running");
    kill(main_process(&site));
    is_seen(&site, "Down");
    std::fs::remove_file(site.path("up")).expect("it was not asked to clean up");
    // Several observations later it is still down.
    let before = site.seen()["observedAt"].clone();
    site.until("it is observed again", |site| {
        site.seen()["observedAt"] != before
    });
    assert_eq!(begun(&site).len(), 1);
    let log = site.read("log");
    assert!(log.contains("the application was ended by signal 9 (KILL)"));
    assert_eq!(site.done("Starting")["phase"], "Succeeded");
    assert_eq!(begun(&site).len(), 2);
}

#[test]
fn it_outlives_a_killed_agent_and_the_next_one_finds_and_stops_it() {
    let mut site = Site::running(&application(KIND, ""));
    site.done("Starting");
    site.kill();
    assert!(lives(main_process(&site)));
    site.start();
    is_seen(&site, "Running");
    assert_eq!(site.done("Starting")["phase"], "Succeeded");
    assert_eq!(begun(&site).len(), 1, "a second one was started");
    assert_eq!(site.done("Stopping")["phase"], "Succeeded");
    assert!(!lives(main_process(&site)));
    assert_eq!(site.read("bye"), "bye\n");
}

#[test]
fn a_process_that_reuses_the_id_of_the_noted_application_is_not_touched() {
    let mut site = Site::running(&application(KIND, ""));
    site.done("Starting");
    site.kill();
    kill(main_process(&site));
    site.until("it has ended", |site| !lives(main_process(site)));
    let mut stranger = Stranger::new();
    // As if its id had been reused by a stranger.
    let name = "data/notes/application.json";
    let old = main_process(&site).to_string();
    let note = site.read(name).replace(&old, &stranger.0.id().to_string());
    site.write(name, &note);
    site.start();
    is_seen(&site, "Down");
    assert_eq!(site.done("Stopping")["phase"], "Succeeded");
    assert!(stranger.lives(), "an unrelated process was ended");
}

#[test]
fn a_start_fails_at_once_when_the_application_ends_before_it_is_ready() {
    let mut site = Site::running(
        "application: { command: [sh, -c, exit 7], down: Down }\n\
         probe: { command: [echo, Starting], every: 50ms }\n\
         states: { Starting: { application: start, until: Running } }\n",
    );
    let action = site.done("Starting");
    assert_eq!(action["reason"], "ApplicationEnded", "{action}");
    assert_eq!(
        action["message"],
        "the application exited with 7 before it was Running"
    );
}

#[test]
fn a_cancelled_start_leaves_no_process() {
    let mut site = Site::running(&application(KIND, "").replace("touch {dir}/up;", ""));
    let id = site.put("Starting");
    site.until("it has begun", |site| begun(site).len() == 1);
    site.cancel(&id);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
    assert!(!lives(main_process(&site)));
    assert_eq!(site.read("bye"), "bye\n", "it was not stopped gracefully");
}

#[test]
fn work_that_is_cancelled_in_a_later_step_stops_the_application_that_it_started() {
    let later = "  Later: { steps: [{ application: start }, { command: [sh, -c, 'touch {dir}/later; sleep 600'] }] }\n";
    let mut site = Site::running(&(application(KIND, "") + later));
    let id = site.put("Later");
    let second_step = |site: &Site| site.path("later").exists();
    site.until("the second step has begun", second_step);
    site.cancel(&id);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
    assert!(!lives(main_process(&site)));
    assert_eq!(site.read("bye"), "bye\n", "it was not stopped gracefully");

    // An application that already ran is not stopped.
    site.done("Starting");
    std::fs::remove_file(site.path("later")).expect("it is there");
    let id = site.put("Later");
    let second_step = |site: &Site| site.path("later").exists();
    site.until("the second step has begun", second_step);
    site.cancel(&id);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
    assert!(lives(main_process(&site)));
}

#[test]
fn a_resumed_start_that_is_cancelled_stops_the_application_that_it_started_before() {
    let mut site = Site::running(&application(KIND, "").replace("touch {dir}/up;", ""));
    let id = site.put("Starting");
    site.until("it has begun", |site| begun(site).len() == 1);
    site.kill();
    assert!(lives(main_process(&site)));
    site.start();
    site.until("it is resumed and waits", |site| {
        let action = site.action(&id);
        action["resumed"] == true && action["progress"]["message"].is_string()
    });
    site.cancel(&id);
    assert_eq!(site.wait(&id)["phase"], "Cancelled");
    assert_eq!(begun(&site).len(), 1);
    assert!(!lives(main_process(&site)));
}

#[test]
fn a_stopping_agent_leaves_or_stops_the_application_as_configured() {
    let mut site = Site::running(&application(KIND, ""));
    site.done("Starting");
    site.signal(Signal::TERM);
    assert_eq!(site.ended().code(), Some(0));
    assert!(
        lives(main_process(&site)),
        "it keeps running, because the agent is not process 1"
    );

    let mut site = Site::running(&application(KIND, "  onExit: stop\n"));
    site.done("Starting");
    site.signal(Signal::INT);
    assert_eq!(site.ended().code(), Some(0));
    assert!(!lives(main_process(&site)));
    assert_eq!(site.read("bye"), "bye\n");
}

/// A process that the agent has not started. Dropping it kills the process.
struct Stranger(std::process::Child);

impl Stranger {
    fn new() -> Self {
        let mut sleep = std::process::Command::new("sleep");
        sleep.arg("1000").stdout(std::process::Stdio::null());
        Self(sleep.spawn().expect("it runs"))
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_application_started_by_another_program_is_found_by_its_pid_file() {
    let mut site = Site::running(
        "application:\n  recognise: { pidFile: \"{dir}/pid\", name: sleep }\n  down: Down\n  stop: [{ signal: TERM, wait: 5s }]\n\
         probe: { command: [sh, -c, 'echo Running; echo $OKT_APPLICATION_PID >> {dir}/asked'], every: 50ms }\n\
         states: { Stopping: { application: stop }, Starting: { application: start } }\n",
    );
    is_seen(&site, "Down");
    let mut own = Stranger::new();
    let pid = own.0.id().to_string();
    site.write("pid", &format!("{pid}\n/somewhere\n"));
    is_seen(&site, "Running");
    assert!(site.read("asked").lines().all(|line| line == pid));

    // The clock was set back since. The application is still found, and not started twice.
    let mut options = std::fs::File::options();
    let file = options.write(true).open(site.path("pid")).expect("a file");
    let earlier = SystemTime::now() - Duration::from_hours(1);
    file.set_modified(earlier).expect("its own");
    assert_eq!(site.done("Starting")["phase"], "Succeeded");
    is_seen(&site, "Running");
    // A process with another name.
    site.write("pid", &format!("{}\n", std::process::id()));
    let stopped = site.done("Stopping");
    let spared = own.lives();

    site.write("pid", &format!("{pid}\n"));
    is_seen(&site, "Running");
    let last = site.done("Stopping");
    own.0.kill().expect("a child");
    let status = own.0.wait().expect("a child");
    assert!(spared, "an unrelated process was ended");
    assert_eq!(stopped["phase"], "Succeeded");
    assert_eq!(last["phase"], "Succeeded");
    assert_eq!(status.signal(), Some(15));
    assert_eq!(site.done("Starting")["reason"], "NoCommand");
}

#[test]
fn a_pid_file_aims_no_signal_at_another_users_process_nor_at_the_agent() {
    if !rustix::process::geteuid().is_root() {
        report("not root: not tested with a pid file that names a process of another user");
        return;
    }
    let mut site = Site::running(
        "application:\n  recognise: { pidFile: \"{dir}/pid\", name: sleep }\n  user: nobody\n  down: Down\n  stop: [{ signal: TERM, wait: 5s }]\n\
         probe: { command: [echo, Running], every: 50ms }\n\
         states: { Stopping: { application: stop } }\n",
    );
    let mut roots = Stranger::new();
    site.write("pid", &format!("{}\n", roots.0.id()));
    let action = site.done("Stopping");
    assert!(roots.lives(), "a process of root was ended");
    assert_eq!(action["reason"], "NotKnown", "{action}");
    site.until("the owner of the process is reported", |site| {
        site.seen()["why"].to_string().contains("is of user 0")
    });
    for pid in [site.pid(), 1] {
        site.write("pid", &format!("{pid}\n"));
        assert_eq!(site.done("Stopping")["phase"], "Succeeded");
    }
    is_seen(&site, "Down");
}

/// Needs its own namespace. On a machine that does not allow it, the test reports that.
#[test]
fn as_process_1_where_namespaces_are_allowed_the_agent_stops_the_application_and_reaps_orphans() {
    let alone = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let allowed = std::process::Command::new("unshare")
        .args(alone)
        .arg("true")
        .output();
    if !allowed.is_ok_and(|it| it.status.success()) {
        report("no namespaces here: not tested as process 1");
        return;
    }
    let mut site = Site::new(&application(&format!("{KIND} "), ""));
    site.start_below("unshare", &alone, 200);
    assert_eq!(site.done("Starting")["phase"], "Succeeded");
    site.signal_below(Signal::TERM);
    assert_eq!(site.ended().code(), Some(0));
    assert_eq!(site.read("bye"), "bye\n", "the application was not stopped");
}
