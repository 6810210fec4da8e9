//! Starts API servers and waits until they work.

use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Config};
use serde_json::json;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::process::{Processes, ServerProcess};
use super::source::{self, ServerSource, on_path};
use super::{Kubectl, Kubernetes, KubernetesError, KubernetesOptions, build, report};

/// How long each step of the start may take. It normally takes seconds; a busy machine takes longer.
const LIMIT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_millis(25);
/// How often to try with other ports if another program took one before the server did.
const TRIES: usize = 5;

impl Kubernetes {
    /// Starts a server (or uses the one of `KUBECONFIG`) and waits until it works, including garbage
    /// collection. Takes seconds; the first time with Go it takes minutes.
    ///
    /// # Errors
    /// There is nothing to run ([`KubernetesError::is_missing`]), the server cannot be built, or it
    /// does not work within ten minutes. The error contains the last output. A retry helps only if
    /// the machine was too busy.
    ///
    /// # Example
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), okt_apiserver::KubernetesError> {
    /// let kubernetes = okt_apiserver::Kubernetes::start().await?;
    /// println!("{} at {}", kubernetes.version(), kubernetes.config().cluster_url);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start() -> Result<Self, KubernetesError> {
        Self::options().start().await
    }

    /// Starts a server as [`start`](Self::start) does. If there is nothing to run, prints a line
    /// that `what` is skipped, and returns `None`.
    ///
    /// # Errors
    /// As for `start`. If `CI` is set in the environment (neither empty nor `false`), a missing
    /// server is also an error, so that CI does not skip tests silently.
    pub async fn start_or_skip(what: &str) -> Result<Option<Self>, KubernetesError> {
        Self::options().start_or_skip(what).await
    }

    /// Restarts the server and waits until it is ready: with its data, at the same address, with the
    /// same token, certificate and feature gates, so that clients and kubeconfigs stay valid. A running server is
    /// killed first.
    ///
    /// Open watches have to start anew, usually with a list, because the server has lost its watch
    /// history. Garbage collection may resume only half a minute later: the controllers wait between
    /// their attempts to reach the server.
    ///
    /// # Errors
    /// As for [`kill`](Self::kill), or the server is not ready within ten minutes; then a retry
    /// helps if the machine was too busy.
    pub async fn restart(&mut self) -> Result<(), KubernetesError> {
        self.processes.kill()?;
        self.processes.restart()?;
        let client = Client::try_from(self.config.clone())?;
        ready(&client, &mut self.processes).await
    }
}

impl KubernetesOptions {
    /// Starts a server with these options, as [`Kubernetes::start`] does.
    ///
    /// # Errors
    /// As for `Kubernetes::start`, or the server comes from `KUBECONFIG` and has other feature gates
    /// ([`KubernetesError::FeatureGate`]). An older server from `KUBEBUILDER_ASSETS` ends at once if
    /// it does not know a gate.
    pub async fn start(self) -> Result<Kubernetes, KubernetesError> {
        let environment = source::Environment::read();
        let mut notice = None;
        let source = source::choose(&environment, &mut notice);
        if let Some(notice) = notice {
            report(&notice);
        }
        match source? {
            ServerSource::Given { kubeconfig } => given(*kubeconfig, &self).await,
            ServerSource::Assets { directory } => assets(&directory, &self).await,
            ServerSource::Program { program: built } => program(&built, &self).await,
            ServerSource::Go { go, cache } => {
                let building = tokio::task::spawn_blocking(move || build::program(&go, &cache));
                let built = building.await.map_err(io::Error::other)??;
                program(&built, &self).await
            }
        }
    }

    /// Starts a server with these options, as [`Kubernetes::start_or_skip`] does.
    ///
    /// # Errors
    /// As for [`start`](Self::start); a missing server is an error only in CI.
    pub async fn start_or_skip(self, what: &str) -> Result<Option<Kubernetes>, KubernetesError> {
        match self.start().await {
            Ok(kubernetes) => Ok(Some(kubernetes)),
            Err(error) if error.is_missing() && !source::in_ci() => {
                report(&format!("skipped: {what}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Uses a cluster that runs elsewhere.
async fn given(
    kubeconfig: Kubeconfig,
    options: &KubernetesOptions,
) -> Result<Kubernetes, KubernetesError> {
    let directory = directory()?;
    let file = directory.path().join("kubeconfig");
    // Merged from all files of KUBECONFIG, with the chosen context.
    let text = serde_json::to_string(&kubeconfig).map_err(io::Error::other)?;
    write_secret(&file, &text)?;
    let kubectl = on_path("kubectl").map(|program| Kubectl {
        program,
        argument: None,
    });
    // The guard removes the file, because it contains the user's credentials.
    let processes = Processes::new(Vec::new(), directory.path())?;
    let kubernetes = finish(directory, file, processes, kubectl, true).await?;
    if options.flag().is_some() {
        let request = http::Request::get("/metrics")
            .body(Vec::new())
            .map_err(io::Error::other)?;
        let client = Client::try_from(kubernetes.config.clone())?;
        if let Some((gate, on)) = options.differing(&client.request_text(request).await?) {
            return Err(KubernetesError::FeatureGate { gate, on });
        }
    }
    Ok(kubernetes)
}

/// Runs the program that `okt-apiserver/kubernetes` builds.
async fn program(
    program: &Path,
    options: &KubernetesOptions,
) -> Result<Kubernetes, KubernetesError> {
    let directory = directory()?;
    let file = directory.path().join("kubeconfig");
    let mut command = Command::new(program);
    command
        .args(["server", "--dir"])
        .arg(directory.path())
        .args(options.flag());
    let server = ServerProcess::start("kubernetes server", command)?;
    let mut processes = Processes::new(vec![server], directory.path())?;
    until(
        "the server did not choose a port",
        &mut processes,
        async || Ok(file.exists()),
    )
    .await?;
    let kubectl = Kubectl {
        program: program.to_owned(),
        argument: Some("kubectl"),
    };
    let mut kubernetes = finish(directory, file, processes, Some(kubectl), false).await?;
    let mut command = Command::new(program);
    command
        .args(["controllers", "--kubeconfig"])
        .arg(&kubernetes.kubeconfig);
    control(
        &mut kubernetes,
        ServerProcess::start("kubernetes controllers", command)?,
    )
    .await?;
    Ok(kubernetes)
}

/// Runs the programs of `KUBEBUILDER_ASSETS`.
async fn assets(assets: &Path, options: &KubernetesOptions) -> Result<Kubernetes, KubernetesError> {
    let mut tries = 1;
    let mut kubernetes = loop {
        match start_assets(assets, options).await {
            Err(KubernetesError::Ended { log, .. })
                if tries < TRIES && log.contains("address already in use") =>
            {
                tries += 1;
            }
            outcome => break outcome?,
        }
    };
    let manager = assets.join("kube-controller-manager");
    if manager.is_file() {
        let mut command = Command::new(manager);
        command
            .arg("--kubeconfig")
            .arg(&kubernetes.kubeconfig)
            .args([
                "--controllers=garbage-collector-controller,namespace-controller",
                "--leader-elect=false",
                "--secure-port=0",
            ]);
        let process = ServerProcess::start_watched("kube-controller-manager", &command)?;
        control(&mut kubernetes, process).await?;
    }
    Ok(kubernetes)
}

async fn start_assets(
    assets: &Path,
    options: &KubernetesOptions,
) -> Result<Kubernetes, KubernetesError> {
    let directory = directory()?;
    let own = directory.path();
    let [clients, peers, port] = free_ports()?;
    let (clients, peers) = (
        format!("http://127.0.0.1:{clients}"),
        format!("http://127.0.0.1:{peers}"),
    );
    let mut etcd = Command::new(assets.join("etcd"));
    etcd.arg("--data-dir").arg(own.join("etcd")).args([
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
    ]);
    let certificates = own.join("certificates");
    let key = certificates.join("apiserver.key");
    let tokens = own.join("tokens.csv");
    let token = token()?;
    write_secret(
        &tokens,
        &format!("{token},admin,admin,\"system:masters\"\n"),
    )?;
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let mut server = Command::new(assets.join("kube-apiserver"));
    server.args([
        format!("--etcd-servers={clients}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        flag("cert-dir", &certificates),
        flag("token-auth-file", &tokens),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        flag("service-account-key-file", &key),
        flag("service-account-signing-key-file", &key),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--max-requests-inflight=4000".to_owned(),
        "--max-mutating-requests-inflight=2000".to_owned(),
    ]);
    server.args(options.flag());
    let servers = vec![
        ServerProcess::start_watched("kube-apiserver", &server)?,
        ServerProcess::start_watched("etcd", &etcd)?,
    ];
    let mut processes = Processes::new(servers, own)?;
    let certificate = certificates.join("apiserver.crt");
    until(
        "the server made no certificate",
        &mut processes,
        async || Ok(certificate.exists() && key.exists()),
    )
    .await?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "okt", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority": certificate,
        } }],
        "users": [{ "name": "okt", "user": { "token": token } }],
        "contexts": [{ "name": "okt", "context": { "cluster": "okt", "user": "okt", "namespace": "default" } }],
        "current-context": "okt",
    });
    let file = own.join("kubeconfig");
    write_secret(&file, &kubeconfig.to_string())?;
    let kubectl = Some(assets.join("kubectl"))
        .filter(|kubectl| kubectl.is_file())
        .or_else(|| on_path("kubectl"))
        .map(|program| Kubectl {
            program,
            argument: None,
        });
    finish(directory, file, processes, kubectl, false).await
}

/// Waits until the server works.
async fn finish(
    directory: tempfile::TempDir,
    kubeconfig: PathBuf,
    mut processes: Processes,
    kubectl: Option<Kubectl>,
    collects_garbage: bool,
) -> Result<Kubernetes, KubernetesError> {
    let read = Kubeconfig::read_from(&kubeconfig)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config.clone())?;
    ready(&client, &mut processes).await?;
    let version = client.apiserver_version().await?.git_version;
    Ok(Kubernetes {
        config,
        version,
        kubectl,
        collects_garbage,
        processes,
        kubeconfig,
        directory,
    })
}

/// Waits until a started or restarted server is ready.
async fn ready(client: &Client, processes: &mut Processes) -> Result<(), KubernetesError> {
    until("the server was not ready", processes, async || {
        // kube reports each answer that is no yes as an error.
        Ok(is_ready(client).with_subscriber(NoSubscriber::new()).await)
    })
    .await
}

/// Returns whether the server is ready and has the namespace `default`, which it creates a moment later.
async fn is_ready(client: &Client) -> bool {
    for path in ["/readyz", "/api/v1/namespaces/default"] {
        let Ok(request) = http::Request::get(path).body(Vec::new()) else {
            return false;
        };
        if client.request_text(request).await.is_err() {
            return false;
        }
    }
    true
}

/// Adds the controllers, and waits until they delete an object whose owner does not exist.
async fn control(
    kubernetes: &mut Kubernetes,
    process: ServerProcess,
) -> Result<(), KubernetesError> {
    kubernetes.processes.controllers = Some(process);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let client = Client::try_from(kubernetes.config.clone())?;
    let api = Api::<DynamicObject>::namespaced_with(client, "default", &resource);
    let name = "okt-is-garbage-collected";
    let orphan = json!({ "metadata": { "name": name, "ownerReferences": [
        { "apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nobody" },
    ] } });
    let orphan = serde_json::from_value(orphan).map_err(io::Error::other)?;
    api.create(&PostParams::default(), &orphan).await?;
    until(
        "the controllers collected no garbage",
        &mut kubernetes.processes,
        async || Ok(api.get_opt(name).await?.is_none()),
    )
    .await?;
    kubernetes.collects_garbage = true;
    Ok(())
}

/// Polls until the condition holds, a process has ended or the time is up.
async fn until(
    what: &str,
    processes: &mut Processes,
    mut done: impl AsyncFnMut() -> Result<bool, KubernetesError>,
) -> Result<(), KubernetesError> {
    let since = Instant::now();
    loop {
        processes.check()?;
        if done().await? {
            return Ok(());
        }
        if since.elapsed() > LIMIT {
            return Err(KubernetesError::Late {
                what: what.to_owned(),
                seconds: LIMIT.as_secs(),
                log: processes.log(),
            });
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Creates a private directory with a short path: it holds Unix sockets, which have no other protection.
fn directory() -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("okt-kubernetes-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}

/// Writes a file that only its owner can read.
fn write_secret(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(text.as_bytes())
}

fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// The ports that are tried: below those that Linux gives to clients.
const PORTS: Range<u64> = 16_384..32_768;

/// Returns free ports of this machine, for programs that take no listener and cannot say which port they have.
///
/// No client is given one of them, so only a program that wants exactly this port takes it before the other does.
///
/// # Errors
/// All ports between 16384 and 32767 seem to be in use.
///
/// # Example
/// ```
/// let [webhooks, metrics] = okt_apiserver::free_ports()?;
/// assert_ne!(webhooks, metrics);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    // All are held until all are known, otherwise they could be the same.
    let mut held = Vec::new();
    let random = RandomState::new();
    let mut tries = (0_u64..10_000).map(|number| {
        let port = PORTS.start + random.hash_one(number) % (PORTS.end - PORTS.start);
        TcpListener::bind((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap_or_default()))
    });
    for port in &mut ports {
        let listener = tries.find_map(Result::ok);
        let listener = listener.ok_or_else(|| io::Error::other("no port is free"))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
