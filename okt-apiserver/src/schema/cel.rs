//! Checks objects against the CEL rules of their schema.
//!
//! The `cel` crate evaluates; kube's `cel` feature adds the functions of Kubernetes to it. This module decides what an
//! expression sees of an object, when a rule runs and how a refusal is worded, because kube's own validator supports
//! neither `optionalOldSelf` nor the API server's wording.

mod check;
mod compile;
mod depth;
mod functions;
mod library;
mod macros;
mod merge;
mod node;
mod parse;
mod quantifier;
mod repair;
mod rule;
mod text;
mod types;
mod used;
mod value;

pub(crate) use check::RuleMistake;
pub(crate) use parse::parse_plain;
pub(crate) use rule::CelRule;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::core::cel::cel::objects::OptionalValue;
use kube::core::cel::cel::{Context, ExecutionError, IdedExpr, Value as CelValue};
use serde_json::Value;

use self::{functions::FUNCTIONS, rule::Reason};
use crate::causes::Causes;
use crate::refusal::Refusal;
use crate::schema::{Schema, old_item};

impl CelRule {
    fn run(
        &self,
        raw: &Value,
        value: &CelValue,
        old: Option<&CelValue>,
        (path, tolerated): (&str, bool),
        causes: &mut Causes,
    ) -> Result<(), Refusal> {
        let mut scope = FUNCTIONS.new_inner_scope();
        scope.add_variable_from_value("self", value.clone());
        if self.is_optional {
            let old = old
                .cloned()
                .map_or_else(OptionalValue::none, OptionalValue::of);
            scope.add_variable_from_value("oldSelf", CelValue::Opaque(Arc::new(old)));
        } else if let Some(old) = old {
            scope.add_variable_from_value("oldSelf", old.clone());
        }
        let message = match evaluate(&self.expression, &scope) {
            Ok(CelValue::Bool(true)) => return Ok(()),
            // A false result is tolerated for an unchanged value; an evaluation error is not.
            Ok(CelValue::Bool(false)) if tolerated => return Ok(()),
            Ok(CelValue::Bool(false)) => self.explain(value, old),
            Ok(_) => format!("rule does not evaluate to a boolean: {}", self.text),
            Err(NoValue::NotKnown(name)) => {
                return Err(Refusal::not_served(format!(
                    "the CEL rule \"{}\" uses '{name}', which its CEL library does not know",
                    self.text
                )));
            }
            Err(NoValue::Panicked) => {
                return Err(Refusal::not_served(format!(
                    "the CEL rule \"{}\", on which its CEL library panics",
                    self.text
                )));
            }
            Err(NoValue::Evaluating(error)) => {
                let rule = self.message.as_deref().unwrap_or(&self.text);
                let detail = if matches!(error, ExecutionError::NoSuchOverload) {
                    format!(
                        "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
                    )
                } else {
                    format!("{error} evaluating rule: {rule}")
                };
                let field = path.strip_prefix('.').unwrap_or(path);
                causes.invalid(field, self.kind, &detail);
                return Ok(());
            }
        };
        let whole = format!("{path}{}", self.field_path);
        let field = whole.strip_prefix('.').unwrap_or(&whole);
        let compound = raw.is_object() || raw.is_array();
        match self.reason {
            Reason::Invalid if compound => causes.faulty(field, &message),
            Reason::Invalid => causes.invalid(field, raw, &message),
            Reason::Forbidden => causes.forbidden(field, &message),
            Reason::Required => causes.required(field, &message),
            Reason::Duplicate => causes.duplicate(field, raw),
        }
        Ok(())
    }

    fn explain(&self, value: &CelValue, old: Option<&CelValue>) -> String {
        let mut scope = FUNCTIONS.new_inner_scope();
        scope.add_variable_from_value("self", value.clone());
        // Here the server has no optional, so with `optionalOldSelf` an expression that uses the old value fails.
        if let Some(old) = old {
            scope.add_variable_from_value("oldSelf", old.clone());
        }
        let computed = self
            .message_expression
            .as_ref()
            .and_then(|expression| match evaluate(expression, &scope) {
                Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
                _ => None,
            })
            .filter(|text| !text.is_empty() && !text.contains('\n'));
        computed
            .or_else(|| self.message.clone())
            .unwrap_or_else(|| format!("failed rule: {}", self.text))
    }
}

/// Adds the violated rules of all levels to `causes`.
///
/// With `again` the rules of unchanged values run too, because the schema may have changed since.
///
/// # Errors
/// A rule cannot be evaluated here at all.
pub(crate) fn check_rules(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    again: bool,
    causes: &mut Causes,
) -> Result<(), Refusal> {
    let old = Old {
        value: old,
        unchanged: false,
        again,
    };
    walk(schema, value, old, "", causes)
}

/// Whether a condition outside of a schema holds, with these variables.
///
/// # Errors
/// It cannot be evaluated: why.
pub(crate) fn holds(source: &str, variables: &[(&str, Value)]) -> Result<bool, String> {
    let expression = parse_plain(source).map_err(|mistake| match mistake {
        RuleMistake::Wrong(why) | RuleMistake::Lacking(why) => why,
    })?;
    let mut scope = FUNCTIONS.new_inner_scope();
    for (name, value) in variables {
        scope
            .add_variable(*name, value)
            .map_err(|error| error.to_string())?;
    }
    match evaluate(&expression, &scope) {
        Ok(CelValue::Bool(holds)) => Ok(holds),
        Ok(_) => Err("it is no boolean".to_owned()),
        Err(NoValue::Evaluating(error)) => Err(error.to_string()),
        Err(NoValue::NotKnown(name)) => Err(format!("undeclared reference to '{name}'")),
        Err(NoValue::Panicked) => Err("the CEL library panics on it".to_owned()),
    }
}

/// The previous value.
#[derive(Clone, Copy)]
struct Old<'v> {
    value: Option<&'v Value>,
    /// The value is unchanged, or part of an unchanged value.
    unchanged: bool,
    again: bool,
}

impl<'v> Old<'v> {
    fn below(self, value: Option<&'v Value>) -> Self {
        Self { value, ..self }
    }
}

fn walk(
    schema: &Schema,
    value: &Value,
    old: Old<'_>,
    path: &str,
    causes: &mut Causes,
) -> Result<(), Refusal> {
    if value.is_null() {
        return Ok(());
    }
    let old = Old {
        unchanged: old.value.map_or(old.unchanged, |old| old == value),
        ..old
    };
    let before = old.value.filter(|old| !old.is_null());
    for rule in &schema.rules {
        let runs = if rule.is_transition {
            rule.is_optional || before.is_some()
        } else {
            !old.unchanged || old.again
        };
        if runs {
            let tolerated = old.unchanged && !rule.is_transition;
            let now = value::bind(schema, value, &rule.used);
            let before = before.map(|before| value::bind(schema, before, &rule.used));
            rule.run(value, &now, before.as_ref(), (path, tolerated), causes)?;
        }
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let Some(below) = schema.field(key).filter(|below| below.has_rules()) {
                    let path = match (schema.properties.contains_key(key), path) {
                        (false, path) => format!("{path}[{key}]"),
                        (true, "") => key.clone(),
                        (true, path) => format!("{path}.{key}"),
                    };
                    let before = old.value.and_then(|old| old.get(key));
                    walk(below, value, old.below(before), &path, causes)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = schema.items.as_deref().filter(|below| below.has_rules()) {
                for (index, item) in items.iter().enumerate() {
                    let before = old_item(schema, item, old.value);
                    let path = format!("{path}[{index}]");
                    walk(below, item, old.below(before), &path, causes)?;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// The reason why an expression has no value.
enum NoValue {
    NotKnown(String),
    Evaluating(ExecutionError),
    Panicked,
}

fn evaluate(expression: &IdedExpr, scope: &Context<'_>) -> Result<CelValue, NoValue> {
    // The library contains asserts; a client must not be able to crash the server with one.
    match catch_unwind(AssertUnwindSafe(|| CelValue::resolve(expression, scope))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ExecutionError::UndeclaredReference(name))) => {
            Err(NoValue::NotKnown(name.to_string()))
        }
        Ok(Err(error)) => Err(NoValue::Evaluating(error)),
        Err(_) => Err(NoValue::Panicked),
    }
}
