//! This file compiles the CEL rules of a schema and holds objects against them.
//!
//! The `cel` crate evaluates; kube's `cel` feature adds the functions of Kubernetes to it.
//! What an expression sees of an object, when a rule runs and how a refusal reads is decided here,
//! because kube's own validator knows neither `optionalOldSelf` nor the API server's words.

mod check;
mod optional;
mod value;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

use kube::core::cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, IdedExpr, Value as CelValue, objects::OptionalValue,
        parser::Parser,
    },
};
use serde_json::Value;

use self::check::Mistake;
use crate::{
    refusal::{Cause, Refusal},
    schema::{Schema, old_item},
};

/// One entry of `x-kubernetes-validations`.
pub(crate) struct Rule {
    expression: IdedExpr,
    text: String,
    message: Option<String>,
    message_expression: Option<IdedExpr>,
    reason: Reason,
    /// Below the node that carries the rule (e.g. `.replicas`).
    field_path: String,
    /// The rule names `oldSelf`.
    is_transition: bool,
    /// `oldSelf` is an optional, and the rule runs without an old value too.
    is_optional: bool,
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

/// The functions are the same for all rules, and there are more than a hundred of them.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

impl Rule {
    /// Compiles one entry; what is wrong with it is added to `causes`.
    pub(crate) fn compile(
        raw: &Value,
        path: &str,
        correlatable: bool,
        schema: &Schema,
        causes: &mut Vec<Cause>,
    ) -> Option<Self> {
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
        let is_optional = raw.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
        let mut compile = |source: &str, field: &str| -> Option<IdedExpr> {
            let outcome = parse(source)
                .map_err(Mistake::Wrong)
                .and_then(|expression| {
                    check::check(&expression, schema, is_optional).map(|()| expression)
                });
            let mistake = match outcome {
                Ok(expression) => return Some(expression),
                Err(mistake) => mistake,
            };
            let field = format!("{path}.{field}");
            causes.push(match mistake {
                Mistake::Wrong(error) => Cause::invalid(
                    field,
                    &source.into(),
                    &format!("compilation failed: ERROR: {error}"),
                ),
                Mistake::Lacking(name) => Cause::not_served(
                    field,
                    format!(
                        "the CEL rule \"{source}\" uses '{name}', which its CEL library does not know"
                    ),
                ),
            });
            None
        };
        let expression = compile(&rule, "rule")?;
        let message_expression = match text("messageExpression") {
            Some(source) => Some(compile(&source, "messageExpression")?),
            None => None,
        };
        let is_transition = expression.references().has_variable("oldSelf");
        if is_optional && !is_transition {
            causes.push(Cause::invalid(
                format!("{path}.optionalOldSelf"),
                &true.into(),
                "may not be set if oldSelf is not used in rule",
            ));
        }
        if is_transition && !correlatable {
            causes.push(Cause::invalid(
                format!("{path}.rule"),
                &rule.clone().into(),
                "oldSelf cannot be used on the uncorrelatable portion of the schema",
            ));
        }
        let reason = match text("reason").as_deref() {
            None | Some("FieldValueInvalid") => Reason::Invalid,
            Some("FieldValueForbidden") => Reason::Forbidden,
            Some("FieldValueRequired") => Reason::Required,
            Some("FieldValueDuplicate") => Reason::Duplicate,
            Some(other) => {
                let supported = [
                    "FieldValueRequired",
                    "FieldValueForbidden",
                    "FieldValueInvalid",
                    "FieldValueDuplicate",
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
            text: rule,
        })
    }

    fn run(
        &self,
        raw: &Value,
        value: &CelValue,
        old: Option<&CelValue>,
        path: &str,
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
            Err(Failed::Evaluating(error)) => format!(
                "{error} evaluating rule: {}",
                self.message.as_deref().unwrap_or(&self.text)
            ),
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
            // Beside an optional old value the server does not evaluate it.
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

/// Adds to `causes` the rules that do not hold, on every level.
///
/// # Errors
/// A rule that cannot be evaluated here at all.
pub(crate) fn check_rules(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    causes: &mut Vec<Cause>,
) -> Result<(), Refusal> {
    if value.is_null() {
        return Ok(());
    }
    if !schema.rules.is_empty() {
        let unchanged = old == Some(value);
        let now = value::bind(schema, value);
        let before = old
            .filter(|old| !old.is_null())
            .map(|old| value::bind(schema, old));
        for rule in &schema.rules {
            // A rule about what was left as it was is not asked again, unless it compares.
            let runs = if rule.is_transition {
                rule.is_optional || before.is_some()
            } else {
                !unchanged
            };
            if runs {
                rule.run(value, &now, before.as_ref(), path, causes)?;
            }
        }
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let Some(below) = schema.field(key).filter(|below| below.has_rules()) {
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    let old = old.and_then(|old| old.get(key));
                    check_rules(below, value, old, &path, causes)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = schema.items.as_deref().filter(|below| below.has_rules()) {
                for (index, item) in items.iter().enumerate() {
                    let old = old_item(schema, item, old);
                    check_rules(below, item, old, &format!("{path}[{index}]"), causes)?;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Why an expression has no value.
enum Failed {
    NotKnown(String),
    Evaluating(ExecutionError),
    Panicked,
}

fn evaluate(expression: &IdedExpr, scope: &Context<'_>) -> Result<CelValue, Failed> {
    // The library is young and holds asserts; a client must not bring the server down with one.
    match catch_unwind(AssertUnwindSafe(|| CelValue::resolve(expression, scope))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ExecutionError::UndeclaredReference(name))) => {
            Err(Failed::NotKnown(name.to_string()))
        }
        Ok(Err(error)) => Err(Failed::Evaluating(error)),
        Err(_) => Err(Failed::Panicked),
    }
}

fn parse(source: &str) -> Result<IdedExpr, String> {
    let outcome = catch_unwind(|| Parser::default().enable_optional_syntax(true).parse(source));
    match outcome {
        Ok(Ok(mut expression)) => {
            optional::repair(&mut expression);
            Ok(expression)
        }
        Ok(Err(errors)) => Err(errors.to_string()),
        Err(_) => Err("the expression cannot be parsed".to_owned()),
    }
}
