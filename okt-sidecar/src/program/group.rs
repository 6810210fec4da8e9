//! A group of processes that the agent has started, from its first process to the end of its last one.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep};

use super::children::Children;
use super::proc::{self, Identity, Stat};

/// Under which key a task remembers what it has started.
pub(super) const GROUP: &str = "group";

/// A group and its leader, a child of this process.
///
/// The leader is not waited for before the group has ended: until then nobody else can get its id, so that a
/// signal for the group reaches nobody else.
/// Dropped, all of it is killed.
pub(crate) struct Group {
    identity: Identity,
    pid: Pid,
    child: Child,
    exit: AsyncFd<OwnedFd>,
    children: Children,
    keep: bool,
}

impl Group {
    /// Starts a command that becomes the leader of a group, all of which has `OKT_RUN` = `run`.
    pub(super) fn spawn(
        children: &Children,
        command: &mut Command,
        run: String,
    ) -> io::Result<Self> {
        let world = proc::world()?;
        let mut child = children.spawn(command)?;
        let found = Self::watch(&child);
        let (pid, start, exit) = match found {
            Ok(found) => found,
            Err(error) => {
                // It waits for a permission that never comes.
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

    /// Ends when the leader has ended, whatever the others do.
    pub(crate) async fn exited(&self) {
        // It can fail only when the runtime is shut down.
        let _ = self.exit.readable().await;
    }

    /// Ends all of it: TERM, and KILL for what is left after `grace`; returns when nothing is left.
    pub(crate) async fn end(&self, grace: Duration) {
        let all = |signal| {
            // An error means that nobody is there, or nobody who may be signalled; the look that follows tells.
            let _ = kill_process_group(self.pid, signal);
        };
        end(&self.identity, grace, all).await;
    }

    /// How the leader has ended, once it has.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        self.keep = true;
        let status = self.child.wait();
        self.children.leave(self.identity.pid);
        status
    }

    /// Waits for the leader's end, for as long as the agent lives, and ends nothing.
    pub(crate) fn follow(self) -> impl Future<Output = io::Result<ExitStatus>> {
        // At once, and not when this is polled first: the agent may end before that.
        let mut this = self;
        this.keep = true;
        async move {
            this.exited().await;
            this.reap()
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.keep {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        self.children.leave(self.identity.pid);
    }
}

/// Ends what is left of a group that another agent has started, or this one has given up.
///
/// Returns whether nothing of it is left; what does not end within `limit` is told in the log.
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
    // One that was stopped would not hear of it.
    signal(Signal::CONT);
    let begun = Instant::now();
    let mut pause = Duration::from_millis(2);
    let mut told = begun + grace + Duration::from_secs(5);
    loop {
        let left = left(leader);
        if left.is_empty() {
            return;
        }
        if begun.elapsed() >= grace {
            signal(Signal::KILL);
        }
        if Instant::now() >= told {
            told += Duration::from_mins(1);
            let pids: Vec<i32> = left.iter().map(|it| it.pid).collect();
            tracing::warn!(?pids, "processes do not end, not even by KILL");
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn left(leader: &Identity) -> Vec<Stat> {
    proc::group(leader).unwrap_or_else(|error| {
        // Not being able to look is no proof that nobody is there; what was signalled is looked for again.
        tracing::warn!(%error, "cannot read /proc");
        proc::stat(leader.pid).into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that leads a group, and what is noted of it.
    fn leader(run: &str) -> (Child, Identity) {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sleep");
        let child = command
            .arg("60")
            .env("OKT_RUN", run)
            .process_group(0)
            .spawn();
        let child = child.expect("sleep runs");
        let pid = child.id().cast_signed();
        let identity = Identity {
            world: proc::world().expect("Linux"),
            pid,
            start: proc::stat(pid).expect("it is there").start,
            run: run.to_owned(),
        };
        (child, identity)
    }

    async fn spares(note: &Identity, child: &mut Child) {
        assert!(end_left(note, Duration::ZERO, Duration::from_secs(5)).await);
        assert!(
            child.try_wait().expect("a child").is_none(),
            "{note:?} has ended another one"
        );
    }

    #[tokio::test]
    async fn nobody_is_ended_who_has_only_the_id_of_one_that_was() {
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

        assert!(end_left(&own, Duration::ZERO, Duration::from_secs(5)).await);
        child.wait().expect("it was ended");
    }

    #[tokio::test]
    async fn what_inherited_the_mark_is_ended_also_when_its_leader_is_gone() {
        let (mut child, own) = leader("marked");
        // As if the leader of this group had been another process, which is gone.
        let gone = Identity {
            start: own.start - 1,
            ..own
        };
        assert!(end_left(&gone, Duration::ZERO, Duration::from_secs(5)).await);
        child.wait().expect("it was ended");
    }
}
