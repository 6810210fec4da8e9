//! The rules for conditions and status, held against every status that an operator writes.

use std::collections::BTreeMap;

use serde_json::Value;

/// The types that every status has, beside the declared ones.
const ALWAYS: [&str; 3] = ["Ready", "Deleting", "Paused"];

/// The largest status, in bytes.
const SIZE_LIMIT: usize = 8 * 1024;

/// What was last written about each object, by uid, and what was wrong.
#[derive(Default)]
pub(crate) struct Rules {
    before: BTreeMap<String, Value>,
    /// Condition types that the graph declares.
    declared: Vec<String>,
    pub(crate) broken: Vec<String>,
}

impl Rules {
    /// The rules for a graph that declares these condition types.
    pub(crate) fn of(declared: Vec<String>) -> Self {
        Self {
            declared,
            ..Self::default()
        }
    }

    /// Judges an object as a write of its status left it.
    pub(crate) fn judge(&mut self, after: &Value) {
        let Some(uid) = after["metadata"]["uid"].as_str() else {
            return;
        };
        let before = self.before.insert(uid.to_owned(), after.clone());
        let mut broken = self.of_one(after);
        if let Some(before) = &before {
            broken.extend(of_two(before, after));
        }
        let status = serde_json::to_string_pretty(&after["status"]).unwrap_or_default();
        (self.broken).extend(
            broken
                .into_iter()
                .map(|rule| format!("{rule}, in {status}")),
        );
    }

    fn of_one(&self, object: &Value) -> Vec<String> {
        let mut broken = Vec::new();
        let mut rule = |holds: bool, what: &str| {
            if !holds {
                broken.push(what.to_owned());
            }
        };
        let status = &object["status"];
        let find = |name: &str| find(object, name);
        let declared = self.declared.iter().map(String::as_str);
        for name in ALWAYS.into_iter().chain(declared.clone()) {
            rule(
                find(name).is_some(),
                &format!("D01/D05/D13: {name} is missing"),
            );
        }
        let generation = &object["metadata"]["generation"];
        rule(
            status["observedGeneration"].as_i64() <= generation.as_i64(),
            "D03: observedGeneration is ahead of the spec",
        );
        for name in (ALWAYS.into_iter().chain(["Reconciling", "Stalled"])).chain(declared) {
            let Some(condition) = find(name) else {
                continue;
            };
            rule(
                condition["observedGeneration"] == status["observedGeneration"],
                &format!("D03/D04: {name} is of another generation"),
            );
            let reason = condition["reason"].as_str().unwrap_or_default();
            rule(
                okt_core::names::is_reason(reason),
                &format!("S04: `{reason}` is no reason"),
            );
            let message = condition["message"].as_str().map(str::len);
            rule(
                message.is_some_and(|bytes| bytes <= 1024),
                &format!("S05: the message of {name} is {message:?} bytes"),
            );
        }
        let is = |name: &str| find(name).and_then(|condition| condition["status"].as_str());
        let beside = match (is("Reconciling"), is("Stalled")) {
            (None, None) => None,
            (Some("True"), None) => Some("Reconciling"),
            (None, Some("True")) => Some("Stalled"),
            _ => {
                rule(
                    false,
                    "D06: Reconciling and Stalled are there only while True, never both",
                );
                None
            }
        };
        rule(
            matches!(
                (is("Ready"), beside),
                (Some("True"), None)
                    | (Some("False"), Some(_))
                    | (Some("Unknown"), Some("Reconciling"))
            ),
            "D05: Ready does not fit what is beside it",
        );
        if let (Some(ready), Some(beside)) = (find("Ready"), beside.and_then(find)) {
            let same = ready["reason"] == beside["reason"] && ready["message"] == beside["message"];
            rule(same, "D07: Ready does not say what is in the way");
        }
        let bytes = status.to_string().len();
        rule(
            bytes <= SIZE_LIMIT,
            &format!("D14: a status of {bytes} bytes"),
        );
        broken
    }
}

fn of_two(before: &Value, after: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            broken.push(what.to_owned());
        }
    };
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    rule(
        version(before) != version(after),
        "D09: a write that changes nothing",
    );
    let seen = |object: &Value| object["status"]["observedGeneration"].as_i64();
    rule(
        seen(before) <= seen(after),
        "D03: observedGeneration decreases",
    );
    let conditions = after["status"]["conditions"].as_array();
    for next in conditions.into_iter().flatten() {
        let name = next["type"].as_str().unwrap_or_default();
        let Some(last) = find(before, name) else {
            continue;
        };
        let flipped = last["status"] != next["status"];
        let dated = last["lastTransitionTime"] != next["lastTransitionTime"];
        rule(
            flipped || !dated,
            &format!("D02: {name} has a new time without a new status"),
        );
    }
    broken
}

fn find<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == name)
}
