//! The configuration of the agent; `docs/sidecar-config.md` explains the file to users.
//!
//! | content | file |
//! |---|---|
//! | from the file's tree to these types | `read` |
//! | values by their kind; the fields of a table, and unknown ones | `fields` |
//! | the tree, with the place of each value | `tree` |
//! | all mistakes of a file | `mistakes` |
//! | the machine: programs, users, files | `machine` |

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use okt_agent::wire::ObjectRef;

use super::recognise::PidFile;
use super::users::{self, Person};

mod fields;
mod machine;
mod mistakes;
mod read;
mod tree;

pub(crate) use self::fields::is_state;
pub use self::mistakes::ConfigError;

/// The configuration of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    pub(crate) listen: ListenConfig,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) tls: Option<TlsConfig>,
    pub(crate) data: PathBuf,
    pub(crate) scratch: PathBuf,
    /// The object that the agent belongs to; `None` takes that of the first request.
    pub(crate) object: Option<ObjectRef>,
    pub(crate) graph: Option<String>,
    pub(crate) limits: AgentLimits,
    pub(crate) application: Option<ApplicationConfig>,
    pub(crate) probe: Probe,
    pub(crate) states: BTreeMap<String, Job>,
}

/// Whether the programs, users and files that a configuration names must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// This is the machine that the configuration is for, so they must exist.
    Here,
    /// The configuration is for another machine, so only the file itself is checked.
    Elsewhere,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ListenConfig {
    Tcp(SocketAddr),
    Unix { path: PathBuf, mode: u32 },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TlsConfig {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// The authority that must have signed client certificates.
    pub(crate) client_ca: Option<PathBuf>,
}

/// The limits of the agent; `None` uses the agent's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AgentLimits {
    pub(crate) connections: Option<usize>,
    pub(crate) output: Option<usize>,
    pub(crate) stopping: Option<Duration>,
}

/// The process that the agent runs, or only watches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ApplicationConfig {
    /// Without a command the agent only watches and stops it.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) around: CommandEnvironment,
    /// The signals to stop it, each with its grace period. KILL always comes last and is not listed.
    pub(crate) stop: Vec<StopStep>,
    pub(crate) recognise: Option<Recognise>,
    /// What happens to it when the agent ends; `None` decides by whether the agent is process 1.
    pub(crate) on_exit: Option<OnExit>,
    /// The answer while no process runs; `None` asks the probe anyway.
    pub(crate) down: Option<Meaning>,
}

impl ApplicationConfig {
    /// Returns how long a stop takes at most before KILL.
    pub(crate) fn stopping(&self) -> Duration {
        self.stop.iter().map(|step| step.wait).sum()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StopStep {
    pub(crate) signal: rustix::process::Signal,
    pub(crate) wait: Duration,
}

/// How to find a process that this agent did not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Recognise {
    PidFile(PidFile),
    /// The command prints the process id, or nothing.
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
    pub(crate) around: CommandEnvironment,
    pub(crate) every: Duration,
    pub(crate) timeout: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    /// `exits` maps exit codes to answers; without it, the first line of the output is the answer.
    Command {
        command: Vec<String>,
        exits: BTreeMap<u16, Meaning>,
    },
    /// `statuses` maps HTTP statuses to answers; without it, the first line of the body is the answer.
    Http {
        url: url::Url,
        statuses: BTreeMap<u16, Meaning>,
    },
}

/// The meaning of a probe's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    Absent,
    In(String),
}

/// The work of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    pub(crate) steps: Vec<JobStep>,
    pub(crate) around: CommandEnvironment,
    /// The work is done when the probe observes this state after the steps.
    pub(crate) until: Option<String>,
    pub(crate) timeout: Duration,
    /// The time between TERM and KILL.
    pub(crate) grace: Duration,
    pub(crate) repeatable: bool,
    /// The exit codes of commands that are permanent errors.
    pub(crate) permanent: BTreeSet<i32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum JobStep {
    Command(Vec<String>),
    Http(Call),
    Application(Verb),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) method: http::Method,
    pub(crate) url: url::Url,
    /// The body; `None` sends the task as JSON, with the content of `OKT_INPUT` and the other variables.
    pub(crate) body: Option<String>,
    /// The successful statuses; if it is empty, 200 to 299.
    pub(crate) expect: BTreeSet<u16>,
    pub(crate) permanent: BTreeSet<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Start,
    Stop,
    Restart,
}

/// The user, group, environment and directory of a process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CommandEnvironment {
    pub(crate) user: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: Option<PathBuf>,
}

impl CommandEnvironment {
    /// Returns the user and groups, or `None` for those of the agent.
    pub(crate) fn person(&self) -> Result<Option<Person>, String> {
        users::find(self.user.as_deref(), self.group.as_deref())
    }
}

/// The search path for programs if the agent itself was started without `PATH`.
pub(crate) const DEFAULT_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
