//! Declares what a rule may assume about the values of a schema: their types.

use std::{collections::BTreeMap, rc::Rc};

use super::value::escape;
use crate::api::schema::{Additional, ListType, Schema, Type};

/// The known facts about the values of a schema.
#[derive(Debug)]
pub(super) struct Decl {
    pub(super) shape: Shape,
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
        let shape = if schema.int_or_string {
            Shape::Plain("dyn")
        } else {
            match schema.kind? {
                Type::Boolean => Shape::Plain("bool"),
                Type::Integer => Shape::Plain("int"),
                Type::Number => Shape::Plain("double"),
                Type::String => Shape::Plain(match schema.format.as_deref() {
                    Some("byte") => "bytes",
                    Some("duration") => "duration",
                    Some("date" | "date-time") => "timestamp",
                    _ => "string",
                }),
                Type::Array => {
                    let items = schema.items.as_deref()?;
                    return Some(Rc::new(Self {
                        shape: Shape::List(Self::of(items, items.embedded)?),
                        list: schema.list.clone(),
                    }));
                }
                Type::Object => match &schema.additional {
                    Additional::Of(values) => Shape::Map(Self::of(values, values.embedded)?),
                    _ => Shape::Object(fields_of(schema, is_object)),
                },
            }
        };
        Some(Self::new(shape))
    }

    fn new(shape: Shape) -> Rc<Self> {
        Rc::new(Self {
            shape,
            list: ListType::Atomic,
        })
    }

    fn text() -> Rc<Self> {
        Self::new(Shape::Plain("string"))
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
        is_map.then(Self::text)
    }

    pub(super) fn field(&self, name: &str) -> Option<Rc<Self>> {
        match &self.shape {
            Shape::Object(fields) => fields.get(name).cloned(),
            Shape::Plain(_) | Shape::List(_) | Shape::Map(_) => None,
        }
    }
}

fn fields_of(schema: &Schema, is_object: bool) -> BTreeMap<String, Rc<Decl>> {
    let visible = schema.properties.iter().filter(|(_, it)| !it.hidden);
    let declared = visible.filter_map(|(name, property)| {
        let decl = match name.as_str() {
            // Of the fields of an object itself, rules see only these.
            "apiVersion" | "kind" if is_object => Decl::text(),
            "metadata" if is_object => {
                let names = ["name", "generateName"].map(|key| (key.to_owned(), Decl::text()));
                Decl::new(Shape::Object(names.into()))
            }
            _ => Decl::of(property, property.embedded)?,
        };
        Some((escape(name).into_owned(), decl))
    });
    declared.collect()
}
