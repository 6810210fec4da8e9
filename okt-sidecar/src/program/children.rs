//! The processes whose parent this one is: who is waited for, and who has to be cleared away.
//!
//! An agent takes over what its descendants leave behind (`PR_SET_CHILD_SUBREAPER`; as process 1 of a container it
//! does so anyhow), so that nothing of them stays as a zombie, wherever it runs.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::proc;

/// The children that somebody waits for; shared by its clones.
#[derive(Clone, Default)]
pub(crate) struct Children {
    awaited: Arc<Mutex<BTreeSet<i32>>>,
    left: Arc<Notify>,
}

/// Between two looks for zombies, however many end.
const PAUSE: Duration = Duration::from_millis(100);

impl Children {
    /// Starts a child that is waited for until [`leave`](Self::leave).
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // Held over the start: a child that ends at once must not be cleared away as nobody's.
        let mut awaited = self.lock();
        let child = command.spawn()?;
        awaited.insert(child.id().cast_signed());
        Ok(child)
    }

    /// Nobody waits for this one any more; it is cleared away when it has ended, if it was not yet.
    pub(crate) fn leave(&self, pid: i32) {
        self.lock().remove(&pid);
        self.left.notify_one();
    }

    /// Takes over what descendants leave behind, and clears it away for ever.
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
        let awaited = self.lock();
        for zombie in proc::all()?
            .iter()
            .filter(|it| it.parent == me && it.state == 'Z')
        {
            if let Some(pid) = Pid::from_raw(zombie.pid)
                && !awaited.contains(&zombie.pid)
            {
                waitpid(Some(pid), WaitOptions::NOHANG)?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        // A set of numbers is whole whatever happened to its last holder.
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
