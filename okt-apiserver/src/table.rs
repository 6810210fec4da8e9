//! Formats objects as the tables that kubectl shows.

mod builtin;
mod cell;
mod cluster;
mod event;
mod jsonpath;
mod network;
mod pod;
mod workload;

use std::fmt;

use jiff::Timestamp;
use serde_json::{Number, Value, json};

pub(crate) use self::builtin::{columns as builtin_columns, scale as scale_columns};
use self::jsonpath::JsonPath;
pub(crate) use self::jsonpath::PathFault;
use crate::object;

/// A column in addition to the name.
#[derive(Debug)]
pub(crate) struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    /// A column with a value other than 0 appears only with `-o wide`.
    priority: i64,
    source: ColumnSource,
}

/// The source of a column's cells.
enum ColumnSource {
    Path(JsonPath),
    /// A cell that a built-in kind computes at a given time.
    Computed(Box<Cell>),
}

/// Computes the cell of an object at a time.
type Cell = dyn Fn(&Value, Timestamp) -> Value + Send + Sync;

impl fmt::Debug for ColumnSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Computed(_) => f.write_str("Computed"),
        }
    }
}

/// The part of the object that a row carries in addition to its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Column {
    /// The age, which is the only column of a kind without its own columns.
    pub(crate) fn age() -> Self {
        Self {
            kind: "date".to_owned(),
            ..Self::plain("Age", ".metadata.creationTimestamp")
        }
    }

    /// A column of a built-in kind.
    pub(crate) fn plain(name: &str, path: &str) -> Self {
        let path = JsonPath::parse(path).expect("the paths of built-in kinds are simple");
        Self::new(name, ColumnSource::Path(path))
    }

    fn new(name: &str, source: ColumnSource) -> Self {
        Self {
            name: name.to_owned(),
            kind: "string".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            source,
        }
    }

    /// The name of a class, with a mark if an annotation makes it the default.
    fn class(annotation: &'static str) -> Self {
        let named = Self::cell_of("Name", move |object, _| {
            let name = object::name(object);
            match object::text(object, &["metadata", "annotations", annotation]) {
                "true" => format!("{name} (default)").into(),
                _ => name.into(),
            }
        });
        Self {
            format: "name".to_owned(),
            ..named
        }
    }

    /// The name, which comes first unless the kind places it elsewhere.
    fn name() -> Self {
        Self {
            format: "name".to_owned(),
            ..Self::plain("Name", ".metadata.name")
        }
    }

    fn cell_of(
        name: &str,
        cell: impl Fn(&Value, Timestamp) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, ColumnSource::Computed(Box::new(cell)))
    }

    /// A text of the object, or another one if it is absent.
    fn text_or(name: &str, path: &'static [&'static str], otherwise: &'static str) -> Self {
        Self::cell_of(name, move |object, _| {
            cell::or(object::text(object, path), otherwise)
        })
    }

    /// A number of the object; 0 if it is absent.
    fn integer(name: &str, path: &'static [&'static str]) -> Self {
        Self::cell_of(name, move |object, _| cell::integer(object, path).into()).typed("integer")
    }

    /// Returns the column with another type of its cells.
    fn typed(self, kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            ..self
        }
    }

    /// A field that is true or false; false if it is absent.
    fn is(name: &str, key: &'static str) -> Self {
        Self::cell_of(name, move |object, _| (object[key] == true).into()).typed("boolean")
    }

    /// A label selector of the object.
    fn selector(name: &str, path: &'static [&'static str]) -> Self {
        Self::cell_of(name, move |object, _| {
            let selector = object::at(object, path).map(cell::selector);
            cell::or(&selector.unwrap_or_default(), cell::NONE)
        })
    }

    /// The labels in a map of the object.
    fn labels(name: &str, path: &'static [&'static str]) -> Self {
        Self::cell_of(name, move |object, _| {
            let labels = cell::labels(object::at(object, path));
            cell::or(&labels, cell::NONE)
        })
    }

    /// Returns the column, shown only with `-o wide`.
    fn wide(self) -> Self {
        Self {
            priority: 1,
            ..self
        }
    }

    /// Parses an entry of `additionalPrinterColumns`.
    ///
    /// # Errors
    /// Its path is invalid or not supported.
    pub(crate) fn read(raw: &Value) -> Result<Self, PathFault> {
        let text = |key| object::text(raw, &[key]).to_owned();
        let path = text("jsonPath");
        let description = match text("description") {
            none if none.is_empty() => {
                format!("Custom resource definition column (in JSONPath format): {path}")
            }
            given => given,
        };
        Ok(Self {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description,
            priority: raw.get("priority").and_then(Value::as_i64).unwrap_or(0),
            source: ColumnSource::Path(JsonPath::parse(&path)?),
        })
    }

    fn definition(&self) -> Value {
        // Ages are sent as text.
        let is_age = self.kind == "date" && matches!(self.source, ColumnSource::Path(_));
        let kind = if is_age { "string" } else { &self.kind };
        json!({
            "name": self.name,
            "type": kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let path = match &self.source {
            ColumnSource::Path(path) => path,
            ColumnSource::Computed(cell) => return cell(object, now),
        };
        let Some(found) = path.first(object) else {
            return Value::Null;
        };
        match (self.kind.as_str(), found) {
            ("date", Value::String(text)) => match text.parse::<Timestamp>() {
                Ok(then) => cell::span(then, now).into(),
                Err(_) => "<invalid>".into(),
            },
            ("integer", Value::Number(number)) => whole(number),
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => found.clone(),
            ("string", Value::String(text)) => text.clone().into(),
            // The text that Go prints.
            ("string", Value::Null) => "<no value>".into(),
            ("string", other) => other.to_string().into(),
            _ => Value::Null,
        }
    }
}

/// Returns the number without its fraction.
fn whole(number: &Number) -> Value {
    if !number.is_f64() {
        return number.clone().into();
    }
    let whole = number.as_f64().map(|float| format!("{:.0}", float.trunc()));
    whole
        .and_then(|text| text.parse::<i64>().ok())
        .map_or(Value::Null, Value::from)
}

/// Returns a table of objects; `metadata` is that of the list.
pub(crate) fn table<'a>(
    columns: &[Column],
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: &Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let name = Column::name();
    let named = columns.iter().any(|column| column.format == "name");
    let columns = (!named).then_some(&name).into_iter().chain(columns);
    let definitions: Vec<_> = columns.clone().map(Column::definition).collect();
    let rows: Vec<_> = objects
        .into_iter()
        .map(|object| {
            let cells: Vec<_> = columns
                .clone()
                .map(|column| column.cell(object, now))
                .collect();
            let mut row = json!({ "cells": cells });
            match include {
                Include::Nothing => {}
                Include::Metadata => row["object"] = only_metadata(object),
                Include::Object => row["object"] = object.clone(),
            }
            row
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// Returns the object as `PartialObjectMetadata`.
pub(crate) fn only_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata"),
    })
}
