//! Checks the options of a request, which are types of `meta.k8s.io`.

use std::num::IntErrorKind;

use crate::causes::Causes;
use crate::path::Query;
use crate::record::Verb;
use crate::refusal::{Refusal, Subject};

/// Checks the options of a request.
pub(crate) fn check(verb: Verb, query: &Query) -> Result<(), Refusal> {
    check_numbers(verb, query)?;
    let (kind, causes) = match verb {
        // A deletion may have its options in its body.
        Verb::Get | Verb::Delete => return Ok(()),
        Verb::List | Verb::DeleteCollection => ("ListOptions", of_list(query)),
        Verb::Watch => ("ListOptions", of_watch(query)),
        Verb::Create => ("CreateOptions", of_write(query)),
        Verb::Update => ("UpdateOptions", of_write(query)),
        Verb::Patch => ("PatchOptions", of_patch(query)),
        Verb::Apply => ("PatchOptions", of_apply(query)),
    };
    refuse(kind, &causes)
}

/// Checks that numeric options are numbers.
fn check_numbers(verb: Verb, query: &Query) -> Result<(), Refusal> {
    let fields: &[&str] = match verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => &["limit", "timeoutSeconds"],
        Verb::Get | Verb::Create | Verb::Update | Verb::Patch | Verb::Apply | Verb::Delete => &[],
    };
    fields
        .iter()
        .try_for_each(|field| check_number(field, query))
}

fn check_number(field: &str, query: &Query) -> Result<(), Refusal> {
    let Some(text) = query.first(field) else {
        return Ok(());
    };
    let parsed = text.parse::<i64>().map(drop);
    parsed.map_err(|error| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
    })
}

/// The options of a deletion, from its body or its query.
#[derive(Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: Vec<String>,
    pub(crate) propagation: Option<String>,
    /// The deprecated form of the propagation: whether dependents become orphans.
    pub(crate) orphans: Option<bool>,
    /// The seconds that a Pod has to end.
    pub(crate) grace_period: Option<i64>,
    /// A precondition.
    pub(crate) uid: Option<String>,
    /// A precondition.
    pub(crate) version: Option<String>,
}

impl DeleteOptions {
    pub(crate) fn of(query: &Query) -> Result<Self, Refusal> {
        check_number("gracePeriodSeconds", query)?;
        let orphans = "orphanDependents";
        Ok(Self {
            dry_run: query.all("dryRun").to_vec(),
            propagation: query.first("propagationPolicy").map(str::to_owned),
            orphans: query.has(orphans).then(|| query.flag(orphans)),
            grace_period: query
                .first("gracePeriodSeconds")
                .and_then(|text| text.parse().ok()),
            ..Self::default()
        })
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let mut causes = Causes::default();
        if let Some(policy) = &self.propagation {
            let field = "propagationPolicy";
            if self.orphans.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                causes.invalid(field, policy, why);
            }
            if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                causes.unsupported(field, policy, &supported);
            }
        }
        check_dry_run(&self.dry_run, &mut causes);
        refuse("DeleteOptions", &causes)
    }
}

fn refuse(kind: &str, causes: &Causes) -> Result<(), Refusal> {
    if causes.is_empty() {
        return Ok(());
    }
    let subject = Subject {
        group: "meta.k8s.io",
        kind,
        ..Subject::default()
    };
    Err(Refusal::invalid(subject, causes))
}

const MATCH: &str = "resourceVersionMatch";

fn of_list(query: &Query) -> Causes {
    let mut causes = Causes::default();
    let (matching, version) = (query.text(MATCH), query.text("resourceVersion"));
    if !matching.is_empty() {
        if version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.forbidden(MATCH, detail);
        }
        check_continued(query, &mut causes);
        if !matches!(matching, "Exact" | "NotOlderThan") {
            causes.unsupported(MATCH, matching, &["Exact", "NotOlderThan", ""]);
        }
        if matching == "Exact" && version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.forbidden(MATCH, detail);
        }
    }
    if query.has("sendInitialEvents") {
        let detail = "sendInitialEvents is forbidden for list";
        causes.forbidden("sendInitialEvents", detail);
    }
    causes
}

fn of_watch(query: &Query) -> Causes {
    let mut causes = Causes::default();
    let (matching, streams) = (query.text(MATCH), query.has("sendInitialEvents"));
    if streams && matching != "NotOlderThan" {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.forbidden(MATCH, detail);
    }
    if !matching.is_empty() {
        if !streams {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.forbidden(MATCH, detail);
        }
        if matching != "NotOlderThan" {
            causes.unsupported(MATCH, matching, &["NotOlderThan"]);
        }
        check_continued(query, &mut causes);
    }
    causes
}

fn check_continued(query: &Query, causes: &mut Causes) {
    if !query.text("continue").is_empty() {
        causes.forbidden(
            MATCH,
            "resourceVersionMatch is forbidden when continue is provided",
        );
    }
}

fn of_write(query: &Query) -> Causes {
    let mut causes = Causes::default();
    let manager = query.text("fieldManager");
    if manager.len() > 128 {
        causes.too_long("fieldManager", 128);
    }
    // The format of a rune in Go.
    for (at, odd) in manager.char_indices().filter(|(_, c)| c.is_control()) {
        let why = format!("invalid character U+{:04X} (at position {at})", odd as u32);
        causes.invalid("fieldManager", manager, &why);
    }
    check_dry_run(query.all("dryRun"), &mut causes);
    let validation = query.text("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Strict" | "Warn") {
        let supported = ["", "Ignore", "Strict", "Warn"];
        causes.unsupported("fieldValidation", validation, &supported);
    }
    causes
}

fn of_patch(query: &Query) -> Causes {
    let mut causes = Causes::default();
    if query.has("force") {
        causes.forbidden("force", "may not be specified for non-apply patch");
    }
    causes.append(&mut of_write(query));
    causes
}

fn of_apply(query: &Query) -> Causes {
    let mut causes = Causes::default();
    if query.text("fieldManager").is_empty() {
        causes.required("fieldManager", "is required for apply patch");
    }
    causes.append(&mut of_write(query));
    causes
}

fn check_dry_run(given: &[String], causes: &mut Causes) {
    if given.iter().any(|word| word != "All") {
        causes.unsupported("dryRun", given, &["All"]);
    }
}
