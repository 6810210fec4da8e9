//! The attributes that describe a state: `#[condition]` and `#[was]`.

use okt_core::ConditionStatus;
use okt_core::check::Rule;
use syn::{Attribute, Lit};

use super::{Attributes, ConditionAttribute, Was, spot};
use crate::items::{self, ItemContent};
use crate::report::{ErrorReport, Spot};

impl Attributes {
    /// Reads `#[condition(Available, status = "False", reason = "Broken", message = "..")]`.
    pub(super) fn condition(&mut self, report: &mut ErrorReport, attr: &Attribute) {
        let own = spot(report, attr);
        let Some(list) = items::of_attribute(report, attr) else {
            return;
        };
        let mut items = list.into_iter().peekable();
        let name = items.peek().and_then(|item| match &item.content {
            ItemContent::Name(path) => Some((items::spell(path), item.spot)),
            ItemContent::Literal(Lit::Str(text)) => Some((text.value(), item.spot)),
            ItemContent::Literal(_) | ItemContent::Value { .. } | ItemContent::List { .. } => None,
        });
        if name.is_some() {
            items.next();
        }
        let mut read = ConditionAttribute {
            name: String::new(),
            spot: own,
            status: ConditionStatus::True,
            reason: String::new(),
            reason_spot: own,
            message: String::new(),
        };
        let mut seen = Vec::new();
        for item in items {
            match item.word().unwrap_or_default().as_str() {
                "status" => {
                    item.once(report, &mut seen);
                    if let Some((word, spot)) = item.text(report, "status") {
                        read.status = status(report, &word, spot);
                    }
                }
                "reason" => {
                    item.once(report, &mut seen);
                    if let Some((reason, spot)) = item.text(report, "reason") {
                        if reason.is_empty() {
                            report.error(
                                Rule::Condition,
                                spot,
                                "an empty reason",
                                "leave it out to use the state's name",
                            );
                        }
                        (read.reason, read.reason_spot) = (reason, spot);
                    }
                }
                "message" => {
                    item.once(report, &mut seen);
                    if let Some((message, _)) = item.text(report, "message") {
                        read.message = message;
                    }
                }
                _ => item.unknown(report, &["status", "reason", "message"]),
            }
        }
        match name {
            Some((name, spot)) => {
                (read.name, read.spot) = (name, spot);
                self.conditions.push(read);
            }
            None => report.bad_option(
                own,
                "`#[condition]` names no type",
                "write its type first, `#[condition(Available)]`",
            ),
        }
    }

    /// Reads `#[was("Backup")]`.
    pub(super) fn was(&mut self, report: &mut ErrorReport, attr: &Attribute) {
        let own = spot(report, attr);
        let Some(items) = items::of_attribute(report, attr) else {
            return;
        };
        if items.is_empty() {
            report.bad_option(own, "`#[was]` names nothing", "write `#[was(\"OldName\")]`");
        }
        for (index, item) in items.iter().enumerate() {
            let name = match &item.content {
                ItemContent::Literal(Lit::Str(text)) => text.value(),
                ItemContent::Name(path) => {
                    let name = items::spell(path);
                    report.bad_option(
                        item.spot,
                        "a former name is a text",
                        format!("write `#[was(\"{name}\")]`"),
                    );
                    name
                }
                ItemContent::Literal(_) | ItemContent::Value { .. } | ItemContent::List { .. } => {
                    item.unknown(report, &[]);
                    continue;
                }
            };
            if index > 0 {
                report.bad_option(
                    item.spot,
                    "one name per attribute",
                    format!("write `#[was(\"{name}\")]` on a line of its own"),
                );
            }
            let spot = item.spot;
            self.was.push(Was { name, spot });
        }
    }
}

fn status(report: &mut ErrorReport, word: &str, spot: Spot) -> ConditionStatus {
    ConditionStatus::from_word(word).unwrap_or_else(|| {
        report.bad_option(
            spot,
            format!("`{word}` is no status"),
            "use `True`, `False` or `Unknown`",
        );
        ConditionStatus::True
    })
}
