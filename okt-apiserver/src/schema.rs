//! The structural schema of a kind.
//!
//! It is parsed once and shared; writes walk it.

pub(crate) mod cel;
mod defaults;
mod parse;
mod structure;
mod validate;

pub(crate) use defaults::{apply_defaults, drop_nulls, nulls_to_texts, prune};
pub(crate) use validate::{old_item, validate, validate_lists};

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::Value;

use self::cel::CelRule;

/// A node of a structural schema.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of the schema language, each on its own"
)]
pub(crate) struct Schema {
    pub(crate) kind: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) values: Option<Vec<Value>>,
    pub(crate) pattern: Option<(String, Regex)>,
    pub(crate) format: Option<String>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
    pub(crate) default: Option<Value>,
    /// Undeclared fields are kept.
    pub(crate) keeps_unknown: bool,
    pub(crate) int_or_string: bool,
    /// The value is a Kubernetes object itself.
    pub(crate) embedded: bool,
    pub(crate) list: ListType,
    /// The key by which a strategic merge patch merges a list of a kind without a CRD; empty to merge by value.
    pub(crate) merge_key: Option<&'static str>,
    /// The map has one owner as a whole.
    pub(crate) atomic_map: bool,
    pub(crate) rules: Vec<CelRule>,
    /// CEL rules cannot use the field.
    pub(crate) hidden: bool,
}

/// A schema that kinds share. It is parsed on first use, because most tests use few kinds.
#[derive(Clone)]
pub(crate) struct SharedSchema(Arc<LazyLock<Schema, Box<dyn FnOnce() -> Schema + Send>>>);

impl SharedSchema {
    pub(crate) fn of(read: impl FnOnce() -> Schema + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(read))))
    }
}

impl From<Schema> for SharedSchema {
    fn from(schema: Schema) -> Self {
        Self::of(|| schema)
    }
}

impl Deref for SharedSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        &self.0
    }
}

impl fmt::Debug for SharedSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedSchema").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// The fields that a map may hold in addition to its properties.
#[derive(Debug, Default)]
pub(crate) enum Additional {
    #[default]
    None,
    Anything,
    Of(Box<Schema>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) value: f64,
    pub(crate) exclusive: bool,
}

/// How the items of a list are identified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list has one owner as a whole.
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// Whether a value is of this type.
    pub(crate) fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_))
            | (Self::String, Value::String(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_)) => true,
            (Self::Integer, Value::Number(number)) => {
                !number.is_f64() || number.as_f64().is_some_and(|f| f.fract() == 0.0)
            }
            _ => false,
        }
    }
}

impl Schema {
    /// Returns the schema of the field `key`, if it is declared.
    pub(crate) fn field(&self, key: &str) -> Option<&Schema> {
        self.properties.get(key).or(match &self.additional {
            Additional::Of(schema) => Some(schema),
            Additional::None | Additional::Anything => None,
        })
    }

    /// Returns the schema at a path (e.g. `.spec.limits['cpu']`), if there is one.
    ///
    /// Items of lists have no path.
    pub(crate) fn at_path(&self, path: &str) -> Option<&Schema> {
        let mut found = self;
        let mut rest = path;
        while !rest.is_empty() {
            let key = if let Some(after) = rest.strip_prefix("['") {
                let (key, after) = after.split_once("']")?;
                rest = after;
                key
            } else {
                let after = rest.strip_prefix('.')?;
                let end = after.find(['.', '[']).unwrap_or(after.len());
                rest = &after[end..];
                &after[..end]
            };
            found = found.field(key)?;
        }
        Some(found)
    }

    /// Whether an undeclared field is kept.
    pub(crate) fn takes_any_field(&self) -> bool {
        self.keeps_unknown || matches!(self.additional, Additional::Anything)
    }

    /// Whether there is a CEL rule on any level.
    pub(crate) fn has_rules(&self) -> bool {
        let of_values = match &self.additional {
            Additional::Of(schema) => schema.has_rules(),
            Additional::None | Additional::Anything => false,
        };
        !self.rules.is_empty()
            || of_values
            || self.properties.values().any(Self::has_rules)
            || self.items.as_deref().is_some_and(Self::has_rules)
    }
}
