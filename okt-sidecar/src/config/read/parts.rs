//! Values that several parts of a configuration have: programs, files, URLs, and what runs as whom.

use std::collections::BTreeSet;
use std::path::PathBuf;

use url::Url;

use crate::config::fields::{Field, Fields, is_state};
use crate::config::{CommandEnvironment, Machine, Meaning, machine};

pub(super) fn url(field: &Field<'_>) -> Option<Url> {
    let text = field.text()?;
    let why = match Url::parse(&text) {
        Ok(url) if url.scheme() == "http" && url.has_host() => return Some(url),
        Ok(_) => ": only http:// is spoken, to an application beside the agent".to_owned(),
        Err(error) => format!(" is no URL: {error}"),
    };
    field.wrong(format!("{text:?}{why}"));
    None
}

pub(super) fn numbers(field: &Field<'_>, from: i64, to: i64) -> BTreeSet<u16> {
    let list = field.list();
    let numbers = list.iter().filter_map(|element| element.number(from, to));
    numbers.flat_map(u16::try_from).collect()
}

pub(super) fn surroundings(fields: &mut Fields<'_>) -> CommandEnvironment {
    let [user, group, environment, directory] =
        ["user", "group", "environment", "directory"].map(|name| fields.take(name));
    let entries = environment.map(|it| it.entries()).unwrap_or_default();
    let variables = entries.into_iter().filter_map(|entry| {
        let name = &entry.key.name;
        if name.is_empty() || name.contains(['=', '\0']) || name.starts_with("OKT_") {
            entry.wrong("no variable can be called so: OKT_ is the agent's own");
        }
        Some((name.clone(), entry.field.text()?))
    });
    let around = CommandEnvironment {
        environment: variables.collect(),
        user: user.as_ref().and_then(Field::text),
        group: group.as_ref().and_then(Field::text),
        directory: directory.as_ref().and_then(Field::path),
    };
    if fields.machine() == Machine::Here {
        let named = [user.as_ref(), group.as_ref(), directory.as_ref()];
        machine::surroundings(named, &around);
    }
    around
}

pub(super) fn command(field: &Field<'_>, around: &CommandEnvironment) -> Option<Vec<String>> {
    let words = field.words()?;
    let program = words.first()?;
    if program.is_empty() || program.contains('/') && !program.starts_with('/') {
        field.wrong(format!(
            "{program:?}: a program is named by a path from the root, or found in PATH"
        ));
    } else if field.reading.machine == Machine::Here {
        machine::program(field, program, &around.environment);
    }
    Some(words)
}

pub(super) fn file(field: &Field<'_>) -> Option<PathBuf> {
    let path = field.path()?;
    if field.reading.machine == Machine::Here {
        machine::file(field, &path);
    }
    Some(path)
}

pub(super) fn answer(field: &Field<'_>) -> Option<Meaning> {
    match field.text()?.as_str() {
        "absent" => Some(Meaning::Absent),
        name if is_state(name) => Some(Meaning::In(name.to_owned())),
        name => {
            field.wrong(format!(
                "{name:?} is neither a state such as Running nor \"absent\""
            ));
            None
        }
    }
}
