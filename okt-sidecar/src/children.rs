//! The child processes of the agent: awaited ones, and zombies to reap.
//!
//! The agent adopts the orphans of its descendants (`PR_SET_CHILD_SUBREAPER`; process 1 of a container does so anyway),
//! so that none stays a zombie.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::proc;

/// The awaited children; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Children {
    awaited: Arc<Mutex<BTreeSet<i32>>>,
    left: Arc<Notify>,
}

/// The pause between two searches for zombies.
const PAUSE: Duration = Duration::from_millis(100);

impl Children {
    /// Starts a child that is awaited until [`leave`](Self::leave).
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // The lock is held during the start, so that a child that ends at once is not reaped as an orphan.
        let mut awaited = self.awaited.lock();
        let child = command.spawn()?;
        awaited.insert(child.id().cast_signed());
        Ok(child)
    }

    /// Stops awaiting a child. It is reaped when it has ended, unless it was reaped already.
    pub(crate) fn leave(&self, pid: i32) {
        self.awaited.lock().remove(&pid);
        self.left.notify_one();
    }

    /// Adopts the orphans of descendants, and reaps zombies forever.
    pub(crate) async fn reap(&self) -> io::Result<()> {
        set_child_subreaper(Some(getpid()))?;
        let mut ended = signal(SignalKind::child())?;
        loop {
            if let Err(error) = self.clear() {
                tracing::warn!(%error, "cannot look for zombies");
            }
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = ended.recv() => {}
                () = self.left.notified() => {}
            }
        }
    }

    fn clear(&self) -> io::Result<()> {
        let me = getpid().as_raw_nonzero().get();
        let awaited = self.awaited.lock();
        let mut all = proc::all()?;
        all.retain(|it| it.parent == me && it.state == 'Z');
        for zombie in all {
            if let Some(pid) = Pid::from_raw(zombie.pid)
                && !awaited.contains(&zombie.pid)
            {
                waitpid(Some(pid), WaitOptions::NOHANG)?;
            }
        }
        Ok(())
    }
}
