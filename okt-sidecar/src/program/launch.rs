//! A process that begins nothing before it is told to: who it is has to be on disk first.
//!
//! The agent starts itself as `okt-sidecar launch`, which waits for one byte on a socket, becomes the user that it
//! should be and then the program of the command.
//! If the agent dies before that byte, the socket ends and so does the launcher: no command ever runs that no
//! record knows of.

use std::convert::Infallible;
use std::env;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::children::Children;
use super::config::Surroundings;
use super::group::Group;
use super::users::{self, Person};

/// What starts processes: this program.
#[derive(Clone)]
pub(crate) struct Launcher {
    pub(crate) children: Children,
    program: PathBuf,
}

/// What is to be started.
pub(crate) struct Launch<'a> {
    pub(crate) command: &'a [String],
    pub(crate) around: &'a Surroundings,
    /// Beside what `around` says.
    pub(crate) environment: &'a [(String, String)],
    pub(crate) out: Stdio,
    pub(crate) err: Stdio,
}

/// A process that waits for its permission; dropped, it ends.
pub(crate) struct Held {
    pub(crate) group: Group,
    pub(crate) gate: Gate,
}

/// What a held process waits at.
pub(crate) struct Gate(UnixStream);

/// Something could not be started; whether a retry helps depends on what is in the way.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {program}: {why}")]
pub(crate) struct NotStarted {
    program: String,
    why: String,
}

/// What the launcher is told, as its only argument.
#[derive(Serialize, Deserialize)]
struct Order {
    command: Vec<String>,
    directory: Option<PathBuf>,
    uid: Option<u32>,
    gid: Option<u32>,
    groups: Vec<u32>,
}

impl Launcher {
    /// Starts children that are waited for here.
    pub(crate) fn new(children: Children) -> Self {
        Self {
            children,
            program: PathBuf::from("/proc/self/exe"),
        }
    }

    /// With another program in the place of this one.
    #[cfg(test)]
    pub(super) fn by(program: PathBuf) -> Self {
        Self {
            program,
            ..Self::new(Children::default())
        }
    }

    /// Starts a process, leader of a group of its own, that waits for [`Gate::open`].
    pub(crate) fn hold(&self, launch: Launch<'_>) -> Result<Held, NotStarted> {
        let program = launch.command.first().cloned().unwrap_or_default();
        self.try_hold(launch).map_err(|error| NotStarted {
            program,
            why: error.to_string(),
        })
    }

    fn try_hold(&self, launch: Launch<'_>) -> io::Result<Held> {
        let around = launch.around;
        let person = users::find(around.user.as_deref(), around.group.as_deref())
            .map_err(io::Error::other)?;
        let (gate, theirs) = UnixStream::pair()?;
        gate.set_nonblocking(true)?;
        let run = super::proc::unique()?;
        let order = Order {
            command: launch.command.to_vec(),
            directory: around.directory.clone(),
            uid: person.as_ref().map(|it| it.uid),
            gid: person.as_ref().map(|it| it.gid),
            groups: person
                .as_ref()
                .map(|it| it.groups.clone())
                .unwrap_or_default(),
        };
        let mut command = Command::new(&self.program);
        command
            .arg0("okt-sidecar")
            .arg("launch")
            .arg(serde_json::to_string(&order)?)
            .envs(home(person.as_ref()))
            .envs(&around.environment)
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .env("OKT_RUN", &run)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(launch.out)
            .stderr(launch.err)
            .process_group(0);
        let group = Group::spawn(&self.children, &mut command, run)?;
        let gate = Gate(gate);
        Ok(Held { group, gate })
    }
}

/// What a login would say of who it is.
fn home(person: Option<&Person>) -> impl Iterator<Item = (&'static str, String)> {
    let listed = person.and_then(|it| it.listed.clone());
    listed
        .into_iter()
        .flat_map(|(name, home)| [("HOME", home), ("USER", name.clone()), ("LOGNAME", name)])
}

impl Gate {
    /// Lets the process become its program; ends when it has.
    ///
    /// That may take long: its directory, or the program itself, may be where nobody answers.
    ///
    /// # Errors
    ///
    /// Why it did not become its program.
    pub(crate) async fn open(self) -> Result<(), String> {
        let told = async {
            let mut gate = tokio::net::UnixStream::from_std(self.0)?;
            gate.write_all(b"g").await?;
            // The socket ends when the launcher has become the program; before that it says what is wrong.
            let mut wrong = String::new();
            gate.read_to_string(&mut wrong).await?;
            io::Result::Ok(wrong)
        };
        match told.await {
            Ok(wrong) if wrong.is_empty() => Ok(()),
            Ok(wrong) => Err(wrong),
            Err(error) => Err(format!("the launcher is gone: {error}")),
        }
    }
}

/// The launcher: waits for its permission, then becomes the program.
///
/// Must be called before there is any other thread: who a process is belongs to its threads.
pub fn launch(order: &str) -> ExitCode {
    let Ok(mut gate) = (io::stdin().as_fd().try_clone_to_owned()).map(UnixStream::from) else {
        return ExitCode::from(2);
    };
    let mut permission = [0];
    // The agent is gone, and nobody wants this any more.
    if !matches!(gate.read(&mut permission), Ok(1)) {
        return ExitCode::SUCCESS;
    }
    let Err(error) = become_program(order);
    // Nobody may be there to hear it.
    let _ = gate.write_all(error.to_string().as_bytes());
    ExitCode::from(127)
}

fn become_program(order: &str) -> io::Result<Infallible> {
    let order: Order = serde_json::from_str(order)?;
    let program = order.command.first().ok_or(io::ErrorKind::InvalidInput)?;
    let wrong = |what: &str, error: io::Error| io::Error::other(format!("cannot {what}: {error}"));
    if rustix::process::geteuid().is_root() {
        if let Some(gid) = order.gid {
            let groups: Vec<_> = order.groups.iter().copied().map(Gid::from_raw).collect();
            set_thread_groups(&groups).map_err(|it| wrong("take the groups", it.into()))?;
            let gid = Gid::from_raw(gid);
            set_thread_res_gid(gid, gid, gid).map_err(|it| wrong("take the group", it.into()))?;
        }
        if let Some(uid) = order.uid {
            let uid = Uid::from_raw(uid);
            set_thread_res_uid(uid, uid, uid).map_err(|it| wrong("become the user", it.into()))?;
        }
    }
    if let Some(directory) = &order.directory {
        let what = format!("go to {}", directory.display());
        env::set_current_dir(directory).map_err(|error| wrong(&what, error))?;
    }
    let mut command = Command::new(program);
    command
        .args(order.command.iter().skip(1))
        .stdin(Stdio::null());
    Err(wrong(&format!("run {program}"), command.exec()))
}
