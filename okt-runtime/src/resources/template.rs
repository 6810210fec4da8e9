//! YAML templates of objects, rendered with minijinja.

use std::fmt;
use std::io::{self, Write};
use std::thread;

use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use okt_core::reasons::resources as reasons;
use okt_reach::Failure;
use serde::Serialize;
use serde_json::Value;
use serde_saphyr::Error as YamlError;

use super::declared::Declared;

/// The longest template, in bytes.
const SOURCE_LIMIT: usize = 256 * 1024;

/// The longest rendered text, in bytes: an API server accepts no larger object.
const TEXT_LIMIT: usize = 1536 * 1024;

/// The stack for parsing a template, in bytes: a fixed part, and a part per byte of the template.
///
/// The parser recurses for each operator in a row (`a + a + a`), without a limit.
const STACK: usize = 2 * 1024 * 1024;
const STACK_PER_BYTE: usize = 2048;

/// The longest quotes in a message, in characters: of the wrong place, and of the reason.
const PLACE: usize = 60;
const WHY: usize = 200;

/// The highest number of steps that rendering may take.
const FUEL: u64 = 1_000_000;

/// A YAML template with placeholders (`{{ .. }}`) that renders to one object.
///
/// The language is that of [minijinja](https://docs.rs/minijinja), without its filters `format` and `indent`, which
/// may take any amount of memory. A template cannot include files.
/// OKT writes every value as JSON, which is valid YAML, so that no value can break out of its placeholder:
/// write `name: {{ name }}` without quotes, and concatenate texts inside (`{{ name ~ "-web" }}`).
/// An undefined value is an error, except in filters that accept one (`default`, `join`).
/// Messages name the file, the line and the template's text there, never a value: it may be secret.
/// The log has the details at level `debug`.
///
/// ```
/// use okt::Template;
/// use serde_json::json;
///
/// let template = Template::new(
///     "settings.yaml",
///     r#"
/// apiVersion: v1
/// kind: ConfigMap
/// metadata:
///   name: {{ name ~ "-settings" }}
/// data:
///   servers: {{ servers | join(",") }}
///   size: {{ size }}
/// "#,
/// )?;
/// let declared = template.declare(&json!({ "name": "db", "servers": ["a", "b"], "size": "1Gi" }));
/// assert!(declared.is_ok());
/// let wrong = template.declare(&json!({ "name": "db", "servers": [] }));
/// let wrong = wrong.expect_err("something is missing");
/// assert_eq!(wrong.message(), "settings.yaml:8: `size` is undefined");
/// # Ok::<(), okt::TemplateError>(())
/// ```
pub struct Template {
    /// An environment per template: definitions of other templates do not affect it.
    environment: Environment<'static>,
    file: String,
}

/// An error in a template or its values; a retry without a change does not help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct TemplateError {
    file: String,
    /// The line in the template, starting at 1.
    line: Option<usize>,
    why: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.why),
            None => write!(f, "{}: {}", self.file, self.why),
        }
    }
}

impl Template {
    /// Parses a template; messages name it by `file`.
    ///
    /// # Errors
    ///
    /// If the text is not a valid template; the error names the line where it is known.
    pub fn new(file: &str, source: &str) -> Result<Self, TemplateError> {
        if source.len() > SOURCE_LIMIT {
            return Err(TemplateError {
                file: file.to_owned(),
                line: None,
                why: format!(
                    "{} bytes are more than a template may have ({SOURCE_LIMIT})",
                    source.len()
                ),
            });
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Json);
        environment.set_fuel(Some(FUEL));
        environment.set_debug(true);
        // Their width argument allows any amount of memory.
        for unbounded in ["format", "indent"] {
            environment.remove_filter(unbounded);
        }
        let mut template = Self {
            environment,
            file: file.to_owned(),
        };
        let read = thread::scope(|scope| {
            let environment = &mut template.environment;
            let read = || environment.add_template_owned(file.to_owned(), source.to_owned());
            let size = STACK + source.len() * STACK_PER_BYTE;
            let builder = thread::Builder::new().stack_size(size);
            Some(builder.spawn_scoped(scope, read).ok()?.join())
        });
        match read {
            Some(Ok(Ok(()))) => Ok(template),
            Some(Ok(Err(error))) => Err(template.wrong(&error)),
            Some(Err(_)) | None => Err(TemplateError {
                file: file.to_owned(),
                line: None,
                why: "the template cannot be read".to_owned(),
            }),
        }
    }

    /// Renders the template with these values and declares the resulting object.
    ///
    /// # Errors
    ///
    /// A permanent failure if a value is missing or does not fit, or if the result is not one object.
    pub fn declare(&self, values: &impl Serialize) -> Result<Declared, Failure> {
        let object = self.fill_in(values);
        object
            .map(|object| Declared {
                file: Some(self.file.clone()),
                ..Declared::dynamic(object)
            })
            .map_err(|error| Failure::permanent(reasons::BAD_TEMPLATE, error.to_string()))
    }

    fn fill_in(&self, values: &impl Serialize) -> Result<Value, TemplateError> {
        let template = self
            .environment
            .get_template(&self.file)
            .map_err(|it| self.wrong(&it))?;
        let mut text = Bounded(Vec::new());
        let filled = template.render_captured_to(Serde(values), &mut text);
        filled.map_err(|error| self.wrong(&error))?;
        let failed = |why: String| TemplateError {
            file: self.file.clone(),
            line: None,
            why,
        };
        let text = String::from_utf8(text.0).map_err(|error| failed(error.to_string()))?;
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| {
            let line = error.location().map_or(0, |place| place.line());
            let line = usize::try_from(line).unwrap_or_default();
            let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            let (file, why) = (&self.file, error.without_snippet());
            tracing::debug!(file, line, "the template renders no YAML: {why}: {shown}");
            failed(format!("it renders no YAML: {}", no_yaml(why)))
        })?;
        documents.retain(|document| !document.is_null());
        match documents.len() {
            0 => Err(failed("it renders no object".to_owned())),
            1 if documents[0].is_object() => Ok(documents.remove(0)),
            1 => Err(failed("what it renders is no object".to_owned())),
            several => Err(failed(format!(
                "it renders {several} objects; a template makes one"
            ))),
        }
    }

    fn wrong(&self, error: &minijinja::Error) -> TemplateError {
        let source = error.template_source().unwrap_or_default();
        let place = error.range().and_then(|range| source.get(range));
        let what = shortened(
            &match error.detail() {
                Some(detail) if quotes_no_value(error.kind(), detail) => detail.to_owned(),
                Some(_) | None => error.kind().to_string(),
            },
            WHY,
        );
        tracing::debug!(file = self.file, "the template cannot be rendered: {error}");
        let why = match (error.kind(), place) {
            (ErrorKind::OutOfFuel, _) => "rendering it takes too long".to_owned(),
            (ErrorKind::WriteFailure, _) => {
                format!("it renders more than {TEXT_LIMIT} bytes")
            }
            (ErrorKind::SyntaxError | ErrorKind::UndefinedError, _) | (_, None) => what,
            (_, Some(place)) => format!("`{}`: {what}", shortened(place, PLACE)),
        };
        TemplateError {
            file: self.file.clone(),
            line: error.line(),
            why,
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.file).finish()
    }
}

/// Returns whether the details of an error quote only the template and the types of values, never a value.
fn quotes_no_value(kind: ErrorKind, detail: &str) -> bool {
    match kind {
        ErrorKind::SyntaxError
        | ErrorKind::UndefinedError
        | ErrorKind::UnknownFilter
        | ErrorKind::UnknownTest
        | ErrorKind::UnknownFunction
        | ErrorKind::UnknownMethod
        | ErrorKind::TooManyArguments
        | ErrorKind::MissingArgument => true,
        ErrorKind::InvalidOperation => {
            detail.starts_with("tried to use ")
                || detail.ends_with(" is not iterable")
                || matches!(
                    detail,
                    "recursion limit exceeded" | "range has too many elements"
                )
        }
        _ => false,
    }
}

/// Returns why a text is not valid YAML, without quoting the text.
fn no_yaml(error: &YamlError) -> String {
    let problem = match error {
        YamlError::DuplicateMappingKey { .. } => "duplicate mapping key",
        YamlError::NonFiniteFloat { .. } => "a number that is not finite",
        YamlError::UnsupportedTag { .. } => "an unsupported tag",
        YamlError::Message { .. } | YamlError::ExternalMessage { .. }
            if error.to_string().contains(['`', '"']) =>
        {
            "it cannot be read"
        }
        error => return error.to_string(),
    };
    match error.location() {
        Some(place) => format!(
            "{problem} at line {}, column {}",
            place.line(),
            place.column()
        ),
        None => problem.to_owned(),
    }
}

/// Shortens a text to a number of characters.
fn shortened(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(limit - 1).collect();
    shown.push('…');
    shown
}

/// A buffer that refuses to grow beyond [`TEXT_LIMIT`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.0.len() + piece.len() > TEXT_LIMIT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
