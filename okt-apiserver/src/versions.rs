//! The recording of all versions of objects and of all events sent to watches.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use crate::faults::EventKind;
use crate::kind::KindId;
use crate::store::{Store, StoreChange};
use crate::stored::StoredObject;

/// A state that an object was in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Version {
    /// The resource version under which it was committed; for a deletion that of the deletion.
    pub version: u64,
    /// The time of the commit, on tokio's clock.
    pub at: Instant,
    /// Whether the object was added, modified or deleted.
    pub kind: EventKind,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource (e.g. `pods`).
    pub resource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    stored: Arc<StoredObject>,
}

/// Every state that every object was in, in the order of the commits.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::{Patch, PatchParams, PostParams}};
/// use okt_apiserver::ApiServer;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube::Error> {
/// let server = ApiServer::new();
/// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
/// let map = serde_json::from_value(json!({ "metadata": { "name": "a" }, "data": { "x": "1" } }));
/// maps.create(&PostParams::default(), &map.expect("a map")).await?;
/// for x in ["1", "2", "1"] {
///     let patch = Patch::Merge(json!({ "data": { "x": x } }));
///     maps.patch("a", &PatchParams::default(), &patch).await?;
/// }
///
/// let versions = server.versions().resource("configmaps").name("a");
/// assert_eq!(versions.course("/data/x"), ["1", "2", "1"]);
/// assert!(versions.iter().all(|version| version.object()["data"]["x"] != "3"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Versions(Vec<Version>);

impl Versions {
    pub(crate) fn of(store: &Store) -> Self {
        let versions = store.changes().into_iter();
        Self(
            versions
                .map(|(id, change)| Version::of(id, &change))
                .collect(),
        )
    }

    /// Keeps the versions of a resource: its plural, with or without its group (e.g. `pods`,
    /// `databases.demo.okt.dev`).
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        let (plural, group) = match resource.split_once('.') {
            Some((plural, group)) => (plural, Some(group)),
            None => (resource, None),
        };
        self.0.retain(|version| {
            version.resource == plural && group.is_none_or(|group| group == version.group)
        });
        self
    }

    /// Keeps the versions of objects in a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.retain(|version| version.namespace == namespace);
        self
    }

    /// Keeps the versions of objects with this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.0.retain(|version| version.name == name);
        self
    }

    /// Keeps the versions after a mark.
    #[must_use]
    pub fn since(mut self, mark: Mark) -> Self {
        self.0.retain(|version| version.version > mark.version);
        self
    }

    /// Returns the values that a field went through, without repetitions; `null` where it had none.
    ///
    /// The field is a JSON pointer (e.g. `/status/phase`).
    ///
    /// # Panics
    /// If the pointer is not empty and does not begin with a slash.
    #[track_caller]
    pub fn course(&self, field: &str) -> Vec<Value> {
        assert!(
            field.is_empty() || field.starts_with('/'),
            "a field is named by a JSON pointer (e.g. /status/phase), not by {field:?}"
        );
        let values = self.0.iter().map(|version| {
            let mut object = version.object();
            object
                .pointer_mut(field)
                .map(Value::take)
                .unwrap_or_default()
        });
        let mut course: Vec<_> = values.collect();
        course.dedup();
        course
    }

    /// Iterates over the versions.
    pub fn iter(&self) -> std::slice::Iter<'_, Version> {
        self.0.iter()
    }

    /// Returns the number of versions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no versions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Versions {
    type Item = Version;
    type IntoIter = std::vec::IntoIter<Version>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'v> IntoIterator for &'v Versions {
    type Item = &'v Version;
    type IntoIter = std::slice::Iter<'v, Version>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Version {
    /// Returns the object; for a deletion its last state.
    pub fn object(&self) -> Value {
        self.stored.read()
    }

    fn of(id: KindId, change: &StoreChange) -> Self {
        Self {
            version: change.version,
            at: change.made,
            kind: match (&change.previous, change.removed) {
                (_, true) => EventKind::Deleted,
                (Some(_), false) => EventKind::Modified,
                (None, false) => EventKind::Added,
            },
            group: id.group,
            resource: id.plural,
            namespace: change.key.namespace.clone(),
            name: change.key.name.clone(),
            stored: Arc::clone(&change.object),
        }
    }
}

/// An event that was sent to a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRecord {
    /// The time at which it was sent, on tokio's clock.
    pub at: Instant,
    /// The name of the client that watches; empty if it has none.
    pub client: String,
    /// The replica that it watches through; empty for the server itself.
    pub replica: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource (e.g. `pods`).
    pub resource: String,
    /// The namespace of the object; empty for cluster-scoped objects and bookmarks.
    pub namespace: String,
    /// The name of the object; empty for bookmarks.
    pub name: String,
    /// The type of the event.
    pub kind: EventKind,
    /// The resource version of the object or bookmark.
    pub version: u64,
}

/// A position in the recordings of a server.
///
/// # Example
/// See [`ApiServer::mark`](crate::ApiServer::mark).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub(crate) request: usize,
    pub(crate) event: usize,
    pub(crate) version: u64,
}
