//! A process that begins nothing before its identity is on disk.
//!
//! The agent starts itself as `okt-sidecar launch`, without an environment and without other arguments.
//! The launcher reads its order from a socket and becomes the user of the command. Only then it takes the environment
//! of the command and becomes its program.
//! So no privileged process loads libraries that a command's environment names, such as `LD_PRELOAD`, and other users
//! cannot read that environment.
//! If the agent dies before it has sent the whole order, the socket closes and the launcher exits: no command runs
//! without a record.

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
use super::config::{CommandEnvironment, DEFAULT_PATH};
use super::group::ProcessGroup;
use super::users::Person;

/// Starts processes with this program as the launcher.
#[derive(Clone)]
pub(crate) struct Launcher {
    pub(crate) children: Children,
    program: PathBuf,
}

/// The process to start.
pub(crate) struct Launch<'a> {
    pub(crate) command: &'a [String],
    pub(crate) around: &'a CommandEnvironment,
    /// Variables in addition to those of `around`.
    pub(crate) environment: &'a [(String, String)],
    pub(crate) out: Stdio,
    pub(crate) err: Stdio,
}

/// A process that waits for its order. It exits if the value is dropped.
pub(crate) struct Held {
    pub(crate) group: ProcessGroup,
    pub(crate) gate: Gate,
}

/// The channel through which a held process gets its order.
pub(crate) struct Gate {
    socket: UnixStream,
    /// The order as a line of JSON, which is sent when the process may continue.
    order: Vec<u8>,
}

/// The order for the launcher.
#[derive(Serialize, Deserialize)]
struct LaunchOrder {
    command: Vec<String>,
    /// The whole environment: nothing else is inherited.
    environment: BTreeMap<String, Vec<u8>>,
    directory: Option<PathBuf>,
    uid: Option<u32>,
    gid: Option<u32>,
    groups: Vec<u32>,
}

impl Launcher {
    /// Creates a launcher whose children are awaited here.
    pub(crate) fn new(children: Children) -> Self {
        Self {
            children,
            program: PathBuf::from("/proc/self/exe"),
        }
    }

    /// Creates a launcher that runs this script instead.
    #[cfg(test)]
    pub(super) fn by(script: &str) -> (Self, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("script");
        // Another process writes the file: a file that this process has open for writing may be inherited by another
        // test's child, and then cannot be executed.
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf %s \"$2\" > \"$1\" && chmod 700 \"$1\"", "sh"]);
        assert!(shell.arg(&program).arg(script).status().unwrap().success());
        let launcher = Self {
            program,
            ..Self::new(Children::default())
        };
        (launcher, directory)
    }

    /// Starts a process that leads its own group and waits for [`Gate::open`].
    ///
    /// # Errors
    ///
    /// It cannot be started; whether a retry helps depends on the cause.
    pub(crate) fn hold(&self, launch: Launch<'_>) -> Result<Held, String> {
        let program = launch.command.first().cloned().unwrap_or_default();
        let held = self.try_hold(launch);
        held.map_err(|error| format!("cannot run {program}: {error}"))
    }

    fn try_hold(&self, launch: Launch<'_>) -> io::Result<Held> {
        let around = launch.around;
        let person = around.person().map_err(io::Error::other)?;
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let run = super::proc::unique()?;
        let other = person.as_ref().filter(|_| around.user.is_some());
        let mut environment = inherited(other, env::vars_os());
        let of_task = launch.environment.iter().map(|(name, value)| (name, value));
        let given = around.environment.iter().chain(of_task);
        environment.extend(given.map(|(name, value)| (name.clone(), value.clone().into_bytes())));
        environment.insert("OKT_RUN".to_owned(), run.clone().into_bytes());
        let order = LaunchOrder {
            command: launch.command.to_vec(),
            environment,
            directory: around.directory.clone(),
            uid: person.as_ref().map(|it| it.uid),
            gid: person.as_ref().map(|it| it.gid),
            groups: person.map(|it| it.groups).unwrap_or_default(),
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
        let group = ProcessGroup::spawn(&self.children, &mut command, run)?;
        let gate = Gate { socket, order };
        Ok(Held { group, gate })
    }
}

/// Returns the variables that a command inherits from the agent: search path, language, time zone and user.
/// `other` is the command's user, if it is not the agent's.
///
/// The rest of the agent's environment may be secret, or decide which libraries a process loads.
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
            // Those of another user are added below.
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
    /// Lets the process become its program, and returns when it has.
    ///
    /// That may take long if its directory or the program is on a hanging mount.
    ///
    /// # Errors
    ///
    /// The cause why it did not become its program.
    pub(crate) async fn open(self) -> Result<(), String> {
        let sent = async {
            let mut gate = tokio::net::UnixStream::from_std(self.socket)?;
            gate.write_all(&self.order).await?;
            // The socket closes when the launcher has become the program; before that the launcher writes errors to it.
            let mut wrong = String::new();
            gate.read_to_string(&mut wrong).await?;
            io::Result::Ok(wrong)
        };
        match sent.await {
            Ok(wrong) if wrong.is_empty() => Ok(()),
            Ok(wrong) => Err(wrong),
            Err(error) => Err(format!("the launcher is gone: {error}")),
        }
    }
}

/// Runs the launcher: it waits for its order on standard input, then becomes the program of the order.
///
/// Call it before there is any other thread, because each thread has its own user and groups.
pub fn launch() -> ExitCode {
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::from(2);
    };
    let mut gate = UnixStream::from(stdin);
    let mut order = Vec::new();
    let read = BufReader::new(&gate).read_until(b'\n', &mut order);
    // An incomplete order means that the agent is gone.
    if read.is_err() || order.pop() != Some(b'\n') {
        return ExitCode::SUCCESS;
    }
    let Err(error) = become_program(&order);
    // The agent may be gone too.
    let _ = gate.write_all(error.to_string().as_bytes());
    ExitCode::from(127)
}

fn become_program(order: &[u8]) -> io::Result<Infallible> {
    let order: LaunchOrder = serde_json::from_slice(order)?;
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
    // The program is searched in the PATH of this environment, as the user that this process has become.
    command
        .args(order.command.iter().skip(1))
        .env_clear()
        .envs(environment.map(|(name, value)| (name, OsString::from_vec(value))))
        .stdin(Stdio::null());
    Err(wrong(&format!("run {program}"), command.exec()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::group::end_left;

    #[tokio::test]
    async fn the_launcher_has_no_environment_and_passes_on_nothing_that_it_receives() {
        let around = CommandEnvironment {
            environment: [("LD_PRELOAD", "/tmp/evil.so"), ("PASSWORD", "hunter2")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..CommandEnvironment::default()
        };
        let (launcher, _directory) = Launcher::by("#!/bin/sh\nread line\n");
        let launch = launcher.hold(Launch {
            command: &["true".to_owned()],
            around: &around,
            environment: &[("OKT_INPUT".to_owned(), "/input".to_owned())],
            out: Stdio::null(),
            err: Stdio::null(),
        });
        let held = launch.unwrap();
        let about = |name| format!("/proc/{}/{name}", held.group.identity().pid);
        let environment = std::fs::read(about("environ")).unwrap();
        let arguments = std::fs::read(about("cmdline")).unwrap();
        let order = String::from_utf8_lossy(&held.gate.order).into_owned();
        let identity = held.group.identity().clone();
        drop(held);
        assert!(end_left(&identity, Duration::ZERO, Duration::from_mins(10)).await);
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
            let text = |value| String::from_utf8_lossy(value).into_owned();
            all.iter()
                .map(|(name, value)| format!("{name}={}", text(value)))
                .collect()
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
