//! Reads the configuration of the probe.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ConfigReader;
use crate::config::fields::{Field, is_state};
use crate::config::{Asks, Meaning, Probe};

impl ConfigReader {
    pub(super) fn probe(&mut self, field: &Field<'_>) -> Option<Probe> {
        let mut fields = field.fields(&mut self.complaints)?;
        let around = self.surroundings(&mut fields);
        let command = fields.take("command");
        let http = fields.take("http");
        let exits = fields.take("exits");
        let statuses = fields.take("statuses");
        let every = fields
            .take("every")
            .and_then(|field| field.time(&mut self.complaints));
        let timeout = fields
            .take("timeout")
            .and_then(|field| field.time(&mut self.complaints));
        let asks = match (command, http) {
            (Some(command), None) => {
                if let Some(field) = statuses {
                    field.wrong(
                        &mut self.complaints,
                        "a command has no statuses but `exits`",
                    );
                }
                let exits = exits
                    .map(|field| self.answers(&field, 0, 255))
                    .unwrap_or_default();
                (self.command(&command, &around)).map(|command| Asks::Command { command, exits })
            }
            (None, Some(http)) => {
                if let Some(field) = exits {
                    field.wrong(
                        &mut self.complaints,
                        "a request has no exits but `statuses`",
                    );
                }
                let statuses = statuses.map(|field| self.answers(&field, 100, 599));
                let statuses = statuses.unwrap_or_default();
                self.url(&http).map(|url| Asks::Http { url, statuses })
            }
            (Some(_), Some(_)) | (None, None) => {
                let text = "expected one of `command` and `http` (a URL)";
                fields.wrong(&mut self.complaints, text);
                None
            }
        };
        fields.end(&mut self.complaints);
        Some(Probe {
            asks: asks?,
            around,
            every: every.unwrap_or(Duration::from_secs(2)),
            timeout: timeout.unwrap_or(Duration::from_secs(5)),
        })
    }

    fn answers(&mut self, field: &Field<'_>, from: u16, to: u16) -> BTreeMap<u16, Meaning> {
        let entries = field.entries(&mut self.complaints);
        let answers = entries.into_iter().filter_map(|(name, place, field)| {
            let number = name
                .parse()
                .ok()
                .filter(|number| (from..=to).contains(number));
            if number.is_none() {
                let text = format!("expected a number from {from} to {to}");
                self.complaints.add(place, &field.key, text);
            }
            Some((number?, self.answer(&field)?))
        });
        answers.collect()
    }

    pub(super) fn answer(&mut self, field: &Field<'_>) -> Option<Meaning> {
        match field.text(&mut self.complaints)?.as_str() {
            "absent" => Some(Meaning::Absent),
            name if is_state(name) => Some(Meaning::In(name.to_owned())),
            name => {
                let text = format!("{name:?} is neither a state such as Running nor \"absent\"");
                field.wrong(&mut self.complaints, text);
                None
            }
        }
    }
}
