//! Agents in Pods: a real API server keeps the objects, and a stand-in for the node runs their containers as processes.

mod beside;
mod kubelet;
mod postgres;

use std::future::pending;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::{Api, Client};
use okt::{LifecycleObject, crd};
use okt_examples::desk::Trouble;
use okt_examples::processes;
use okt_testing::Kubernetes;
use tempfile::TempDir;

use self::kubelet::Image;

const NAMESPACE: &str = "default";

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(10);

const AGENT_IMAGE: &str = "okt-sidecar:1";

/// The directory of a node; no process that works there outlives it.
pub(crate) struct NodeDirectory(TempDir);

impl NodeDirectory {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("okt-node-")
            // The users of containers need access.
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir();
        Self(directory.expect("a directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the end of what all containers have printed.
    pub(crate) fn said(&self) -> String {
        let files = std::fs::read_dir(self.path())
            .into_iter()
            .flatten()
            .flatten();
        let logs = files.filter(|it| it.path().extension().is_some_and(|it| it == "log"));
        let read = |it: std::fs::DirEntry| std::fs::read_to_string(it.path()).unwrap_or_default();
        let all: String = logs.map(read).collect();
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }
}

impl Drop for NodeDirectory {
    fn drop(&mut self) {
        processes::end(self.path());
    }
}

/// The image of `okt-sidecar`.
pub(crate) fn agent_image() -> Image {
    Image {
        entry_point: vec![env!("CARGO_BIN_EXE_sidecar").to_owned()],
        paths: Vec::new(),
    }
}

/// Creates the CRD of a kind.
pub(crate) async fn define<K: LifecycleObject + kube::CustomResourceExt>(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = crd::<K>().expect("a CRD");
    crds.create(&PostParams::default(), &definition)
        .await
        .expect("the CRD is accepted");
    let name = definition.metadata.name.unwrap_or_default();
    await_condition(crds, &name, is_crd_established())
        .await
        .expect("it is established");
}

/// Runs an operator until it fails.
pub(crate) async fn operate<A: okt::Application>(client: Client, app: A) -> String {
    let ended = okt::Operator::new(client, app).run(pending()).await;
    format!("the operator has ended: {ended:?}")
}

/// Ends the node and the server, and fails if the life of the objects did.
pub(crate) async fn end(node: NodeDirectory, server: Kubernetes, outcome: Result<(), Trouble>) {
    let said = node.said();
    drop(node);
    server.stop().await;
    if let Err(error) = outcome {
        panic!("{error}\n{said}");
    }
}
