//! The limits of operators: who has their places.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use okt_wire::keys::{MAX_KEY, PLACES_LABEL};
use okt_wire::places::{LimitKey, LimitTable};
use serde_json::json;

/// The places of a limit in a group of objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitView {
    /// The limit and the group.
    pub key: LimitKey,
    /// The places.
    pub table: LimitTable,
    namespace: String,
    lease: String,
    uid: String,
}

impl LimitView {
    /// Returns the limits of all operators.
    ///
    /// # Errors
    ///
    /// If leases cannot be listed. A retry helps if the API server did not answer.
    pub async fn all(client: &Client) -> Result<Vec<Self>, kube::Error> {
        let leases: Api<Lease> = Api::all(client.clone());
        let labelled = ListParams::default().labels(PLACES_LABEL);
        let leases = leases.list(&labelled).await?.items;
        let mut all: Vec<Self> = leases.iter().filter_map(Self::of).collect();
        all.sort_by(|a, b| (&a.key, &a.namespace).cmp(&(&b.key, &b.namespace)));
        Ok(all)
    }

    fn of(lease: &Lease) -> Option<Self> {
        let (key, table) = LimitTable::read(lease)?;
        let meta = &lease.metadata;
        Some(Self {
            key,
            table,
            namespace: meta.namespace.clone()?,
            lease: meta.name.clone()?,
            uid: meta.uid.clone()?,
        })
    }

    /// Returns the arguments by which a command names it.
    pub fn arguments(&self) -> String {
        let kind = &self.key.crd;
        let name = self.key.to_string().replacen('/', " ", 1);
        format!("{name} --kind {kind}")
    }

    /// Returns how many objects may have a place, if it is known.
    pub fn number(&self) -> Option<u32> {
        self.table.max.or(self.table.number)
    }

    /// Sets how many objects may have a place; none is what the code of the operator says.
    ///
    /// # Errors
    ///
    /// If the lease cannot be changed. A retry helps if the API server did not answer.
    pub async fn set_max(&self, client: &Client, max: Option<u32>) -> Result<(), kube::Error> {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &self.namespace);
        let max = max.map(|max| max.to_string());
        let patch = json!({ "metadata": { "uid": self.uid, "annotations": { (MAX_KEY): max } } });
        let patch = Patch::Merge(patch);
        leases
            .patch(&self.lease, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }
}
