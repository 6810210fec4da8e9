//! Runs a command in a container: input, output, exit code and timeout.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess};
use kube::{Api, Client};
use okt_wire::texts::chain;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::diagnosis::explained;
use super::error::ReachError;
use super::output::{Output, read_all, read_end};
use super::target::checked;

/// The default timeout of a command.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The default limit of the standard output, in bytes.
const LIMIT: usize = 1024 * 1024;

/// The size of the buffer of each stream, in bytes.
const BUFFER: usize = 64 * 1024;

/// A command in a container of a pod, not yet run; [`Reach::exec`](super::Reach::exec) builds it.
///
/// The command is a program in the container and its arguments; no shell interprets it unless the program is a shell.
/// There is no terminal.
#[derive(Clone)]
#[must_use = "nothing is sent before `run`"]
pub struct Exec {
    client: Client,
    namespace: String,
    pod: String,
    command: Vec<String>,
    container: Option<String>,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
    limit: usize,
}

impl Exec {
    pub(super) fn new(
        client: Client,
        namespace: String,
        pod: String,
        command: Vec<String>,
    ) -> Self {
        Self {
            client,
            namespace,
            pod,
            command,
            container: None,
            stdin: None,
            timeout: TIMEOUT,
            limit: LIMIT,
        }
    }

    /// Selects the container; required if the pod has several.
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.container = Some(name.into());
        self
    }

    /// Sets the standard input; by default the command has none.
    ///
    /// The command reads an end of file after it. This needs an API server of Kubernetes 1.30 or later: an older one
    /// ends the command instead.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Sets how long the command may take in all; one minute by default.
    ///
    /// Kubernetes does not end a command after the timeout: it may run on.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the limit of the standard output, in bytes; one mebibyte by default. More output is an error.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Runs the command and waits for its end.
    ///
    /// # Errors
    ///
    /// [`ReachError::CommandFailed`] if the exit code is not 0. The other variants say why the command did not run, or
    /// that its result is unknown. A retry helps for most ([`ReachError::retry_helps`]).
    pub async fn run(self) -> Result<Output, ReachError> {
        let what = self.what();
        let program = self.command.first().map(String::as_str);
        if program.is_none_or(str::is_empty) {
            let why = "there is no command".to_owned();
            return Err(ReachError::Unaskable { what, why });
        }
        checked(&what, &[&self.namespace, &self.pod])?;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let attempt = self.attempt(&pods, &what);
        match ReachError::within(self.timeout, what.clone(), attempt).await {
            Ok(output) => Ok(output),
            Err(error) => Err(explained(&pods, &self.pod, self.container.as_deref(), error).await),
        }
    }

    /// Describes the command for messages, without its arguments, which may be secret.
    fn what(&self) -> String {
        let program = self.command.first().map_or("", String::as_str);
        format!("`{program}` in {}/{}", self.namespace, self.pod)
    }

    async fn attempt(&self, pods: &Api<Pod>, what: &str) -> Result<Output, ReachError> {
        let params = AttachParams {
            container: self.container.clone(),
            stdin: self.stdin.is_some(),
            max_stdin_buf_size: Some(BUFFER),
            max_stdout_buf_size: Some(BUFFER),
            max_stderr_buf_size: Some(BUFFER),
            ..AttachParams::default()
        };
        let answer = pods.exec(&self.pod, &self.command, &params).await;
        let mut process = answer.map_err(|error| ReachError::of(what, error))?;
        let mut output = Output::default();
        let ended = self.converse(&mut process, &mut output).await;
        match ended {
            ExecEnd::TooLong => Err(ReachError::OutputTooLong {
                what: what.to_owned(),
                limit: self.limit,
            }),
            ExecEnd::With(status) => outcome(what, *status, output),
            ExecEnd::Somehow => {
                // Without a status the connection has ended by itself, so `join` returns at once.
                let why = match process.join().await {
                    Err(error) => format!("the connection broke: {}", chain(&error)),
                    Ok(()) => "the connection ended before the command did".to_owned(),
                };
                let what = what.to_owned();
                Err(ReachError::ConnectionLost { what, why })
            }
        }
    }

    /// Writes the input and reads the output until the command has ended.
    async fn converse(&self, process: &mut AttachedProcess, output: &mut Output) -> ExecEnd {
        let input = self.stdin.as_deref().unwrap_or_default();
        let mut writing = pin!(write(process.stdin(), input).fuse());
        let Output { stdout, stderr } = output;
        let mut printing = pin!(read_all(process.stdout(), stdout, self.limit).fuse());
        let mut complaining = pin!(read_end(process.stderr(), stderr).fuse());
        let status = process.take_status();
        let mut ending = pin!(async { status?.await }.fuse());
        // A broken connection does not end the streams, so reading them to their end is not enough.
        let status = loop {
            futures::select_biased! {
                too_long = printing => if too_long {
                    return ExecEnd::TooLong;
                },
                () = complaining => {}
                () = writing => {}
                status = ending => break status,
            }
        };
        let Some(status) = status else {
            return ExecEnd::Somehow;
        };
        // The rest of the output is in the pipes, and they end.
        loop {
            futures::select_biased! {
                too_long = printing => if too_long {
                    return ExecEnd::TooLong;
                },
                () = complaining => {}
                complete => return ExecEnd::With(Box::new(status)),
            }
        }
    }
}

/// How a connection ended.
enum ExecEnd {
    /// With the status of the command from the node.
    With(Box<Status>),
    /// Without a status.
    Somehow,
    /// This process ended it because the output exceeds the limit.
    TooLong,
}

/// Writes the whole input and closes the stream.
async fn write(stream: Option<impl AsyncWrite + Unpin>, input: &[u8]) {
    let Some(mut stream) = stream else { return };
    // A command need not read its input.
    if stream.write_all(input).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}

/// Converts the status from the node: a success without details, an exit code, or why the command did not run.
fn outcome(what: &str, status: Status, output: Output) -> Result<Output, ReachError> {
    if status.status.as_deref() == Some("Success") {
        return Ok(output);
    }
    let what = what.to_owned();
    let causes = status.details.and_then(|details| details.causes);
    let code = causes.into_iter().flatten().find_map(|cause| {
        let is_code = cause.reason.as_deref() == Some("ExitCode");
        is_code.then_some(cause.message)?
    });
    match code.and_then(|code| code.parse().ok()) {
        Some(code) => {
            tracing::debug!(command = what, code, "it printed: {}", output.logged());
            Err(ReachError::CommandFailed { what, code, output })
        }
        None => Err(ReachError::Refused {
            what,
            why: status.message.unwrap_or_else(|| {
                status
                    .reason
                    .unwrap_or_else(|| "without a reason".to_owned())
            }),
        }),
    }
}
