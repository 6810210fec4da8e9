//! This file is a real Kubernetes API server, as tests hold it.

mod build;
mod error;
mod process;
mod run;
mod source;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use kube::{Client, Config};

pub use self::error::KubernetesError;
use self::{process::Processes, source::Source};

/// A real Kubernetes API server on the loopback interface: what the double is measured by.
///
/// # Where it comes from
/// The first of these that is there:
/// 1. `KUBECONFIG`, if its current context has the name of a developer's own cluster (e.g.
///    `kind-dev`, `k3d-dev`, `minikube`) and leads to the loopback interface, or if
///    `OKT_TEST_CONTEXT` names one of its contexts. `cargo test` must not write into somebody's
///    production cluster: any other context is left alone, and a line says so. The cluster is
///    expected to collect garbage.
/// 2. `KUBEBUILDER_ASSETS`: a directory with `kube-apiserver` and `etcd`, as envtest lays them
///    out; also `kube-controller-manager` and `kubectl`, if they are there. Without the former
///    nothing collects garbage.
/// 3. Go: the program in `tests/kubernetes` of OKT's repository, whose sources are a part of this
///    crate (so this feature needs the whole repository, as a git dependency has it). It is built
///    once, in about five minutes, into `$XDG_CACHE_HOME/okt` or `~/.cache/okt`, where 150 MB
///    stay; each version of its sources has a directory of its own, and all may be deleted.
///
/// # Guarantees
/// A server that was started here has free ports, a temporary directory and an administrator's
/// token of its own, so that any number of them run at once. Process and directory are gone when
/// [`stop`](Self::stop) returns, when this is dropped (also by a panic), and soon after the test
/// process has died, however it died. So one in a `static`, which is never dropped, may be shared
/// by the tests of a binary. A server from `KUBECONFIG` is never stopped.
///
/// # Example
/// ```no_run
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube::Api;
/// use okt_testing::Kubernetes;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let Some(kubernetes) = Kubernetes::start_or_skip("namespaces are listed").await? else {
///     return Ok(());
/// };
/// let namespaces: Api<Namespace> = Api::all(kubernetes.client());
/// assert!(namespaces.get_opt("default").await?.is_some());
/// kubernetes.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Kubernetes {
    config: Config,
    version: String,
    kubectl: Option<Kubectl>,
    collects_garbage: bool,
    processes: Processes,
    kubeconfig: PathBuf,
    /// Goes last, when no process writes to it any more.
    directory: tempfile::TempDir,
}

/// The program that is kubectl, and the argument that makes it so.
#[derive(Clone, Debug)]
struct Kubectl {
    program: PathBuf,
    argument: Option<&'static str>,
}

impl Kubernetes {
    /// Starts a server (or finds the one of `KUBECONFIG`) and waits until it works, garbage
    /// collection included. Takes seconds; the first time with Go it takes minutes.
    ///
    /// # Errors
    /// There is nothing to run ([`KubernetesError::is_missing`]), it cannot be built, or it does
    /// not work within two minutes. The error holds what was printed last. A retry helps against a
    /// machine that was too busy only.
    ///
    /// # Example
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), okt_testing::KubernetesError> {
    /// let kubernetes = okt_testing::Kubernetes::start().await?;
    /// println!("{} at {}", kubernetes.version(), kubernetes.config().cluster_url);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start() -> Result<Self, KubernetesError> {
        let environment = source::Environment::read();
        let mut notice = None;
        let source = source::choose(&environment, &mut notice);
        if let Some(notice) = notice {
            say(&notice);
        }
        match source? {
            Source::Given { kubeconfig } => run::given(*kubeconfig).await,
            Source::Assets { directory } => run::assets(&directory).await,
            Source::Go { go, cache } => {
                let building = tokio::task::spawn_blocking(move || build::program(&go, &cache));
                let program = building.await.map_err(io::Error::other)??;
                run::program(&program).await
            }
        }
    }

    /// Starts a server as [`start`](Self::start) does. Where there is none, prints a line which
    /// says that `what` is not tested, and returns `None`.
    ///
    /// # Errors
    /// As for `start`. With `CI` in the environment (neither empty nor `false`), it is also an
    /// error that there is no server: what is always skipped is never tested.
    pub async fn start_or_skip(what: &str) -> Result<Option<Self>, KubernetesError> {
        match Self::start().await {
            Ok(kubernetes) => Ok(Some(kubernetes)),
            Err(error) if error.is_missing() && !source::in_ci() => {
                say(&format!("skipped: {what}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A new client, as administrator; its default namespace is `default` unless `KUBECONFIG` says
    /// otherwise.
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone())
            .expect("a client of this configuration was made at the start")
    }

    /// What a client is made from, e.g. with other credentials.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// The file that leads to the server; it is gone with this value.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The version that the server tells (e.g. `v1.36.1`).
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether dependents of deleted owners are deleted, and namespaces are emptied. Only a server
    /// from `KUBEBUILDER_ASSETS` may lack it.
    pub fn collects_garbage(&self) -> bool {
        self.collects_garbage
    }

    /// A `kubectl` that talks to this server, writes nothing to the home directory and waits for
    /// its arguments. The program comes with the server; for a server from elsewhere it is the
    /// one of the machine, and `None` where there is none.
    ///
    /// # Example
    /// ```no_run
    /// # fn main() -> std::io::Result<()> {
    /// # let kubernetes: okt_testing::Kubernetes = unreachable!("only compiled");
    /// if let Some(mut kubectl) = kubernetes.kubectl() {
    ///     let output = kubectl.args(["get", "namespaces"]).output()?;
    ///     assert!(output.status.success());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn kubectl(&self) -> Option<Command> {
        let kubectl = self.kubectl.as_ref()?;
        let mut command = Command::new(&kubectl.program);
        command
            .args(kubectl.argument)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.directory.path().join("kubectl"))
            // Somebody's aliases must not change what a test sees.
            .env("KUBECTL_KUBERC", "false");
        Some(command)
    }

    /// Kills the server with SIGKILL, as a machine that dies would: nothing is finished or answered
    /// any more, and every connection breaks. One that is killed already stays so.
    ///
    /// The database goes with it, and loses nothing that was answered. Whoever writes at that
    /// moment does not learn whether the write is kept. The controllers go on, and find the server
    /// when it is [started again](Self::restart). Nothing is left behind of a killed server either.
    ///
    /// # Errors
    /// The server comes from `KUBECONFIG` ([`KubernetesError::NotOurs`]), or cannot be signalled. A
    /// retry does not help.
    ///
    /// # Example
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), okt_testing::KubernetesError> {
    /// let mut kubernetes = okt_testing::Kubernetes::start().await?;
    /// let client = kubernetes.client();
    /// kubernetes.kill()?;
    /// assert!(client.apiserver_version().await.is_err());
    /// kubernetes.restart().await?;
    /// assert!(client.apiserver_version().await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn kill(&mut self) -> Result<(), KubernetesError> {
        self.processes.kill()
    }

    /// Starts the server again and waits until it is ready: with its data, at the same address,
    /// with the same token and certificate, so that clients and kubeconfigs stay what they are. One
    /// that runs is killed first.
    ///
    /// A watch that was open has to begin anew, most often with a list, because the server has
    /// forgotten which changes it told.
    /// The first garbage may be collected half a minute later only: the controllers wait between
    /// their attempts to find the server.
    ///
    /// # Errors
    /// As for [`kill`](Self::kill), or the server is not ready within two minutes; then a retry
    /// helps against a machine that was too busy.
    pub async fn restart(&mut self) -> Result<(), KubernetesError> {
        self.processes.kill()?;
        self.processes.restart()?;
        let client = Client::try_from(self.config.clone())?;
        run::ready(&client, &mut self.processes).await
    }

    /// Stops the server if it was started here, and waits until process and directory are gone.
    pub async fn stop(self) {
        // Waiting for processes blocks; an error would be the panic of a destructor that has none.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

/// Prints a line past the capture of test output: who waits for minutes must see why.
fn say(line: &str) {
    // Where nobody reads there is nobody to tell.
    let _ = writeln!(io::stderr(), "{line}");
}
