//! Caches that are filled by hand, for tests of handlers.

use okt_wire::object::LifecycleObject;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::declared::Declared;
use super::index::Side;
use super::kept::Kept;
use super::owner::Owner;
use super::stamp::Stamper;
use super::watches::Watches;

/// The objects in a cache that is filled by hand, as JSON.
#[derive(Default)]
pub(crate) struct Filling {
    pub(crate) owned: Vec<Value>,
    pub(crate) referred: Vec<Value>,
}

impl Cluster {
    /// Creates caches in which every kind is listed, and which hold these objects.
    ///
    /// # Errors
    ///
    /// Why an object cannot be owned by `owner`, or referred to.
    pub(crate) fn filled<K: LifecycleObject>(
        watches: Watches<K>,
        namespaced: bool,
        owner: Owner<'_>,
        filling: Filling,
    ) -> Result<Self, String> {
        let cluster = Self::new(watches, namespaced, None);
        let mut objects = Vec::new();
        for object in &filling.owned {
            objects.push(cluster.given_owned(owner, object)?);
        }
        for object in filling.referred {
            objects.push(cluster.given_referred(owner, object)?);
        }
        cluster.fill(objects);
        Ok(cluster)
    }

    /// Returns an owned object as it would be after OKT had applied it.
    fn given_owned(&self, owner: Owner<'_>, object: &Value) -> Result<(Side, Kept), String> {
        let stamper = Stamper {
            owner,
            kinds: &self.watches.owned,
            identity: &self.identity,
            namespace: None,
        };
        let stamped = stamper.stamped(&Declared::dynamic(object.clone()));
        let applied = stamped.map_err(|failure| failure.message().to_owned())?;
        let mut body = applied.body;
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
        ] {
            if let Some(value) = object["metadata"].get(field) {
                body["metadata"][field] = value.clone();
            }
        }
        if let Some(status) = object.get("status") {
            body["status"] = status.clone();
        }
        body["metadata"]["managedFields"] = json!([{
            "manager": self.identity.manager,
            "operation": "Apply",
            "apiVersion": body["apiVersion"],
            "fieldsType": "FieldsV1",
            "fieldsV1": {},
        }]);
        Ok((Side::Owned(applied.key.0), kept(&body)?))
    }

    fn given_referred(&self, owner: Owner<'_>, mut object: Value) -> Result<(Side, Kept), String> {
        let word = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (word("apiVersion"), word("kind"));
        let found = self
            .watches
            .referred
            .iter()
            .position(|it| it.kind.is(&api_version, &kind));
        let number =
            found.ok_or_else(|| format!("`watches` declares no references to {kind} objects"))?;
        if self.watches.referred[number].kind.namespaced
            && object["metadata"].get("namespace").is_none()
        {
            object["metadata"]["namespace"] = json!(owner.meta.namespace);
        }
        Ok((Side::Referred(number), kept(&object)?))
    }
}

fn kept(object: &Value) -> Result<Kept, String> {
    serde_json::from_str(&object.to_string()).map_err(|error| error.to_string())
}
