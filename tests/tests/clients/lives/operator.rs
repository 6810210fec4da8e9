//! An operator as a process: started, killed, and started again when it ends, as a kubelet does.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

/// An operator of `tests/clients`, and what differs between the frameworks.
pub(super) struct Framework {
    /// The name, for the log and for messages.
    pub(super) name: &'static str,
    /// The script that becomes the operator, below `tests/clients`.
    pub(super) script: &'static str,
    /// The first words of the User-Agents of its clients.
    pub(super) clients: &'static [&'static str],
    /// Whether it watches the Deployments that it owns; otherwise it polls them.
    pub(super) watches_owned: bool,
    /// Whether a write whose response is cut off fails; otherwise it waits forever, and the operator with it.
    pub(super) survives_cut_bodies: bool,
}

/// A process of the operator, which is killed with this value.
pub(super) struct OperatorProcess {
    script: PathBuf,
    work: PathBuf,
    kubeconfig: PathBuf,
    log: PathBuf,
    child: Option<Child>,
    /// How often it ended by itself.
    pub(super) exits: usize,
}

impl OperatorProcess {
    /// Starts the operator; its script builds it first where necessary.
    pub(super) fn start(framework: &Framework, kubeconfig: &Path) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let work = root.join("../target/clients");
        fs::create_dir_all(&work).expect("a folder");
        let work = work.canonicalize().expect("it exists");
        let log = work.join(format!("{}-life.log", framework.name));
        File::create(&log).expect("a log");
        let mut process = Self {
            script: root.join("clients").join(framework.script),
            work,
            kubeconfig: kubeconfig.to_owned(),
            log,
            child: None,
            exits: 0,
        };
        process.run();
        process
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Starts the process again, after [`kill`](Self::kill).
    pub(super) fn run(&mut self) {
        let log = File::options().append(true).open(&self.log);
        let log = log.expect("the log is there");
        let child = Command::new(&self.script)
            .arg(&self.work)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        self.child = Some(child.expect("the script starts"));
    }

    /// Kills the process, which cannot do anything about it.
    pub(super) async fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().await.expect("it can be killed");
    }

    /// Starts the process again if it has ended.
    ///
    /// # Panics
    /// If the operator cannot be built.
    pub(super) fn restart_if_ended(&mut self) {
        let Some(child) = &mut self.child else { return };
        let Some(status) = child.try_wait().expect("a process of this test") else {
            return;
        };
        // The scripts end with 2 if they cannot build the operator.
        assert_ne!(status.code(), Some(2), "see {}", self.log.display());
        self.exits += 1;
        self.run();
    }
}
