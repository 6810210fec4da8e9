//! The fields of a table, taken by name. A field that is left at the end is unknown.

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;

use super::complaints::{Complaints, nearest};
use super::tree::{Key, Node, Position, Value};

/// A table whose fields are taken by name.
pub(super) struct Fields<'a> {
    key: String,
    place: Position,
    left: Vec<&'a (Key, Node)>,
    known: Vec<&'static str>,
}

/// A value and its key.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) key: String,
    pub(super) node: &'a Node,
}

impl<'a> Fields<'a> {
    /// Takes the field of this name, if it exists and is not empty.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Field<'a>> {
        self.known.push(name);
        let at = self.left.iter().position(|(key, _)| key.name == name)?;
        let (_, node) = self.left.remove(at);
        (!matches!(node.value, Value::Nothing)).then(|| Field {
            key: join(&self.key, name),
            node,
        })
    }

    /// Takes the field of this name, which must exist.
    pub(super) fn need(
        &mut self,
        complaints: &mut Complaints,
        name: &'static str,
        what: &str,
    ) -> Option<Field<'a>> {
        let field = self.take(name);
        if field.is_none() {
            let text = format!("`{name}` is missing: {what}");
            complaints.add(self.place, &self.key, text);
        }
        field
    }

    /// Adds an error about the table as a whole.
    pub(super) fn wrong(&self, complaints: &mut Complaints, text: impl Into<String>) {
        complaints.add(self.place, &self.key, text);
    }

    /// Adds an error for each field that was not taken.
    pub(super) fn end(self, complaints: &mut Complaints) {
        for (key, _) in &self.left {
            let text = match nearest(&key.name, &self.known) {
                Some(name) => format!("unknown key, did you mean `{name}`?"),
                None => format!("unknown key, there are {}", list(&self.known)),
            };
            complaints.add(key.place, &join(&self.key, &key.name), text);
        }
    }
}

impl<'a> Field<'a> {
    /// Returns the root of the file.
    pub(super) fn whole(node: &'a Node) -> Self {
        Self {
            key: String::new(),
            node,
        }
    }

    /// Adds an error about this value.
    pub(super) fn wrong(&self, complaints: &mut Complaints, text: impl Into<String>) {
        complaints.add(self.node.place, &self.key, text);
    }

    fn unfit<T>(&self, complaints: &mut Complaints, wanted: &str) -> Option<T> {
        let text = format!("expected {wanted}, not {}", self.node.value.kind());
        self.wrong(complaints, text);
        None
    }

    /// Returns a table with fixed names.
    pub(super) fn fields(&self, complaints: &mut Complaints) -> Option<Fields<'a>> {
        match &self.node.value {
            Value::Table(table) => Some(Fields {
                key: self.key.clone(),
                place: self.node.place,
                left: table.iter().collect(),
                known: Vec::new(),
            }),
            _ => self.unfit(complaints, "a table"),
        }
    }

    /// Returns a table with names that the user chooses.
    pub(super) fn entries(&self, complaints: &mut Complaints) -> Vec<(&'a str, Position, Self)> {
        let Value::Table(table) = &self.node.value else {
            let _: Option<()> = self.unfit(complaints, "a table");
            return Vec::new();
        };
        (table.iter())
            .map(|(key, node)| {
                let field = Self {
                    key: join(&self.key, &key.name),
                    node,
                };
                (key.name.as_str(), key.place, field)
            })
            .collect()
    }

    /// Returns a list. Its elements are numbered from 0 in their keys.
    pub(super) fn list(&self, complaints: &mut Complaints) -> Vec<Self> {
        let Value::List(list) = &self.node.value else {
            let _: Option<()> = self.unfit(complaints, "a list");
            return Vec::new();
        };
        (list.iter().enumerate())
            .map(|(n, node)| Self {
                key: format!("{}[{n}]", self.key),
                node,
            })
            .collect()
    }

    pub(super) fn text(&self, complaints: &mut Complaints) -> Option<String> {
        match &self.node.value {
            Value::Text(text) if text.contains('\0') => {
                self.unfit(complaints, "a text without NUL")
            }
            Value::Text(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Flag(_) | Value::Nothing | Value::List(_) | Value::Table(_) => {
                self.unfit(complaints, "a text")
            }
        }
    }

    /// Returns an absolute path, because the working directory of an agent is arbitrary.
    pub(super) fn path(&self, complaints: &mut Complaints) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(complaints)?);
        if !path.is_absolute() {
            return self.unfit(complaints, "a path that begins with /");
        }
        Some(path)
    }

    pub(super) fn flag(&self, complaints: &mut Complaints) -> Option<bool> {
        match self.node.value {
            Value::Flag(flag) => Some(flag),
            _ => self.unfit(complaints, "true or false"),
        }
    }

    pub(super) fn number(&self, complaints: &mut Complaints, from: i64, to: i64) -> Option<i64> {
        match self.node.value {
            Value::Number(number) if (from..=to).contains(&number) => Some(number),
            _ => self.unfit(complaints, &format!("a number from {from} to {to}")),
        }
    }

    /// Returns a time such as `30s`, from 1 ms to 30 days.
    pub(super) fn time(&self, complaints: &mut Complaints) -> Option<Duration> {
        let wanted = "a time such as 500ms, 30s, 5m or 1h 30m";
        let Value::Text(text) = &self.node.value else {
            return self.unfit(complaints, wanted);
        };
        let time = (text.parse::<SignedDuration>().ok()).and_then(|it| Duration::try_from(it).ok());
        match time {
            Some(time) if time >= Duration::from_millis(1) && time <= LONGEST => Some(time),
            Some(_) => self.unfit(complaints, "a time from 1ms to 30 days (720h)"),
            None => self.unfit(complaints, wanted),
        }
    }

    /// Returns the name of a state: `PascalCase`, as in the graph.
    pub(super) fn state(&self, complaints: &mut Complaints) -> Option<String> {
        let name = self.text(complaints)?;
        if is_state(&name) {
            Some(name)
        } else {
            self.unfit(complaints, "the name of a state such as Running")
        }
    }

    /// Returns one of these words.
    pub(super) fn choice<T: Copy>(
        &self,
        complaints: &mut Complaints,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let wanted = format!("one of {}", names.join(", "));
        let Value::Text(text) = &self.node.value else {
            return self.unfit(complaints, &wanted);
        };
        let found = choices.iter().find(|(name, _)| name == text);
        if found.is_none() {
            match nearest(text, &names) {
                Some(name) => self.wrong(complaints, format!("{text:?}, did you mean {name:?}?")),
                None => return self.unfit(complaints, &wanted),
            }
        }
        found.map(|(_, choice)| *choice)
    }

    /// Returns a program and its arguments.
    pub(super) fn command(&self, complaints: &mut Complaints) -> Option<Vec<String>> {
        if let Value::Text(text) = &self.node.value {
            let words: Vec<_> = text.split_whitespace().collect();
            let text = format!(
                "a command is a list of its words: {words:?}; a shell runs only if it is one of them: \
                 [\"sh\", \"-c\", {text:?}]"
            );
            self.wrong(complaints, text);
            return None;
        }
        let list = self.list(complaints);
        if list.is_empty() {
            if matches!(self.node.value, Value::List(_)) {
                self.wrong(complaints, "a command has one word at least");
            }
            return None;
        }
        (list.iter())
            .map(|word| word.text(complaints))
            .collect::<Vec<_>>()
            .into_iter()
            .collect()
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

fn join(key: &str, name: &str) -> String {
    if key.is_empty() {
        name.to_owned()
    } else {
        format!("{key}.{name}")
    }
}

fn list(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
