//! The values of a file by their kind, and the fields of a table by name: one that is left at the end is unknown.

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;

use super::Machine;
use super::mistakes::{Mistakes, nearest};
use super::tree::{Key, Node, Value};

/// What is the same for all fields of a file.
pub(super) struct Reading {
    pub(super) machine: Machine,
    pub(super) mistakes: Mistakes,
}

/// A table whose fields are taken by name.
pub(super) struct Fields<'a> {
    table: Field<'a>,
    left: Vec<&'a (Key, Node)>,
    known: Vec<&'static str>,
}

/// A value and its key.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) reading: &'a Reading,
    pub(super) key: String,
    pub(super) node: &'a Node,
}

/// A field whose name the user has chosen.
pub(super) struct Entry<'a> {
    pub(super) key: &'a Key,
    pub(super) field: Field<'a>,
}

impl<'a> Fields<'a> {
    /// Takes the field of this name, if it exists and is not empty.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Field<'a>> {
        self.known.push(name);
        let at = self.left.iter().position(|(key, _)| key.name == name)?;
        let (_, node) = self.left.remove(at);
        (!matches!(node.value, Value::Nothing)).then(|| self.table.child(name, node))
    }

    /// Reads the field of this name, if it exists.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> Option<T> {
        self.take(name).as_ref().and_then(read)
    }

    /// Reads the field of this name. A missing one has the default, and a wrong one is `None`.
    pub(super) fn optional_or<T>(
        &mut self,
        name: &'static str,
        default: T,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> Option<T> {
        match &self.take(name) {
            None => Some(default),
            Some(field) => read(field),
        }
    }

    /// Reads the field of this name, which must exist.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl FnOnce(&Field<'a>) -> Option<T>,
    ) -> Option<T> {
        let field = self.take(name);
        if field.is_none() {
            self.wrong(format!("`{name}` is missing: {what}"));
        }
        field.as_ref().and_then(read)
    }

    /// Returns whether the machine of the file is this one.
    pub(super) fn machine(&self) -> Machine {
        self.table.reading.machine
    }

    /// Adds a mistake about the table as a whole.
    pub(super) fn wrong(&self, text: impl Into<String>) {
        self.table.wrong(text);
    }

    /// Adds a mistake for each field that was not taken.
    pub(super) fn end(self) {
        for (key, node) in &self.left {
            let text = match nearest(&key.name, &self.known) {
                Some(name) => format!("unknown key, did you mean `{name}`?"),
                None => format!("unknown key, there are {}", list(&self.known)),
            };
            let field = self.table.child(&key.name, node);
            Entry { key, field }.wrong(text);
        }
    }
}

impl Entry<'_> {
    /// Adds a mistake about the name.
    pub(super) fn wrong(&self, text: impl Into<String>) {
        let mistakes = &self.field.reading.mistakes;
        mistakes.add(self.key.place, &self.field.key, text);
    }
}

impl<'a> Field<'a> {
    fn child(&self, name: &str, node: &'a Node) -> Self {
        let key = match self.key.as_str() {
            "" => name.to_owned(),
            key => format!("{key}.{name}"),
        };
        Self { key, node, ..*self }
    }

    /// Adds a mistake about this value.
    pub(super) fn wrong(&self, text: impl Into<String>) {
        let mistakes = &self.reading.mistakes;
        mistakes.add(self.node.place, &self.key, text);
    }

    fn unfit<T>(&self, wanted: &str) -> Option<T> {
        self.wrong(format!("expected {wanted}, not {}", self.node.value));
        None
    }

    /// Returns a table with fixed names.
    pub(super) fn fields(&self) -> Option<Fields<'a>> {
        let Value::Table(table) = &self.node.value else {
            return self.unfit("a table");
        };
        Some(Fields {
            table: self.clone(),
            left: table.iter().collect(),
            known: Vec::new(),
        })
    }

    /// Returns a table with names that the user chooses.
    pub(super) fn entries(&self) -> Vec<Entry<'a>> {
        let Value::Table(table) = &self.node.value else {
            return self.unfit("a table").unwrap_or_default();
        };
        let entry = |(key, node): &'a (Key, Node)| Entry {
            key,
            field: self.child(&key.name, node),
        };
        table.iter().map(entry).collect()
    }

    /// Returns a list. Its elements are numbered from 0 in their keys.
    pub(super) fn list(&self) -> Vec<Self> {
        let Value::List(list) = &self.node.value else {
            return self.unfit("a list").unwrap_or_default();
        };
        let element = |(n, node)| Self {
            key: format!("{}[{n}]", self.key),
            node,
            ..*self
        };
        list.iter().enumerate().map(element).collect()
    }

    pub(super) fn text(&self) -> Option<String> {
        match &self.node.value {
            Value::Text(text) if text.contains('\0') => self.unfit("a text without NUL"),
            Value::Text(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Flag(_) | Value::Nothing | Value::List(_) | Value::Table(_) => {
                self.unfit("a text")
            }
        }
    }

    /// Returns an absolute path, because the working directory of an agent is arbitrary.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let path = PathBuf::from(self.text()?);
        if !path.is_absolute() {
            return self.unfit("a path that begins with /");
        }
        Some(path)
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self.node.value {
            Value::Flag(flag) => Some(flag),
            _ => self.unfit("true or false"),
        }
    }

    pub(super) fn number(&self, from: i64, to: i64) -> Option<i64> {
        match self.node.value {
            Value::Number(number) if (from..=to).contains(&number) => Some(number),
            _ => self.unfit(&format!("a number from {from} to {to}")),
        }
    }

    /// Returns a time such as `30s`, from 1 ms to 30 days.
    pub(super) fn time(&self) -> Option<Duration> {
        let time = match &self.node.value {
            Value::Text(text) => text.parse::<SignedDuration>().ok(),
            _ => None,
        };
        match time.and_then(|time| Duration::try_from(time).ok()) {
            Some(time) if time >= Duration::from_millis(1) && time <= LONGEST => Some(time),
            Some(_) => self.unfit("a time from 1ms to 30 days (720h)"),
            None => self.unfit("a time such as 500ms, 30s, 5m or 1h 30m"),
        }
    }

    /// Returns the name of a state: `PascalCase`, as in the graph.
    pub(super) fn state(&self) -> Option<String> {
        let name = self.text()?;
        if !is_state(&name) {
            return self.unfit("the name of a state such as Running");
        }
        Some(name)
    }

    /// Returns one of these words.
    pub(super) fn choice<T: Clone>(&self, choices: &[(&'static str, T)]) -> Option<T> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let text = match &self.node.value {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(choice.clone());
        }
        match nearest(text, &names) {
            Some(name) => self.wrong(format!("{text:?}, did you mean {name:?}?")),
            None => return self.unfit(&format!("one of {}", names.join(", "))),
        }
        None
    }

    /// Returns a program and its arguments.
    pub(super) fn words(&self) -> Option<Vec<String>> {
        if let Value::Text(text) = &self.node.value {
            let words: Vec<_> = text.split_whitespace().collect();
            self.wrong(format!(
                "a command is a list of its words: {words:?}; a shell runs only if it is one of them: \
                 [\"sh\", \"-c\", {text:?}]"
            ));
            return None;
        }
        let words: Vec<_> = self.list().iter().map(Self::text).collect();
        if words.is_empty() && matches!(self.node.value, Value::List(_)) {
            self.wrong("a command has one word at least");
        }
        let words: Option<Vec<_>> = words.into_iter().collect();
        words.filter(|words| !words.is_empty())
    }
}

/// The limit for all times of a configuration.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// Returns whether this is a valid name of a state in a graph.
pub(crate) fn is_state(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn list(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
