//! Checks one version of an object.

use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use serde_json::Value;

use super::condition::{conditions_of, find, text};
use super::{Context, Violation};

/// The maximum number of conditions (the limit of Cluster API).
const CONDITIONS: usize = 32;

/// The patterns of metav1.Condition.
static TYPE: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let name = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
    let pattern = format!(r"^({label}(\.{label})*/)?({name})$");
    Regex::new(&pattern).expect("the pattern is right")
});
static REASON: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$").expect("the pattern is right")
});

/// Checks one version of an object.
pub(super) fn check(object: &Value, context: &Context) -> Vec<Violation> {
    let mut found = Vec::new();
    let generation = object
        .pointer("/metadata/generation")
        .and_then(Value::as_i64);
    let seen = object
        .pointer("/status/observedGeneration")
        .and_then(Value::as_i64);
    if conditions_of(object).next().is_none() && seen.is_none_or(|seen| seen < 0) {
        // No operator has written the status yet.
        return found;
    }
    let mut breaks = |id: &str, about: &str, what: String| {
        found.push(Violation::new(id, about, what));
    };
    let mut names: Vec<&str> = Vec::new();
    for condition in conditions_of(object) {
        let name = text(condition, "type");
        if names.contains(&name) {
            breaks("S01", name, "is there twice".to_owned());
        }
        names.push(name);
        well_formed(condition, context, &mut breaks);
        let seen = condition["observedGeneration"].as_i64();
        if let (Some(seen), Some(generation)) = (seen, generation)
            && seen > generation
        {
            let what = format!("has observed generation {seen} of a spec in {generation}");
            breaks("D03", name, what);
        }
        if context.settled && context.is_own(name) && seen.is_some() && seen != generation {
            breaks("D04", name, of_another_generation(seen, generation));
        }
    }
    if let (Some(seen), Some(generation)) = (seen, generation)
        && seen > generation
    {
        let what = format!("{seen} is ahead of generation {generation}");
        breaks("D03", "observedGeneration", what);
    }
    if context.settled && seen != generation {
        let what = of_another_generation(seen, generation);
        breaks("D04", "observedGeneration", what);
    }
    for name in &context.declared {
        if find(object, name).is_none() {
            breaks("D01", name, "is missing".to_owned());
        }
    }
    summary(object, &mut breaks);
    deletion_and_pause(object, &mut breaks);
    // A type with a domain prefix belongs to another controller.
    let own = names.iter().filter(|name| !name.contains('/')).count();
    if own > CONDITIONS {
        let what = format!("{own} of them are too many");
        breaks("D14", "conditions", what);
    }
    // These have limits of their own: the record of owned objects, and what handlers remember and have done.
    let status = &object["status"];
    let position = &status["lifecycle"];
    let limited = [
        &status["recordedResources"],
        &position["memory"],
        &position["action"]["steps"],
    ];
    let limited: usize = limited.iter().map(|it| it.to_string().len()).sum();
    let bytes = status.to_string().len().saturating_sub(limited);
    if context.status_limit.is_some_and(|limit| bytes > limit) {
        breaks("D14", "status", format!("{bytes} bytes are too many"));
    }
    found
}

fn of_another_generation(seen: Option<i64>, generation: Option<i64>) -> String {
    let shown = |number: Option<i64>| number.map_or("none".to_owned(), |number| number.to_string());
    format!(
        "is {} while the spec is in {}",
        shown(seen),
        shown(generation)
    )
}

fn well_formed(condition: &Value, context: &Context, breaks: &mut impl FnMut(&str, &str, String)) {
    let name = text(condition, "type");
    if name.len() > 316 || !TYPE.is_match(name) {
        breaks("S03", name, format!("{} is no type", condition["type"]));
    }
    let reason = text(condition, "reason");
    if reason.len() > 1024 || !REASON.is_match(reason) {
        breaks("S04", name, format!("{} is no reason", condition["reason"]));
    }
    let status = text(condition, "status");
    if !matches!(status, "True" | "False" | "Unknown") {
        breaks("S05", name, format!("{} is no status", condition["status"]));
    }
    match condition["message"].as_str().map(str::len) {
        None => breaks(
            "S05",
            name,
            "has no message, not even an empty one".to_owned(),
        ),
        Some(bytes) if bytes > 32_768 => {
            breaks("S05", name, format!("has a message of {bytes} bytes"));
        }
        Some(_) => {}
    }
    match text(condition, "lastTransitionTime").parse::<Timestamp>() {
        Err(_) => {
            let what = format!("{} is no time", condition["lastTransitionTime"]);
            breaks("S05", name, what);
        }
        Ok(since) if context.now.is_some_and(|now| since > now) => {
            breaks("D02", name, format!("{since} is in the future"));
        }
        Ok(_) => {}
    }
}

/// Checks `Ready` against `Reconciling` and `Stalled`.
fn summary(object: &Value, breaks: &mut impl FnMut(&str, &str, String)) {
    let status = |name: &str| find(object, name).map(|condition| text(condition, "status"));
    let mut in_the_way = Vec::new();
    for name in ["Reconciling", "Stalled"] {
        match status(name) {
            None => {}
            Some("True") => in_the_way.push(name),
            Some(other) => breaks("D06", name, format!("is there though it is {other}")),
        }
    }
    if in_the_way.len() > 1 {
        breaks("D06", "Stalled", "is there beside Reconciling".to_owned());
    }
    let fits = match (status("Ready"), in_the_way.as_slice()) {
        (None, _) => {
            breaks("D05", "Ready", "is missing".to_owned());
            return;
        }
        (Some("True"), []) | (Some("Unknown"), ["Reconciling"]) => true,
        (Some("False"), beside) => !beside.is_empty(),
        _ => false,
    };
    if !fits {
        let ready = status("Ready").unwrap_or_default();
        let beside = match in_the_way.as_slice() {
            [] => "with neither Reconciling nor Stalled".to_owned(),
            some => format!("beside {}", some.join(" and ")),
        };
        breaks("D05", "Ready", format!("is {ready} {beside}"));
    }
    if let (Some(ready), [beside]) = (find(object, "Ready"), in_the_way.as_slice())
        && let Some(beside) = find(object, beside)
        && (text(ready, "reason"), text(ready, "message"))
            != (text(beside, "reason"), text(beside, "message"))
    {
        let what = format!(
            "says {:?} ({}), and {} says {:?} ({})",
            text(ready, "reason"),
            text(ready, "message"),
            text(beside, "type"),
            text(beside, "reason"),
            text(beside, "message")
        );
        breaks("D07", "Ready", what);
    }
}

fn deletion_and_pause(object: &Value, breaks: &mut impl FnMut(&str, &str, String)) {
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    if let Some(condition) = find(object, "Deleting") {
        let status = text(condition, "status");
        if (status == "True") != deleting {
            let how = if deleting { "is" } else { "is not" };
            breaks(
                "D12",
                "Deleting",
                format!("is {status} on an object that {how} being deleted"),
            );
        }
    }
    if find(object, "Paused").is_some_and(|condition| text(condition, "status") == "Unknown") {
        breaks("D13", "Paused", "is Unknown".to_owned());
    }
}
