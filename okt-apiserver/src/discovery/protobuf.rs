//! Encodes the `OpenAPI` v2 document in protobuf, the only format in which kubectl asks for it.
//!
//! The messages are those of `openapiv2/OpenAPIv2.proto` in the repository google/gnostic-models, with the fields that
//! kubectl reads.

use serde_json::{Map, Value};

use crate::object::{text, texts};

/// Returns a document with these definitions, in the form that a real server publishes.
pub(super) fn document(definitions: &Map<String, Value>) -> Vec<u8> {
    let mut all = Message::default();
    for (name, definition) in definitions {
        let schema = schema(definition);
        all.message(1, &named(name, &schema));
    }
    let mut info = Message::default();
    info.text(1, "okt-apiserver");
    info.text(2, "v1.36.1");
    let mut document = Message::default();
    document.text(1, "2.0");
    document.message(2, &info);
    document.message(8, &Message::default());
    document.message(9, &all);
    document.0
}

/// Returns a `Schema`; a real server drops the parts that kubectl cannot read.
fn schema(value: &Value) -> Message {
    const KINDS: &str = "x-kubernetes-group-version-kind";
    let is = |key: &str| value.get(key) == Some(&Value::Bool(true));
    let is_open = is("x-kubernetes-preserve-unknown-fields");
    let is_plain = !is_open && !is("nullable");
    let items = value.get("items").filter(|_| is_plain);
    let properties = value.get("properties").filter(|_| is_plain);
    let kind = match text(value, &["type"]) {
        "object" if is_open => "",
        "array" if items.is_none() => "",
        _ if is("nullable") => "",
        kind => kind,
    };

    let mut schema = Message::default();
    schema.text(2, text(value, &["format"]));
    schema.text(4, text(value, &["description"]));
    let properties = properties.and_then(Value::as_object);
    for field in texts(value, &["required"]) {
        let below = properties.and_then(|properties| properties.get(field));
        if below.is_some_and(|below| below.get("nullable") != Some(&Value::Bool(true))) {
            schema.text(19, field);
        }
    }
    if let Some(below) = value
        .get("additionalProperties")
        .filter(|below| below.is_object())
    {
        let mut either = Message::default();
        either.message(1, &self::schema(below));
        schema.message(21, &either);
    }
    if !kind.is_empty() {
        let mut kinds = Message::default();
        kinds.text(1, kind);
        schema.message(22, &kinds);
    }
    if let Some(items) = items {
        let mut list = Message::default();
        list.message(1, &self::schema(items));
        schema.message(23, &list);
    }
    if let Some(properties) = properties {
        let mut all = Message::default();
        for (name, below) in properties {
            all.message(1, &named(name, &self::schema(below)));
        }
        schema.message(25, &all);
    }
    if let Some(kinds) = value.get(KINDS) {
        let mut any = Message::default();
        any.text(2, &kinds.to_string());
        schema.message(31, &named(KINDS, &any));
    }
    schema
}

/// Returns a pair of a name and a value.
fn named(name: &str, value: &Message) -> Message {
    let mut pair = Message::default();
    pair.text(1, name);
    pair.message(2, value);
    pair
}

/// An encoded message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Adds a text; an empty one is the default, which is not written.
    fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        const LENGTH_DELIMITED: u64 = 2;
        self.number(u64::from(field) << 3 | LENGTH_DELIMITED);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Adds a number with seven bits per byte, the lowest ones first.
    fn number(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                self.0.push(low & 0x7f);
                return;
            }
            self.0.push(low | 0x80);
        }
    }
}
