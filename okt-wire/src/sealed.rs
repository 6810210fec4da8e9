//! A value in a status that only the operator writes: a checksum shows whether somebody else has changed it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::{revision_hash, text};

/// A value in a status that only the operator writes, and its checksum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sealed {
    /// The value.
    pub value: Value,
    /// A hash of the value. Who removes it accepts the value as it is, and the operator seals it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<String>,
}

impl Sealed {
    /// Seals a value.
    ///
    /// # Errors
    ///
    /// Why the value cannot be written as JSON; a retry does not help.
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::to_value(value).map(Self::new)
    }

    /// Seals a value.
    pub fn new(value: Value) -> Self {
        let value = canonical(value);
        let sum = Some(sum(&value));
        Self { value, sum }
    }

    /// Returns whether nobody else has changed the value, or whoever did has removed the checksum.
    pub fn is_intact(&self) -> bool {
        let is_own = |recorded: &String| *recorded == sum(&canonical(self.value.clone()));
        self.sum.as_ref().is_none_or(is_own)
    }

    /// Returns how long the value is as JSON, in bytes.
    pub fn len(&self) -> usize {
        self.value.to_string().len()
    }

    /// Returns whether the value is empty.
    pub fn is_empty(&self) -> bool {
        self.value == Value::Object(Map::new())
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// Why it does not decode, or which of its fields this type does not have: they would be lost with the next write.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        let mut unknown = None;
        let read = serde_ignored::deserialize(&self.value, |path| {
            unknown.get_or_insert_with(|| path.to_string());
        });
        match (
            read.map_err(|error: serde_json::Error| error.to_string()),
            unknown,
        ) {
            (Ok(_), Some(field)) => Err(format!("this release does not know the field `{field}`")),
            (read, _) => read,
        }
    }
}

/// Returns a value as the API server stores it: without fields that are null, and a whole number as an integer.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().filter(|it| !it.1.is_null()).collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            let fields = fields.into_iter().map(|(name, it)| (name, canonical(it)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        Value::Number(number) => whole(&number).map_or(Value::Number(number), Value::from),
        value => value,
    }
}

/// Returns a floating-point number without a fraction as an integer.
fn whole(number: &serde_json::Number) -> Option<i64> {
    let text = number
        .is_f64()
        .then(|| format!("{:.0}", number.as_f64().unwrap_or_default()))?;
    let whole: i64 = text.parse().ok()?;
    let is_same = number.as_f64().is_some_and(|it| it.fract() == 0.0);
    is_same.then_some(whole)
}

fn sum(canonical: &Value) -> String {
    text(revision_hash(canonical.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(PartialEq, Debug, Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Strict {
        nodes: u32,
    }

    #[derive(PartialEq, Debug, Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Lenient {
        #[serde(alias = "nodes")]
        members: u32,
        note: Option<String>,
        share: f64,
    }

    #[test]
    fn a_value_that_the_api_server_writes_in_another_way_is_the_same() {
        let sealed = Sealed::of(&json!({ "b": null, "a": { "y": 2.0, "x": [1.5, null] } }));
        let mut stored = sealed.expect("JSON");
        stored.value = json!({ "a": { "x": [1.5, null], "y": 2 } });
        assert!(stored.is_intact());
        stored.value = json!({ "a": { "x": [1.5, null], "y": 2 }, "b": null });
        assert!(stored.is_intact());
    }

    #[test]
    fn a_change_by_somebody_else_is_noticed_unless_it_is_accepted() {
        let mut sealed = Sealed::of(&json!({ "nodes": 3 })).expect("JSON");
        assert!(sealed.is_intact());
        sealed.value["nodes"] = json!(1);
        assert!(!sealed.is_intact());
        sealed.sum = None;
        assert!(sealed.is_intact());
    }

    #[test]
    fn a_field_under_its_former_name_is_read_and_one_that_would_be_lost_is_an_error() {
        let read = |value: Value| Sealed { value, sum: None }.read::<Lenient>();
        let former = read(json!({ "nodes": 3, "share": 1 })).expect("its fields");
        assert_eq!((former.members, former.note, former.share), (3, None, 1.0));
        let why = read(json!({ "members": 3, "zones": 2 })).expect_err("an unknown field");
        assert_eq!(why, "this release does not know the field `zones`");
        let sealed = Sealed {
            value: json!({ "nodes": "three" }),
            sum: None,
        };
        let why = sealed.read::<Strict>().expect_err("no number");
        assert!(why.contains("invalid type"), "{why}");
    }
}
