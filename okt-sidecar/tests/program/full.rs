//! A full disk under the program: nothing begins unrecorded, no end is forgotten, and the agent recovers when there is
//! room.
//!
//! On every machine, files may not grow at all (`RLIMIT_FSIZE`). If namespaces are allowed, a separate file system is
//! really full too.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::site::{Site, report};

/// The kind of full disk.
enum Disk {
    /// Files that may not grow, in a directory on a disk with room.
    Files,
    /// A small file system that only the agent sees.
    System,
}

const FILE: &str = "probe: { command: [echo, Running], every: 50ms }
states:
  Servicing: { command: [sh, -c, 'mkdir {dir}/began.$OKT_ACTION_ID; while [ ! -e {dir}/go ]; do sleep 0.02; done'] }
";

/// A write that fails by the limit must not kill the writer.
const IGNORE: &str = "trap '' XFSZ; exec \"$@\"";

impl Disk {
    fn start(&self, site: &mut Site) {
        match self {
            Self::Files => site.start_below("sh", &["-c", IGNORE, "sh"], 200),
            Self::System => {
                let data = site.path("data").display().to_string();
                let mount = format!(
                    "mkdir -p {data} && mount -t tmpfs -o size=256k none {data} && exec \"$@\""
                );
                let unshared = ["--user", "--map-root-user", "--mount", "sh", "-c"];
                let own = [&unshared[..], &[&mount, "sh"]].concat();
                site.start_below("unshare", &own, 200);
            }
        }
    }

    fn filler(site: &Site) -> PathBuf {
        let data = site.path("data").display().to_string();
        PathBuf::from(format!("/proc/{}/root{data}/filler", site.pid()))
    }

    fn fill(&self, site: &Site) {
        match self {
            Self::Files => limit(site, Some(0)),
            Self::System => {
                let full = fs::write(Self::filler(site), vec![0; 1 << 20]);
                let error = full.expect_err("there is an end to it");
                assert_eq!(error.kind(), ErrorKind::StorageFull);
            }
        }
    }

    fn free(&self, site: &Site) {
        match self {
            Self::Files => limit(site, None),
            Self::System => fs::remove_file(Self::filler(site)).expect("it is there"),
        }
    }
}

/// Limits the length of an agent's files.
fn limit(site: &Site, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(Pid::from_raw(site.pid()), Resource::Fsize, limit).expect("its own");
}

fn ask(site: &Site, method: &str, path: &str, body: &str) -> (u16, Value) {
    let (status, body) = site.ask(method, path, body).expect("the agent is up");
    (status, serde_json::from_str(&body).unwrap_or_default())
}

fn put(site: &Site, transition: u64) -> (u16, Value) {
    let body = json!({
        "state": "Servicing", "fence": { "transition": transition, "recordedAt": "2026-11-20T10:00:01Z" },
        "owner": { "uid": "u1", "createdAt": "2026-11-20T10:00:00Z", "name": "orders", "namespace": "shop" },
        // Longer than the free rest of the journal's last block.
        "input": { "text": "x".repeat(10_000) },
    });
    let path = format!("/lifecycle/v1/actions/u1.{transition}");
    ask(site, "PUT", &path, &body.to_string())
}

fn is_ready(site: &Site) -> bool {
    ask(site, "GET", "/readyz", "").0 == 200
}

/// Work that is requested on a full disk does not begin. With room again it is taken under the same id.
fn begins_nothing(disk: &Disk) -> Site {
    let mut site = Site::new(FILE);
    disk.start(&mut site);
    disk.fill(&site);
    let (status, refused) = put(&site, 1);
    assert_eq!(status, 503, "{refused}");
    assert_eq!(refused["code"], "CannotRecord");
    assert_eq!(refused["retry"], true);
    assert!(!is_ready(&site), "nothing can be recorded");
    let before = site.seen()["observedAt"].clone();
    site.until("the agent continues to observe", |site| {
        site.seen()["observedAt"] != before && site.seen()["state"] == "Running"
    });
    assert!(!site.path("began.u1.1").exists(), "the action was begun");
    assert_eq!(ask(&site, "GET", "/lifecycle/v1/actions/u1.1", "").0, 404);

    disk.free(&site);
    site.until("the agent becomes ready by itself", is_ready);
    assert_eq!(put(&site, 1).0, 201);
    site.until("it has begun", |site| site.path("began.u1.1").exists());
    site
}

#[test]
fn files_that_cannot_grow_begin_nothing_and_no_end_is_forgotten() {
    let disk = Disk::Files;
    let mut site = begins_nothing(&disk);
    disk.fill(&site);
    site.write("go", "");
    site.until("it has ended", |site| {
        let message = site.action("u1.1")["progress"]["message"].to_string();
        message.contains("cannot be recorded")
    });
    assert_eq!(site.action("u1.1")["phase"], "Running");
    let (status, refused) = put(&site, 2);
    assert_eq!(status, 409, "{refused}");
    assert_eq!(refused["running"], "u1.1");
    assert!(!is_ready(&site));

    // The end is on disk as soon as there is room, and the next agent knows it.
    disk.free(&site);
    assert_eq!(site.wait("u1.1")["phase"], "Succeeded");
    site.until("the agent becomes ready by itself", is_ready);
    site.kill();
    site.start();
    assert_eq!(site.action("u1.1")["phase"], "Succeeded");
    assert_eq!(put(&site, 2).0, 201);
    assert_eq!(site.wait("u1.2")["phase"], "Succeeded");
}

/// Needs its own namespace. On a machine that does not allow it, the test reports that.
#[test]
fn a_full_file_system_where_namespaces_are_allowed_begins_nothing() {
    let own = "--user --map-root-user --mount mount -t tmpfs none /mnt".split(' ');
    let allowed = std::process::Command::new("unshare").args(own).output();
    if !allowed.is_ok_and(|it| it.status.success()) {
        report("no namespaces here: tested with files that cannot grow only");
        return;
    }
    let site = begins_nothing(&Disk::System);
    site.write("go", "");
    assert_eq!(site.wait("u1.1")["phase"], "Succeeded");
}

#[test]
fn an_agent_that_starts_on_a_full_disk_is_not_ready_and_continues_when_there_is_room() {
    let mut site = Site::running(FILE);
    assert_eq!(put(&site, 1).0, 201);
    site.until("it has begun", |site| site.path("began.u1.1").exists());
    site.kill();
    let full = format!("ulimit -S -f 0; {IGNORE}");
    site.start_below("sh", &["-c", &full, "sh"], 503);
    assert!(!is_ready(&site));
    // The action was interrupted, but that is not recorded yet.
    let (status, refused) = put(&site, 2);
    assert!(matches!(status, 409 | 503), "{refused}");
    Disk::Files.free(&site);
    assert_eq!(site.wait("u1.1")["phase"], "Unknown");
    site.until("the agent becomes ready by itself", is_ready);
    assert_eq!(put(&site, 2).0, 201);
    site.write("go", "");
    assert_eq!(site.wait("u1.2")["phase"], "Succeeded");
}
