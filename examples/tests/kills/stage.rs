//! The operator's process and the servers that it starts, next to the API server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use okt_examples::notes::{Instance, Program};
use okt_examples::notes_operator::{HOME_VARIABLE, Keeper};
use okt_examples::processes;
use parking_lot::{Mutex, MutexGuard};
use rustix::process::Pid;
use tempfile::TempDir;

/// The namespace of all notebooks.
pub(crate) const NAMESPACE: &str = "default";

const OPERATOR: &str = env!("CARGO_BIN_EXE_notes-operator");

/// The operator and the servers; none of their processes outlives this.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) keeper: Keeper,
    home: TempDir,
    kubeconfig: PathBuf,
    operator: Mutex<Option<Child>>,
}

impl Stage {
    /// Starts the operator of a cluster.
    pub(crate) fn set(kubeconfig: &Path) -> Self {
        let home = tempfile::Builder::new().prefix("okt-kills-").tempdir();
        let home = home.expect("a directory");
        let program = Program {
            exe: OPERATOR.into(),
            args: vec!["serve".into()],
        };
        let stage = Self {
            keeper: Keeper::new(home.path(), program),
            home,
            kubeconfig: kubeconfig.to_owned(),
            operator: Mutex::default(),
        };
        stage.start_operator();
        stage
    }

    /// Starts the operator, which must not run.
    pub(crate) fn start_operator(&self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.operator_log());
        let operator = Command::new(OPERATOR)
            .arg("run")
            .env("KUBECONFIG", &self.kubeconfig)
            .env(HOME_VARIABLE, self.home.path())
            .env("RUST_LOG", "info")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .spawn()
            .expect("the operator starts");
        *self.slot() = Some(operator);
    }

    /// Kills the operator with SIGKILL.
    ///
    /// # Errors
    ///
    /// The exit status, if it had ended on its own.
    pub(crate) fn kill_operator(&self) -> Result<(), String> {
        let Some(mut operator) = self.slot().take() else {
            return Ok(());
        };
        let ended = operator.try_wait().expect("it is our child");
        operator.kill().expect("it is our child");
        operator.wait().expect("it is our child");
        match ended {
            Some(status) => Err(format!("the operator ended by itself: {status}")),
            None => Ok(()),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Child>> {
        self.operator.lock()
    }

    fn operator_log(&self) -> PathBuf {
        self.home.path().join("operator.log")
    }

    /// Returns the log of all operators.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.operator_log()).unwrap_or_default()
    }

    /// Returns the directory with the data of the servers, by name.
    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data").join(NAMESPACE)
    }

    /// Returns the names of the notebooks that have data.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.data()).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Returns the server of a notebook.
    pub(crate) fn instance(&self, name: &str) -> Instance {
        let instance = self.keeper.instance(NAMESPACE, name);
        instance.expect("a name that can be a file's")
    }

    /// Returns the processes of the servers.
    pub(crate) fn servers(&self) -> Vec<Pid> {
        processes::of(self.home.path())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // How it ended does not matter any more.
        let _ = self.kill_operator();
        processes::end(self.home.path());
    }
}
