//! Finds duplicate fields of a body, of which a JSON object keeps one.

use core::fmt;
use std::collections::BTreeSet;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Returns the paths of duplicate fields (e.g. `spec.color`); empty if the body is no JSON.
pub(crate) fn find(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let below = Below {
        path: String::new(),
        found: &mut found,
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    match below.deserialize(&mut reader) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

/// A position in the body.
struct Below<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Below<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Below<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let path = match self.path.as_str() {
                "" => name.clone(),
                above => format!("{above}.{name}"),
            };
            if !names.insert(name) && !self.found.contains(&path) {
                self.found.push(path.clone());
            }
            map.next_value_seed(Below {
                path,
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut number = 0;
        loop {
            let item = Below {
                path: format!("{}[{number}]", self.path),
                found: &mut *self.found,
            };
            if list.next_element_seed(item)?.is_none() {
                return Ok(());
            }
            number += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn each_duplicate_field_is_reported_once() {
        let body = br#"{"a":1,"b":[{"c":1},{"c":{"d":null,"d":2,"d":3}}],"a":"x"}"#;
        assert_eq!(find(body), ["b[1].c.d", "a"]);
        assert!(find(b"{").is_empty());
    }
}
