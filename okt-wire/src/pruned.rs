//! The text of an object without its managed fields, and how it is decoded.
//!
//! Managed fields are most of the text of a small object, and the operator does not read them.
//! The text is copied by its top-level fields, none of which is parsed: an object may be nested deeper than a parser
//! goes (`serde_json`: 128 levels; the API server stores up to 10,000), and that must not fail the list or the event
//! that contains it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::texts::unquoted;

/// Objects with a lifecycle have about this size in bytes, without managed fields.
const USUAL_SIZE: usize = 2048;
/// The metadata field that records which manager owns which field.
const MANAGED_FIELDS: &str = "managedFields";

/// The text of an object without managed fields.
pub struct Pruned {
    /// The text, which is JSON unless it is cut.
    pub text: String,
    /// Where the metadata is in the text.
    metadata: Range<usize>,
    /// Where the status is in the text.
    status: Range<usize>,
    /// Whether the text ends after the metadata, because the object is not wanted.
    pub is_cut: bool,
}

impl Pruned {
    /// Reads an object. Replaces its managed fields by the text that `managed` returns, or removes them.
    ///
    /// # Errors
    ///
    /// If the object or its metadata is no JSON object, or the deserializer does not read from a text in memory.
    pub fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        managed: impl FnOnce(&RawValue) -> Option<String>,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader {
            managed,
            wants: |_: &str| true,
        })
    }

    /// Reads an object without its managed fields; skips all that follows the metadata unless `wants` accepts it.
    ///
    /// # Errors
    ///
    /// As of [`read`](Self::read).
    pub fn read_if<'de, D: Deserializer<'de>>(
        deserializer: D,
        wants: impl FnOnce(&str) -> bool,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader {
            managed: |_: &RawValue| None,
            wants,
        })
    }

    /// Returns the text of the metadata; empty if there is none.
    pub fn metadata_text(&self) -> &str {
        &self.text[self.metadata.clone()]
    }

    /// Returns the text of the status; empty if there is none.
    pub fn status_text(&self) -> &str {
        &self.text[self.status.clone()]
    }

    /// Returns the metadata.
    ///
    /// # Errors
    ///
    /// If it does not decode as metadata.
    pub fn metadata(&self) -> serde_json::Result<ObjectMeta> {
        serde_json::from_str(self.metadata_text())
    }
}

/// Copies an object field by field, each read once.
struct Reader<M, W> {
    managed: M,
    wants: W,
}

impl<'de, M, W> Visitor<'de> for Reader<M, W>
where
    M: FnOnce(&RawValue) -> Option<String>,
    W: FnOnce(&str) -> bool,
{
    type Value = Pruned;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pruned, A::Error> {
        let (mut managed, mut wants) = (Some(self.managed), Some(self.wants));
        let mut is_cut = false;
        let mut text = String::with_capacity(USUAL_SIZE);
        text.push('{');
        let (mut metadata, mut status) = (0..0, 0..0);
        while let Some(name) = map.next_key::<Name<'_>>()? {
            name.push_to(&mut text);
            let name = &*name.0;
            let begin = text.len();
            if name == "metadata" {
                map.next_value_seed(Metadata {
                    text: &mut text,
                    managed: managed.take(),
                })?;
                metadata = begin..text.len();
                if wants
                    .take()
                    .is_some_and(|wants| !wants(&text[metadata.clone()]))
                {
                    is_cut = true;
                    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                }
            } else {
                text.push_str(map.next_value::<&RawValue>()?.get());
            }
            if name == "status" {
                status = begin..text.len();
            }
        }
        text.push('}');
        Ok(Pruned {
            text,
            metadata,
            status,
            is_cut,
        })
    }
}

/// Adds metadata to a text; of its managed fields what `managed` returns, or nothing.
struct Metadata<'t, M> {
    text: &'t mut String,
    managed: Option<M>,
}

impl<'de, M: FnOnce(&RawValue) -> Option<String>> DeserializeSeed<'de> for Metadata<'_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, M: FnOnce(&RawValue) -> Option<String>> Visitor<'de> for Metadata<'_, M> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.text.push('{');
        while let Some((name, value)) = map.next_entry::<Name<'_>, &RawValue>()? {
            let replaced = (name.0 == MANAGED_FIELDS)
                .then(|| self.managed.take().and_then(|managed| managed(value)));
            let value = match &replaced {
                Some(None) => continue,
                Some(Some(other)) => other,
                None => value.get(),
            };
            name.push_to(self.text);
            self.text.push_str(value);
        }
        self.text.push('}');
        Ok(())
    }
}

/// The name of a field; borrowed where the text writes it without escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl Name<'_> {
    /// Begins the next field of an object.
    fn push_to(&self, text: &mut String) {
        if !text.ends_with('{') {
            text.push(',');
        }
        match &self.0 {
            Cow::Borrowed(plain) => text.extend(["\"", plain, "\":"]),
            Cow::Owned(name) => {
                let name: Value = name.as_str().into();
                text.push_str(&name.to_string());
                text.push(':');
            }
        }
    }
}

/// Returns the text of metadata without its managed fields.
///
/// # Errors
///
/// If the text is no JSON object.
pub fn pruned_metadata(text: &str) -> serde_json::Result<String> {
    let mut pruned = String::with_capacity(text.len());
    Metadata {
        text: &mut pruned,
        managed: None::<fn(&RawValue) -> Option<String>>,
    }
    .deserialize(&mut serde_json::Deserializer::from_str(text))?;
    Ok(pruned)
}

/// Decodes the text of an object. The error names the value that does not fit.
///
/// # Errors
///
/// Where the text does not fit the type, and why; a retry does not help.
pub fn decode<K: DeserializeOwned>(text: &str) -> Result<K, String> {
    decode_explained(text, ToString::to_string)
}

/// Decodes the text of an object that may hold secrets. The error quotes no values.
///
/// # Errors
///
/// Where the text does not fit the type, and why; a retry does not help.
pub fn decode_unquoted<K: DeserializeOwned>(text: &str) -> Result<K, String> {
    decode_explained(text, unquoted)
}

fn decode_explained<K: DeserializeOwned>(
    text: &str,
    explain: fn(&serde_json::Error) -> String,
) -> Result<K, String> {
    serde_json::from_str(text).or_else(|error| {
        // The path of the field helps; the line and column do not, because users cannot see this text.
        match serde_json::from_str::<Value>(text).map(serde_path_to_error::deserialize) {
            Ok(decoded) => decoded.map_err(|error: serde_path_to_error::Error<_>| {
                let why = explain(error.inner());
                match error.path().iter().next() {
                    Some(_) => format!("{}: {why}", error.path()),
                    None => why,
                }
            }),
            Err(_) => Err(explain(&error)),
        }
    })
}

/// Returns the text of the field at this path; none if there is none.
pub fn field<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(text, |text, name| {
        let object: Fields<'_> = serde_json::from_str(text).ok()?;
        let (_, value) = object.0.into_iter().find(|(field, _)| field == name)?;
        Some(value.get())
    })
}

/// The fields of a JSON object in their order, each value as its text.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(came: &str) -> serde_json::Result<String> {
        let read = Pruned::read(&mut serde_json::Deserializer::from_str(came), |_| None);
        read.map(|it| it.text)
    }

    #[test]
    fn managed_fields_are_removed_and_all_else_stays() {
        let came = r#"{"kind":"App","metadata":{"name":"a","managedFields":[{"manager":"m"}],"labels":{"managedFields":"x"}},"spec":{"managedFields":[1,-2,2.5,null,true,"\u00e4"],"metadata":{"managedFields":{}}}}"#;
        let kept = came.replace(r#""managedFields":[{"manager":"m"}],"#, "");
        assert_eq!(read(came).expect("an object"), kept);
        assert_eq!(read("{}").expect("an object"), "{}");
        assert_eq!(
            read(r#"{"metadata":{"managedFields":[]}}"#).expect("an object"),
            r#"{"metadata":{}}"#
        );
    }

    #[test]
    fn a_text_that_is_no_object_is_refused() {
        for came in ["[]", "1", r#"{"metadata":3}"#, r#"{"metadata":null}"#, "{"] {
            assert!(read(came).is_err(), "{came}");
        }
    }

    #[test]
    fn the_metadata_of_the_deepest_and_longest_object_is_read() {
        for (depth, length) in [(123, 0), (10_000, 0), (2, 3 << 20), (10_000, 3 << 20)] {
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let long = "x".repeat(length);
            let managed = format!(r#"[{{"manager":"m","fieldsV1":{nested}}}]"#);
            let came = format!(
                r#"{{"metadata":{{"name":"a","managedFields":{managed}}},"spec":{{"deep":{nested},"long":"{long}"}}}}"#
            );
            let parsed = Pruned::read(&mut serde_json::Deserializer::from_str(&came), |_| None);
            let read = parsed.expect("an object");
            let (meta, text) = (read.metadata().expect("metadata"), read.text);
            assert_eq!(meta.name.as_deref(), Some("a"));
            assert_eq!(meta.managed_fields, None);
            assert_eq!(field(&text, &["spec", "deep"]), Some(&*nested));
            let decoded = decode::<Value>(&text);
            assert_eq!(decoded.is_ok(), depth < 1_000, "{depth}");
        }
    }

    #[test]
    fn a_decoding_error_names_the_field_and_not_the_line() {
        let why = decode::<Vec<u8>>(r#"[1, "x"]"#).expect_err("no number");
        assert_eq!(why, "[1]: invalid type: string \"x\", expected u8");
    }

    #[test]
    fn a_decoding_error_of_a_secret_quotes_no_values() {
        type Secret = k8s_openapi::api::core::v1::Secret;
        let text = r#"{"metadata":{"name":"a"},"data":{"password":["hunter2"]}}"#;
        let why = decode_unquoted::<Secret>(text).expect_err("no Secret");
        assert_eq!(why, "data.password: a value does not fit its type");
        let text = r#"{"metadata":{"name":"a"},"data":"hunter2"}"#;
        let why = decode_unquoted::<Secret>(text).expect_err("no Secret");
        assert_eq!(why, "data: a value does not fit its type");
        let why = decode::<Secret>(text).expect_err("no Secret");
        assert!(why.contains("hunter2"), "{why}");
    }
}
