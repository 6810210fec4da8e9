//! [`FeatureGate`]: a feature of Kubernetes that is off by default.

use std::fmt;

/// A feature of Kubernetes that is off by default, in this API and in a real server.
///
/// [`ApiServer::set_feature_gate`](crate::ApiServer::set_feature_gate) turns it on here, and
/// `KubernetesOptions::feature_gate` (of the feature `kubernetes` of this crate) in a real server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FeatureGate {
    /// The parameter `shardSelector` of lists, watches and deletions of collections, by which each
    /// replica of an operator gets a part of the objects (KEP-5866; alpha in Kubernetes 1.36).
    ///
    /// Without the gate the parameter is ignored, whatever its text is.
    /// With it the following holds, measured on kube-apiserver 1.36.1 and the same here:
    ///
    /// | request | answer |
    /// |---|---|
    /// | list, watch, deletion of a collection | only objects whose hash is in a range: 64-bit FNV-1a of the field's text, from the start of the range to before its end |
    /// | `object.metadata.uid`, `object.metadata.namespace` | the fields that can be hashed; a cluster-scoped object has the empty namespace |
    /// | ranges joined by `\|\|` | objects of any of them, each once; all ranges use the same field |
    /// | a selector that is wrong | 500 without a reason, not 400: `invalid shard selector: ..` |
    /// | an empty selector; one of spaces | all objects; 500 |
    /// | with label and field selectors | objects that all of them select |
    /// | `limit` | pages filled from the ranges; the last page may be empty; `remainingItemCount` is too large, because it counts objects outside of the ranges |
    /// | a list of a built-in kind | `metadata.shardInfo.selector` has the selector that was applied, in one format |
    /// | a list of custom resources; any list as a table or of metadata only | no `shardInfo`: only the objects show whether the server has the gate |
    /// | a watch | bookmarks, also the one that ends a streamed list, have the version of all objects |
    /// | a get, create, update, patch, or deletion of one object | the parameter is ignored |
    ///
    /// FNV-1a hardly mixes the last characters of a text into the first bits of the hash:
    /// namespaces `team-1`, `team-2`, .. are nearly all in the same range.
    ///
    /// # Example
    /// ```
    /// use http::Request;
    /// use k8s_openapi::{List, api::core::v1::ConfigMap};
    /// use kube::{Api, api::PostParams};
    /// use okt_apiserver::{ApiServer, FeatureGate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), kube::Error> {
    /// let server = ApiServer::new();
    /// server.set_feature_gate(FeatureGate::ShardedListAndWatch, true);
    /// let client = server.client();
    /// let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    /// for name in ["a", "b", "c", "d"] {
    ///     let mut map = ConfigMap::default();
    ///     map.metadata.name = Some(name.to_owned());
    ///     maps.create(&PostParams::default(), &map).await?;
    /// }
    ///
    /// let mut count = 0;
    /// for (start, end) in [
    ///     ("0x0000000000000000", "0x8000000000000000"),
    ///     ("0x8000000000000000", "0x10000000000000000"),
    /// ] {
    ///     // Spaces would have to be encoded.
    ///     let selector = format!("shardRange(object.metadata.uid,'{start}','{end}')");
    ///     let path = format!("/api/v1/configmaps?shardSelector={selector}");
    ///     let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    ///     let half: List<ConfigMap> = client.request(request).await?;
    ///     count += half.items.len();
    /// }
    /// assert_eq!(count, 4);
    /// # Ok(())
    /// # }
    /// ```
    ShardedListAndWatch,
    /// The kind `StorageVersionMigration`, which brings the stored objects of a kind to its present version (KEP-4192;
    /// beta in Kubernetes 1.36). A real server serves `storagemigration.k8s.io/v1beta1` with it, and its controllers
    /// run; this API does not have the kind.
    StorageVersionMigrator,
}

impl FeatureGate {
    /// Returns the name as in the flag `--feature-gates` (e.g. `ShardedListAndWatch`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ShardedListAndWatch => "ShardedListAndWatch",
            Self::StorageVersionMigrator => "StorageVersionMigrator",
        }
    }
}

impl fmt::Display for FeatureGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
