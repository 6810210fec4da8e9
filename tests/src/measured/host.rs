//! A server for two programs: the test double, served over HTTP, or a real one.

use std::any::Any;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use okt_testing::{ApiServer, FeatureGate, Kubernetes};

/// The timeout of a wait.
const LIMIT: Duration = Duration::from_mins(20);

/// A server, with access for this process and for others.
pub struct Host {
    /// The name of the server.
    pub name: String,
    /// A client of this process.
    pub client: Client,
    /// The kubeconfig for other processes.
    pub kubeconfig: PathBuf,
    /// Whether the server supports only JSON.
    pub json_only: bool,
    /// The server, which stops with the host.
    _held: Box<dyn Any>,
}

impl Host {
    /// Starts the API in this process; the directory holds its kubeconfig.
    ///
    /// # Errors
    /// The API cannot listen, or the file cannot be written.
    pub async fn double(directory: &Path) -> Result<Self, Box<dyn Error>> {
        let server = ApiServer::new();
        server.set_recording(false);
        let served = server.serve().await?;
        let kubeconfig = directory.join("kubeconfig");
        served.write_kubeconfig(&kubeconfig)?;
        Ok(Self {
            name: "the double, over HTTP".to_owned(),
            client: server.client(),
            kubeconfig,
            json_only: true,
            _held: Box::new(served),
        })
    }

    /// Starts a real API server, which filters lists and watches by ranges if `filters`.
    ///
    /// # Errors
    /// The server is not available, or it does not start.
    pub async fn real(filters: bool) -> Result<Self, Box<dyn Error>> {
        let gate = FeatureGate::ShardedListAndWatch;
        let options = Kubernetes::options().feature_gate(gate, filters);
        let server = options.start().await?;
        Ok(Self {
            name: format!("Kubernetes {}", server.version()),
            client: server.client(),
            kubeconfig: server.kubeconfig().to_owned(),
            json_only: false,
            _held: Box::new(server),
        })
    }

    /// Creates a CRD and waits until its kind is served.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn install(&self, crd: &CustomResourceDefinition) -> Result<(), Box<dyn Error>> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        crds.create(&PostParams::default(), crd).await?;
        let (spec, names) = (&crd.spec, &crd.spec.names);
        let version = spec.versions.first().ok_or("a CRD without a version")?;
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &names.kind);
        let kind = ApiResource::from_gvk_with_plural(&kind, &names.plural);
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        until(async || Ok(objects.list(&ListParams::default()).await.is_ok())).await
    }

    /// Creates an empty namespace.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn namespace(&self, name: &str) -> kube::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let params = PostParams::default();
        namespaces.create(&params, &namespace).await.map(drop)
    }
}

/// Waits until a condition holds.
///
/// # Errors
/// A check failed, or the condition did not hold within 20 minutes.
pub async fn until(
    mut is_so: impl AsyncFnMut() -> Result<bool, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let asking = async {
        while !is_so().await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    tokio::time::timeout(LIMIT, asking).await?
}
