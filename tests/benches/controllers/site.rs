//! This file is a server with parcels on it: the double, served over HTTP, or a real one.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, Client};
use okt_runtime::{Desired, crd};
use okt_testing::{ApiServer, Kubernetes};
use serde_json::Value;

use crate::with_okt::{Parcel, ParcelSpec};

/// How long anything may take that is waited for.
const LIMIT: Duration = Duration::from_mins(20);

/// A server, and how to reach it from this process and from others.
pub(crate) struct Site {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) kubeconfig: PathBuf,
    /// What ends with the site.
    _held: Box<dyn std::any::Any>,
}

impl Site {
    /// The API in this process.
    pub(crate) async fn double(directory: &Path) -> Result<Self, Box<dyn Error>> {
        let server = ApiServer::new();
        server.set_recording(false);
        let served = server.serve().await?;
        let kubeconfig = directory.join("kubeconfig");
        served.write_kubeconfig(&kubeconfig)?;
        Self::with(Self {
            name: "the double, over HTTP".to_owned(),
            client: server.client(),
            kubeconfig,
            _held: Box::new(served),
        })
        .await
    }

    /// A real API server beside this process.
    pub(crate) async fn real() -> Result<Self, Box<dyn Error>> {
        let server = Kubernetes::start().await?;
        Self::with(Self {
            name: format!("Kubernetes {}", server.version()),
            client: server.client(),
            kubeconfig: server.kubeconfig().to_owned(),
            _held: Box::new(server),
        })
        .await
    }

    /// One CRD serves both controllers, so that the server has the same to do for them.
    async fn with(self) -> Result<Self, Box<dyn Error>> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        crds.create(&PostParams::default(), &crd::<Parcel>()?)
            .await?;
        let parcels: Api<Parcel> = Api::all(self.client.clone());
        until(async || Ok(parcels.list(&ListParams::default()).await.is_ok())).await?;
        Ok(self)
    }

    /// A namespace without parcels.
    pub(crate) async fn namespace(&self, name: &str) -> Result<Parcels, Box<dyn Error>> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await?;
        let kind = ApiResource::erase::<Parcel>(&());
        Ok(Parcels {
            namespace: name.to_owned(),
            api: Api::namespaced(self.client.clone(), name),
            json: Api::namespaced_with(self.client.clone(), name, &kind),
        })
    }
}

/// The parcels of one namespace.
pub(crate) struct Parcels {
    pub(crate) namespace: String,
    api: Api<Parcel>,
    /// The same as whoever wrote them sees them.
    json: Api<DynamicObject>,
}

impl Parcels {
    /// Creates those with these numbers, 16 at once.
    pub(crate) async fn create(&self, numbers: std::ops::Range<usize>) -> kube::Result<()> {
        stream::iter(numbers)
            .map(|number| async move {
                let parcel = parcel(number);
                self.api.create(&PostParams::default(), &parcel).await
            })
            .buffer_unordered(16)
            .try_for_each(|_| std::future::ready(Ok(())))
            .await
    }

    /// Deletes all of them in one request.
    pub(crate) async fn delete(&self) -> kube::Result<()> {
        let (delete, list) = (DeleteParams::default(), ListParams::default());
        self.api.delete_collection(&delete, &list).await.map(drop)
    }

    pub(crate) async fn are_gone(&self) -> Result<(), Box<dyn Error>> {
        until(async || {
            let left = self.json.list(&ListParams::default().limit(1)).await?;
            Ok(left.items.is_empty())
        })
        .await
    }

    /// Whether every one of so many has arrived.
    pub(crate) async fn have_arrived(&self, count: usize) -> Result<bool, Box<dyn Error>> {
        let (mut arrived, mut page) = (0, ListParams::default().limit(500));
        loop {
            let list = self.json.list(&page).await?;
            let delivered = |parcel: &&DynamicObject| {
                let state = parcel.data.pointer("/status/lifecycle/state");
                state.and_then(Value::as_str) == Some("Delivered")
            };
            arrived += list.items.iter().filter(delivered).count();
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page.continue_token = Some(token),
                None => return Ok(arrived == count),
            }
        }
    }

    /// How many bytes of JSON one of them has, without and with its managed fields.
    pub(crate) async fn size(&self) -> Result<(usize, usize), Box<dyn Error>> {
        let mut parcel = self.json.get(&name(0)).await?;
        let full = serde_json::to_vec(&parcel)?.len();
        parcel.metadata.managed_fields = None;
        Ok((serde_json::to_vec(&parcel)?.len(), full))
    }
}

fn name(number: usize) -> String {
    format!("parcel-{number:06}")
}

fn parcel(number: usize) -> Parcel {
    let mut parcel = Parcel::new(
        &name(number),
        ParcelSpec {
            lifecycle: Desired::default(),
            recipient: format!("The caretaker of the town hall, room {number}"),
            address: "12 Cellar Street, behind the fountain, Springfield".to_owned(),
            grams: 1_250,
        },
    );
    let labels = [("town".to_owned(), "springfield".to_owned())];
    parcel.metadata.labels = Some(labels.into());
    parcel
}

/// Asks again and again until it is so.
pub(crate) async fn until(
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
