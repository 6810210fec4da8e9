//! This file turns the OpenAPI schema of a kind into a structural schema.
//!
//! It is read once, when the kind is made known; writes walk the result.

mod defaults;
mod validate;

pub(crate) use defaults::{apply_defaults, prune};
pub(crate) use validate::{old_item, validate};

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::{cel::Rule, refusal::Cause};

/// A node of a structural schema.
#[derive(Debug, Default)]
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
    /// Fields without a schema of their own are kept.
    pub(crate) keeps_unknown: bool,
    pub(crate) int_or_string: bool,
    /// The value is a Kubernetes object of its own.
    pub(crate) embedded: bool,
    pub(crate) list: ListType,
    /// The map is owned as a whole.
    pub(crate) atomic_map: bool,
    pub(crate) rules: Vec<Rule>,
    /// CEL rules cannot name the field.
    pub(crate) hidden: bool,
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

/// What a map may hold beside its properties.
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

/// How the items of a list are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list is one value.
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
    /// The schema of the fields below `key`, if it is declared.
    pub(crate) fn field(&self, key: &str) -> Option<&Schema> {
        self.properties.get(key).or(match &self.additional {
            Additional::Of(schema) => Some(schema),
            Additional::None | Additional::Anything => None,
        })
    }

    /// Whether a field that is not declared is kept.
    pub(crate) fn takes_any_field(&self) -> bool {
        self.keeps_unknown || matches!(self.additional, Additional::Anything)
    }

    /// Holds a value against the types alone.
    pub(crate) fn check_types(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        if value.is_null() {
            return;
        }
        if let Some(kind) = self.kind
            && !kind.holds(value)
        {
            let detail = format!("must be of type {}", kind.name());
            causes.push(Cause::mistyped(path, value, &detail));
            return;
        }
        if self.format.as_deref() == Some("date-time")
            && !value
                .as_str()
                .is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok())
        {
            causes.push(Cause::mistyped(path, value, "must be a time in RFC 3339"));
        }
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    if let Some(below) = self.field(key) {
                        below.check_types(value, &format!("{path}.{key}"), causes);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(below) = &self.items {
                        below.check_types(item, &format!("{path}[{index}]"), causes);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
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

    /// A schema that takes everything, with known shapes where they matter.
    ///
    /// `known` is an OpenAPI schema of this crate's own making.
    pub(crate) fn of_builtin(known: Value) -> Self {
        let mut root = known;
        let fields = crate::object::fields(&mut root);
        fields.insert("type".to_owned(), "object".into());
        fields.insert(
            "x-kubernetes-preserve-unknown-fields".to_owned(),
            true.into(),
        );
        Self::parse_root(&root).expect("the schemas of built-in kinds are part of this crate")
    }

    /// Reads the schema of a whole object.
    ///
    /// # Errors
    /// All that makes the schema unusable, each with its path.
    pub(crate) fn parse_root(schema: &Value) -> Result<Self, Vec<Cause>> {
        let mut causes = Vec::new();
        let root = parse(
            schema,
            "spec.validation.openAPIV3Schema",
            Place::ROOT,
            &mut causes,
        );
        if causes.is_empty() {
            Ok(root)
        } else {
            Err(causes)
        }
    }

    /// Declares `apiVersion`, `kind` and `metadata`, which no schema has to.
    fn add_object_fields(&mut self) {
        let own = self.properties.remove("metadata");
        let mut metadata = object_meta();
        if let Some(own) = own {
            // A schema may narrow the name, and nothing else of metadata.
            for (key, schema) in own.properties {
                if key == "name" || key == "generateName" {
                    metadata.properties.insert(key, schema);
                }
            }
        }
        self.properties.insert("metadata".to_owned(), metadata);
        for key in ["apiVersion", "kind"] {
            self.properties.insert(
                key.to_owned(),
                Schema {
                    kind: Some(Type::String),
                    ..Schema::default()
                },
            );
        }
    }
}

fn object_meta() -> Schema {
    static META: LazyLock<Value> = LazyLock::new(|| {
        let text = json!({ "type": "string" });
        let time = json!({ "type": "string", "format": "date-time", "nullable": true });
        let texts = json!({ "type": "object", "additionalProperties": text });
        json!({
            "type": "object",
            "properties": {
                "name": text, "generateName": text, "namespace": text, "selfLink": text,
                "uid": text, "resourceVersion": text,
                "generation": { "type": "integer" },
                "creationTimestamp": time, "deletionTimestamp": time,
                "deletionGracePeriodSeconds": { "type": "integer" },
                "labels": texts, "annotations": texts,
                "finalizers": { "type": "array", "items": text, "x-kubernetes-list-type": "set" },
                "ownerReferences": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["uid"],
                    "items": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "required": ["uid"],
                        "properties": {
                            "apiVersion": text, "kind": text, "name": text, "uid": text,
                            "controller": { "type": "boolean" },
                            "blockOwnerDeletion": { "type": "boolean" },
                        },
                    },
                },
                "managedFields": {
                    "type": "array",
                    "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                },
            },
        })
    });
    let mut causes = Vec::new();
    let mut schema = parse(&META, "metadata", Place::ROOT.below(), &mut causes);
    debug_assert!(causes.is_empty(), "{causes:?}");
    for (key, property) in &mut schema.properties {
        property.hidden = key != "name" && key != "generateName";
    }
    schema
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct Place {
    root: bool,
    /// Below allOf, anyOf, oneOf or not, where types are optional.
    junctor: bool,
    /// An old value can be found for a new one.
    correlatable: bool,
}

impl Place {
    const ROOT: Self = Self {
        root: true,
        junctor: false,
        correlatable: true,
    };

    fn below(self) -> Self {
        Self {
            root: false,
            ..self
        }
    }

    fn junctor(self) -> Self {
        Self {
            root: false,
            junctor: true,
            ..self
        }
    }
}

fn parse(raw: &Value, path: &str, place: Place, causes: &mut Vec<Cause>) -> Schema {
    let Some(node) = raw.as_object() else {
        causes.push(Cause::invalid(path, raw, "must be a schema object"));
        return Schema::default();
    };
    let mut schema = Schema {
        nullable: flag(node, "nullable"),
        keeps_unknown: flag(node, "x-kubernetes-preserve-unknown-fields"),
        int_or_string: flag(node, "x-kubernetes-int-or-string"),
        embedded: flag(node, "x-kubernetes-embedded-resource"),
        atomic_map: node.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
        required: texts(node, "required"),
        values: node.get("enum").and_then(Value::as_array).cloned(),
        format: text(node, "format"),
        multiple_of: node.get("multipleOf").and_then(Value::as_f64),
        minimum: bound(node, "minimum", "exclusiveMinimum"),
        maximum: bound(node, "maximum", "exclusiveMaximum"),
        min_length: count(node, "minLength"),
        max_length: count(node, "maxLength"),
        min_items: count(node, "minItems"),
        max_items: count(node, "maxItems"),
        min_properties: count(node, "minProperties"),
        max_properties: count(node, "maxProperties"),
        default: node.get("default").cloned(),
        list: list_type(node),
        ..Schema::default()
    };
    parse_type(node, path, place.junctor, &mut schema, causes);
    if let Some(pattern) = text(node, "pattern") {
        match Regex::new(&pattern) {
            Ok(regex) => schema.pattern = Some((pattern, regex)),
            Err(error) => causes.push(Cause::invalid(
                format!("{path}.pattern"),
                &pattern.into(),
                &format!("must be a valid regular expression, but isn't: {error}"),
            )),
        }
    }
    if let Some(Value::Object(properties)) = node.get("properties") {
        for (key, raw) in properties {
            let path = format!("{path}.properties[{key}]");
            schema
                .properties
                .insert(key.clone(), parse(raw, &path, place.below(), causes));
        }
    }
    match node.get("additionalProperties") {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => schema.additional = Additional::Anything,
        Some(raw) => {
            let path = format!("{path}.additionalProperties");
            schema.additional = Additional::Of(Box::new(parse(raw, &path, place.below(), causes)));
        }
    }
    match node.get("items") {
        Some(raw) => {
            let path = format!("{path}.items");
            let place = Place {
                correlatable: place.correlatable && matches!(schema.list, ListType::Map(_)),
                ..place.below()
            };
            schema.items = Some(Box::new(parse(raw, &path, place, causes)));
        }
        None if schema.kind == Some(Type::Array) && !place.junctor => {
            causes.push(Cause::required(
                format!("{path}.items"),
                "must be specified",
            ));
        }
        None => {}
    }
    for (key, list) in [
        ("allOf", &mut schema.all_of),
        ("anyOf", &mut schema.any_of),
        ("oneOf", &mut schema.one_of),
    ] {
        for (index, raw) in members(node, key).iter().enumerate() {
            list.push(parse(
                raw,
                &format!("{path}.{key}[{index}]"),
                place.junctor(),
                causes,
            ));
        }
    }
    if let Some(raw) = node.get("not") {
        schema.not = Some(Box::new(parse(
            raw,
            &format!("{path}.not"),
            place.junctor(),
            causes,
        )));
    }
    if schema.embedded || place.root {
        schema.add_object_fields();
    }
    check_list_keys(path, &schema, causes);
    for (index, raw) in members(node, "x-kubernetes-validations").iter().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{index}]");
        if let Some(rule) = Rule::compile(raw, &path, place.correlatable, &schema, causes) {
            schema.rules.push(rule);
        }
    }
    check_default(path, &schema, causes);
    schema
}

fn parse_type(
    node: &Map<String, Value>,
    path: &str,
    junctor: bool,
    schema: &mut Schema,
    causes: &mut Vec<Cause>,
) {
    if node.contains_key("$ref") {
        causes.push(Cause::forbidden(
            format!("{path}.$ref"),
            "$ref is not supported",
        ));
    }
    let field = format!("{path}.type");
    match text(node, "type") {
        Some(name) => {
            schema.kind = Type::parse(&name);
            if schema.kind.is_none() {
                let supported = ["array", "boolean", "integer", "number", "object", "string"];
                causes.push(Cause::unsupported(
                    field,
                    &name.into(),
                    &supported.map(Value::from),
                ));
            }
        }
        None if junctor || schema.int_or_string || schema.keeps_unknown => {}
        None => causes.push(Cause::required(
            field,
            if path.ends_with(".items") {
                "must not be empty for specified array items"
            } else if path.ends_with(']') {
                "must not be empty for specified object fields"
            } else {
                "must not be empty at the root"
            },
        )),
    }
}

fn check_list_keys(path: &str, schema: &Schema, causes: &mut Vec<Cause>) {
    let ListType::Map(keys) = &schema.list else {
        return;
    };
    if keys.is_empty() {
        causes.push(Cause::required(
            format!("{path}.x-kubernetes-list-map-keys"),
            "must not be empty if x-kubernetes-list-type is map",
        ));
    }
    let Some(items) = &schema.items else { return };
    for key in keys {
        let property = format!("{path}.items.properties[{key}]");
        match items.properties.get(key) {
            None => causes.push(Cause::invalid(
                format!("{path}.x-kubernetes-list-map-keys"),
                &key.clone().into(),
                "entries must all be names of item properties",
            )),
            Some(item) if item.default.is_none() && !items.required.contains(key) => {
                causes.push(Cause::required(
                    format!("{property}.default"),
                    "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
                ));
            }
            Some(_) => {}
        }
    }
}

/// A default that the schema itself refuses would refuse every object.
fn check_default(path: &str, schema: &Schema, causes: &mut Vec<Cause>) {
    let Some(default) = &schema.default else {
        return;
    };
    let mut filled = default.clone();
    apply_defaults(schema, &mut filled);
    if filled.is_null() && schema.nullable {
        return;
    }
    validate(schema, &filled, None, &format!("{path}.default"), causes);
}

fn list_type(node: &Map<String, Value>) -> ListType {
    match node.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(node, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

fn bound(node: &Map<String, Value>, key: &str, exclusive: &str) -> Option<Bound> {
    Some(Bound {
        value: node.get(key)?.as_f64()?,
        exclusive: flag(node, exclusive),
    })
}

fn flag(node: &Map<String, Value>, key: &str) -> bool {
    node.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn count(node: &Map<String, Value>, key: &str) -> Option<u64> {
    node.get(key).and_then(Value::as_u64)
}

fn text(node: &Map<String, Value>, key: &str) -> Option<String> {
    let text = node.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn texts(node: &Map<String, Value>, key: &str) -> Vec<String> {
    members(node, key)
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn members<'a>(node: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    node.get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
