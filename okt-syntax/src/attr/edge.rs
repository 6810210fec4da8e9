//! The attributes that name states: `#[child]`, `#[trigger]` with its cause, `#[no_route]`.

use core::time::Duration;

use okt_core::{Cause, StateId};
use proc_macro2::Ident;
use syn::{Attribute, Lit};

use super::{Attributes, Deadline, EdgeTarget, NoRoute, Trigger, part, spot};
use crate::items::{self, Item, ItemContent};
use crate::report::{ErrorReport, Spot};

/// The causes of a trigger.
const CAUSES: [&str; 6] = [
    "after",
    "on_error",
    "on_delete",
    "on_change",
    "on_give_up",
    "on_abort",
];

impl Attributes {
    /// Reads `#[child(Running)]`.
    pub(super) fn child(&mut self, report: &mut ErrorReport, attr: &Attribute) {
        let (targets, rest) = targets(report, attr, &[]);
        for item in rest {
            item.unknown(report, &[]);
        }
        self.children
            .extend(one_per_attribute(report, "child", targets));
    }

    /// Reads `#[trigger(Failed, after = "30m", on_error(attempts = 3))]`: one trigger for each cause.
    pub(super) fn trigger(&mut self, report: &mut ErrorReport, attr: &Attribute) {
        let (targets, rest) = targets(report, attr, &CAUSES);
        for target in one_per_attribute(report, "trigger", targets) {
            self.triggers.push(Trigger::named(target));
        }
        let Some(target) = self.triggers.last().map(|last| last.target.clone()) else {
            return;
        };
        let mut seen: Vec<String> = Vec::new();
        for item in rest {
            let word = item.word().filter(|word| CAUSES.contains(&word.as_str()));
            let Some(word) = word else {
                item.unknown(report, &CAUSES);
                if let Some(trigger) = self.triggers.last_mut() {
                    trigger.is_doubtful = true;
                }
                continue;
            };
            if !item.once(report, &mut seen) {
                continue;
            }
            if seen.len() > 1 {
                self.triggers.push(Trigger::named(target.clone()));
            }
            let Some(trigger) = self.triggers.last_mut() else {
                return;
            };
            trigger.word = item.spot;
            trigger.value = item.spot;
            trigger.cause = match word.as_str() {
                "after" => Cause::After(after(report, &item, &mut trigger.value)),
                "on_error" => Cause::OnError {
                    attempts: attempts(report, &item, &mut trigger.value),
                },
                "on_change" => {
                    match part::parts(report, &item) {
                        Some(parts) => trigger.parts = parts,
                        None => trigger.is_doubtful = true,
                    }
                    Cause::OnChange
                }
                flag => {
                    item.is_flag(report, flag);
                    match flag {
                        "on_delete" => Cause::OnDelete,
                        "on_give_up" => Cause::OnGiveUp,
                        _ => Cause::OnAbort,
                    }
                }
            };
        }
    }

    /// Reads `#[no_route(Running, Servicing, reason = "..")]`.
    pub(super) fn no_route(&mut self, report: &mut ErrorReport, attr: &Attribute) {
        let own = spot(report, attr);
        let (targets, rest) = targets(report, attr, &["reason"]);
        let mut reason = None;
        let mut seen = Vec::new();
        for item in rest {
            if item.word().as_deref() == Some("reason") {
                item.once(report, &mut seen);
                reason = item.text(report, "reason").or(reason);
            } else {
                item.unknown(report, &["reason"]);
            }
        }
        let is_given = reason
            .as_ref()
            .is_some_and(|(reason, _)| !reason.trim().is_empty());
        if !is_given && (reason.is_some() || seen.is_empty()) {
            let spot = reason.as_ref().map_or(own, |(_, spot)| *spot);
            report.bad_option(
                spot,
                "`#[no_route]` has no reason",
                "say why a spec that asks for this is refused, `reason = \"..\"`",
            );
        }
        let reason = reason.map(|(reason, _)| reason).unwrap_or_default();
        self.no_routes
            .extend(targets.into_iter().map(|target| NoRoute {
                target,
                reason: reason.clone(),
            }));
    }
}

/// The advice about a deadline that lacks something.
const DEADLINE: &str = "write `#[deadline(Failed, after = \"1h\", over(Start, Warming))]`";

impl Deadline {
    /// Reads `#[deadline(Failed, after = "1h", over(Start, Warming))]`.
    pub(crate) fn read(report: &mut ErrorReport, attr: &Attribute) -> Option<Self> {
        const OPTIONS: [&str; 2] = ["after", "over"];
        let own = spot(report, attr);
        let (targets, rest) = targets(report, attr, &OPTIONS);
        let target = one_per_attribute(report, "deadline", targets)
            .into_iter()
            .next()?;
        let (mut time, mut over) = (None, Vec::new());
        let mut seen = Vec::new();
        for item in rest {
            match item.word().as_deref() {
                Some("after") => {
                    item.once(report, &mut seen);
                    let mut value = item.spot;
                    let read = after(report, &item, &mut value);
                    time = Some((read, item.spot, value));
                }
                Some("over") => {
                    item.once(report, &mut seen);
                    over.extend(states_of(report, &item));
                }
                _ => item.unknown(report, &OPTIONS),
            }
        }
        let is_named = target.ident.is_some();
        if is_named && (time.is_none() || over.is_empty()) {
            report.bad_option(
                own,
                "a deadline has a target, a time and the states that it is for",
                DEADLINE,
            );
        }
        let (time, word, value) = time?;
        Some(Self {
            target,
            time,
            word,
            value,
            over,
        })
    }
}

/// Returns the states of an option (e.g. `over(Start, Warming)`).
pub(super) fn states_of(report: &mut ErrorReport, item: &Item) -> Vec<EdgeTarget> {
    let ItemContent::List { items, .. } = &item.content else {
        let word = item.word().unwrap_or_default();
        report.bad_option(
            item.spot,
            format!("`{word}` takes states"),
            format!("write `{word}(Start, Warming)`"),
        );
        return Vec::new();
    };
    let items = items::parse(report, items.clone());
    let states = items.iter().filter_map(|item| {
        let state = target(report, item, true, &[]);
        if state.is_none() {
            item.unknown(report, &[]);
        }
        state
    });
    states.collect()
}

/// Returns the states that an attribute names, and its other items; at least one target, so that an edge stays an edge.
fn targets(
    report: &mut ErrorReport,
    attr: &Attribute,
    options: &[&str],
) -> (Vec<EdgeTarget>, Vec<Item>) {
    let own = spot(report, attr);
    let nameless = EdgeTarget {
        ident: None,
        spot: own,
        to: StateId::UNKNOWN,
    };
    let Some(items) = items::of_attribute(report, attr) else {
        return (vec![nameless], Vec::new());
    };
    let (mut targets, mut rest) = (Vec::new(), Vec::new());
    // Only `#[no_route]` takes several states, and it has no option without a value.
    let are_states = attr.path().is_ident("no_route");
    for item in items {
        let is_first = targets.is_empty() && rest.is_empty();
        match target(report, &item, is_first || are_states, options) {
            Some(target) => targets.push(target),
            None => rest.push(item),
        }
    }
    if targets.is_empty() {
        let word = items::spell(attr.path());
        let help = match word.as_str() {
            "deadline" => DEADLINE.to_owned(),
            _ => format!("write its name first, `#[{word}(Running)]`"),
        };
        // The name was meant by what stands in its place.
        let spot = match rest.first() {
            Some(item) if item.word().is_none() => rest.remove(0).spot,
            Some(_) | None => own,
        };
        report.bad_option(spot, format!("`#[{word}]` names no state"), help);
        targets.push(nameless);
    }
    (targets, rest)
}

/// Returns the state that an item names; none if the item is an option.
///
/// A word in lower case may be either: in some places it can only be a state, and so can a raw identifier anywhere.
fn target(
    report: &mut ErrorReport,
    item: &Item,
    is_state: bool,
    options: &[&str],
) -> Option<EdgeTarget> {
    let ident = match &item.content {
        ItemContent::Name(path) => {
            let last = path.segments.last()?.ident.clone();
            let name = items::name(&last);
            let is_raw = last != name;
            let is_lower = name.starts_with(char::is_lowercase);
            if !is_raw && (options.contains(&name.as_str()) || !is_state && is_lower) {
                return None;
            }
            if path.get_ident().is_none() {
                report.bad_option(
                    item.spot,
                    "a state is named alone",
                    format!("write `{name}`"),
                );
            }
            Some(last)
        }
        ItemContent::Literal(Lit::Str(text)) => {
            let ident = text.parse::<Ident>().ok();
            let name = ident.as_ref().map_or("Running".to_string(), items::name);
            report.bad_option(
                item.spot,
                "a state is a name, not a text",
                format!("write `{name}`"),
            );
            ident
        }
        ItemContent::Literal(_) | ItemContent::Value { .. } | ItemContent::List { .. } => {
            return None;
        }
    };
    Some(EdgeTarget {
        ident,
        spot: item.spot,
        to: StateId::UNKNOWN,
    })
}

/// Reports further targets of one attribute, so that each edge is one line of a diff; they stay edges.
fn one_per_attribute(
    report: &mut ErrorReport,
    word: &str,
    targets: Vec<EdgeTarget>,
) -> Vec<EdgeTarget> {
    for target in targets.iter().skip(1) {
        let name = target.ident.as_ref().map_or("..".to_string(), items::name);
        report.bad_option(
            target.spot,
            "one edge per attribute",
            format!("write `#[{word}({name})]` on a line of its own"),
        );
    }
    targets
}

/// Reads the time of `after = "30m"`; returns a harmless time if it is unreadable.
fn after(report: &mut ErrorReport, item: &Item, value: &mut Spot) -> Duration {
    const HARMLESS: Duration = Duration::from_secs(1);
    let Some((time, spot)) = time(report, item, "after") else {
        return HARMLESS;
    };
    *value = spot;
    time.unwrap_or(HARMLESS)
}

/// Reads the time of an option (e.g. `needs = "1h"`), and where it stands; reports one that cannot be read.
pub(super) fn time(
    report: &mut ErrorReport,
    item: &Item,
    word: &str,
) -> Option<(Option<Duration>, Spot)> {
    let (text, spot) = item.text(report, word)?;
    // humantime reads `30M` as months, which is never intended.
    let has_months = text.contains('M');
    if let Ok(time) = humantime::parse_duration(&text)
        && !has_months
    {
        return Some((Some(time), spot));
    }
    let why = if has_months {
        ": `M` would be months"
    } else {
        ""
    };
    report.bad_option(
        spot,
        format!("`{text}` is no time{why}"),
        format!("write e.g. `{word} = \"30m\"`, `\"1h30m\"` or `\"500ms\"`"),
    );
    Some((None, spot))
}

/// Reads the number of `on_error(attempts = 3)`, 1 for `on_error`; returns a harmless number if it is unreadable.
fn attempts(report: &mut ErrorReport, item: &Item, value: &mut Spot) -> u32 {
    const HARMLESS: u32 = 1;
    let options = match &item.content {
        ItemContent::Name(_) => return 1,
        ItemContent::List { items, .. } => items::parse(report, items.clone()),
        ItemContent::Value { .. } | ItemContent::Literal(_) => Vec::new(),
    };
    if options.is_empty() {
        report.bad_option(
            item.spot,
            "`on_error` takes a number of attempts",
            "write `on_error(attempts = 3)`",
        );
    }
    let mut attempts = None;
    let mut seen = Vec::new();
    for option in &options {
        if option.word().as_deref() == Some("attempts") {
            option.once(report, &mut seen);
            attempts = option.number(report, "attempts").or(attempts);
        } else {
            option.unknown(report, &["attempts"]);
        }
    }
    match attempts {
        Some((attempts, spot)) => {
            *value = spot;
            attempts
        }
        None => HARMLESS,
    }
}
