//! The processes next to the cluster: the operator, an agent, and the PostgreSQL that it started; none outlives the
//! stage.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::operator::HOME_VARIABLE;
use super::server::Server;
use crate::processes;

/// Runs a program: with `run` it is an operator, with `agent FILE` an agent.
#[derive(Debug)]
pub struct Stage {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: TempDir,
    operator: Option<Child>,
    agents: Vec<(PathBuf, Child)>,
}

impl Stage {
    /// Starts the operator of a cluster.
    ///
    /// # Errors
    ///
    /// When its directory cannot be made, or it cannot be started.
    pub fn set(program: PathBuf, kubeconfig: &Path) -> io::Result<Self> {
        // PostgreSQL runs as another user, who needs access.
        let home = tempfile::Builder::new()
            .prefix("okt-pg-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir()?;
        let mut stage = Self {
            program,
            kubeconfig: kubeconfig.to_owned(),
            home,
            operator: None,
            agents: Vec::new(),
        };
        stage.start_operator()?;
        Ok(stage)
    }

    /// Returns the server of an object.
    pub fn server(&self, namespace: &str, name: &str) -> Server {
        Server::new(self.home.path(), namespace, name)
    }

    /// Starts the operator, which must not run.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start_operator(&mut self) -> io::Result<()> {
        let operator = self
            .command("operator.log")?
            .arg("run")
            .env("KUBECONFIG", &self.kubeconfig)
            .env(HOME_VARIABLE, self.home.path())
            .spawn()?;
        self.operator = Some(operator);
        Ok(())
    }

    /// Kills the operator with SIGKILL.
    ///
    /// # Errors
    ///
    /// When it had ended on its own.
    pub fn kill_operator(&mut self) -> io::Result<()> {
        self.operator
            .take()
            .map_or(Ok(()), |it| kill("operator", it))
    }

    /// Starts an agent with this file, or restarts it.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start_agent(&mut self, file: &Path) -> io::Result<()> {
        let agent = self.command("agent.log")?.arg("agent").arg(file).spawn()?;
        self.agents.push((file.to_owned(), agent));
        Ok(())
    }

    /// Kills the agent with this file with SIGKILL.
    ///
    /// # Errors
    ///
    /// When it had ended on its own.
    pub fn kill_agent(&mut self, file: &Path) -> io::Result<()> {
        let at = self.agents.iter().position(|(own, _)| own == file);
        at.map_or(Ok(()), |at| kill("agent", self.agents.remove(at).1))
    }

    fn command(&self, log: &str) -> io::Result<Command> {
        let log = self.home.path().join(log);
        let log = File::options().create(true).append(true).open(log)?;
        let mut command = Command::new(&self.program);
        command
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    /// Returns the log of all agents.
    pub fn agents_said(&self) -> String {
        fs::read_to_string(self.home.path().join("agent.log")).unwrap_or_default()
    }

    /// Returns the last lines of the logs of the operators and the agents.
    pub fn said(&self, lines: usize) -> String {
        let mut said = String::new();
        for log in ["operator.log", "agent.log"] {
            let text = fs::read_to_string(self.home.path().join(log)).unwrap_or_default();
            let all: Vec<_> = text.lines().collect();
            let last = &all[all.len().saturating_sub(lines)..];
            said.push_str(&format!("{log}:\n{}\n", last.join("\n")));
        }
        said
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // How they ended does not matter any more.
        let _ = self.kill_operator();
        for (_, agent) in self.agents.drain(..) {
            let _ = kill("agent", agent);
        }
        processes::end(self.home.path());
    }
}

fn kill(what: &str, mut child: Child) -> io::Result<()> {
    let ended = child.try_wait()?;
    child.kill()?;
    child.wait()?;
    match ended {
        Some(status) => Err(io::Error::other(format!(
            "the {what} ended by itself: {status}"
        ))),
        None => Ok(()),
    }
}
