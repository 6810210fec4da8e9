//! The conformance test as a command, for agents in any language.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

use okt_agent::client::{Endpoint, EndpointError};
use okt_agent::conformance::{Report, States, Subject, names};

/// Which agent is checked, and by what work.
#[derive(Args, Debug)]
pub struct Conform {
    /// The address of the agent: `http://host:port`, `https://host:port` or `unix:/path`
    address: String,
    /// A state whose work is short and succeeds
    #[arg(long, value_name = "STATE")]
    brief: String,
    /// A state whose work fails and may be retried
    #[arg(long, value_name = "STATE")]
    failing: String,
    /// A state whose work runs until it is cancelled
    #[arg(long, value_name = "STATE")]
    endless: String,
    /// The file with the agent's token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The certificates (PEM) that verify the agent's certificate, instead of those of this machine
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// The name in the agent's certificate, instead of the host of the address
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
    /// The client certificate and its key (PEM)
    #[arg(long, value_names = ["CERTIFICATE", "KEY"], num_args = 2)]
    identity_files: Option<Vec<PathBuf>>,
    /// A command for `sh -c` that kills the agent with SIGKILL and starts it again; without it, restarts are not checked
    #[arg(long, value_name = "COMMAND")]
    restart: Option<String>,
    /// Run only these checks
    #[arg(long, value_name = "CHECK", num_args = 1..)]
    only: Vec<String>,
}

/// Checks an agent and prints a line for each rule.
///
/// Exits with 0 if every rule is kept, with 1 if one is broken, and with 2 if the agent cannot be tested with these
/// arguments.
pub fn conform(conform: Conform) -> ExitCode {
    match check(conform) {
        Ok(report) => {
            print!("{report}");
            ExitCode::from(u8::from(!report.is_kept()))
        }
        Err(why) => {
            eprintln!("okt-sidecar: {why}");
            ExitCode::from(2)
        }
    }
}

fn check(conform: Conform) -> Result<Report, String> {
    for only in &conform.only {
        if !names().any(|name| name == only) {
            let names: Vec<_> = names().collect();
            return Err(format!(
                "there is no check `{only}`, there are {}",
                names.join(", ")
            ));
        }
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let subject = subject(conform).map_err(|error| error.to_string())?;
    Ok(runtime.block_on(subject.check()))
}

fn subject(conform: Conform) -> Result<Subject, EndpointError> {
    let mut endpoint = Endpoint::parse(&conform.address)?;
    if let Some(file) = conform.token_file {
        endpoint = endpoint.token_file(file);
    }
    if let Some(file) = conform.ca_file {
        endpoint = endpoint.ca_file(file);
    }
    if let Some(name) = conform.server_name {
        endpoint = endpoint.server_name(name);
    }
    if let Some([certificate, key]) = conform.identity_files.as_deref() {
        endpoint = endpoint.identity_files(certificate, key);
    }
    let states = States {
        brief: conform.brief,
        failing: conform.failing,
        endless: conform.endless,
    };
    let mut subject = Subject::new(endpoint, states)?;
    if let Some(command) = conform.restart {
        subject = subject.restart(move || restart(command.clone()));
    }
    if !conform.only.is_empty() {
        subject = subject.only(conform.only);
    }
    Ok(subject)
}

async fn restart(command: String) -> Result<(), String> {
    let run =
        tokio::task::spawn_blocking(move || Command::new("sh").arg("-c").arg(command).status());
    match run.await.map_err(|error| error.to_string())? {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the command that restarts the agent: {status}")),
        Err(error) => Err(format!(
            "cannot run the command that restarts the agent: {error}"
        )),
    }
}
