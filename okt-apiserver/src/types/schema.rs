//! Makes the schema of a kind from its Go type, as server-side apply and patches use it.

use std::collections::BTreeMap;

use super::{FieldType, GoDefinition, GoField, GoType, OwnForm, Ownership, StructType};
use crate::schema::{Additional, ListType, Schema, Type};

/// Returns the schema of the fields of a kind, without `apiVersion`, `kind` and `metadata`.
pub(crate) fn schema_of(kind: &'static GoType) -> Schema {
    let mut schema = match kind.definition() {
        GoDefinition::Struct(it) => of_struct(it),
        GoDefinition::Alias(it) => of_value(it),
    };
    for field in ["apiVersion", "kind", "metadata"] {
        schema.properties.remove(field);
    }
    schema
}

fn of_struct(it: &'static StructType) -> Schema {
    let mut properties = BTreeMap::new();
    add_fields(it, &mut properties);
    if it.is_object {
        for field in ["apiVersion", "kind"] {
            properties.insert(field.to_owned(), of_value(&FieldType::Text));
        }
    }
    Schema {
        kind: Some(Type::Object),
        properties,
        atomic_map: it.atomic,
        ..Schema::default()
    }
}

fn add_fields(it: &'static StructType, properties: &mut BTreeMap<String, Schema>) {
    for field in &it.fields {
        if !field.name.is_empty() {
            properties.insert(field.name.to_owned(), of_field(field));
        } else if let Some(inline) = field.value.as_struct() {
            add_fields(inline, properties);
        }
    }
}

fn of_field(field: &'static GoField) -> Schema {
    let mut schema = of_value(&field.value);
    schema.default.clone_from(&field.default);
    match &field.ownership {
        Ownership::Granular => {}
        Ownership::Atomic => schema.atomic_map = schema.kind == Some(Type::Object),
        Ownership::Set => schema.list = ListType::Set,
        Ownership::Map(keys) => {
            schema.list = ListType::Map(keys.clone());
            for key in keys {
                // A key that an item leaves out has the zero value of Go.
                let items = schema.items.as_mut();
                let key = items.and_then(|items| items.properties.get_mut(key));
                if let Some(key) = key.filter(|key| key.default.is_none()) {
                    key.default = match key.kind {
                        Some(Type::String) => Some("".into()),
                        Some(Type::Integer) => Some(0.into()),
                        _ => None,
                    };
                }
            }
        }
    }
    schema.merge_key = field.merge_key;
    schema
}

fn of_value(it: &'static FieldType) -> Schema {
    let simple = |kind: Type| Schema {
        kind: Some(kind),
        ..Schema::default()
    };
    match it {
        FieldType::Pointer(to) => of_value(to),
        FieldType::List(of) => Schema {
            items: Some(Box::new(of_value(of))),
            ..simple(Type::Array)
        },
        FieldType::Map(of) => Schema {
            additional: Additional::Of(Box::new(of_value(of))),
            ..simple(Type::Object)
        },
        FieldType::Bytes => Schema {
            nullable: true,
            ..simple(Type::String)
        },
        FieldType::Flag => simple(Type::Boolean),
        FieldType::Int32 | FieldType::Int64 => simple(Type::Integer),
        FieldType::Float => simple(Type::Number),
        FieldType::Named(named) => match named.definition() {
            GoDefinition::Struct(it) => of_struct(it),
            GoDefinition::Alias(it) => of_value(it),
        },
        FieldType::Text | FieldType::Own(OwnForm::Time | OwnForm::MicroTime) => {
            simple(Type::String)
        }
        FieldType::Own(OwnForm::Quantity | OwnForm::IntOrString) => Schema {
            int_or_string: true,
            ..Schema::default()
        },
        FieldType::Own(_) => Schema {
            keeps_unknown: true,
            ..Schema::default()
        },
    }
}
