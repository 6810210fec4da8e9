//! The Go types of the kinds that exist without a CRD: which fields an object has, how JSON and protobuf write them,
//! and who owns their parts.
//!
//! `types/types.txt` is the table, made by `kubernetes/types` from the release of Kubernetes that this server follows;
//! `types/kinds.txt` lists the kinds.

mod decode;
mod defaults;
mod order;
mod protobuf;
mod schema;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

pub(crate) use self::decode::{as_conversion, decode, mistyped_metadata, reset_status};
pub(crate) use self::order::{text_of, to_text};
pub(crate) use self::protobuf::{PROTOBUF, from_protobuf};
pub(crate) use self::schema::schema_of;

/// A named Go type, e.g. `apps.v1.DeploymentSpec`.
#[derive(Debug)]
pub(crate) struct GoType {
    name: &'static str,
    /// The rest of its line in the table.
    text: &'static str,
    parsed: OnceLock<GoDefinition>,
}

#[derive(Debug)]
enum GoDefinition {
    Struct(StructType),
    /// Another name of this type.
    Alias(FieldType),
}

#[derive(Debug)]
struct StructType {
    /// The struct has one owner as a whole.
    atomic: bool,
    /// An object of the type names its `apiVersion` and `kind`.
    is_object: bool,
    fields: Vec<GoField>,
    /// The fields that get a value if they are not set.
    defaults: Vec<(&'static str, Value)>,
}

#[derive(Debug)]
struct GoField {
    /// Empty for a struct whose fields stand in the JSON of its parent.
    name: &'static str,
    /// An empty value is left out.
    omits_empty: bool,
    /// The number of protobuf; 0 if it has none.
    number: u32,
    value: FieldType,
    ownership: Ownership,
    /// The key by which a strategic merge patch merges a list; empty to merge by value.
    merge_key: Option<&'static str>,
    default: Option<Value>,
}

/// Who owns the parts of a value.
#[derive(Debug)]
enum Ownership {
    Granular,
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Debug)]
enum FieldType {
    Pointer(Box<FieldType>),
    List(Box<FieldType>),
    Map(Box<FieldType>),
    Bytes,
    Text,
    Flag,
    Int32,
    Int64,
    Float,
    Named(&'static GoType),
    Own(OwnForm),
}

/// A type that reads and writes its JSON itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnForm {
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON.
    Json,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrTexts,
}

static TABLE: LazyLock<HashMap<&'static str, GoType>> = LazyLock::new(|| {
    let lines = include_str!("types/types.txt").lines();
    let named = lines.filter_map(|line| line.split_once(' '));
    let types = named.map(|(name, text)| {
        let parsed = OnceLock::new();
        (name, GoType { name, text, parsed })
    });
    types.collect()
});

impl GoType {
    /// Returns the type of a kind, e.g. of `apps/v1` and `Deployment`.
    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Self> {
        match kind {
            // Every group has it.
            "DeleteOptions" => return Self::named("meta.v1.DeleteOptions"),
            "Status" if group.is_empty() => return Self::named("meta.v1.Status"),
            _ => {}
        }
        let package = match group.split('.').next() {
            Some("") | None => "core",
            Some(package) => package,
        };
        Self::named(&format!("{package}.{version}.{kind}"))
    }

    fn named(name: &str) -> Option<&'static Self> {
        TABLE.get(name)
    }

    fn definition(&'static self) -> &'static GoDefinition {
        self.parsed
            .get_or_init(|| GoDefinition::parse(self.name, self.text))
    }

    /// Returns the name without its package, as messages have it.
    fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Returns the name as Go prints it, e.g. `v1.DeploymentSpec`.
    fn go_name(&self) -> &'static str {
        let mut dots = self.name.rmatch_indices('.').map(|(at, _)| at);
        dots.nth(1).map_or(self.name, |at| &self.name[at + 1..])
    }

    /// Returns the JSON of an object of which nothing is set.
    pub(crate) fn blank(&'static self) -> Value {
        match self.definition() {
            GoDefinition::Alias(value) => value.zero(),
            GoDefinition::Struct(it) => {
                let mut fields = Map::new();
                it.fill(&mut fields);
                fields.into()
            }
        }
    }
}

impl GoDefinition {
    fn parse(name: &str, text: &'static str) -> Self {
        if let Some(value) = text.strip_prefix("= ") {
            return Self::Alias(FieldType::parse(value));
        }
        let mut words = text.split(' ').peekable();
        let atomic = words.next_if_eq(&":[atomic]").is_some();
        let is_object = words.next_if_eq(&"@").is_some();
        let fields: Vec<_> = words.filter_map(GoField::parse).collect();
        let in_table = fields
            .iter()
            .filter_map(|field| Some((field.name, field.default.clone()?)));
        let mut defaults: Vec<_> = in_table.collect();
        let in_code = defaults::CONSTANT.iter().find(|(it, _)| *it == name);
        for (field, default) in in_code.into_iter().flat_map(|(_, fields)| *fields) {
            let default = serde_json::from_str(default).expect("the defaults are JSON");
            defaults.push((*field, default));
        }
        Self::Struct(StructType {
            atomic,
            is_object,
            fields,
            defaults,
        })
    }
}

impl StructType {
    /// Adds the fields that JSON has even if they are not set.
    fn fill(&self, object: &mut Map<String, Value>) {
        for field in &self.fields {
            if field.name.is_empty() {
                if let Some(inline) = field.value.as_struct() {
                    inline.fill(object);
                }
            } else if !field.omits_empty && !object.contains_key(field.name) {
                object.insert(field.name.to_owned(), field.value.zero());
            }
        }
    }

    /// Adds a null for each field that JSON has even if it is not set.
    fn add_missing(&self, object: &mut Map<String, Value>) {
        for field in &self.fields {
            if field.name.is_empty() {
                if let Some(inline) = field.value.as_struct() {
                    inline.add_missing(object);
                }
            } else if !field.omits_empty {
                object.entry(field.name).or_insert(Value::Null);
            }
        }
    }

    /// Sets the defaults of the fields that are not set.
    fn set_defaults(&self, object: &mut Map<String, Value>) {
        for (name, default) in &self.defaults {
            let is_set = match (
                object.get(*name),
                self.field(name).map(|(field, _)| &field.value),
            ) {
                (None | Some(Value::Null), _) => false,
                (Some(_), None | Some(FieldType::Pointer(_))) => true,
                (Some(found), Some(value)) => *found != value.zero(),
            };
            if !is_set {
                object.insert((*name).to_owned(), default.clone());
            }
        }
    }

    /// Returns a field by its name in JSON, with the embedded structs that it is in.
    fn field(&self, name: &str) -> Option<(&GoField, Vec<&'static str>)> {
        self.fields.iter().find_map(|field| {
            if !field.name.is_empty() {
                return (field.name == name).then(|| (field, Vec::new()));
            }
            let (found, mut embedded) = field.value.as_struct()?.field(name)?;
            embedded.insert(0, field.value.short_name());
            Some((found, embedded))
        })
    }
}

impl GoField {
    /// Parses `NAME:NUMBER:TYPE`, and what stands behind it.
    fn parse(word: &'static str) -> Option<Self> {
        let (name, rest) = word.split_once(':')?;
        let (number, rest) = rest.split_once(':')?;
        let (rest, default) = match rest.split_once('=') {
            Some((rest, default)) => (rest, serde_json::from_str(default).ok()),
            None => (rest, None),
        };
        let (rest, merge_key) = match rest.split_once('<') {
            Some((rest, key)) => (rest, key.strip_suffix('>')),
            None => (rest, None),
        };
        // The brackets of a list come first.
        let end = rest.rfind('[').filter(|&at| !rest[at..].starts_with("[]"));
        let (value, ownership) = match end {
            Some(at) => (&rest[..at], Ownership::parse(&rest[at..])),
            None => (rest, Ownership::Granular),
        };
        Some(Self {
            name: name.trim_end_matches('?').trim_end_matches('^'),
            omits_empty: name.ends_with('?'),
            number: number.parse().unwrap_or(0),
            value: FieldType::parse(value),
            ownership,
            merge_key,
            default,
        })
    }
}

impl Ownership {
    fn parse(text: &str) -> Self {
        match text.trim_matches(['[', ']']) {
            "set" => Self::Set,
            "atomic" => Self::Atomic,
            map => {
                let keys = map.trim_start_matches("map:").split(',');
                Self::Map(keys.map(str::to_owned).collect())
            }
        }
    }
}

impl FieldType {
    fn parse(text: &'static str) -> Self {
        let below = |rest| Box::new(Self::parse(rest));
        if let Some(rest) = text.strip_prefix('*') {
            return Self::Pointer(below(rest));
        }
        if let Some(rest) = text.strip_prefix("[]") {
            return Self::List(below(rest));
        }
        if let Some(rest) = text.strip_prefix("map:") {
            return Self::Map(below(rest));
        }
        match text {
            "bytes" => Self::Bytes,
            "string" => Self::Text,
            "bool" => Self::Flag,
            "int32" => Self::Int32,
            "int64" | "int" => Self::Int64,
            "float64" => Self::Float,
            "meta.v1.Time" => Self::Own(OwnForm::Time),
            "meta.v1.MicroTime" => Self::Own(OwnForm::MicroTime),
            "api.resource.Quantity" => Self::Own(OwnForm::Quantity),
            "util.intstr.IntOrString" => Self::Own(OwnForm::IntOrString),
            "apiextensions.v1.JSONSchemaPropsOrBool" => Self::Own(OwnForm::SchemaOrBool),
            "apiextensions.v1.JSONSchemaPropsOrArray" => Self::Own(OwnForm::SchemaOrArray),
            "apiextensions.v1.JSONSchemaPropsOrStringArray" => Self::Own(OwnForm::SchemaOrTexts),
            name => GoType::named(name).map_or(Self::Own(OwnForm::Json), Self::Named),
        }
    }

    fn as_struct(&self) -> Option<&'static StructType> {
        match self {
            Self::Pointer(value) => value.as_struct(),
            Self::Named(named) => match named.definition() {
                GoDefinition::Struct(it) => Some(it),
                GoDefinition::Alias(value) => value.as_struct(),
            },
            _ => None,
        }
    }

    /// Returns the name of a struct without its package.
    fn short_name(&self) -> &'static str {
        match self {
            Self::Pointer(value) => value.short_name(),
            Self::Named(named) => named.short_name(),
            _ => "",
        }
    }

    /// Returns the JSON of a value that is not set.
    fn zero(&self) -> Value {
        match self {
            Self::Text => "".into(),
            Self::Flag => false.into(),
            Self::Int32 | Self::Int64 | Self::Float | Self::Own(OwnForm::IntOrString) => 0.into(),
            Self::Named(named) => named.blank(),
            Self::Own(OwnForm::Quantity) => "0".into(),
            Self::Pointer(_) | Self::List(_) | Self::Map(_) | Self::Bytes | Self::Own(_) => {
                Value::Null
            }
        }
    }

    /// Returns the type as Go prints it.
    fn go_name(&self) -> String {
        match self {
            Self::Pointer(value) => value.go_name(),
            Self::List(value) => format!("[]{}", value.go_name()),
            Self::Map(value) => format!("map[string]{}", value.go_name()),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Flag => "bool".to_owned(),
            Self::Int32 => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::Float => "float64".to_owned(),
            Self::Named(named) => named.go_name().to_owned(),
            Self::Own(own) => own.go_name().to_owned(),
        }
    }
}

impl OwnForm {
    fn go_name(self) -> &'static str {
        match self {
            Self::Time => "v1.Time",
            Self::MicroTime => "v1.MicroTime",
            Self::Quantity => "resource.Quantity",
            Self::IntOrString => "intstr.IntOrString",
            Self::Json => "v1.JSON",
            Self::SchemaOrBool => "v1.JSONSchemaPropsOrBool",
            Self::SchemaOrArray => "v1.JSONSchemaPropsOrArray",
            Self::SchemaOrTexts => "v1.JSONSchemaPropsOrStringArray",
        }
    }
}
