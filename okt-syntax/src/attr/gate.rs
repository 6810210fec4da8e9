//! Reads gates: `#[window(maintenance, states(Draining, Upgrading), needs = "1h")]`, `#[approval(major, states(Upgrading))]`,
//! `#[limit(rollout, states(Draining, Upgrading))]`.

use core::time::Duration;

use okt_core::{GateKind, Passes};
use proc_macro2::Ident;
use syn::Attribute;

use super::edge::{states_of, time};
use super::{EdgeTarget, spot};
use crate::items::{self, Item, ItemContent};
use crate::options::identifier;
use crate::report::{ErrorReport, Spot};

/// A gate, which the enum declares.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) name: Ident,
    pub(crate) spot: Spot,
    pub(crate) kind: GateKind,
    pub(crate) states: Vec<EdgeTarget>,
    pub(crate) passes: Passes,
}

impl Gate {
    /// The attributes that declare gates.
    pub(crate) const WORDS: [&str; 3] = ["approval", "limit", "window"];

    /// Returns the name as it is stored.
    pub(crate) fn wire_name(&self) -> String {
        items::name(&self.name)
    }

    /// Returns the variant of the generated enum (e.g. `NightShift` for `night_shift`); none if Rust allows no such name.
    pub(crate) fn variant(&self) -> Option<Ident> {
        let words = self.wire_name();
        let words = words.split('_').map(|word| {
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            format!("{}{rest}", first.to_uppercase())
        });
        identifier(&words.collect::<String>())
    }

    /// Reads a gate.
    pub(crate) fn read(report: &mut ErrorReport, attr: &Attribute) -> Option<Self> {
        let own = spot(report, attr);
        let word = attr.path().get_ident().map(Ident::to_string)?;
        let options: &[&str] = match &*word {
            "window" => &["states", "needs", "passes"],
            _ => &["states", "passes"],
        };
        let mut name: Option<(Ident, Spot)> = None;
        let (mut states, mut needs, mut passes) = (Vec::new(), Duration::ZERO, Passes::default());
        let mut seen = Vec::new();
        for item in items::of_attribute(report, attr)? {
            match item.word().as_deref() {
                Some("states") => {
                    item.once(report, &mut seen);
                    states.extend(states_of(report, &item));
                }
                Some("needs") if word == "window" => {
                    item.once(report, &mut seen);
                    needs = time(report, &item, "needs")
                        .map_or(needs, |(read, _)| read.unwrap_or(needs));
                }
                Some("passes") => {
                    item.once(report, &mut seen);
                    read_passes(report, &item, &mut passes);
                }
                _ => match &item.content {
                    ItemContent::Name(path) if name.is_none() && path.get_ident().is_some() => {
                        name = path.get_ident().cloned().map(|ident| (ident, item.spot));
                    }
                    _ => item.unknown(report, options),
                },
            }
        }
        let Some((name, spot)) = name.filter(|_| !states.is_empty()) else {
            report.bad_option(
                own,
                "a gate has a name and the states that it guards",
                format!("write `#[{word}(maintenance, states(Upgrading))]`"),
            );
            return None;
        };
        Some(Self {
            name,
            spot,
            kind: match &*word {
                "approval" => GateKind::Approval,
                "limit" => GateKind::Limit,
                _ => GateKind::Window { needs },
            },
            states,
            passes,
        })
    }
}

/// Reads `passes(triggers, deletion)`.
fn read_passes(report: &mut ErrorReport, item: &Item, passes: &mut Passes) {
    const KNOWN: [&str; 2] = ["triggers", "deletion"];
    let ItemContent::List { items, .. } = &item.content else {
        report.bad_option(
            item.spot,
            "`passes` takes what does not wait",
            "write `passes(triggers)`, `passes(deletion)` or both",
        );
        return;
    };
    for item in items::parse(report, items.clone()) {
        if item.is_flag(report, "triggers") {
            passes.triggers = true;
        } else if item.is_flag(report, "deletion") {
            passes.deletion = true;
        } else {
            item.unknown(report, &KNOWN);
        }
    }
}
