//! Converts changes to the events of a watch, and schedules its bookmarks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::Instant;

use super::seen::SeenChange;
use crate::calls::WebhookCalls;
use crate::faults::EventKind;
use crate::read::{Form, Selection};
use crate::refusal::Refusal;
use crate::store::{Key, Store, StoreChange};
use crate::stored::StoredObject;
use crate::{convert, object};

/// The interval of bookmarks, if the client asks for them.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// The time between the last bookmark and the end of a watch.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

impl Selection {
    /// Returns the event of a change for this watch, or `None` if the watch does not cover it.
    ///
    /// # Errors
    /// The object cannot be converted, or only when a webhook was called.
    pub(super) fn see(
        &self,
        change: &StoreChange,
        calls: &WebhookCalls,
        store: &Store,
    ) -> Result<Option<SeenChange>, Refusal> {
        let key = &change.key;
        if !self.covers(key) {
            return Ok(None);
        }
        let new = convert::present(calls, &self.kind, &change.object);
        let previous = change.previous.as_ref();
        let old = previous.map(|old| convert::present(calls, &self.kind, old));
        let (new, old) = (new?, old.transpose()?);
        let old = old.filter(|old| self.selector.selects(key, old));
        let is_selected = !change.removed && self.selector.selects(key, &new);
        Ok(match (old, is_selected) {
            (None, false) => None,
            (None, true) => Some(self.event(EventKind::Added, key, &new, store)),
            (Some(_), true) => Some(self.event(EventKind::Modified, key, &new, store)),
            (Some(_), false) if change.removed => {
                Some(self.event(EventKind::Deleted, key, &new, store))
            }
            (Some(old), false) => {
                // An object that leaves the selection is shown in its last state, with the version of the change.
                let mut last = old.read();
                object::set_version(&mut last, change.version);
                let last = StoredObject::new(&last);
                Some(self.event(EventKind::Deleted, key, &last, store))
            }
        })
    }

    /// Returns the event of an object that existed before the watch, if the watch covers it.
    ///
    /// # Errors
    /// The object cannot be converted, or only when a webhook was called.
    pub(super) fn see_first(
        &self,
        key: &Key,
        object: &Arc<StoredObject>,
        calls: &WebhookCalls,
        store: &Store,
    ) -> Result<Option<SeenChange>, Refusal> {
        if !self.covers(key) {
            return Ok(None);
        }
        let object = convert::present(calls, &self.kind, object)?;
        let is_selected = self.selector.selects(key, &object);
        Ok(is_selected.then(|| self.event(EventKind::Added, key, &object, store)))
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
            came: Instant::now(),
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
            key: Key::new("", ""),
            version,
            shown,
            came: Instant::now(),
            // No fault may drop the bookmark that ends the initial list, because clients wait for it.
            is_decided: ends_list,
        }
    }
}

/// Returns the time of the next bookmark: each minute, and once more before the end.
pub(super) fn next_bookmark(now: Instant, ends: Option<Instant>) -> Option<Instant> {
    let next = now + BOOKMARKS;
    let last = ends.and_then(|end| end.checked_sub(LAST_BOOKMARK));
    match last {
        Some(last) if last < next => (last > now).then_some(last),
        Some(_) | None => Some(next),
    }
}
