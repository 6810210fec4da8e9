//! Parses the `OpenAPI` schema of a kind into a structural schema, and reports why it is none.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::cel::{CelRule, check_rules};
use super::{
    Additional, Bound, ListType, Schema, Type, apply_defaults, drop_nulls, prune, structure,
    validate, validate_lists,
};
use crate::causes::Causes;
use crate::object;

impl Schema {
    /// Returns the schema of a whole object, whose own fields have this schema.
    pub(crate) fn of_object(mut fields: Self) -> Self {
        fields.add_object_fields();
        fields
    }

    /// Parses the schema of a whole object, which is at this path of a CRD.
    ///
    /// # Errors
    /// All errors of the schema, each with its path.
    pub(crate) fn parse_root(schema: &Value, path: &str) -> Result<Self, Causes> {
        let mut causes = Causes::default();
        structure::check_root(schema, path, &mut causes);
        let root = parse(schema, path, SchemaPlace::ROOT, &mut causes);
        if causes.is_empty() {
            Ok(root)
        } else {
            Err(causes)
        }
    }

    /// Declares `apiVersion`, `kind` and `metadata`, which a schema may omit.
    fn add_object_fields(&mut self) {
        let own = self.properties.remove("metadata");
        let mut metadata = object_meta();
        if let Some(own) = own {
            // A schema may restrict only the name within the metadata.
            for (key, schema) in own.properties {
                if key == "name" || key == "generateName" {
                    metadata.properties.insert(key, schema);
                }
            }
        }
        self.properties.insert("metadata".to_owned(), metadata);
        for key in ["apiVersion", "kind"] {
            let text = Schema {
                kind: Some(Type::String),
                ..Schema::default()
            };
            self.properties.insert(key.to_owned(), text);
        }
    }
}

/// The schema of `metadata`.
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
    let mut causes = Causes::default();
    let mut schema = parse(&META, "metadata", SchemaPlace::ROOT.below(), &mut causes);
    debug_assert!(causes.is_empty(), "{causes:?}");
    for (list, merge_key) in [("ownerReferences", "uid"), ("finalizers", "")] {
        if let Some(list) = schema.properties.get_mut(list) {
            list.merge_key = Some(merge_key);
            // An owner that leaves out its uid has the empty one of Go.
            let items = list.items.as_mut();
            if let Some(key) = items.and_then(|items| items.properties.get_mut(merge_key)) {
                key.default = Some("".into());
            }
        }
    }
    for (key, property) in &mut schema.properties {
        property.hidden = key != "name" && key != "generateName";
    }
    schema
}

/// The position of a node.
#[derive(Clone, Copy)]
struct SchemaPlace<'p> {
    root: bool,
    /// The node is below allOf, anyOf, oneOf or not, where types are optional.
    junctor: bool,
    /// The list whose items cannot be matched to their old values.
    uncorrelatable: Option<&'p str>,
}

impl SchemaPlace<'_> {
    const ROOT: Self = Self {
        root: true,
        junctor: false,
        uncorrelatable: None,
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

fn parse(node: &Value, path: &str, place: SchemaPlace<'_>, causes: &mut Causes) -> Schema {
    if !node.is_object() {
        causes.invalid(path, node, "must be a schema object");
        return Schema::default();
    }
    let mut schema = Schema {
        nullable: node["nullable"] == true,
        keeps_unknown: node["x-kubernetes-preserve-unknown-fields"] == true,
        int_or_string: node["x-kubernetes-int-or-string"] == true,
        embedded: node["x-kubernetes-embedded-resource"] == true,
        atomic_map: node["x-kubernetes-map-type"] == "atomic",
        required: texts(node, "required"),
        values: node["enum"].as_array().cloned(),
        format: text(node, "format"),
        multiple_of: node["multipleOf"].as_f64(),
        minimum: bound(node, "minimum", "exclusiveMinimum"),
        maximum: bound(node, "maximum", "exclusiveMaximum"),
        min_length: node["minLength"].as_u64(),
        max_length: node["maxLength"].as_u64(),
        min_items: node["minItems"].as_u64(),
        max_items: node["maxItems"].as_u64(),
        min_properties: node["minProperties"].as_u64(),
        max_properties: node["maxProperties"].as_u64(),
        default: node.get("default").cloned(),
        list: list_type(node),
        ..Schema::default()
    };
    parse_type(node, path, place.junctor, &mut schema, causes);
    if let Some(pattern) = text(node, "pattern") {
        match Regex::new(&pattern) {
            Ok(regex) => schema.pattern = Some((pattern, regex)),
            Err(error) => causes.invalid(
                format!("{path}.pattern"),
                pattern,
                &format!("must be a valid regular expression, but isn't: {error}"),
            ),
        }
    }
    parse_children(node, path, place, &mut schema, causes);
    if schema.embedded || place.root {
        schema.add_object_fields();
    }
    check_list_keys(path, &schema, causes);
    let rules = object::items(node, &["x-kubernetes-validations"]);
    for (index, raw) in rules.iter().enumerate().filter(|_| !place.junctor) {
        let of = (&schema, schema.embedded || place.root);
        if let Some(rule) = CelRule::compile(raw, (path, index), place.uncorrelatable, of, causes) {
            schema.rules.push(rule);
        }
    }
    check_default(path, &schema, causes);
    schema
}

fn parse_children(
    node: &Value,
    path: &str,
    place: SchemaPlace<'_>,
    schema: &mut Schema,
    causes: &mut Causes,
) {
    if let Some(Value::Object(properties)) = node.get("properties") {
        for (key, raw) in properties {
            let path = format!("{path}.properties[{key}]");
            let property = parse(raw, &path, place.below(), causes);
            schema.properties.insert(key.clone(), property);
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
            let items = format!("{path}.items");
            let place = SchemaPlace {
                uncorrelatable: place
                    .uncorrelatable
                    .or((!matches!(schema.list, ListType::Map(_))).then_some(path)),
                ..place.below()
            };
            schema.items = Some(Box::new(parse(raw, &items, place, causes)));
        }
        None if schema.kind == Some(Type::Array) && !place.junctor => {
            causes.required(format!("{path}.items"), "must be specified");
        }
        None => {}
    }
    for (key, list) in [
        ("allOf", &mut schema.all_of),
        ("anyOf", &mut schema.any_of),
        ("oneOf", &mut schema.one_of),
    ] {
        for (index, raw) in object::items(node, &[key]).iter().enumerate() {
            let path = format!("{path}.{key}[{index}]");
            list.push(parse(raw, &path, place.junctor(), causes));
        }
    }
    if let Some(raw) = node.get("not") {
        let path = format!("{path}.not");
        schema.not = Some(Box::new(parse(raw, &path, place.junctor(), causes)));
    }
}

fn parse_type(node: &Value, path: &str, junctor: bool, schema: &mut Schema, causes: &mut Causes) {
    if node.get("$ref").is_some() {
        causes.forbidden(format!("{path}.$ref"), "$ref is not supported");
    }
    let field = format!("{path}.type");
    match text(node, "type") {
        Some(name) => {
            schema.kind = Type::parse(&name);
            if schema.kind.is_none() {
                let supported = ["array", "boolean", "integer", "number", "object", "string"];
                causes.unsupported(field, name, &supported);
            }
        }
        None if node.get("$ref").is_some() => {}
        None if junctor || schema.int_or_string || schema.keeps_unknown => {}
        None => causes.required(
            field,
            if path.rsplit('.').next() == Some("items") {
                "must not be empty for specified array items"
            } else if path.ends_with(']') {
                "must not be empty for specified object fields"
            } else {
                "must not be empty at the root"
            },
        ),
    }
}

fn check_list_keys(path: &str, schema: &Schema, causes: &mut Causes) {
    let ListType::Map(keys) = &schema.list else {
        return;
    };
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        causes.required(format!("{path}.x-kubernetes-list-map-keys"), detail);
    }
    let Some(items) = schema
        .items
        .as_ref()
        .filter(|items| items.kind == Some(Type::Object))
    else {
        return;
    };
    for key in keys {
        let property = format!("{path}.items.properties[{key}]");
        match items.properties.get(key) {
            None => causes.invalid(
                format!("{path}.x-kubernetes-list-map-keys"),
                keys.clone(),
                "entries must all be names of item properties",
            ),
            Some(item) if item.default.is_none() && !items.required.contains(key) => {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                causes.required(format!("{property}.default"), detail);
            }
            Some(_) => {}
        }
    }
}

/// Checks a default against its own schema; an invalid one would make the API refuse every object.
fn check_default(path: &str, schema: &Schema, causes: &mut Causes) {
    let Some(default) = &schema.default else {
        return;
    };
    let mut filled = default.clone();
    drop_nulls(schema, &mut filled);
    apply_defaults(schema, &mut filled);
    if filled.is_null() && schema.nullable {
        return;
    }
    let path = format!("{path}.default");
    if !prune(schema, &mut default.clone()).dropped.is_empty() {
        causes.invalid(path, default, "must not have unknown fields");
        return;
    }
    let mut found = Causes::default();
    validate(schema, &filled, None, "", &mut found);
    validate_lists(schema, &filled, "", &mut found);
    if found.is_empty() && check_rules(schema, &filled, None, false, &mut found).is_err() {
        causes.not_served(
            path,
            "a default under a rule that cannot be evaluated".to_owned(),
        );
        return;
    }
    for cause in found.iter_mut() {
        cause.message = cause.message.replace("<root> in body", " in body");
        cause.field = match cause.field.as_str() {
            "" => path.clone(),
            field => format!("{path}.{field}"),
        };
    }
    causes.append(&mut found);
}

fn list_type(node: &Value) -> ListType {
    match object::text(node, &["x-kubernetes-list-type"]) {
        "set" => ListType::Set,
        "map" => ListType::Map(texts(node, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

fn bound(node: &Value, key: &str, exclusive: &str) -> Option<Bound> {
    Some(Bound {
        value: node[key].as_f64()?,
        exclusive: node[exclusive] == true,
    })
}

fn text(node: &Value, key: &str) -> Option<String> {
    let text = object::text(node, &[key]);
    (!text.is_empty()).then(|| text.to_owned())
}

fn texts(node: &Value, key: &str) -> Vec<String> {
    let texts = object::texts(node, &[key]).into_iter();
    texts.map(str::to_owned).collect()
}
