//! A stored object: its JSON text, and the few fields that are often needed.
//!
//! A tree of JSON values takes ten times the memory of its text. So the text is kept, and the
//! store, its history, the responses and the watches share it. [`StoredObject::read`] parses it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::kind::ServedKind;
use crate::{object, types};

/// One version of an object; it never changes.
#[derive(Debug)]
pub(crate) struct StoredObject {
    json: Bytes,
    uid: Box<str>,
    /// The uids of its owners.
    owners: Box<[Box<str>]>,
    version: u64,
    deleting: bool,
    /// Its forms in other versions, which a webhook has made.
    forms: Mutex<Vec<(Arc<ServedKind>, Arc<StoredObject>)>>,
}

impl StoredObject {
    pub(crate) fn new(object: &Value) -> Self {
        let json = types::to_text(object);
        let owners = object::owners(object).iter();
        Self {
            json: Bytes::from(json.into_boxed_slice()),
            uid: object::uid(object).into(),
            owners: owners
                .map(|owner| object::text(owner, &["uid"]).into())
                .collect(),
            version: object::version(object).parse().unwrap_or_default(),
            deleting: object::is_deleting(object),
            forms: Mutex::default(),
        }
    }

    /// Returns the JSON text, to be sent as it is.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// Parses the JSON text.
    pub(crate) fn read(&self) -> Value {
        serde_json::from_slice(&self.json).expect("the text was made of a tree of JSON values")
    }

    /// Returns the resource version.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the uids of the owners.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &str> {
        self.owners.iter().map(|uid| &**uid)
    }

    /// Returns its form in a version of its kind, if a webhook has made it.
    pub(crate) fn form(&self, kind: &Arc<ServedKind>) -> Option<Arc<Self>> {
        let forms = self.forms.lock();
        let mut forms = forms.iter().filter(|(other, _)| Arc::ptr_eq(other, kind));
        forms.next().map(|(_, form)| Arc::clone(form))
    }

    /// Keeps its form in a version, instead of the one that was made for an earlier definition of the kind.
    pub(crate) fn keep_form(&self, kind: &Arc<ServedKind>, form: &Arc<Self>) {
        let mut forms = self.forms.lock();
        forms.retain(|(other, _)| other.version != kind.version);
        forms.push((Arc::clone(kind), Arc::clone(form)));
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deleting
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::StoredObject;

    #[test]
    fn read_returns_what_was_written() {
        // Numbers whose last digit a fast parser gets wrong.
        let numbers = json!([31.245_270_191_439_438, 51.248_178_375_505_404, 0.1, -1e-7]);
        let object = json!({ "kind": "Thing", "spec": { "numbers": numbers, "text": "a\"\u{1}" } });
        let text = object.to_string();
        let parsed: Value = serde_json::from_str(&text).expect("the text is JSON");
        assert_eq!(parsed, object);
        assert_eq!(StoredObject::new(&object).read(), object);
    }
}
