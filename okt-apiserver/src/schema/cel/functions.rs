//! Adds the functions and type names that the `cel` crate and kube's extensions lack.

use std::sync::{Arc, LazyLock};

use kube::core::cel::KubeCelExt;
use kube::core::cel::cel::extractors::This;
use kube::core::cel::cel::objects::{Opaque, OptionalValue};
use kube::core::cel::cel::{Context, ExecutionError, ResolveResult, Value};

use super::{merge, quantifier, text, types};

/// The functions, which are the same for all rules; there are more than a hundred.
pub(super) static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(context);

/// Returns all functions and type names that a rule can use.
fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("type", |value: Value| -> ResolveResult {
        Ok(type_of(&value))
    });
    context.add_function("dyn", |value: Value| -> ResolveResult { Ok(value) });
    context.add_function("bool", to_bool);
    context.add_function("optional.ofNonZeroValue", |value: Value| -> ResolveResult {
        Ok(optional((!value.is_zero()).then_some(value)))
    });
    context.add_function(
        "optional.unwrap",
        |list: Arc<Vec<Value>>| -> ResolveResult { Ok(unwrap(&list)) },
    );
    context.add_function(
        "unwrapOpt",
        |This(list): This<Arc<Vec<Value>>>| -> ResolveResult { Ok(unwrap(&list)) },
    );

    context.add_function(merge::EQUALS, merge::equals);
    context.add_function(merge::ADD, merge::add);
    text::add(&mut context);
    quantifier::add(&mut context);
    for name in types::NAMES {
        context.add_variable_from_value(name, TypeName::value(name));
    }
    context
}

/// A type as a value (e.g. the result of `type(1)`).
#[derive(Debug, PartialEq, Eq)]
struct TypeName(String);

impl TypeName {
    fn value(name: &str) -> Value {
        Value::Opaque(Arc::new(Self(name.to_owned())))
    }
}

impl Opaque for TypeName {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}

fn type_of(value: &Value) -> Value {
    TypeName::value(match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Function(..) => "function",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Opaque(opaque) => opaque.runtime_type_name(),
        Value::Null => "null_type",
    })
}

fn to_bool(value: Value) -> ResolveResult {
    match &value {
        Value::Bool(_) => Ok(value),
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true.into()),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false.into()),
            _ => Err(ExecutionError::function_error(
                "bool",
                "type conversion error from 'string' to 'bool'",
            )),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn optional(value: Option<Value>) -> Value {
    let value = value.map_or_else(OptionalValue::none, OptionalValue::of);
    Value::Opaque(Arc::new(value))
}

/// Returns the values that are present.
fn unwrap(list: &[Value]) -> Value {
    let present = list.iter().filter_map(|item| match item {
        Value::Opaque(opaque) => opaque.downcast_ref::<OptionalValue>()?.value().cloned(),
        other => Some(other.clone()),
    });
    Value::List(Arc::new(present.collect()))
}
