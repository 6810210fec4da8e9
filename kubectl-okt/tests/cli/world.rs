//! A cluster for the commands: the double of the API with kinds of OKT operators, and the program that talks to it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Output;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use kube::{Api, CustomResource};
use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};
use okt_apiserver::{ApiServer, Served};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// The life of a database server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseState {
    /// The data directory is made.
    #[entry]
    #[trigger(Failed, on_error(attempts = 5))]
    #[child(Running)]
    Start,

    /// Clients may connect.
    #[rest]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Servicing)]
    #[child(ReadOnly)]
    #[child(Stopping)]
    Running,

    /// A backup is under way.
    #[visit]
    #[trigger(Failed, after = "30m")]
    #[child(Running)]
    Servicing,

    /// Clients may read.
    #[rest(idle)]
    #[no_route(Running, reason = "the data may be older")]
    #[no_route(Servicing, reason = "only a running database is backed up")]
    #[child(Stopping)]
    ReadOnly,

    /// Clients are asked to leave.
    #[child(End)]
    Stopping,

    /// A person has to look.
    #[rest(hold, idle)]
    #[child(Running)]
    #[child(Stopping)]
    Failed,

    /// The server is gone.
    #[leaf(idle)]
    End,
}

/// The spec of a database.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Database",
    namespaced,
    shortname = "db",
    status = "Status<DatabaseState>"
)]
pub(crate) struct DatabaseSpec {
    /// The desired state.
    #[serde(default)]
    pub(crate) lifecycle: Desired<DatabaseState>,
}

/// Runs the program on the cluster of a kubeconfig.
pub(crate) async fn run(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-okt"));
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
    command.output().await.expect("it runs")
}

/// Returns the CRD of another kind with the same graph.
pub(crate) fn brokers() -> String {
    let crd = okt::crd::<Database>().expect("a CRD");
    let crd = serde_json::to_string(&crd).expect("JSON");
    let names = [
        ("databases", "brokers"),
        (r#""database""#, r#""broker""#),
        (r#""Database""#, r#""Broker""#),
        (r#""db""#, r#""br""#),
    ];
    names
        .iter()
        .fold(crd, |crd, (old, new)| crd.replace(old, new))
}

/// The program, and the kubeconfig with which it finds an API.
pub(crate) struct Shell {
    served: Served,
    folder: TempDir,
}

impl Shell {
    /// Serves an API on this machine.
    pub(crate) async fn of(server: &ApiServer) -> Self {
        let served = server.serve().await.expect("it listens");
        let folder = tempfile::tempdir().expect("a folder");
        let shell = Self { served, folder };
        shell.file("kubeconfig", &shell.served.kubeconfig());
        shell
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    /// Returns the path of the kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Runs the program.
    pub(crate) async fn run(&self, args: &[&str]) -> Output {
        run(&self.kubeconfig(), args).await
    }

    /// Runs a command that succeeds, and returns what it prints.
    pub(crate) async fn prints(&self, args: &[&str]) -> String {
        self.refuses(0, args).await
    }

    /// Runs a command that ends with an exit code, and returns what it prints.
    pub(crate) async fn refuses(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args).await;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned() + &errors
    }
}

/// A cluster, and the program that talks to it.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    shell: Shell,
}

impl Deref for World {
    type Target = Shell;

    fn deref(&self) -> &Shell {
        &self.shell
    }
}

impl World {
    /// Starts a cluster with the CRD of databases.
    pub(crate) async fn start() -> Self {
        let server = ApiServer::new();
        let shell = Shell::of(&server).await;
        let crds: Api<CustomResourceDefinition> = Api::all(server.client());
        let crd = okt::crd::<Database>().expect("a CRD");
        crds.create(&PostParams::default(), &crd)
            .await
            .expect("a CRD");
        Self { server, shell }
    }

    pub(crate) fn databases(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<Database>(&());
        Api::default_namespaced_with(self.server.client(), &resource)
    }

    /// Creates a database whose status is as an operator left it; `lifecycle` is that of the status.
    pub(crate) async fn database(&self, name: &str, spec: Value, status: Value) {
        let resource = ApiResource::erase::<Database>(&());
        let object =
            DynamicObject::new(name, &resource).data(json!({ "spec": { "lifecycle": spec } }));
        let api = self.databases();
        api.create(&PostParams::default(), &object)
            .await
            .expect("a database");
        if status.is_null() {
            return;
        }
        let patch = json!({
            "apiVersion": resource.api_version, "kind": resource.kind, "status": status,
        });
        let operator = PatchParams::apply("okt").force();
        api.patch_status(name, &operator, &Patch::Apply(&patch))
            .await
            .expect("a status");
    }
}

/// The status of an object that has been in a state for a long time.
#[allow(clippy::needless_pass_by_value, reason = "as `json!` gives it")]
pub(crate) fn status(lifecycle: Value, ready: (&str, &str, &str), stalled: bool) -> Value {
    let (status, reason, message) = ready;
    let condition = |name: &str, status: &str| {
        json!({
            "type": name, "status": status, "reason": reason, "message": message,
            "observedGeneration": 1, "lastTransitionTime": "2026-11-21T09:00:00Z",
        })
    };
    let mut conditions = vec![condition("Ready", status)];
    if stalled {
        conditions.push(condition("Stalled", "True"));
    }
    json!({ "observedGeneration": 1, "lifecycle": lifecycle, "conditions": conditions })
}

/// Asserts that a text has a part.
#[track_caller]
pub(crate) fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in {text}");
}

/// Returns a time nine days ago, which is printed as `9d` for a day.
pub(crate) fn long_ago() -> String {
    let ago = jiff::SignedDuration::from_hours(9 * 24 + 1);
    (jiff::Timestamp::now() - ago).to_string()
}
