//! A process group that the agent has started, from its first process to the end of its last one.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep};

use super::children::Children;
use super::proc::{self, Identity, Stat};

/// The key of the note about a started group.
pub(super) const GROUP: &str = "group";

/// A group and its leader, a child of this process.
///
/// The leader is not reaped before the group has ended. Until then no other process can get its id, so a signal for the
/// group reaches no other process.
/// Dropping the value kills the whole group.
pub(crate) struct ProcessGroup {
    identity: Identity,
    pid: Pid,
    child: Child,
    exit: AsyncFd<OwnedFd>,
    children: Children,
    keep: bool,
}

impl ProcessGroup {
    /// Starts a command that becomes the leader of a group. All its processes have `OKT_RUN` = `run`.
    pub(super) fn spawn(
        children: &Children,
        command: &mut Command,
        run: String,
    ) -> io::Result<Self> {
        let world = proc::world()?;
        let mut child = children.spawn(command)?;
        let (pid, start, exit) = match Self::watch(&child) {
            Ok(found) => found,
            Err(error) => {
                // It waits for a permission that never comes, so it has not begun anything.
                child.kill()?;
                child.wait()?;
                children.leave(child.id().cast_signed());
                return Err(error);
            }
        };
        Ok(Self {
            identity: Identity {
                world,
                pid: child.id().cast_signed(),
                start,
                run,
            },
            pid,
            child,
            exit,
            children: children.clone(),
            keep: false,
        })
    }

    fn watch(child: &Child) -> io::Result<(Pid, u64, AsyncFd<OwnedFd>)> {
        let pid = Pid::from_child(child);
        let exit = proc::watch(pid)?;
        let stat = proc::stat(pid.as_raw_nonzero().get()).ok_or(io::ErrorKind::NotFound)?;
        Ok((pid, stat.start, exit))
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns when the leader has ended, even if others still run.
    pub(crate) async fn exited(&self) {
        // It can fail only when the runtime shuts down.
        let _ = self.exit.readable().await;
    }

    /// Ends the whole group: TERM, and KILL for what is left after `grace`. Returns when nothing is left.
    pub(crate) async fn end(&self, grace: Duration) {
        let all = |signal| {
            // An error means that there is no process, or none that may be signalled. The check that follows finds out.
            let _ = kill_process_group(self.pid, signal);
        };
        end(&self.identity, grace, all).await;
    }

    /// Returns the exit status of the leader, once it has ended.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        self.keep = true;
        let status = self.child.wait();
        self.children.leave(self.identity.pid);
        status
    }

    /// Waits for the leader's end as long as the agent lives, and ends nothing.
    pub(crate) fn follow(self) -> impl Future<Output = io::Result<ExitStatus>> {
        // Set it now and not at the first poll, because the agent may end before that.
        let mut this = self;
        this.keep = true;
        async move {
            this.exited().await;
            this.reap()
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.keep {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        self.children.leave(self.identity.pid);
    }
}

/// Ends what is left of a group that another agent has started, or that this agent has given up.
///
/// Returns whether nothing of it is left. Processes that do not end are logged.
pub(crate) async fn end_left(leader: &Identity, grace: Duration, limit: Duration) -> bool {
    let each = |signal| {
        for process in proc::group(leader).unwrap_or_default() {
            if let Err(error) = proc::signal(&process, signal) {
                tracing::warn!(pid = process.pid, %error, "cannot signal a process that is left");
            }
        }
    };
    tokio::time::timeout(limit, end(leader, grace, each))
        .await
        .is_ok()
}

async fn end(leader: &Identity, grace: Duration, signal: impl Fn(Signal)) {
    if left(leader).is_empty() {
        return;
    }
    signal(Signal::TERM);
    // A stopped process would not handle the signal.
    signal(Signal::CONT);
    let begun = Instant::now();
    let mut pause = Duration::from_millis(2);
    let mut warn_at = begun + grace + Duration::from_secs(5);
    loop {
        let left = left(leader);
        if left.is_empty() {
            return;
        }
        if begun.elapsed() >= grace {
            signal(Signal::KILL);
        }
        if Instant::now() >= warn_at {
            warn_at += Duration::from_mins(1);
            let pids: Vec<i32> = left.iter().map(|it| it.pid).collect();
            tracing::warn!(?pids, "processes do not end, not even by KILL");
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn left(leader: &Identity) -> Vec<Stat> {
    proc::group(leader).unwrap_or_else(|error| {
        // A failed search does not prove that the group is gone, so at least the leader counts as left.
        tracing::warn!(%error, "cannot read /proc");
        proc::stat(leader.pid).into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Starts a process that leads a group, and returns its identity.
    fn leader(run: &str) -> (Child, Identity) {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sleep");
        command.arg("60").env("OKT_RUN", run).process_group(0);
        let child = command.spawn().expect("sleep runs");
        let pid = child.id().cast_signed();
        // A program that has just been loaded has no environment for a moment.
        while std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|it| it.is_empty()) {
            std::thread::yield_now();
        }
        let identity = Identity {
            world: proc::world().expect("Linux"),
            pid,
            start: proc::stat(pid).expect("it is there").start,
            run: run.to_owned(),
        };
        (child, identity)
    }

    /// Asserts that a process was ended, and has not ended by itself.
    fn assert_ended(child: &mut Child) {
        let status = child.wait().expect("a child");
        assert!(status.signal().is_some(), "{status}");
    }

    async fn spares(note: &Identity, child: &mut Child) {
        assert!(end_left(note, Duration::ZERO, Duration::from_mins(10)).await);
        assert!(
            child.try_wait().expect("a child").is_none(),
            "the note {note:?} ended another process"
        );
    }

    #[tokio::test]
    async fn a_process_that_only_reuses_the_id_of_a_noted_one_is_not_ended() {
        let (mut child, own) = leader("now");
        let earlier = Identity {
            start: own.start - 1,
            run: "then".to_owned(),
            ..own.clone()
        };
        spares(&earlier, &mut child).await;
        let before_the_boot = Identity {
            world: "another".to_owned(),
            ..own.clone()
        };
        spares(&before_the_boot, &mut child).await;
        let unmarked = Identity {
            start: own.start - 1,
            run: String::new(),
            ..own.clone()
        };
        spares(&unmarked, &mut child).await;

        assert!(end_left(&own, Duration::ZERO, Duration::from_mins(10)).await);
        assert_ended(&mut child);
    }

    #[tokio::test]
    async fn processes_with_the_inherited_mark_are_ended_after_their_leader_is_gone() {
        let (mut child, own) = leader("marked");
        // As if the leader of this group had been another process that is gone.
        let gone = Identity {
            start: own.start - 1,
            ..own
        };
        assert!(end_left(&gone, Duration::ZERO, Duration::from_mins(10)).await);
        assert_ended(&mut child);
    }
}
