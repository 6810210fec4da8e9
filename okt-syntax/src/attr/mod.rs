//! The attributes of one variant as typed values, each with its token.

mod description;
mod edge;
mod gate;
mod part;
mod visit;

use core::time::Duration;

use okt_core::check::Rule;
use okt_core::{Cause, ConditionStatus, Mark, StateId};
use proc_macro2::Ident;
use syn::{Attribute, Type};

use crate::items;
use crate::report::{ErrorReport, Spot};
use crate::serde;

pub(crate) use gate::Gate;
pub(crate) use part::Part;

/// The attributes of a variant.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) doc: String,
    /// The wire name from serde's attribute.
    pub(crate) rename: Option<String>,
    pub(crate) marks: Vec<(Mark, Spot)>,
    /// The type of the arguments of a visit.
    pub(crate) args: Option<Type>,
    /// The type of the result of a visit.
    pub(crate) result: Option<Type>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) children: Vec<EdgeTarget>,
    pub(crate) conditions: Vec<ConditionAttribute>,
    pub(crate) no_routes: Vec<NoRoute>,
    pub(crate) was: Vec<Was>,
}

/// A state that an attribute names (e.g. `Running` of `#[child(Running)]`).
#[derive(Clone, Debug)]
pub(crate) struct EdgeTarget {
    /// None if the attribute names no state; it stays an edge, so that the others keep their positions.
    pub(crate) ident: Option<Ident>,
    pub(crate) spot: Spot,
    /// The id of the state, which the model sets.
    pub(crate) to: StateId,
}

/// A trigger edge.
#[derive(Debug)]
pub(crate) struct Trigger {
    pub(crate) target: EdgeTarget,
    pub(crate) cause: Cause,
    /// The parts of the spec that `on_change` names; none for every part.
    pub(crate) parts: Vec<Part>,
    /// The word of the cause (e.g. `after`).
    pub(crate) word: Spot,
    /// The value of the cause (e.g. `"30m"`).
    pub(crate) value: Spot,
    /// Whether an option was not understood, so that the real cause may differ from [`Trigger::cause`].
    pub(crate) is_doubtful: bool,
}

impl Trigger {
    /// Returns a trigger that only its name raises.
    pub(crate) fn named(target: EdgeTarget) -> Self {
        Self {
            cause: Cause::Named,
            parts: Vec::new(),
            word: target.spot,
            value: target.spot,
            is_doubtful: false,
            target,
        }
    }
}

/// A deadline over several states, which the enum declares.
#[derive(Debug)]
pub(crate) struct Deadline {
    pub(crate) target: EdgeTarget,
    pub(crate) time: Duration,
    /// The word `after`.
    pub(crate) word: Spot,
    /// The value of `after`.
    pub(crate) value: Spot,
    /// The states that the deadline is for.
    pub(crate) over: Vec<EdgeTarget>,
}

impl Deadline {
    /// Returns the trigger that the deadline is in one of its states.
    pub(crate) fn trigger(&self, state: &EdgeTarget) -> Trigger {
        Trigger {
            target: EdgeTarget {
                // An editor finds the name once, where it is written.
                ident: None,
                spot: state.spot,
                to: self.target.to,
            },
            cause: Cause::Deadline(self.time),
            parts: Vec::new(),
            word: self.word,
            value: self.value,
            is_doubtful: false,
        }
    }
}

/// A declared condition.
#[derive(Debug)]
pub(crate) struct ConditionAttribute {
    /// The type (e.g. `Available`).
    pub(crate) name: String,
    pub(crate) spot: Spot,
    pub(crate) status: ConditionStatus,
    pub(crate) reason: String,
    pub(crate) reason_spot: Spot,
    pub(crate) message: String,
}

/// A refused desired state.
#[derive(Debug)]
pub(crate) struct NoRoute {
    pub(crate) target: EdgeTarget,
    pub(crate) reason: String,
}

/// A former wire name.
#[derive(Debug)]
pub(crate) struct Was {
    pub(crate) name: String,
    pub(crate) spot: Spot,
}

/// Every attribute that belongs on the enum.
pub(crate) const WORDS_OF_ENUM: [&str; 4] = ["approval", "deadline", "limit", "window"];

/// Every attribute that belongs on a variant.
pub(crate) const WORDS: [&str; 10] = [
    "entry",
    "rest",
    "leaf",
    "visit",
    "no_transit",
    "child",
    "trigger",
    "condition",
    "no_route",
    "was",
];

impl Attributes {
    pub(crate) fn read(report: &mut ErrorReport, attrs: &[Attribute]) -> Self {
        let mut read = Self {
            doc: doc(attrs),
            ..Self::default()
        };
        for attr in attrs {
            let Some(word) = attr.path().get_ident() else {
                continue;
            };
            let word = meant(report, attr, &items::name(word));
            match word.as_str() {
                "entry" => read.mark(report, attr, Mark::Entry, &[]),
                "rest" => {
                    let options = [("hold", Mark::Hold), ("idle", Mark::Idle)];
                    read.mark(report, attr, Mark::Rest, &options);
                }
                "leaf" => read.mark(report, attr, Mark::Leaf, &[("idle", Mark::Idle)]),
                "visit" => read.visit(report, attr),
                "no_transit" => read.mark(report, attr, Mark::NoTransit, &[]),
                "child" => read.child(report, attr),
                "trigger" => read.trigger(report, attr),
                "condition" => read.condition(report, attr),
                "no_route" => read.no_route(report, attr),
                "was" => read.was(report, attr),
                "serde" => read.rename = serde::rename(report, attr).or(read.rename),
                _ => {}
            }
        }
        read
    }

    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.marks.iter().any(|(own, _)| *own == mark)
    }

    /// Reads a mark: `#[entry]`, `#[rest(hold, idle)]` and so on.
    fn mark(
        &mut self,
        report: &mut ErrorReport,
        attr: &Attribute,
        mark: Mark,
        options: &[(&str, Mark)],
    ) {
        let spot = spot(report, attr);
        self.set(report, attr, mark, spot);
        let known: Vec<&str> = options.iter().map(|(word, _)| *word).collect();
        for item in items::of_attribute(report, attr).unwrap_or_default() {
            match options.iter().find(|(word, _)| item.is_flag(report, word)) {
                Some((_, option)) => self.set(report, attr, *option, item.spot),
                None => item.unknown(report, &known),
            }
        }
    }

    fn set(&mut self, report: &mut ErrorReport, attr: &Attribute, mark: Mark, spot: Spot) {
        if self.has(mark) {
            let word = match mark {
                Mark::Hold => "hold".to_string(),
                Mark::Idle => "idle".to_string(),
                Mark::Entry
                | Mark::Rest
                | Mark::Leaf
                | Mark::Visit
                | Mark::NoTransit
                | Mark::Args => {
                    format!("#[{}]", items::spell(attr.path()))
                }
            };
            let rule = if mark == Mark::Entry {
                Rule::OneEntry
            } else {
                Rule::Exclude
            };
            report.error(
                rule,
                spot,
                format!("`{word}` stands twice on one state"),
                "keep one",
            );
        } else {
            self.marks.push((mark, spot));
        }
    }
}

/// Returns the word of an attribute; for one that is probably misspelt, the word that was meant.
///
/// rustc reports an attribute that it does not know. The edge is kept as it was meant, so that a missing edge is not
/// reported as well.
fn meant(report: &mut ErrorReport, attr: &Attribute, word: &str) -> String {
    let near = WORDS.into_iter().find(|known| {
        let most = if known.len() < 6 { 1 } else { 2 };
        let distance = strsim::damerau_levenshtein(known, word);
        // A shorter word, and `test`, mean something else.
        known.len() > 3 && word != "test" && (1..=most).contains(&distance)
    });
    let Some(near) = near else {
        return word.to_owned();
    };
    let spot = spot(report, attr);
    report.bad_option(
        spot,
        format!("there is no attribute `{word}`"),
        format!("did you mean `#[{near}]`?"),
    );
    near.to_owned()
}

/// Returns the doc comment, trimmed; empty if there is none.
pub(crate) fn doc(attrs: &[Attribute]) -> String {
    let texts = attrs
        .iter()
        .filter_map(|attr| Some(items::text_of(&attr.meta, "doc")?.value()));
    // A block comment is one attribute of many lines.
    let lines: Vec<String> = texts
        .flat_map(|text| {
            let lines: Vec<String> = text.lines().map(|line| line.trim().to_string()).collect();
            if lines.is_empty() { vec![text] } else { lines }
        })
        .collect();
    lines.join("\n").trim().to_string()
}

/// Returns the spot of an attribute's name.
fn spot(report: &mut ErrorReport, attr: &Attribute) -> Spot {
    let word = attr.path().segments.first();
    report.spot(word.map_or_else(proc_macro2::Span::call_site, |word| word.ident.span()))
}
