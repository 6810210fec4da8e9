//! One command, from its start to the end of the last process of its group.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until};

use super::config::CommandEnvironment;
use super::launch::{Held, Launch, Launcher};
use super::proc::Identity;

/// A command and its limits.
pub(crate) struct Command<'a> {
    /// The program and its arguments.
    pub(crate) words: &'a [String],
    pub(crate) around: &'a CommandEnvironment,
    pub(crate) environment: &'a [(String, String)],
    /// The time between TERM and KILL.
    pub(crate) grace: Duration,
    pub(crate) deadline: Instant,
}

/// How a command ended; nothing of its group is left.
#[derive(Debug)]
pub(crate) struct CommandEnd {
    pub(crate) status: ExitStatus,
    /// Why the agent ended it.
    pub(crate) cut: Option<Cut>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    Cancelled,
    TimedOut,
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRun {
    #[error("{0}")]
    Start(String),
    #[error("cannot note down who it is: {0}")]
    Note(String),
    #[error("cannot follow a command: {0}")]
    Follow(#[from] io::Error),
}

/// The output stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutputStream {
    Out,
    Err,
}

impl Command<'_> {
    /// Runs the command.
    ///
    /// `note` must record its identity before it begins. `keep` receives its output at once, in pieces, and must not
    /// block.
    pub(crate) async fn run<N>(
        &self,
        launcher: &Launcher,
        note: impl FnOnce(Identity) -> N,
        cancelled: impl Future<Output = ()>,
        mut keep: impl FnMut(OutputStream, &[u8]),
    ) -> Result<CommandEnd, NotRun>
    where
        N: Future<Output = Result<(), String>>,
    {
        let (mut pipes, out, err) = Pipes::open()?;
        let held = launcher.hold(Launch {
            command: self.words,
            around: self.around,
            environment: self.environment,
            out,
            err,
        });
        let Held { group, gate } = held.map_err(NotRun::Start)?;
        let noted = note(group.identity().clone()).await;
        noted.map_err(NotRun::Note)?;
        let mut cancelled = pin!(cancelled);
        let cut = tokio::select! {
            biased;
            opened = gate.open() => {
                opened.map_err(NotRun::Start)?;
                None
            }
            () = &mut cancelled => Some(Cut::Cancelled),
            () = sleep_until(self.deadline) => Some(Cut::TimedOut),
        };
        if cut.is_some() {
            // The process has not become the command yet, so a grace period is useless.
            group.end(Duration::ZERO).await;
            let status = group.reap()?;
            return Ok(CommandEnd { status, cut });
        }

        let cut = loop {
            tokio::select! {
                biased;
                () = group.exited() => break None,
                () = &mut cancelled => break Some(Cut::Cancelled),
                () = sleep_until(self.deadline) => break Some(Cut::TimedOut),
                () = pipes.read(&mut keep) => {}
            }
        };
        pipes.read_during(group.end(self.grace), &mut keep).await;
        pipes.rest(&mut keep);
        let status = group.reap()?;
        Ok(CommandEnd { status, cut })
    }
}

/// The pipes for the output of a command.
struct Pipes {
    out: Option<Receiver>,
    err: Option<Receiver>,
    buffer: Vec<u8>,
}

/// How much is read at once, in bytes; also the capacity of a pipe.
const PIECE: usize = 64 * 1024;

impl Pipes {
    fn open() -> io::Result<(Self, Stdio, Stdio)> {
        let (out, to_out) = io::pipe()?;
        let (err, to_err) = io::pipe()?;
        let pipes = Self {
            out: Some(Receiver::from_owned_fd(OwnedFd::from(out))?),
            err: Some(Receiver::from_owned_fd(OwnedFd::from(err))?),
            buffer: vec![0; PIECE],
        };
        Ok((pipes, Stdio::from(to_out), Stdio::from(to_err)))
    }

    /// Reads one piece; never returns if both pipes are closed.
    async fn read(&mut self, keep: &mut impl FnMut(OutputStream, &[u8])) {
        let stream = tokio::select! {
            () = readable(self.out.as_ref()) => OutputStream::Out,
            () = readable(self.err.as_ref()) => OutputStream::Err,
        };
        self.piece(stream, keep);
        // Endless output must not keep the thread from timers and cancellation.
        tokio::task::yield_now().await;
    }

    /// Reads while the group ends, because what the command has left in it may block on writing.
    async fn read_during(
        &mut self,
        end: impl Future<Output = ()>,
        keep: &mut impl FnMut(OutputStream, &[u8]),
    ) {
        let mut end = pin!(end);
        loop {
            tokio::select! {
                biased;
                () = &mut end => return,
                () = self.read(keep) => {}
            }
        }
    }

    /// Reads what is left in the pipes. Processes outside of the group may write more, which is ignored.
    fn rest(&mut self, keep: &mut impl FnMut(OutputStream, &[u8])) {
        for (stream, pipe) in [
            (OutputStream::Out, &self.out),
            (OutputStream::Err, &self.err),
        ] {
            let Some(pipe) = pipe else {
                continue;
            };
            // Read directly, because the runtime may not know yet that the pipe is readable.
            for _ in 0..16 {
                match rustix::io::read(pipe, &mut self.buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(length) => keep(stream, &self.buffer[..length]),
                }
            }
        }
    }

    fn piece(&mut self, stream: OutputStream, keep: &mut impl FnMut(OutputStream, &[u8])) {
        let pipe = match stream {
            OutputStream::Out => &mut self.out,
            OutputStream::Err => &mut self.err,
        };
        let Some(open) = pipe else {
            return;
        };
        match open.try_read(&mut self.buffer) {
            Ok(0) => *pipe = None,
            Ok(length) => keep(stream, &self.buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!(%error, "cannot read what a command prints");
                *pipe = None;
            }
        }
    }
}

async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        // The read that follows returns the error.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    //! Starts that hang.

    use std::future::pending;
    use std::time::Duration;

    use tokio::time::{Instant, timeout};

    use super::{Command, CommandEnvironment, Cut, Identity, Launcher};

    #[tokio::test]
    async fn a_start_that_hangs_is_ended_within_its_limit() {
        // Like a command whose directory is on a hanging mount: its gate does not open.
        let script = "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n";
        let (launcher, _directory) = Launcher::by(script);
        let words = ["true".to_owned()];
        let around = CommandEnvironment::default();
        let command = |deadline| Command {
            words: &words,
            around: &around,
            environment: &[],
            grace: Duration::from_hours(1),
            deadline,
        };
        let mut leader = None;
        let (soon, late) = (Duration::from_millis(100), Duration::from_hours(1));
        for (limit, cut) in [(soon, Cut::TimedOut), (late, Cut::Cancelled)] {
            let cancelled = async {
                if cut == Cut::TimedOut {
                    pending::<()>().await;
                }
            };
            let command = command(Instant::now() + limit);
            let run = command.run(
                &launcher,
                async |identity| {
                    leader = Some(identity);
                    Ok(())
                },
                cancelled,
                |_, _| {},
            );
            let in_time = timeout(Duration::from_mins(10), run).await;
            let ended = in_time.expect("run returns in time").unwrap();
            assert_eq!(ended.cut, Some(cut));
            let left = leader.as_ref().and_then(Identity::find);
            assert_eq!(left, None, "the launcher still runs");
        }
    }
}
