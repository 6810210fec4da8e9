//! The command line of `okt-sidecar`.

use std::fs::{self, Permissions};
use std::io::{self, IsTerminal, Write, stderr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use okt_agent::with_causes;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, Machine};
use crate::conform::{Conform, conform};
use crate::launch::launch;
use crate::run::{RunError, free, run};

/// The agent of an application: reports its state and does its work
///
/// Exits with 0 after a signal, with 1 when it cannot start or continue, with 2 when its arguments or its file are
/// wrong, with 3 when another agent uses its directory, and with 4 when a second signal ended it at once.
#[derive(Parser)]
#[command(name = "okt-sidecar", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Runs until SIGTERM or SIGINT
    ///
    /// Logs to standard error; the variable `OKT_LOG` sets the level (debug, info, warn, error; info by default).
    Run {
        /// The configuration, YAML
        file: PathBuf,
    },
    /// Checks a configuration file, and that this machine has what it names
    ///
    /// Prints every mistake with its line and key, and exits with 2 if there is one.
    Check {
        /// The configuration, YAML
        file: PathBuf,
        /// The file is for another machine: its programs, users and files need not exist on this one
        #[arg(long)]
        elsewhere: bool,
    },
    /// Frees a stopped agent, so that it belongs to no object
    ///
    /// The next request binds the agent again, for any object, epoch and age; the agent keeps its results.
    Free {
        /// The configuration, YAML
        file: PathBuf,
    },
    /// Checks whether an agent follows the protocol
    ///
    /// The check requests real work and binds the agent to an object of the test, so use an application that you can
    /// lose. Exits with 1 if a rule is broken.
    Conform(Box<Conform>),
    /// Copies this program to a directory, as `okt-sidecar`
    ///
    /// An image of the agent gives it to the container of an application: by a container that runs before it, and a
    /// volume that both have.
    Install {
        /// The directory
        directory: PathBuf,
    },
    /// What `run` starts commands with
    #[command(hide = true)]
    Launch,
}

/// Does what the arguments of the process say: it is the whole program `okt-sidecar`.
pub fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        AgentCommand::Launch => return launch(),
        AgentCommand::Conform(arguments) => return conform(*arguments),
        AgentCommand::Check { file, elsewhere } => check(&file, elsewhere),
        AgentCommand::Free { file } => free_agent(&file),
        AgentCommand::Run { file } => run_agent(&file),
        AgentCommand::Install { directory } => install(&directory).map_err(|error| {
            eprintln!("okt-sidecar: {}: {error}", directory.display());
            ExitCode::FAILURE
        }),
    };
    done.err().unwrap_or(ExitCode::SUCCESS)
}

fn check(file: &Path, elsewhere: bool) -> Result<(), ExitCode> {
    let machine = if elsewhere {
        Machine::Elsewhere
    } else {
        Machine::Here
    };
    read(file, machine)?;
    println!("{}: nothing is wrong", file.display());
    Ok(())
}

fn free_agent(file: &Path) -> Result<(), ExitCode> {
    let config = read(file, Machine::Elsewhere)?;
    match free(&config) {
        Ok(Some(owner)) => println!("the agent belonged to {} ({})", owner.object(), owner.uid),
        Ok(None) => println!("the agent belonged to no object"),
        Err(error) => {
            eprintln!("okt-sidecar: {}", with_causes(&error));
            return Err(ExitCode::FAILURE);
        }
    }
    Ok(())
}

/// Installs the program. It takes its name last: whoever finds it there finds all of it.
fn install(directory: &Path) -> io::Result<()> {
    let new = directory.join(".okt-sidecar.new");
    fs::copy(std::env::current_exe()?, &new)?;
    fs::set_permissions(&new, Permissions::from_mode(0o755))?;
    fs::rename(new, directory.join("okt-sidecar"))
}

fn run_agent(file: &Path) -> Result<(), ExitCode> {
    let config = read(file, Machine::Here)?;
    log();
    run(config).map_err(|error| failed(&error))
}

fn read(file: &Path, machine: Machine) -> Result<Config, ExitCode> {
    Config::read(file, machine).map_err(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}

fn log() {
    let filter = EnvFilter::try_from_env("OKT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        // A failure would be reported on standard error too, and panic; a failure to log must not end the agent.
        .log_internal_errors(false)
        .init();
}

/// Prints why the agent has ended, and returns its exit code.
fn failed(error: &RunError) -> ExitCode {
    // This may fail, for example on a full disk; the exit code remains.
    let _ = writeln!(stderr(), "okt-sidecar: {}", with_causes(error));
    ExitCode::from(match error {
        RunError::InUse(_) => 3,
        RunError::AtOnce => 4,
        RunError::Machine { .. } | RunError::Serve(_) => 1,
    })
}
