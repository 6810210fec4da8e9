//! Compiles the CEL rules of a schema.

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::parser::Parser;
use serde_json::Value;

use super::check::{Checker, RuleMistake};
use super::parse::{self, Unparsed};
use super::rule::{CelRule, Reason};
use super::types;
use super::used::Used;
use super::{depth, macros, repair};
use crate::causes::Causes;
use crate::schema::{Schema, Type};

impl CelRule {
    /// Compiles one entry and adds its errors to `causes`.
    pub(crate) fn compile(
        raw: &Value,
        (path, index): (&str, usize),
        uncorrelatable: Option<&str>,
        (schema, is_object): (&Schema, bool),
        causes: &mut Causes,
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
            causes.required(format!("{path}.rule"), "rule is not specified");
            return None;
        };
        if !check_texts(raw, &path, schema, causes) {
            return None;
        }
        let is_optional = raw.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
        let Some(own) = types::Type::of(schema, is_object) else {
            if index == 0 {
                let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
                causes.internal(list, detail);
            }
            return None;
        };
        let compiler = Compiler {
            raw,
            own: &own,
            is_optional,
            path: &path,
        };
        let compiled = compiler.compile(&rule, "rule", causes);
        let is_transition = compiled
            .as_ref()
            .is_some_and(|expression| expression.references().has_variable("oldSelf"));
        let old_is_given = raw.get("optionalOldSelf").filter(|given| !given.is_null());
        if let (Some(given), false) = (old_is_given, is_transition) {
            let detail = "may not be set if oldSelf is not used in rule";
            causes.invalid(format!("{path}.optionalOldSelf"), given, detail);
        }
        let expression = compiled?;
        let message_expression = match text("messageExpression") {
            Some(source) => Some(compiler.compile(&source, "messageExpression", causes)?),
            None => None,
        };
        if let (Some(list), true) = (uncorrelatable, is_transition) {
            causes.invalid(
                format!("{path}.rule"),
                rule.clone(),
                &format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"),
            );
        }
        let reason = read_reason(text("reason").as_deref(), &path, causes)?;
        Some(Self {
            used: Used::by(std::iter::once(&expression).chain(&message_expression)),
            expression,
            message: text("message"),
            message_expression,
            reason,
            field_path: text("fieldPath").unwrap_or_default(),
            is_transition,
            is_optional,
            kind: schema.kind.map_or("", Type::name),
            text: rule,
        })
    }
}

fn read_reason(reason: Option<&str>, path: &str, causes: &mut Causes) -> Option<Reason> {
    let reasons = [
        ("FieldValueDuplicate", Reason::Duplicate),
        ("FieldValueForbidden", Reason::Forbidden),
        ("FieldValueInvalid", Reason::Invalid),
        ("FieldValueRequired", Reason::Required),
    ];
    let reason = reason.unwrap_or("FieldValueInvalid");
    let found = reasons.iter().find(|(name, _)| *name == reason);
    if found.is_none() {
        let supported = reasons.map(|(name, _)| name);
        causes.unsupported(format!("{path}.reason"), reason, &supported);
    }
    found.map(|(_, reason)| *reason)
}

/// The common context of the expressions of one rule.
struct Compiler<'c> {
    raw: &'c Value,
    own: &'c types::Type,
    is_optional: bool,
    path: &'c str,
}

impl Compiler<'_> {
    /// Compiles one expression and adds its errors to `causes`.
    fn compile(&self, source: &str, field: &str, causes: &mut Causes) -> Option<IdedExpr> {
        let (wanted, prefix) = if field == "rule" {
            ("bool", "cel expression must evaluate to a bool")
        } else {
            ("string", "messageExpression must evaluate to a string")
        };
        let compiling = if field == "rule" {
            "compilation failed"
        } else {
            "messageExpression compilation failed"
        };
        let mut checker = Checker::new(self.own, self.is_optional);
        let outcome = depth::check(source)
            .map_err(RuleMistake::Lacking)
            .and_then(|()| parse(source).map_err(RuleMistake::Wrong))
            .and_then(|expression| checker.check(&expression).map(|kind| (expression, kind)));
        let path = format!("{}.{field}", self.path);
        let wrong = match outcome {
            Ok((mut expression, kind)) if kind.is(wanted) => {
                repair::repair(&mut expression, &checker.plans);
                return Some(expression);
            }
            Ok(_) => prefix.to_owned(),
            Err(RuleMistake::Wrong(error)) if error.starts_with("ERROR:") => {
                format!("{compiling}: {error}")
            }
            Err(RuleMistake::Wrong(error)) => format!("{compiling}: ERROR: {error}"),
            Err(RuleMistake::Lacking(name)) => {
                causes.not_served(
                    path,
                    format!(
                        "the CEL rule \"{source}\" uses '{name}', which its CEL library does not know"
                    ),
                );
                return None;
            }
        };
        causes.faulty(path, &format!("{}: {wrong}", self.show()));
        None
    }

    /// Formats the rule as the server shows it in a refusal.
    fn show(&self) -> String {
        let or = |key: &str, other: Value| self.raw.get(key).cloned().unwrap_or(other);
        format!(
            r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
            or("rule", "".into()),
            or("message", "".into()),
            or("messageExpression", "".into()),
            or("reason", Value::Null),
            or("fieldPath", "".into()),
            or("optionalOldSelf", Value::Null),
        )
        .replace('&', r"\u0026")
        .replace('<', r"\u003c")
        .replace('>', r"\u003e")
    }
}

/// Checks the texts of a rule except for its expressions.
fn check_texts(raw: &Value, path: &str, schema: &Schema, causes: &mut Causes) -> bool {
    let before = causes.len();
    let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default();
    let breaks = |text: &str| text.trim().contains(['\n', '\r']);
    let (message, blank) = (text("message"), "must be non-empty if specified");
    if !message.is_empty() && message.trim().is_empty() {
        causes.invalid(format!("{path}.message"), message, blank);
    } else if breaks(message) {
        let detail = "must not contain line breaks";
        causes.invalid(format!("{path}.message"), message, detail);
    } else if breaks(text("rule")) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        causes.required(format!("{path}.message"), detail);
    }
    let expression = text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        causes.required(format!("{path}.messageExpression"), detail);
    }
    let field_path = text("fieldPath");
    if !field_path.is_empty() {
        let field = format!("{path}.fieldPath");
        if field_path.trim().is_empty() {
            causes.invalid(field.clone(), field_path, blank);
        }
        if schema.at_path(field_path).is_none() {
            causes.invalid(field, field_path, "must be a valid path");
        }
    }
    causes.len() == before
}

fn parse(source: &str) -> Result<IdedExpr, String> {
    let parser = Parser::default().enable_optional_syntax(true);
    match parse::parse(parser, source) {
        Ok(mut expression) => {
            macros::expand(&mut expression)?;
            Ok(expression)
        }
        Err(Unparsed::Errors(errors)) => Err(errors.to_string().replace("\n| ", "\n | ")),
        Err(Unparsed::Long(why)) => Err(format!("ERROR: <input>:-1:0: {why}")),
        Err(Unparsed::Panicked) => Err("the expression cannot be parsed".to_owned()),
    }
}
