//! What the configuration file says; `docs/sidecar-config.md` explains it to users.
//!
//! | what | file |
//! |---|---|
//! | from the file's tree to these types | `read` |
//! | the fields of a table, what is left over | `fields` |
//! | the tree, with the place of each value | `tree` |
//! | what is wrong, all of it at once | `complaints` |
//! | what this machine has: programs, users, files | `machine` |

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::recognise::PidFile;
use crate::wire::ObjectRef;

mod complaints;
mod fields;
mod machine;
mod read;
mod tree;

pub use self::complaints::ConfigError;
pub(crate) use self::fields::is_state;

/// What an agent is told by its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub(crate) listen: Listen,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) tls: Option<Tls>,
    pub(crate) data: PathBuf,
    pub(crate) scratch: PathBuf,
    /// The object that the agent belongs to; none leaves that to the first request.
    pub(crate) object: Option<ObjectRef>,
    pub(crate) graph: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) application: Option<Application>,
    pub(crate) probe: Probe,
    pub(crate) states: BTreeMap<String, Job>,
}

/// Whether what a file names must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// This is the machine that the file is for: its programs, users and files must exist.
    Here,
    /// It is for another one: only the file itself is checked.
    Elsewhere,
}

impl Config {
    /// Reads a file and checks all of it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, each with line and key; only another file (or machine) helps.
    pub fn read(file: &Path, machine: Machine) -> Result<Self, ConfigError> {
        read::read(file, machine)
    }

    /// The same for a text that stands in `file`.
    ///
    /// ```
    /// use std::path::Path;
    /// use okt_sidecar::program::{Config, Machine};
    ///
    /// let text = "
    /// listen: 127.0.0.1:8470
    /// data: /var/lib/okt-sidecar
    /// probe: { command: [pg_isready], exits: { 0: Running, 2: absent } }
    /// states:
    ///   Servicing: { comand: [pg_basebackup, -D, /backup] }
    /// ";
    /// let error = Config::parse(Path::new("okt.yaml"), text, Machine::Elsewhere).unwrap_err();
    /// assert!(error.to_string().contains("states.Servicing.comand: unknown key, did you mean `command`?"));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Config::read`].
    pub fn parse(file: &Path, text: &str, machine: Machine) -> Result<Self, ConfigError> {
        read::parse(file, text, machine)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Listen {
    Tcp(SocketAddr),
    Unix { path: PathBuf, mode: u32 },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tls {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Clients must prove a certificate that one of these has signed.
    pub(crate) client_ca: Option<PathBuf>,
}

/// How much an agent takes; what the file does not say is left to the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) connections: Option<usize>,
    pub(crate) output: Option<usize>,
    pub(crate) stopping: Option<Duration>,
}

/// The process that the agent runs, or only knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Application {
    /// Without one it is only watched and stopped.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) around: Surroundings,
    /// One signal after another, each with the time that it is given; KILL comes last and is not named.
    pub(crate) stop: Vec<StopStep>,
    pub(crate) recognise: Option<Recognise>,
    /// What the agent's own end means for it; none leaves that to whether the agent is process 1.
    pub(crate) on_exit: Option<OnExit>,
    /// What is answered while no process is there; none asks the probe all the same.
    pub(crate) down: Option<Answer>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StopStep {
    pub(crate) signal: rustix::process::Signal,
    pub(crate) wait: Duration,
}

/// How a process is found that this agent did not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Recognise {
    PidFile(PidFile),
    /// It prints the process id, or nothing.
    Command(Vec<String>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnExit {
    Stop,
    Leave,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    pub(crate) asks: Asks,
    pub(crate) around: Surroundings,
    pub(crate) every: Duration,
    pub(crate) timeout: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    /// `exits` says what an exit code means; without it the first line of its output does.
    Command {
        command: Vec<String>,
        exits: BTreeMap<u16, Answer>,
    },
    /// `statuses` says what a status means; without it the first line of the body does.
    Http {
        url: url::Url,
        statuses: BTreeMap<u16, Answer>,
    },
}

/// What a probe's answer means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Absent,
    In(String),
}

/// The work of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    pub(crate) steps: Vec<Step>,
    pub(crate) around: Surroundings,
    /// After the steps: it is done when the probe sees this state.
    pub(crate) until: Option<String>,
    pub(crate) timeout: Duration,
    /// Between TERM and KILL.
    pub(crate) grace: Duration,
    pub(crate) repeatable: bool,
    /// Exit codes of commands after which only another spec helps.
    pub(crate) permanent: BTreeSet<i32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Command(Vec<String>),
    Http(Call),
    Application(Verb),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: url::Url,
    /// What is sent; none sends the task as JSON, as `OKT_INPUT` and the other variables have it.
    pub(crate) body: Option<String>,
    /// None: all of 200 to 299.
    pub(crate) expect: BTreeSet<u16>,
    pub(crate) permanent: BTreeSet<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Start,
    Stop,
    Restart,
}

/// As whom and where a process runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) user: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: Option<PathBuf>,
}
