//! A process that begins nothing before it is told to: who it is has to be on disk first.
//!
//! The agent starts itself as `okt-sidecar launch`, which has no environment and no other arguments.
//! The launcher reads its order from a socket, becomes the user of the command, and only then takes the environment
//! of the command and becomes its program: no privileged process loads what a command's environment names, such as
//! `LD_PRELOAD`, and nobody else can read what stands in that environment.
//! If the agent dies before the order is sent whole, the socket ends and so does the launcher: no command ever runs
//! that no record knows of.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
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
pub(crate) struct Gate {
    socket: UnixStream,
    /// A line of JSON, sent when the process may go on.
    order: Vec<u8>,
}

/// Something could not be started; whether a retry helps depends on what is in the way.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {program}: {why}")]
pub(crate) struct NotStarted {
    program: String,
    why: String,
}

/// What the launcher is told.
#[derive(Serialize, Deserialize)]
struct Order {
    command: Vec<String>,
    /// All of it: nothing else is inherited.
    environment: BTreeMap<String, Vec<u8>>,
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
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let run = super::proc::unique()?;
        let other = person.as_ref().filter(|_| around.user.is_some());
        let mut environment = inherited(other, env::vars_os());
        let given = around.environment.iter();
        let given = given.chain(launch.environment.iter().map(|(name, value)| (name, value)));
        environment.extend(given.map(|(name, value)| (name.clone(), value.clone().into_bytes())));
        environment.insert("OKT_RUN".to_owned(), run.clone().into_bytes());
        let order = Order {
            command: launch.command.to_vec(),
            environment,
            directory: around.directory.clone(),
            uid: person.as_ref().map(|it| it.uid),
            gid: person.as_ref().map(|it| it.gid),
            groups: person
                .as_ref()
                .map(|it| it.groups.clone())
                .unwrap_or_default(),
        };
        let mut order = serde_json::to_vec(&order)?;
        order.push(b'\n');
        let mut command = Command::new(&self.program);
        command
            .arg0("okt-sidecar")
            .arg("launch")
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(launch.out)
            .stderr(launch.err)
            .process_group(0);
        let group = Group::spawn(&self.children, &mut command, run)?;
        let gate = Gate { socket, order };
        Ok(Held { group, gate })
    }
}

/// Where programs are looked for if the agent itself was started without `PATH`.
pub(super) const DEFAULT_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variables that a command of the agent's own user, or of another person, has from the agent: where programs
/// are, the language, the time zone, and who it is.
///
/// Everything else of the agent's own environment may be a secret of the agent, or decide what a process loads.
fn inherited(
    other: Option<&Person>,
    own: impl Iterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::from([("PATH".to_owned(), DEFAULT_PATH.into())]);
    for (name, value) in own {
        let Ok(name) = name.into_string() else {
            continue;
        };
        let fits = match name.as_str() {
            "PATH" | "LANG" | "LANGUAGE" | "TZ" => true,
            // Those of another user are found below.
            "HOME" | "USER" | "LOGNAME" => other.is_none(),
            name => name.starts_with("LC_"),
        };
        if fits {
            all.insert(name, value.into_vec());
        }
    }
    if let Some((name, home)) = other.and_then(|it| it.listed.clone()) {
        let who = [("HOME", home), ("USER", name.clone()), ("LOGNAME", name)];
        all.extend(who.map(|(name, value)| (name.to_owned(), value.into_bytes())));
    }
    all
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
            let mut gate = tokio::net::UnixStream::from_std(self.socket)?;
            gate.write_all(&self.order).await?;
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

/// The launcher: waits for its order on standard input, then becomes the program that the order names.
///
/// Must be called before there is any other thread: who a process is belongs to its threads.
pub fn launch() -> ExitCode {
    let Ok(mut gate) = (io::stdin().as_fd().try_clone_to_owned()).map(UnixStream::from) else {
        return ExitCode::from(2);
    };
    let mut order = Vec::new();
    let read = BufReader::new(&gate).read_until(b'\n', &mut order);
    // An order without its end: the agent is gone, and nobody wants this any more.
    if read.is_err() || order.pop() != Some(b'\n') {
        return ExitCode::SUCCESS;
    }
    let Err(error) = become_program(&order);
    // Nobody may be there to hear it.
    let _ = gate.write_all(error.to_string().as_bytes());
    ExitCode::from(127)
}

fn become_program(order: &[u8]) -> io::Result<Infallible> {
    let order: Order = serde_json::from_slice(order)?;
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
    let environment = order.environment.into_iter();
    let mut command = Command::new(program);
    // The program is looked for in the PATH of this environment, as the user who this process is by now.
    command
        .args(order.command.iter().skip(1))
        .env_clear()
        .envs(environment.map(|(name, value)| (name, OsString::from_vec(value))))
        .stdin(Stdio::null());
    Err(wrong(&format!("run {program}"), command.exec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::group::end_left;

    #[tokio::test]
    async fn the_launcher_has_no_environment_and_tells_nobody_what_it_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let waits = directory.path().join("waits");
        // Written by another process: what this one holds open for writing, another test's child may hold, too, and
        // then it cannot be run.
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 700 \"$1\"", "sh"]);
        let written = shell.arg(&waits).arg("#!/bin/sh\nread line\n").status();
        assert!(written.unwrap().success());
        let around = Surroundings {
            environment: [("LD_PRELOAD", "/tmp/evil.so"), ("PASSWORD", "hunter2")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..Surroundings::default()
        };
        let launcher = Launcher::by(waits);
        let held = launcher.hold(Launch {
            command: &["true".to_owned()],
            around: &around,
            environment: &[("OKT_INPUT".to_owned(), "/input".to_owned())],
            out: Stdio::null(),
            err: Stdio::null(),
        });
        let held = held.unwrap();
        let about = |name| format!("/proc/{}/{name}", held.group.identity().pid);
        let environment = std::fs::read(about("environ")).unwrap();
        let arguments = std::fs::read(about("cmdline")).unwrap();
        let order = String::from_utf8_lossy(&held.gate.order).into_owned();
        let identity = held.group.identity().clone();
        drop(held);
        assert!(
            end_left(
                &identity,
                std::time::Duration::ZERO,
                std::time::Duration::from_secs(5)
            )
            .await
        );
        assert_eq!(String::from_utf8_lossy(&environment), "");
        assert!(!arguments.windows(7).any(|part| part == b"hunter2"));
        assert!(
            order.contains("LD_PRELOAD") && order.ends_with("}\n"),
            "{order}"
        );
    }

    #[test]
    fn a_command_inherits_path_language_time_zone_and_who_it_is() {
        let own = || {
            [
                ("AGENT_TOKEN", "secret"),
                ("GLIBC_TUNABLES", "x"),
                ("HOME", "/root"),
                ("LC_ALL", "C"),
                ("LD_LIBRARY_PATH", "/tmp"),
                ("TZ", "UTC"),
                ("USER", "root"),
            ]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into_iter()
        };
        let text = |all: BTreeMap<String, Vec<u8>>| -> Vec<String> {
            let texts = all
                .iter()
                .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value)));
            texts.collect()
        };
        let path = format!("PATH={DEFAULT_PATH}");
        assert_eq!(
            text(inherited(None, own())),
            ["HOME=/root", "LC_ALL=C", &path, "TZ=UTC", "USER=root"]
        );
        let mut person = Person {
            uid: 70,
            gid: 70,
            groups: vec![70],
            listed: Some(("postgres".to_owned(), "/var/lib/postgresql".to_owned())),
        };
        assert_eq!(
            text(inherited(Some(&person), own())),
            [
                "HOME=/var/lib/postgresql",
                "LC_ALL=C",
                "LOGNAME=postgres",
                &path,
                "TZ=UTC",
                "USER=postgres"
            ]
        );
        person.listed = None;
        assert_eq!(
            text(inherited(Some(&person), own())),
            ["LC_ALL=C", &path, "TZ=UTC"]
        );
    }
}
