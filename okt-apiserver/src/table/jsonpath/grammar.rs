//! Parses JSON paths and distinguishes those that a server can read from invalid ones.

use serde_json::Value;

use super::{JsonPath, PathStep};

/// The reason why a path is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFault {
    /// A server cannot read the path either.
    Wrong,
    /// A server can read the path.
    Unknown,
}

/// The rest of a path, and the steps read so far.
struct PathReader<'t> {
    rest: &'t str,
    steps: Vec<PathStep>,
    /// A part was read that no step represents.
    unknown: bool,
    after_recursion: bool,
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// The path is invalid on every server, or uses a part that this file does not support.
    pub(crate) fn parse(text: &str) -> Result<Self, PathFault> {
        // A server puts the path into braces, so a brace of its own ends it.
        let mut reader = PathReader {
            rest: text,
            steps: Vec::new(),
            unknown: false,
            after_recursion: false,
        };
        while !reader.rest.is_empty() {
            reader.step()?;
        }
        if reader.unknown {
            return Err(PathFault::Unknown);
        }
        Ok(Self(reader.steps))
    }
}

impl PathReader<'_> {
    fn step(&mut self) -> Result<(), PathFault> {
        let recursion_before = std::mem::take(&mut self.after_recursion);
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            self.rest = rest;
            return self.filter();
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            if recursion_before {
                return Err(PathFault::Wrong);
            }
            self.rest = rest;
            self.unknown = true;
            if rest.starts_with(is_word) {
                self.field();
            } else {
                self.after_recursion = true;
            }
            return Ok(());
        }
        let mut chars = self.rest.chars();
        let first = chars.next().unwrap_or('\n');
        let rest = chars.as_str();
        match first {
            '}' => {
                self.rest = "";
                self.unknown = true;
            }
            ' ' | '@' | '$' => {
                self.rest = rest;
                self.after_recursion = recursion_before;
            }
            '.' => {
                self.rest = rest;
                self.field();
            }
            '[' => {
                self.rest = rest;
                self.bracket()?;
            }
            '"' | '\'' => {
                self.rest = skip_quoted(rest, first)?;
                self.unknown = true;
            }
            '+' | '-' | '0'..='9' => self.number()?,
            first if is_word(first) => {
                let end = self.rest.find(ends_field).unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
                self.unknown = true;
            }
            _ => return Err(PathFault::Wrong),
        }
        Ok(())
    }

    /// Reads a name up to the next delimiter; a backslash escapes the next character.
    fn field(&mut self) {
        let (mut name, mut escaped) = (String::new(), false);
        let mut end = self.rest.len();
        for (at, c) in self.rest.char_indices() {
            if !escaped && ends_field(c) {
                end = at;
                break;
            }
            // A real server drops all backslashes.
            if c != '\\' {
                name.push(c);
            }
            escaped = !escaped && c == '\\';
        }
        self.rest = &self.rest[end..];
        self.steps.push(if name == "*" {
            PathStep::All
        } else {
            PathStep::Field(name)
        });
    }

    fn bracket(&mut self) -> Result<(), PathFault> {
        let (inner, rest) = self.rest.split_once(']').ok_or(PathFault::Wrong)?;
        if inner.contains('\n') {
            return Err(PathFault::Wrong);
        }
        self.rest = rest;
        if inner.contains(',') {
            for part in inner.split(',') {
                check(&format!("[{}]", part.trim_matches(' ')))?;
            }
            self.unknown = true;
            return Ok(());
        }
        let quoted = inner
            .strip_prefix('\'')
            .and_then(|inner| inner.strip_suffix('\''))
            .filter(|inner| !inner.contains('\''));
        if let Some(key) = quoted {
            // Dots separate names here too.
            let key = format!(".{key}");
            check(&key)?;
            match JsonPath::parse(&key) {
                Ok(path) => self.steps.extend(path.0),
                Err(_) => self.unknown = true,
            }
            return Ok(());
        }
        if matches!(inner, "*" | ":") {
            self.steps.push(PathStep::Items);
            return Ok(());
        }
        let digits = |part: &str| {
            let digits = part.strip_prefix('-').unwrap_or(part);
            digits.chars().all(|c| c.is_ascii_digit())
        };
        if let Ok(index) = inner.parse()
            && digits(inner)
        {
            self.steps.push(PathStep::Index(index));
        } else if inner.split(':').count() <= 3
            && inner.split(':').all(|part| digits(part) && part != "-")
        {
            self.unknown = true;
        } else {
            return Err(PathFault::Wrong);
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<(), PathFault> {
        let (inner, rest) = split_filter(self.rest)?;
        self.rest = rest;
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let start = inner.find(is_operator).filter(|&start| start > 0);
        let compared = start.and_then(|start| {
            let (left, right) = inner.split_at(start);
            let end = right.find(|c| !is_operator(c))?;
            Some((left, &right[..end], &right[end..]))
        });
        let Some((left, operator, right)) = compared else {
            self.unknown = true;
            return check(inner);
        };
        check(left)?;
        check(right)?;
        match (
            JsonPath::parse(left),
            operator,
            literal(right.trim_matches(' ')),
        ) {
            (Ok(path), "==" | "!=", Some(value)) => self.steps.push(PathStep::Filter {
                path,
                equal: operator == "==",
                value,
            }),
            _ => self.unknown = true,
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), PathFault> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = &self.rest[sign..];
        let length = digits.find(|c: char| c != '.' && !c.is_ascii_digit());
        let end = sign + length.unwrap_or(digits.len());
        self.rest[..end]
            .parse::<f64>()
            .map_err(|_| PathFault::Wrong)?;
        self.rest = &self.rest[end..];
        self.unknown = true;
        Ok(())
    }
}

/// Whether a server can read a path.
fn check(text: &str) -> Result<(), PathFault> {
    match JsonPath::parse(text) {
        Err(PathFault::Wrong) => Err(PathFault::Wrong),
        Ok(_) | Err(PathFault::Unknown) => Ok(()),
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn ends_field(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

/// Returns the text after a quoted part, whose first quote is already read.
fn skip_quoted(text: &str, quote: char) -> Result<&str, PathFault> {
    let mut before = quote;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return Err(PathFault::Wrong),
            _ if c == quote && before != '\\' => return Ok(&text[at + 1..]),
            _ => before = c,
        }
    }
    Err(PathFault::Wrong)
}

/// Splits a filter into its content and the rest of the path.
fn split_filter(text: &str) -> Result<(&str, &str), PathFault> {
    let (mut open, mut before) = (None, '(');
    let mut is_closed = false;
    for (at, c) in text.char_indices() {
        match (c, open) {
            ('\n', _) => return Err(PathFault::Wrong),
            ('"' | '\'', None) => open = Some(c),
            ('"' | '\'', Some(quote)) if c == quote && before != '\\' => is_closed = true,
            (')', open) if open.is_some() == is_closed => {
                let rest = text[at + 1..].strip_prefix(']').ok_or(PathFault::Wrong)?;
                return Ok((&text[..at], rest));
            }
            _ => {}
        }
        before = c;
    }
    Err(PathFault::Wrong)
}

fn literal(text: &str) -> Option<Value> {
    let quoted = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|text| text.strip_suffix(quote))
    };
    match quoted('"').or_else(|| quoted('\'')) {
        // Escapes within quotes are not supported.
        Some(inner) if inner.contains('\\') => None,
        Some(inner) => Some(inner.into()),
        None => serde_json::from_str(text).ok(),
    }
}
