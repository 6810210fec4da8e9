//! This file declares what a rule may assume about the values of a schema: their types and sizes.

use std::{collections::BTreeMap, rc::Rc};

use super::value::escape;
use crate::api::schema::{Additional, ListType, Schema, Type};

/// The maximum size of a request, and so of every value in it.
pub(super) const REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// The known facts about the values of a schema.
#[derive(Debug)]
pub(super) struct Decl {
    pub(super) shape: Shape,
    /// The maximum number of characters, bytes, items or entries of a value.
    pub(super) most: u64,
    /// The minimum number of bytes of a value as JSON.
    pub(super) least_bytes: u64,
    /// How the items are identified, if it is a list.
    pub(super) list: ListType,
}

#[derive(Debug)]
pub(super) enum Shape {
    /// A value of a CEL type, by its name in signatures (e.g. `duration`).
    Plain(&'static str),
    List(Rc<Decl>),
    Map(Rc<Decl>),
    Object(BTreeMap<String, Rc<Decl>>),
}

impl Decl {
    /// Declares a schema; `None` if rules cannot see its values.
    pub(super) fn of(schema: &Schema, is_object: bool) -> Option<Rc<Self>> {
        let plain = |kind, most, least| Some(Self::new(Shape::Plain(kind), most, least));
        if schema.int_or_string {
            let most = schema
                .max_length
                .map_or(REQUEST_BYTES - 2, |limit| limit.saturating_mul(4));
            return plain("dyn", most, 1);
        }
        match schema.kind? {
            Type::Boolean => plain("bool", 0, 4),
            Type::Integer => plain("int", 0, 1),
            Type::Number => plain("double", 0, 1),
            Type::String => Some(of_text(schema)),
            Type::Array => {
                let items = schema.items.as_deref()?;
                let items = Self::of(items, items.embedded)?;
                let most = schema
                    .max_items
                    .unwrap_or((REQUEST_BYTES - 2) / (items.least_bytes + 1));
                Some(Rc::new(Self {
                    shape: Shape::List(items),
                    most,
                    least_bytes: 2,
                    list: schema.list.clone(),
                }))
            }
            Type::Object => {
                if let Additional::Of(values) = &schema.additional {
                    let values = Self::of(values, values.embedded)?;
                    // A key of two bytes, its quotes, a colon and a comma.
                    let most = schema
                        .max_properties
                        .unwrap_or((REQUEST_BYTES - 2) / (values.least_bytes + 6));
                    return Some(Self::new(Shape::Map(values), most, 2));
                }
                Some(of_object(schema, is_object))
            }
        }
    }

    fn new(shape: Shape, most: u64, least_bytes: u64) -> Rc<Self> {
        Rc::new(Self {
            shape,
            most,
            least_bytes,
            list: ListType::Atomic,
        })
    }

    fn text() -> Rc<Self> {
        Self::new(Shape::Plain("string"), REQUEST_BYTES - 2, 2)
    }

    /// The maximum number of such values in one request.
    pub(super) fn most_in_request(&self) -> u64 {
        REQUEST_BYTES / (self.least_bytes + 1)
    }

    /// The declaration of the items of a list or the values of a map.
    pub(super) fn element(&self) -> Option<Rc<Self>> {
        match &self.shape {
            Shape::List(below) | Shape::Map(below) => Some(Rc::clone(below)),
            Shape::Plain(_) | Shape::Object(_) => None,
        }
    }

    pub(super) fn value_of_map(&self) -> Option<Rc<Self>> {
        match &self.shape {
            Shape::Map(values) => Some(Rc::clone(values)),
            Shape::Plain(_) | Shape::List(_) | Shape::Object(_) => None,
        }
    }

    /// The declaration of the keys of a map.
    pub(super) fn key(&self) -> Option<Rc<Self>> {
        let is_map = matches!(self.shape, Shape::Map(_));
        // No schema limits the length of keys, and the server assumes that they are empty.
        is_map.then(|| Self::new(Shape::Plain("string"), 0, 2))
    }

    pub(super) fn field(&self, name: &str) -> Option<Rc<Self>> {
        match &self.shape {
            Shape::Object(fields) => fields.get(name).cloned(),
            Shape::Plain(_) | Shape::List(_) | Shape::Map(_) => None,
        }
    }
}

fn of_text(schema: &Schema) -> Rc<Decl> {
    let unlimited = REQUEST_BYTES - 2;
    let (kind, most, least) = match schema.format.as_deref() {
        Some("byte") => ("bytes", schema.max_length.unwrap_or(unlimited), 2),
        Some("duration") => ("duration", 32, 3),
        Some("date") => ("timestamp", 12, 12),
        Some("date-time") => ("timestamp", 32, 21),
        _ => {
            let longest = || {
                let values = schema.values.iter().flatten();
                values
                    .filter_map(|value| Some(value.as_str()?.len() as u64))
                    .max()
            };
            let most = match (schema.max_length, &schema.values) {
                // A character takes up to four bytes.
                (Some(limit), _) => limit.saturating_mul(4),
                (None, Some(values)) if !values.is_empty() => longest().unwrap_or(0),
                (None, _) => unlimited,
            };
            ("string", most, 2)
        }
    };
    Decl::new(Shape::Plain(kind), most, least)
}

fn of_object(schema: &Schema, is_object: bool) -> Rc<Decl> {
    let mut least = 2;
    let mut fields = BTreeMap::new();
    for (name, property) in &schema.properties {
        if property.hidden {
            continue;
        }
        let decl = match name.as_str() {
            // Of the fields of an object itself, rules see only these, without a limit.
            "apiVersion" | "kind" if is_object => Some(Decl::text()),
            "metadata" if is_object => {
                let names = ["name", "generateName"].map(|key| (key.to_owned(), Decl::text()));
                Some(Decl::new(Shape::Object(names.into()), 0, 2))
            }
            _ => Decl::of(property, property.embedded),
        };
        let Some(decl) = decl else { continue };
        if property.default.is_none() && schema.required.contains(name) {
            least += name.len() as u64 + decl.least_bytes + 4;
        }
        fields.insert(escape(name).into_owned(), decl);
    }
    Decl::new(Shape::Object(fields), 0, least)
}
