//! This file compiles the expressions of one rule.

use std::{rc::Rc, thread};

use kube::core::cel::cel::{IdedExpr, parser::Parser};
use serde_json::Value;

use super::{
    check::{Checker, Mistake},
    decl::Decl,
    depth,
    known::Known,
    macros, repair,
};
use crate::api::{refusal::Cause, schema::Schema};

/// The common context of the expressions of one rule.
pub(super) struct Compiler<'c> {
    pub(super) raw: &'c Value,
    pub(super) decl: &'c Rc<Decl>,
    pub(super) is_optional: bool,
    pub(super) path: &'c str,
}

impl Compiler<'_> {
    /// Compiles one expression and adds its errors to `causes`.
    pub(super) fn compile(
        &self,
        source: &str,
        field: &str,
        causes: &mut Vec<Cause>,
    ) -> Option<(IdedExpr, Known)> {
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
        let mut checker = Checker::new(self.decl, self.is_optional);
        let outcome = depth::check(source)
            .map_err(Mistake::Lacking)
            .and_then(|()| parse(source).map_err(Mistake::Wrong))
            .and_then(|expression| checker.check(&expression).map(|known| (expression, known)));
        let path = format!("{}.{field}", self.path);
        let wrong = match outcome {
            Ok((mut expression, known)) if known.kind.is(wanted) => {
                repair::repair(&mut expression, &checker.plans);
                return Some((expression, known));
            }
            Ok(_) => prefix.to_owned(),
            Err(Mistake::Wrong(error)) if error.starts_with("ERROR:") => {
                format!("{compiling}: {error}")
            }
            Err(Mistake::Wrong(error)) => format!("{compiling}: ERROR: {error}"),
            Err(Mistake::Lacking(name)) => {
                causes.push(Cause::not_served(
                    path,
                    format!(
                        "the CEL rule \"{source}\" uses '{name}', which its CEL library does not know"
                    ),
                ));
                return None;
            }
        };
        causes.push(Cause::faulty(path, &format!("{}: {wrong}", self.show())));
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
pub(super) fn check_texts(
    raw: &Value,
    path: &str,
    schema: &Schema,
    causes: &mut Vec<Cause>,
) -> bool {
    let before = causes.len();
    let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default();
    let breaks = |text: &str| text.trim().contains(['\n', '\r']);
    let (message, blank) = (text("message"), "must be non-empty if specified");
    if !message.is_empty() && message.trim().is_empty() {
        causes.push(Cause::invalid(
            format!("{path}.message"),
            &message.into(),
            blank,
        ));
    } else if breaks(message) {
        causes.push(Cause::invalid(
            format!("{path}.message"),
            &message.into(),
            "must not contain line breaks",
        ));
    } else if breaks(text("rule")) && message.is_empty() {
        causes.push(Cause::required(
            format!("{path}.message"),
            "message must be specified if rule contains line breaks",
        ));
    }
    let expression = text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        causes.push(Cause::required(
            format!("{path}.messageExpression"),
            "messageExpression must be non-empty if specified",
        ));
    }
    let field_path = text("fieldPath");
    if !field_path.is_empty() {
        let field = format!("{path}.fieldPath");
        if field_path.trim().is_empty() {
            causes.push(Cause::invalid(field.clone(), &field_path.into(), blank));
        }
        if schema.at_path(field_path).is_none() {
            let detail = "must be a valid path";
            causes.push(Cause::invalid(field, &field_path.into(), detail));
        }
    }
    causes.len() == before
}

/// The maximum length of an expression, in characters.
const SOURCE_LIMIT: usize = 100_000;

/// The stack on which an expression is parsed, in bytes.
const STACK: usize = 64 * 1024 * 1024;

fn parse(source: &str) -> Result<IdedExpr, String> {
    let size = source.chars().count();
    if size > SOURCE_LIMIT {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {SOURCE_LIMIT}"
        ));
    }
    // The parser may panic, and uses some ten kilobytes of the stack for each bracket.
    let outcome = thread::scope(|scope| {
        let parse = || Parser::default().enable_optional_syntax(true).parse(source);
        let parsing = thread::Builder::new().stack_size(STACK);
        Some(parsing.spawn_scoped(scope, parse).ok()?.join())
    });
    match outcome {
        Some(Ok(Ok(mut expression))) => {
            macros::expand(&mut expression)?;
            Ok(expression)
        }
        Some(Ok(Err(errors))) => Err(errors.to_string().replace("\n| ", "\n | ")),
        Some(Err(_)) | None => Err("the expression cannot be parsed".to_owned()),
    }
}
