//! This file finds the mistakes of an expression that the API server finds when a CRD is created.
//!
//! The `cel` crate has no type checker. What is looked for here are the mistakes that are made:
//! names, functions and fields that do not exist.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube::core::cel::cel::{
    ExecutionError, IdedExpr, Value as CelValue,
    common::ast::{CallExpr, EntryExpr, Expr},
};

use super::{FUNCTIONS, value::escape};
use crate::schema::{Additional, Schema, Type};

/// Says what is wrong with an expression over values of `schema`.
pub(crate) fn check(
    expression: &IdedExpr,
    schema: &Schema,
    old_is_optional: bool,
) -> Result<(), Mistake> {
    let own = Known::Of(schema);
    let old = if old_is_optional { Known::Nothing } else { own };
    let mut scope = vec![("self", own), ("oldSelf", old)];
    walk(expression, &mut scope).map(drop)
}

/// Why an expression cannot be used.
pub(crate) enum Mistake {
    /// The server would refuse it too.
    Wrong(String),
    /// The server knows this name, and the library does not.
    Lacking(String),
}

impl Mistake {
    fn undeclared(name: &str) -> Self {
        if LACKING.contains(&name) {
            Self::Lacking(name.to_owned())
        } else {
            Self::Wrong(format!(
                "undeclared reference to '{name}' (in container '')"
            ))
        }
    }
}

/// What CEL in Kubernetes has and the `cel` crate has not.
const LACKING: [&str; 28] = [
    "type",
    "bool",
    "bytes",
    "double",
    "int",
    "uint",
    "string",
    "list",
    "map",
    "null_type",
    "optional_type",
    "duration",
    "timestamp",
    "optMap",
    "optFlatMap",
    "optional.ofNonZeroValue",
    "cel.bind",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "existsOne",
    "sortBy",
    "first",
    "last",
    "slice",
    "flatten",
    "distinct",
    "authorizer",
];

/// What is known of the type of an expression.
#[derive(Clone, Copy)]
enum Known<'s> {
    Nothing,
    Of(&'s Schema),
}

type Scope<'e, 's> = Vec<(&'e str, Known<'s>)>;

fn walk<'e, 's>(node: &'e IdedExpr, scope: &mut Scope<'e, 's>) -> Result<Known<'s>, Mistake> {
    match &node.expr {
        Expr::Unspecified | Expr::Literal(_) => Ok(Known::Nothing),
        Expr::Ident(name) => scope
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, known)| *known)
            .ok_or_else(|| Mistake::undeclared(name)),
        Expr::Select(select) => {
            let operand = walk(&select.operand, scope)?;
            let found = field(operand, &select.field)?;
            Ok(if select.test { Known::Nothing } else { found })
        }
        Expr::Call(call) => walk_call(call, scope),
        Expr::List(list) => {
            for element in &list.elements {
                walk(element, scope)?;
            }
            Ok(Known::Nothing)
        }
        Expr::Map(map) => {
            for entry in &map.entries {
                match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        walk(&entry.key, scope)?;
                        walk(&entry.value, scope)?;
                    }
                    EntryExpr::StructField(field) => {
                        walk(&field.value, scope)?;
                    }
                }
            }
            Ok(Known::Nothing)
        }
        Expr::Struct(structure) => Err(Mistake::undeclared(&structure.type_name)),
        Expr::Comprehension(comprehension) => {
            let range = walk(&comprehension.iter_range, scope)?;
            let item = match range {
                Known::Of(schema) if schema.kind == Some(Type::Array) => {
                    schema.items.as_deref().map_or(Known::Nothing, Known::Of)
                }
                _ => Known::Nothing,
            };
            walk(&comprehension.accu_init, scope)?;
            let outer = scope.len();
            scope.push((comprehension.accu_var.as_str(), Known::Nothing));
            scope.push((comprehension.iter_var.as_str(), item));
            if let Some(second) = &comprehension.iter_var2 {
                scope.push((second.as_str(), Known::Nothing));
            }
            for part in [
                &comprehension.loop_cond,
                &comprehension.loop_step,
                &comprehension.result,
            ] {
                walk(part, scope)?;
            }
            scope.truncate(outer);
            Ok(Known::Nothing)
        }
    }
}

fn walk_call<'e, 's>(call: &'e CallExpr, scope: &mut Scope<'e, 's>) -> Result<Known<'s>, Mistake> {
    let mut name = call.func_name.clone();
    if let Some(target) = &call.target {
        match &target.expr {
            // A function of a library (e.g. `math.greatest`), not of a value.
            Expr::Ident(library) if !scope.iter().any(|(known, _)| known == library) => {
                name = format!("{library}.{name}");
            }
            _ => {
                walk(target, scope)?;
            }
        }
    }
    if !is_operator(&name) && !exists(&name) {
        return Err(Mistake::undeclared(&name));
    }
    let mut known = Vec::new();
    for argument in &call.args {
        known.push(walk(argument, scope)?);
    }
    Ok(match (name.as_str(), known.first()) {
        ("_[_]", Some(Known::Of(schema))) => match (&schema.items, &schema.additional) {
            (Some(items), _) => Known::Of(items),
            (None, Additional::Of(values)) => Known::Of(values),
            (None, _) => Known::Nothing,
        },
        _ => Known::Nothing,
    })
}

fn field<'s>(operand: Known<'s>, name: &str) -> Result<Known<'s>, Mistake> {
    let Known::Of(schema) = operand else {
        return Ok(Known::Nothing);
    };
    if let Some((_, below)) = schema
        .properties
        .iter()
        .find(|(property, below)| !below.hidden && escape(property) == name)
    {
        return Ok(Known::Of(below));
    }
    match (&schema.additional, schema.kind) {
        (Additional::Of(values), _) => Ok(Known::Of(values)),
        (_, Some(Type::Object)) => Err(Mistake::Wrong(format!("undefined field '{name}'"))),
        (_, Some(kind)) if !schema.int_or_string => Err(Mistake::Wrong(format!(
            "type '{}' does not support field selection",
            kind.name()
        ))),
        _ => Ok(Known::Nothing),
    }
}

fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@']) || name == "@in"
}

/// Asked by calling it with nothing: the registry cannot be read.
fn exists(name: &str) -> bool {
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args: Vec::new(),
        }),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| CelValue::resolve(&call, &FUNCTIONS)));
    !matches!(outcome, Ok(Err(ExecutionError::UndeclaredReference(_))))
}
