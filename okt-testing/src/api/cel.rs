//! This file compiles the CEL rules of a schema and checks objects against them.
//!
//! The `cel` crate evaluates; kube's `cel` feature adds the functions of Kubernetes to it. This file decides what an
//! expression sees of an object, when a rule runs and how a refusal is worded, because kube's own validator supports
//! neither `optionalOldSelf` nor the API server's wording.

mod budget;
mod check;
mod compile;
mod cost;
mod decl;
mod depth;
mod functions;
mod known;
mod library;
mod macros;
mod merge;
mod quantifier;
mod repair;
mod text;
mod types;
mod value;

pub(crate) use budget::check_costs;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

use kube::core::cel::cel::{
    Context, ExecutionError, IdedExpr, Value as CelValue, objects::OptionalValue,
};
use serde_json::Value;

use self::{compile::Compiler, decl::Decl};
use crate::api::{
    refusal::{Cause, Refusal},
    schema::{Schema, Type, old_item},
};

/// One entry of `x-kubernetes-validations`.
pub(crate) struct Rule {
    expression: IdedExpr,
    text: String,
    message: Option<String>,
    message_expression: Option<IdedExpr>,
    reason: Reason,
    /// The path below the node that carries the rule (e.g. `.replicas`).
    field_path: String,
    /// The rule uses `oldSelf`.
    is_transition: bool,
    /// `oldSelf` is an optional, and the rule also runs without an old value.
    is_optional: bool,
    /// The position in the list of the schema.
    index: usize,
    /// The type of the values (e.g. `object`).
    kind: &'static str,
    /// The maximum cost of one evaluation.
    cost: u64,
    message_cost: Option<u64>,
    /// The maximum number of evaluations in one request, regardless of the limits of the schemas around it.
    most_in_request: u64,
}

#[derive(Clone, Copy, Debug)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.text).finish()
    }
}

/// The functions, which are the same for all rules; there are more than a hundred.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(functions::context);

impl Rule {
    /// Compiles one entry and adds its errors to `causes`.
    pub(crate) fn compile(
        raw: &Value,
        (path, index): (&str, usize),
        uncorrelatable: Option<&str>,
        (schema, is_object): (&Schema, bool),
        causes: &mut Vec<Cause>,
    ) -> Option<Self> {
        let list = format!("{path}.x-kubernetes-validations");
        let path = format!("{list}[{index}]");
        let text = |key: &str| {
            raw.get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.trim().is_empty())
                .map(str::to_owned)
        };
        let Some(rule) = text("rule") else {
            causes.push(Cause::required(
                format!("{path}.rule"),
                "rule is not specified",
            ));
            return None;
        };
        if !compile::check_texts(raw, &path, schema, causes) {
            return None;
        }
        let is_optional = raw.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
        let Some(decl) = Decl::of(schema, is_object) else {
            if index == 0 {
                causes.push(Cause::internal(
                    list,
                    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations",
                ));
            }
            return None;
        };
        let compiler = Compiler {
            raw,
            decl: &decl,
            is_optional,
            path: &path,
        };
        let compiled = compiler.compile(&rule, "rule", causes);
        let is_transition = compiled
            .as_ref()
            .is_some_and(|(expression, _)| expression.references().has_variable("oldSelf"));
        let old_is_given = raw.get("optionalOldSelf").filter(|given| !given.is_null());
        if let (Some(given), false) = (old_is_given, is_transition) {
            causes.push(Cause::invalid(
                format!("{path}.optionalOldSelf"),
                given,
                "may not be set if oldSelf is not used in rule",
            ));
        }
        let (expression, known) = compiled?;
        let message_expression = match text("messageExpression") {
            Some(source) => Some(compiler.compile(&source, "messageExpression", causes)?),
            None => None,
        };
        let (message_expression, message_cost) = match message_expression {
            Some((expression, known)) => (Some(expression), Some(known.cost)),
            None => (None, None),
        };
        if let (Some(list), true) = (uncorrelatable, is_transition) {
            causes.push(Cause::invalid(
                format!("{path}.rule"),
                &rule.clone().into(),
                &format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"),
            ));
        }
        let reason = match text("reason").as_deref() {
            None | Some("FieldValueInvalid") => Reason::Invalid,
            Some("FieldValueForbidden") => Reason::Forbidden,
            Some("FieldValueRequired") => Reason::Required,
            Some("FieldValueDuplicate") => Reason::Duplicate,
            Some(other) => {
                let supported = [
                    "FieldValueDuplicate",
                    "FieldValueForbidden",
                    "FieldValueInvalid",
                    "FieldValueRequired",
                ];
                causes.push(Cause::unsupported(
                    format!("{path}.reason"),
                    &other.into(),
                    &supported.map(Value::from),
                ));
                return None;
            }
        };
        Some(Self {
            expression,
            message: text("message"),
            message_expression,
            reason,
            field_path: text("fieldPath").unwrap_or_default(),
            is_transition,
            is_optional,
            index,
            kind: schema.kind.map_or("", Type::name),
            cost: known.cost,
            message_cost,
            most_in_request: decl.most_in_request(),
            text: rule,
        })
    }

    fn run(
        &self,
        raw: &Value,
        value: &CelValue,
        old: Option<&CelValue>,
        (path, tolerated): (&str, bool),
        causes: &mut Vec<Cause>,
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
            Ok(CelValue::Bool(false)) => self.say(&scope),
            Ok(_) => format!("rule does not evaluate to a boolean: {}", self.text),
            Err(Failed::NotKnown(name)) => {
                return Err(Refusal::not_served(format!(
                    "the CEL rule \"{}\" uses '{name}', which its CEL library does not know",
                    self.text
                )));
            }
            Err(Failed::Panicked) => {
                return Err(Refusal::not_served(format!(
                    "the CEL rule \"{}\", on which its CEL library panics",
                    self.text
                )));
            }
            Err(Failed::Evaluating(error)) => {
                let rule = self.message.as_deref().unwrap_or(&self.text);
                let detail = if matches!(error, ExecutionError::NoSuchOverload) {
                    format!(
                        "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
                    )
                } else {
                    format!("{error} evaluating rule: {rule}")
                };
                let field = path.strip_prefix('.').unwrap_or(path);
                causes.push(Cause::invalid(field, &self.kind.into(), &detail));
                return Ok(());
            }
        };
        let field = format!("{path}{}", self.field_path);
        let field = field.strip_prefix('.').unwrap_or(&field);
        let compound = raw.is_object() || raw.is_array();
        causes.push(match self.reason {
            Reason::Invalid if compound => Cause::faulty(field, &message),
            Reason::Invalid => Cause::invalid(field, raw, &message),
            Reason::Forbidden => Cause::forbidden(field, &message),
            Reason::Required => Cause::required(field, &message),
            Reason::Duplicate => Cause::duplicate(field, raw),
        });
        Ok(())
    }

    fn say(&self, scope: &Context<'_>) -> String {
        let said = self
            .message_expression
            .as_ref()
            // The server does not evaluate it if the old value is optional.
            .filter(|_| !self.is_optional)
            .and_then(|expression| match evaluate(expression, scope) {
                Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
                _ => None,
            })
            .filter(|text| !text.is_empty() && !text.contains('\n'));
        said.or_else(|| self.message.clone())
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
    causes: &mut Vec<Cause>,
) -> Result<(), Refusal> {
    let old = Old {
        value: old,
        unchanged: false,
        again,
    };
    walk(schema, value, old, "", causes)
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
    causes: &mut Vec<Cause>,
) -> Result<(), Refusal> {
    if value.is_null() {
        return Ok(());
    }
    let old = Old {
        unchanged: old.value.map_or(old.unchanged, |old| old == value),
        ..old
    };
    if !schema.rules.is_empty() {
        let now = value::bind(schema, value);
        let before = old
            .value
            .filter(|old| !old.is_null())
            .map(|old| value::bind(schema, old));
        for rule in &schema.rules {
            let runs = if rule.is_transition {
                rule.is_optional || before.is_some()
            } else {
                !old.unchanged || old.again
            };
            if runs {
                let tolerated = old.unchanged && !rule.is_transition;
                rule.run(value, &now, before.as_ref(), (path, tolerated), causes)?;
            }
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
enum Failed {
    NotKnown(String),
    Evaluating(ExecutionError),
    Panicked,
}

fn evaluate(expression: &IdedExpr, scope: &Context<'_>) -> Result<CelValue, Failed> {
    // The library contains asserts; a client must not be able to crash the server with one.
    match catch_unwind(AssertUnwindSafe(|| CelValue::resolve(expression, scope))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ExecutionError::UndeclaredReference(name))) => {
            Err(Failed::NotKnown(name.to_string()))
        }
        Ok(Err(error)) => Err(Failed::Evaluating(error)),
        Err(_) => Err(Failed::Panicked),
    }
}
