//! Processes in `/proc`, and signals that reach only the intended process.
//!
//! The kernel reuses process ids, so a process is identified by its id, its start time, and the kernel (and namespace)
//! that counted both.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

/// The unique identity of a process, valid at any later time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    /// The boot id of the kernel, and the namespace of the process id.
    pub(crate) world: String,
    pub(crate) pid: i32,
    /// The start time, in ticks since the boot.
    pub(crate) start: u64,
    /// The value of `OKT_RUN` that all its descendants have in their environment.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) run: String,
}

/// A line of `/proc/<pid>/stat`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) start: u64,
}

impl Stat {
    /// Returns whether the process still runs. A zombie only holds an exit code.
    pub(crate) fn lives(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Returns the present state of this process, or `None` if it is gone.
    pub(crate) fn now(&self) -> Option<Self> {
        stat(self.pid).filter(|now| now.start == self.start)
    }

    /// Returns whether the process still runs now.
    pub(crate) fn still_lives(&self) -> bool {
        self.now().is_some_and(|now| now.lives())
    }
}

impl Identity {
    /// Returns the process, if it exists and is not a zombie.
    pub(crate) fn find(&self) -> Option<Stat> {
        let is_here = world().is_ok_and(|world| world == self.world);
        let found = stat(self.pid).filter(|now| is_here && now.start == self.start);
        found.filter(Stat::lives)
    }
}

/// Returns the boot id of the kernel and the process id namespace of this process.
pub(crate) fn world() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let namespace = fs::read_link("/proc/self/ns/pid")?;
    Ok(format!("{} {}", boot.trim(), namespace.display()))
}

/// Returns a unique value.
pub(crate) fn unique() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().to_owned())
}

/// Returns the state of a process, or `None` if it is gone.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns all visible processes, including zombies.
pub(crate) fn all() -> io::Result<Vec<Stat>> {
    let entries = fs::read_dir("/proc")?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(stat).collect())
}

pub(super) fn parse(line: &str) -> Option<Stat> {
    // The name is in parentheses and may contain anything, parentheses and spaces too.
    let (head, tail) = line.rsplit_once(')')?;
    let (pid, name) = head.split_once(" (")?;
    let mut words = tail.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    let parent = words.next()?.parse().ok()?;
    let group = words.next()?.parse().ok()?;
    // The start is field 22, the group is field 5.
    let start = words.nth(16)?.parse().ok()?;
    Some(Stat {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        state,
        parent,
        group,
        start,
    })
}

/// Returns the processes of the group that `leader` leads or has led, without zombies.
///
/// While the leader exists, even as a zombie, the id of the group is its own.
/// Later the id may belong to another group, so only processes that inherited [`Identity::run`] count.
pub(crate) fn group(leader: &Identity) -> io::Result<Vec<Stat>> {
    if world()? != leader.world {
        return Ok(Vec::new());
    }
    let mut all = all()?;
    let leads = |it: &Stat| it.pid == leader.pid && it.start == leader.start;
    let is_led = all.iter().any(leads);
    let is_member = |it: &Stat| it.group == leader.pid && (is_led || inherited(it, &leader.run));
    all.retain(|it| it.lives() && (is_member(it) || leads(it)));
    Ok(all)
}

/// Returns whether the environment that the process was started with has `run`.
fn inherited(process: &Stat, run: &str) -> bool {
    let marker = format!("OKT_RUN={run}");
    !run.is_empty()
        && fs::read(format!("/proc/{}/environ", process.pid)).is_ok_and(|all| {
            all.split(|byte| *byte == 0)
                .any(|it| it == marker.as_bytes())
        })
}

/// Returns a descriptor that becomes readable when the process that now has this id ends.
pub(crate) fn watch(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
    #[expect(
        deprecated,
        reason = "so for types that may change their descriptor; an `OwnedFd` keeps it"
    )]
    AsyncFd::new(descriptor)
}

/// Sends a signal to exactly this process. A process that is gone is not an error.
pub(crate) fn signal(process: &Stat, signal: Signal) -> io::Result<()> {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return Ok(());
    };
    let gone = |error: rustix::io::Errno| match error {
        rustix::io::Errno::SRCH => Ok(()),
        error => Err(io::Error::from(error)),
    };
    // The descriptor is bound to the process that has the id now. Then its identity is checked.
    let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => descriptor,
        Err(error) => return gone(error),
    };
    if process.now().is_none() {
        return Ok(());
    }
    pidfd_send_signal(&descriptor, signal).or_else(gone)
}

/// Returns the time since the boot, in the ticks of [`Stat::start`]. Setting the clock does not change it.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ticks = now.tv_nsec / (1_000_000_000 / TICKS_PER_SECOND);
    u64::try_from(now.tv_sec * TICKS_PER_SECOND + ticks).unwrap_or(0)
}

/// Returns the real, effective, saved and file system user of a process, or `None` if it is gone.
pub(crate) fn users(pid: i32) -> Option<[u32; 4]> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let users = line.split_whitespace().map(|user| user.parse().ok());
    users.collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// Returns the working directory of a process.
pub(crate) fn directory(pid: i32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd"))
}

/// The ticks of `/proc`, on every architecture for which Rust supports Linux.
const TICKS_PER_SECOND: i64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let line = "7 (a) Z 1 (b) S 3 5 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 9 9";
        let stat = parse(line).expect("it has all fields");
        assert_eq!((stat.pid, stat.name.as_str()), (7, "a) Z 1 (b"));
        assert_eq!(
            (stat.state, stat.parent, stat.group, stat.start),
            ('S', 3, 5, 4711)
        );
    }

    #[test]
    fn process_start_times_and_the_agents_time_use_the_same_ticks() {
        let before = now();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep runs");
        let start = stat(child.id().cast_signed()).expect("it is there").start;
        let after = now();
        let own = rustix::process::geteuid().as_raw();
        let users = users(child.id().cast_signed());
        child.kill().expect("a child");
        child.wait().expect("a child");
        assert!(
            (before..=after).contains(&start),
            "{before} {start} {after}"
        );
        assert_eq!(users, Some([own; 4]));
    }

    #[test]
    fn a_signal_does_not_reach_a_process_with_another_start_time() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep runs");
        let found = stat(child.id().cast_signed()).expect("it is there");
        let earlier = Stat {
            start: found.start - 1,
            ..found.clone()
        };
        signal(&earlier, Signal::KILL).expect("a process that is gone is not an error");
        assert!(
            child.try_wait().expect("a child").is_none(),
            "the signal reached another process"
        );
        signal(&found, Signal::KILL).expect("it is there");
        child.wait().expect("a child");
    }
}
