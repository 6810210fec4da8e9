//! Reads the configuration of the probe.

use std::collections::BTreeMap;
use std::time::Duration;

use super::parts::{answer, command, surroundings, url};
use crate::config::fields::Field;
use crate::config::{Asks, Meaning, Probe};

pub(super) fn probe(field: &Field<'_>) -> Option<Probe> {
    let mut fields = field.fields()?;
    let around = surroundings(&mut fields);
    let [program, http, exits, statuses] =
        ["command", "http", "exits", "statuses"].map(|name| fields.take(name));
    let every = fields.optional("every", Field::time);
    let timeout = fields.optional("timeout", Field::time);
    let asks = match (program, http) {
        (Some(program), None) => {
            if let Some(field) = statuses {
                field.wrong("a command has no statuses but `exits`");
            }
            let exits = exits.map(|it| answers(&it, 0, 255)).unwrap_or_default();
            command(&program, &around).map(|command| Asks::Command { command, exits })
        }
        (None, Some(http)) => {
            if let Some(field) = exits {
                field.wrong("a request has no exits but `statuses`");
            }
            let answers = statuses.map(|it| answers(&it, 100, 599));
            let statuses = answers.unwrap_or_default();
            url(&http).map(|url| Asks::Http { url, statuses })
        }
        (Some(_), Some(_)) | (None, None) => {
            fields.wrong("expected one of `command` and `http` (a URL)");
            None
        }
    };
    fields.end();
    Some(Probe {
        asks: asks?,
        around,
        every: every.unwrap_or(Duration::from_secs(2)),
        timeout: timeout.unwrap_or(Duration::from_secs(5)),
    })
}

fn answers(field: &Field<'_>, from: u16, to: u16) -> BTreeMap<u16, Meaning> {
    let entries = field.entries().into_iter().filter_map(|entry| {
        let parsed = entry.key.name.parse().ok();
        let number = parsed.filter(|number| (from..=to).contains(number));
        if number.is_none() {
            entry.wrong(format!("expected a number from {from} to {to}"));
        }
        Some((number?, answer(&entry.field)?))
    });
    entries.collect()
}
