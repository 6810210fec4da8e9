//! The attributes of one variant as typed values; every value keeps the token it was read from.

use core::time::Duration;

use okt_core::check::Rule;
use okt_core::{Cause, ConditionStatus, Mark, StateId};
use proc_macro2::Ident;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::items::{self, Content, Item};
use crate::report::{Report, Spot};
use crate::serde;

/// What the attributes of a variant say.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) doc: String,
    /// The wire name that serde is told.
    pub(crate) rename: Option<String>,
    pub(crate) marks: Vec<(Mark, Spot)>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) children: Vec<Target>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) no_routes: Vec<NoRoute>,
    pub(crate) was: Vec<Was>,
}

/// A state that an attribute names (e.g. `Running` of `#[child(Running)]`).
#[derive(Debug)]
pub(crate) struct Target {
    /// None where the attribute names nothing; it stays an edge, so that the others keep their positions.
    pub(crate) ident: Option<Ident>,
    pub(crate) spot: Spot,
    /// Found by the model.
    pub(crate) to: StateId,
}

/// A trigger edge.
#[derive(Debug)]
pub(crate) struct Trigger {
    pub(crate) target: Target,
    pub(crate) cause: Cause,
    /// The word of the cause (e.g. `after`).
    pub(crate) word: Spot,
    /// The value of the cause (e.g. `"30m"`).
    pub(crate) value: Spot,
    /// An option was not understood, so the cause may be another than [`Trigger::cause`].
    pub(crate) is_doubtful: bool,
}

/// A declared condition.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The type (e.g. `Available`).
    pub(crate) name: String,
    pub(crate) spot: Spot,
    pub(crate) status: ConditionStatus,
    pub(crate) reason: String,
    pub(crate) reason_spot: Spot,
    pub(crate) message: String,
}

/// A refused wish.
#[derive(Debug)]
pub(crate) struct NoRoute {
    pub(crate) target: Target,
    pub(crate) reason: String,
}

/// A former wire name.
#[derive(Debug)]
pub(crate) struct Was {
    pub(crate) name: String,
    pub(crate) spot: Spot,
}

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
    pub(crate) fn read(report: &mut Report, attrs: &[Attribute]) -> Self {
        let mut read = Self {
            doc: doc(attrs),
            ..Self::default()
        };
        for attr in attrs {
            let Some(word) = attr.path().get_ident() else {
                continue;
            };
            match items::name(word).as_str() {
                "entry" => read.mark(report, attr, Mark::Entry, &[]),
                "rest" => {
                    let options = [("hold", Mark::Hold), ("idle", Mark::Idle)];
                    read.mark(report, attr, Mark::Rest, &options);
                }
                "leaf" => read.mark(report, attr, Mark::Leaf, &[("idle", Mark::Idle)]),
                "visit" => read.mark(report, attr, Mark::Visit, &[]),
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

    /// `#[entry]`, `#[rest(hold, idle)]` and so on.
    fn mark(
        &mut self,
        report: &mut Report,
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

    fn set(&mut self, report: &mut Report, attr: &Attribute, mark: Mark, spot: Spot) {
        if self.has(mark) {
            let word = match mark {
                Mark::Hold => "hold".to_string(),
                Mark::Idle => "idle".to_string(),
                Mark::Entry | Mark::Rest | Mark::Leaf | Mark::Visit | Mark::NoTransit => {
                    format!("#[{}]", items::spell(attr.path()))
                }
            };
            let rule = match mark {
                Mark::Entry => Rule::OneEntry,
                _ => Rule::Exclude,
            };
            report.error(
                rule,
                spot,
                format!("`{word}` stands twice on one state; keep one"),
            );
        } else {
            self.marks.push((mark, spot));
        }
    }

    /// `#[child(Running)]`.
    fn child(&mut self, report: &mut Report, attr: &Attribute) {
        let (targets, rest) = targets(report, attr, &[]);
        for item in rest {
            item.unknown(report, &[]);
        }
        self.children
            .extend(one_per_attribute(report, "child", targets));
    }

    /// `#[trigger(Failed, after = "30m")]`.
    fn trigger(&mut self, report: &mut Report, attr: &Attribute) {
        const CAUSES: [&str; 4] = ["after", "on_error", "on_delete", "on_change"];
        let (targets, rest) = targets(report, attr, &CAUSES);
        for target in one_per_attribute(report, "trigger", targets) {
            self.triggers.push(Trigger {
                cause: Cause::Named,
                word: target.spot,
                value: target.spot,
                is_doubtful: false,
                target,
            });
        }
        let Some(trigger) = self.triggers.last_mut() else {
            return;
        };
        let mut first: Option<String> = None;
        for item in rest {
            let word = item.word().filter(|word| CAUSES.contains(&word.as_str()));
            let Some(word) = word else {
                item.unknown(report, &CAUSES);
                trigger.is_doubtful = true;
                continue;
            };
            if let Some(first) = &first {
                report.error(
                    Rule::Option,
                    item.spot,
                    format!("a trigger has one cause, and `{first}` stands already; remove one"),
                );
                continue;
            }
            trigger.word = item.spot;
            trigger.value = item.spot;
            trigger.cause = match word.as_str() {
                "after" => Cause::After(after(report, &item, &mut trigger.value)),
                "on_error" => Cause::OnError {
                    attempts: attempts(report, &item, &mut trigger.value),
                },
                "on_delete" => {
                    item.is_flag(report, "on_delete");
                    Cause::OnDelete
                }
                _ => {
                    item.is_flag(report, "on_change");
                    Cause::OnChange
                }
            };
            first = Some(word);
        }
    }

    /// `#[condition(Available, status = "False", reason = "Broken", message = "..")]`.
    fn condition(&mut self, report: &mut Report, attr: &Attribute) {
        let own = spot(report, attr);
        let Some(items) = items::of_attribute(report, attr) else {
            return;
        };
        let mut items = items.into_iter().peekable();
        let name = items.peek().and_then(|item| match &item.content {
            Content::Name(path) => Some((items::spell(path), item.spot)),
            Content::Literal(Lit::Str(text)) => Some((text.value(), item.spot)),
            Content::Literal(_) | Content::Value { .. } | Content::List { .. } => None,
        });
        if name.is_some() {
            items.next();
        }
        let mut read = Condition {
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
                    once(report, &mut seen, "status", &item);
                    if let Some((word, spot)) = item.text(report, "status") {
                        read.status = status(report, &word, spot);
                    }
                }
                "reason" => {
                    once(report, &mut seen, "reason", &item);
                    if let Some((reason, spot)) = item.text(report, "reason") {
                        if reason.is_empty() {
                            report.error(
                                Rule::Condition,
                                spot,
                                "an empty reason; leave it out to use the state's name",
                            );
                        }
                        (read.reason, read.reason_spot) = (reason, spot);
                    }
                }
                "message" => {
                    once(report, &mut seen, "message", &item);
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
            None => report.error(
                Rule::Option,
                own,
                "names no condition; write its type first, `#[condition(Available)]`",
            ),
        }
    }

    /// `#[no_route(Running, Servicing, reason = "..")]`.
    fn no_route(&mut self, report: &mut Report, attr: &Attribute) {
        let own = spot(report, attr);
        let (targets, rest) = targets(report, attr, &["reason"]);
        let mut reason = None;
        let mut seen = Vec::new();
        for item in rest {
            if item.word().as_deref() == Some("reason") {
                once(report, &mut seen, "reason", &item);
                reason = item.text(report, "reason").or(reason);
            } else {
                item.unknown(report, &["reason"]);
            }
        }
        let said = reason
            .as_ref()
            .is_some_and(|(reason, _)| !reason.trim().is_empty());
        if !said && (reason.is_some() || seen.is_empty()) {
            let spot = reason.as_ref().map_or(own, |(_, spot)| *spot);
            report.error(
                Rule::Option,
                spot,
                "says no reason; tell the user who wishes this why it is refused, `reason = \"..\"`",
            );
        }
        let reason = reason.map(|(reason, _)| reason).unwrap_or_default();
        self.no_routes
            .extend(targets.into_iter().map(|target| NoRoute {
                target,
                reason: reason.clone(),
            }));
    }

    /// `#[was("Backup")]`.
    fn was(&mut self, report: &mut Report, attr: &Attribute) {
        let own = spot(report, attr);
        let Some(items) = items::of_attribute(report, attr) else {
            return;
        };
        if items.is_empty() {
            report.error(
                Rule::Option,
                own,
                "names nothing; write `#[was(\"OldName\")]`",
            );
        }
        for (index, item) in items.iter().enumerate() {
            let name = match &item.content {
                Content::Literal(Lit::Str(text)) => text.value(),
                Content::Name(path) => {
                    let name = items::spell(path);
                    report.error(
                        Rule::Option,
                        item.spot,
                        format!("a former name is a text; write `#[was(\"{name}\")]`"),
                    );
                    name
                }
                Content::Literal(_) | Content::Value { .. } | Content::List { .. } => {
                    item.unknown(report, &[]);
                    continue;
                }
            };
            if index > 0 {
                report.error(
                    Rule::Option,
                    item.spot,
                    format!("one name per attribute; write `#[was(\"{name}\")]` beside this one"),
                );
            }
            let spot = item.spot;
            self.was.push(Was { name, spot });
        }
    }
}

/// The doc comment, trimmed; empty where there is none.
pub(crate) fn doc(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    // A block comment is one attribute of many lines.
    let lines: Vec<String> = lines
        .flat_map(|text| {
            let lines: Vec<String> = text.lines().map(|line| line.trim().to_string()).collect();
            if lines.is_empty() { vec![text] } else { lines }
        })
        .collect();
    lines.join("\n").trim().to_string()
}

/// The word of an attribute.
fn spot(report: &mut Report, attr: &Attribute) -> Spot {
    let word = attr.path().segments.first();
    report.spot(word.map_or_else(proc_macro2::Span::call_site, |word| word.ident.span()))
}

/// The states an attribute names, and its other items; at least one target, so that an edge stays an edge.
fn targets(report: &mut Report, attr: &Attribute, options: &[&str]) -> (Vec<Target>, Vec<Item>) {
    let own = spot(report, attr);
    let nameless = Target {
        ident: None,
        spot: own,
        to: StateId::UNKNOWN,
    };
    let Some(items) = items::of_attribute(report, attr) else {
        return (vec![nameless], Vec::new());
    };
    let (mut targets, mut rest) = (Vec::new(), Vec::new());
    for item in items {
        let is_first = targets.is_empty() && rest.is_empty();
        match target(report, &item, is_first, options) {
            Some(target) => targets.push(target),
            None => rest.push(item),
        }
    }
    if targets.is_empty() {
        let word = items::spell(attr.path());
        report.error(
            Rule::Option,
            own,
            format!("names no state; write its name first, `#[{word}(Running)]`"),
        );
        targets.push(nameless);
    }
    (targets, rest)
}

fn target(report: &mut Report, item: &Item, is_first: bool, options: &[&str]) -> Option<Target> {
    let ident = match &item.content {
        Content::Name(path) => {
            let last = path.segments.last()?.ident.clone();
            let name = items::name(&last);
            // States are written like types; a word that is not one is an option, except in the first place.
            if options.contains(&name.as_str())
                || !(is_first || name.starts_with(char::is_uppercase))
            {
                return None;
            }
            if path.get_ident().is_none() {
                report.error(
                    Rule::Option,
                    item.spot,
                    format!("a state is named alone; write `{name}`"),
                );
            }
            Some(last)
        }
        Content::Literal(Lit::Str(text)) => {
            let ident = text.parse::<Ident>().ok();
            let name = ident.as_ref().map_or("Running".to_string(), items::name);
            report.error(
                Rule::Option,
                item.spot,
                format!("a state is a name, not a text; write `{name}`"),
            );
            ident
        }
        Content::Literal(_) | Content::Value { .. } | Content::List { .. } => return None,
    };
    Some(Target {
        ident,
        spot: item.spot,
        to: StateId::UNKNOWN,
    })
}

/// One edge is one line of a diff; further targets are edges all the same.
fn one_per_attribute(report: &mut Report, word: &str, targets: Vec<Target>) -> Vec<Target> {
    for target in targets.iter().skip(1) {
        let name = target.ident.as_ref().map_or("..".to_string(), items::name);
        report.error(
            Rule::Option,
            target.spot,
            format!("one edge per attribute; write `#[{word}({name})]` beside this one"),
        );
    }
    targets
}

/// The time of `after = "30m"`; another, harmless one where it cannot be read.
fn after(report: &mut Report, item: &Item, value: &mut Spot) -> Duration {
    const HARMLESS: Duration = Duration::from_secs(1);
    let Some((text, spot)) = item.text(report, "after") else {
        return HARMLESS;
    };
    *value = spot;
    // humantime reads `30M` as months, which nobody means who writes it.
    let read = if text.contains('M') {
        Err("`M` would be months; use `m` for minutes".to_string())
    } else {
        humantime::parse_duration(&text).map_err(|error| error.to_string())
    };
    read.unwrap_or_else(|error| {
        report.error(
            Rule::Option,
            spot,
            format!("`{text}` is no time: {error}; write e.g. `after = \"30m\"`, `\"1h30m\"` or `\"500ms\"`"),
        );
        HARMLESS
    })
}

/// The number of `on_error(attempts = 3)`; another, harmless one where it cannot be read.
fn attempts(report: &mut Report, item: &Item, value: &mut Spot) -> u32 {
    const HARMLESS: u32 = 1;
    let Content::List { items, .. } = &item.content else {
        report.error(
            Rule::Option,
            item.spot,
            "`on_error` takes a number of attempts; write `on_error(attempts = 3)`",
        );
        return HARMLESS;
    };
    let mut attempts = None;
    let mut seen = Vec::new();
    let options = items::parse(report, items.clone());
    for option in &options {
        if option.word().as_deref() == Some("attempts") {
            once(report, &mut seen, "attempts", option);
            attempts = option.number(report, "attempts").or(attempts);
        } else {
            option.unknown(report, &["attempts"]);
        }
    }
    if options.is_empty() {
        report.error(
            Rule::Option,
            item.spot,
            "`on_error` takes a number of attempts; write `on_error(attempts = 3)`",
        );
    }
    match attempts {
        Some((attempts, spot)) => {
            *value = spot;
            attempts
        }
        None => HARMLESS,
    }
}

fn status(report: &mut Report, word: &str, spot: Spot) -> ConditionStatus {
    ConditionStatus::from_word(word).unwrap_or_else(|| {
        report.error(
            Rule::Option,
            spot,
            format!("`{word}` is no status; use `True`, `False` or `Unknown`"),
        );
        ConditionStatus::True
    })
}

/// Reports an option that stands twice.
fn once(report: &mut Report, seen: &mut Vec<&'static str>, word: &'static str, item: &Item) {
    if seen.contains(&word) {
        report.error(
            Rule::Option,
            item.spot,
            format!("`{word}` stands twice; keep one"),
        );
    }
    seen.push(word);
}
