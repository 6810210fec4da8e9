//! An object as the text that came, without its managed fields, and what that decodes to.
//!
//! They are most of what a small object takes, and nothing here reads them.

use std::cell::RefCell;
use std::fmt::{self, Display};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_transcode::Transcoder;

/// Reads an object as its text.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let mut text = Vec::with_capacity(4096);
    let into = &mut serde_json::Serializer::new(&mut text);
    let level = Level::Object;
    deserializer.deserialize_map(Fields { into, level })?;
    String::from_utf8(text).map_err(D::Error::custom)
}

/// Decodes the text of an object, or says why that cannot be.
pub(crate) fn decode<K: DeserializeOwned>(text: &str) -> Result<K, String> {
    serde_json::from_str(text).or_else(|error| {
        // Which field it was helps; where in the text is nothing that anybody could look up.
        match serde_json::from_str::<Value>(text).map(serde_path_to_error::deserialize) {
            Ok(decoded) => decoded.map_err(|error| error.to_string()),
            Err(_) => Err(error.to_string()),
        }
    })
}

/// The metadata in the text of an object.
pub(crate) fn metadata(text: &str) -> Result<ObjectMeta, serde_json::Error> {
    #[derive(Deserialize)]
    struct Partial {
        metadata: ObjectMeta,
    }
    serde_json::from_str(text).map(|Partial { metadata }| metadata)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
}

/// Copies a map field by field.
struct Fields<S> {
    into: S,
    level: Level,
}

impl<'de, S: Serializer> Visitor<'de> for Fields<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<S::Ok, A::Error> {
        let mut into = self.into.serialize_map(None).map_err(custom)?;
        while let Some(name) = map.next_key::<String>()? {
            if self.level == Level::Metadata && name == "managedFields" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            into.serialize_key(&name).map_err(custom)?;
            let is_metadata = self.level == Level::Object && name == "metadata";
            map.next_value_seed(Field {
                into: &mut into,
                is_metadata,
            })?;
        }
        into.end().map_err(custom)
    }
}

/// Copies the value of one field.
struct Field<'a, M> {
    into: &'a mut M,
    is_metadata: bool,
}

impl<'de, M: SerializeMap> DeserializeSeed<'de> for Field<'_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let copied = if self.is_metadata {
            let metadata = Metadata(RefCell::new(Some(deserializer)));
            self.into.serialize_value(&metadata)
        } else {
            self.into.serialize_value(&Transcoder::new(deserializer))
        };
        copied.map_err(custom)
    }
}

/// The metadata of an object, to be copied once.
struct Metadata<D>(RefCell<Option<D>>);

impl<'de, D: Deserializer<'de>> Serialize for Metadata<D> {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        let Some(deserializer) = self.0.take() else {
            return Err(S::Error::custom("copied twice"));
        };
        let level = Level::Metadata;
        deserializer
            .deserialize_map(Fields { into, level })
            .map_err(S::Error::custom)
    }
}

fn custom<E: serde::de::Error>(error: impl Display) -> E {
    E::custom(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_fields_go_and_all_else_stays_as_it_came() {
        let came = r#"{"kind":"App","metadata":{"name":"a","managedFields":[{"manager":"m"}],"labels":{"managedFields":"x"}},"spec":{"managedFields":[1,-2,2.5,null,true,"\u00e4"],"metadata":{"managedFields":{}}}}"#;
        let kept = came.replace(r#""managedFields":[{"manager":"m"}],"#, "");
        let text = text(&mut serde_json::Deserializer::from_str(came)).expect("an object");
        assert_eq!(text, kept.replace("\\u00e4", "\u{e4}"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for came in ["[]", "1", r#"{"metadata":3}"#, r#"{"metadata":null}"#, "{"] {
            assert!(
                text(&mut serde_json::Deserializer::from_str(came)).is_err(),
                "{came}"
            );
        }
    }

    #[test]
    fn why_a_text_does_not_decode_is_said_with_the_field_and_not_with_the_line() {
        let why = decode::<Vec<u8>>(r#"[1, "x"]"#).expect_err("no number");
        assert_eq!(why, "[1]: invalid type: string \"x\", expected u8");
    }
}
