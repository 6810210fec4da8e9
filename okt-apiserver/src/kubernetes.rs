//! [`Kubernetes`]: the handle of a real API server in a test.

mod build;
mod error;
mod options;
mod process;
mod run;
mod source;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use kube::{Client, Config};

use self::process::Processes;
pub use self::{error::KubernetesError, options::KubernetesOptions, run::free_ports};

/// A real Kubernetes API server on the loopback interface, to compare the test double with.
///
/// # Sources
/// The first of these that is available:
/// 1. `KUBECONFIG`, if its current context has the name of a local cluster (e.g. `kind-dev`,
///    `k3d-dev`, `minikube`) and leads to the loopback interface, or if `OKT_TEST_CONTEXT` names
///    one of its contexts. `cargo test` must not write into a production cluster: any other context
///    is not used, and a line on stderr says so. The cluster is expected to collect garbage.
/// 2. `OKT_KUBERNETES`: a program like that of Go, of another release of Kubernetes.
/// 3. `KUBEBUILDER_ASSETS`: a directory with `kube-apiserver` and `etcd`, in the layout of envtest;
///    `kube-controller-manager` and `kubectl` are used if they are there. Without
///    `kube-controller-manager` there is no garbage collection.
/// 4. Go: the program whose sources are in the directory `kubernetes` of this crate. It is built once, in about five
///    minutes, into `$XDG_CACHE_HOME/okt` or `~/.cache/okt`, where it takes 150 MB; each version of the sources has its
///    own directory. All of them may be deleted.
///
/// # Guarantees
/// A server that is started here has its own free ports, temporary directory and administrator
/// token, so any number of them can run at once. Process and directory are gone when
/// [`stop`](Self::stop) returns, when this value is dropped (also by a panic), and soon after the
/// test process has died, for whatever reason. So the tests of a binary may share a server in a
/// `static`, which is never dropped. A server from `KUBECONFIG` is never stopped.
///
/// # Example
/// ```no_run
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube::Api;
/// use okt_apiserver::Kubernetes;
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
    /// Dropped last, when no process writes to it any more.
    directory: tempfile::TempDir,
}

/// The `kubectl` program, and the argument that selects `kubectl` in a combined program.
#[derive(Clone, Debug)]
struct Kubectl {
    program: PathBuf,
    argument: Option<&'static str>,
}

impl Kubernetes {
    /// Returns the default options, to start a server with others (e.g. with a feature gate).
    ///
    /// # Example
    /// See [`KubernetesOptions`].
    pub fn options() -> KubernetesOptions {
        KubernetesOptions::default()
    }

    /// Returns a new client, as administrator; its default namespace is `default` unless
    /// `KUBECONFIG` sets another.
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone())
            .expect("a client of this configuration was made at the start")
    }

    /// Returns the configuration for a client, e.g. to change the credentials.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// Returns the path of a kubeconfig for the server; the file is removed with this value.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the version that the server reports (e.g. `v1.36.1`).
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns whether dependents of deleted owners are deleted, and namespaces are emptied. Only a
    /// server from `KUBEBUILDER_ASSETS` may lack garbage collection.
    pub fn collects_garbage(&self) -> bool {
        self.collects_garbage
    }

    /// Returns a `kubectl` command for this server, without arguments, that writes nothing to the
    /// home directory. The program comes with the server; for other servers it is the one in the
    /// `PATH`, and `None` if there is none.
    ///
    /// # Example
    /// ```no_run
    /// # fn main() -> std::io::Result<()> {
    /// # let kubernetes: okt_apiserver::Kubernetes = unreachable!("only compiled");
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
            // Aliases of the user must not change the result of a test.
            .env("KUBECTL_KUBERC", "false");
        Some(command)
    }

    /// Kills the server with SIGKILL, as if its machine died: it finishes and answers nothing any
    /// more, and every connection breaks. Does nothing if the server is killed already.
    ///
    /// The database is killed too, and loses no acknowledged write. The outcome of a write that is
    /// in flight is unknown to the client. The controllers keep running, and find the server again
    /// after a [restart](Self::restart). A killed server leaves no process or directory behind either.
    ///
    /// # Errors
    /// The server comes from `KUBECONFIG` ([`KubernetesError::NotOurs`]), or cannot be signalled. A
    /// retry does not help.
    ///
    /// # Example
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), okt_apiserver::KubernetesError> {
    /// let mut kubernetes = okt_apiserver::Kubernetes::start().await?;
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

    /// Stops the server if it was started here, and waits until process and directory are gone.
    pub async fn stop(self) {
        // Waiting for processes blocks. The task fails only if a destructor panics, and none does.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

/// Prints a line past the capture of test output, to show why a test takes minutes.
fn report(line: &str) {
    // An error means that stderr is closed.
    let _ = writeln!(io::stderr(), "{line}");
}
