//! Converts changes to the events of a watch.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::seen::SeenChange;
use crate::api::faults::EventKind;
use crate::api::kind::ServedKind;
use crate::api::read::Form;
use crate::api::selector::Selector;
use crate::api::store::{Key, Store, StoreChange};
use crate::api::stored::StoredObject;
use crate::api::{convert, object};

/// The scope of a watch, and the format of its events.
pub(super) struct Lens {
    pub(super) kind: Arc<ServedKind>,
    pub(super) namespace: Option<String>,
    pub(super) selector: Selector,
    pub(super) form: Form,
}

impl Lens {
    pub(super) fn covers(&self, namespace: &str) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|wanted| wanted == namespace)
    }

    /// Returns the event of a change for this watch, or `None` if the watch does not cover it.
    pub(super) fn see(&self, change: &StoreChange, store: &Store) -> Option<SeenChange> {
        if !self.covers(&change.key.namespace) {
            return None;
        }
        let new = convert::present(&self.kind, &change.object);
        let old = change
            .previous
            .as_ref()
            .map(|old| convert::present(&self.kind, old));
        let was = old
            .as_ref()
            .is_some_and(|old| self.selector.selects(&change.key, old));
        let is = !change.removed && self.selector.selects(&change.key, &new);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.event(EventKind::Added, &change.key, &new, store)),
            (true, true) => Some(self.event(EventKind::Modified, &change.key, &new, store)),
            (true, false) if change.removed => {
                Some(self.event(EventKind::Deleted, &change.key, &new, store))
            }
            (true, false) => {
                // An object that leaves the selection is shown in its last state, with the version of the change.
                let mut last = old?.read();
                object::set_version(&mut last, change.version);
                let last = StoredObject::new(&last);
                Some(self.event(EventKind::Deleted, &change.key, &last, store))
            }
        }
    }

    /// Returns the event of an object that existed before the watch, if the watch covers it.
    pub(super) fn see_first(
        &self,
        key: &Key,
        object: &Arc<StoredObject>,
        store: &Store,
    ) -> Option<SeenChange> {
        let object = convert::present(&self.kind, object);
        (self.covers(&key.namespace) && self.selector.selects(key, &object))
            .then(|| self.event(EventKind::Added, key, &object, store))
    }

    fn event(
        &self,
        kind: EventKind,
        key: &Key,
        object: &StoredObject,
        store: &Store,
    ) -> SeenChange {
        SeenChange {
            kind,
            key: key.clone(),
            version: object.version(),
            shown: self.form.show(&self.kind, object, store),
            is_decided: false,
        }
    }

    pub(super) fn bookmark(&self, version: u64, ends_list: bool, store: &Store) -> SeenChange {
        let mut object = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(),
            "metadata": { "resourceVersion": version.to_string(), "creationTimestamp": null },
        });
        if ends_list {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let shown = match self.form {
            Form::Whole | Form::Metadata => {
                self.form
                    .show(&self.kind, &StoredObject::new(&object), store)
            }
            Form::Table(_) => {
                let table = json!({
                    "kind": "Table",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": object["metadata"],
                    "columnDefinitions": [],
                    "rows": [],
                });
                Bytes::from(table.to_string())
            }
        };
        SeenChange {
            kind: EventKind::Bookmark,
            key: Key {
                namespace: String::new(),
                name: String::new(),
            },
            version,
            shown,
            // No fault may drop the bookmark that ends the initial list, because clients wait for it.
            is_decided: ends_list,
        }
    }
}
