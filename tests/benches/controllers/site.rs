//! A server with parcels: the test double, served over HTTP, or a real one.

use std::error::Error;
use std::path::Path;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use okt::{Desired, crd};
use okt_tests::measured::{Host, until};
use serde_json::{Value, json};

use crate::with_okt::{Parcel, ParcelSpec};

/// A server with the CRD of parcels.
pub(crate) struct Site(pub(crate) Host);

impl Site {
    /// Starts the API in this process.
    pub(crate) async fn double(directory: &Path) -> Result<Self, Box<dyn Error>> {
        Self::with(Host::double(directory).await?).await
    }

    /// Starts a real API server, which filters lists and watches by ranges if `filters`.
    pub(crate) async fn real(filters: bool) -> Result<Self, Box<dyn Error>> {
        Self::with(Host::real(filters).await?).await
    }

    /// Installs one CRD for both controllers, so that the server does the same work for them.
    async fn with(host: Host) -> Result<Self, Box<dyn Error>> {
        host.install(&crd::<Parcel>()?).await?;
        Ok(Self(host))
    }

    /// Creates a namespace without parcels.
    pub(crate) async fn namespace(&self, name: &str) -> Result<Parcels, Box<dyn Error>> {
        self.0.namespace(name).await?;
        let kind = ApiResource::erase::<Parcel>(&());
        Ok(Parcels {
            namespace: name.to_owned(),
            api: Api::namespaced(self.0.client.clone(), name),
            json: Api::namespaced_with(self.0.client.clone(), name, &kind),
        })
    }
}

/// The parcels of one namespace.
pub(crate) struct Parcels {
    pub(crate) namespace: String,
    api: Api<Parcel>,
    /// The same objects, in the JSON that their writer stored.
    json: Api<DynamicObject>,
}

impl Parcels {
    /// Creates the parcels with these numbers, 16 at once.
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

    /// Creates the parcels with these numbers as the operator has left parcel 0, 16 at once: with two writes of each
    /// instead of five, because a real server takes half an hour for these.
    pub(crate) async fn copy(&self, numbers: std::ops::Range<usize>) -> kube::Result<()> {
        let mut first = self.json.get(&name(0)).await?;
        // The rules of the CRD let an object begin anywhere only by a jump; this is what the operator records after one.
        let lifecycle = &mut first.data["status"]["lifecycle"];
        lifecycle["jumps"] = json!(1);
        lifecycle["rounds"] = json!(0);
        lifecycle["desired"]["transition"] = lifecycle["transition"].clone();
        let (finalizers, status) = (&first.metadata.finalizers, &first.data["status"]);
        let apply = &PatchParams::apply(okt::FIELD_MANAGER).force();
        stream::iter(numbers)
            .map(|number| async move {
                let mut parcel = parcel(number);
                parcel.metadata.finalizers.clone_from(finalizers);
                self.api.create(&PostParams::default(), &parcel).await?;
                let status = Patch::Apply(json!({
                    "apiVersion": "bench.okt.dev/v1",
                    "kind": "Parcel",
                    "status": status,
                }));
                self.json.patch_status(&name(number), apply, &status).await
            })
            .buffer_unordered(16)
            .try_for_each(|_| std::future::ready(Ok(())))
            .await
    }

    /// Sets an annotation of the parcels with these numbers, 16 at once; each `mark` is another change.
    pub(crate) async fn touch(
        &self,
        numbers: std::ops::Range<usize>,
        mark: &str,
    ) -> kube::Result<()> {
        let patch = json!({ "metadata": { "annotations": { "touched": mark } } });
        let patch = &Patch::Merge(patch);
        stream::iter(numbers)
            .map(|number| async move {
                let params = PatchParams::default();
                self.json
                    .patch_metadata(&name(number), &params, patch)
                    .await
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

    /// Whether this number of parcels has arrived.
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

    /// Returns the size of a parcel in bytes of JSON, without and with its managed fields.
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
