//! Checks the conditions and status of any operator against the rules that tools rely on.
//!
#![doc = include_str!("conditions/README.md")]

mod checker;
mod condition;
mod context;
mod lint;
mod one;
mod pair;
mod rule;

pub use self::{
    checker::{Checker, NotRead, Verdict, read},
    context::Context,
    lint::lint,
    rule::{Level, RULES, Rule, Violation},
};

use serde_json::Value;

/// Checks one version of an object, and its change from the previous version, against the rules.
///
/// `previous` is the version before; `None` if there was none or it is unknown. If you may have
/// missed versions between the two, leave out the rules D02, D09 and D11, which need every version.
///
/// # Examples
///
/// ```
/// use okt_view::conditions::{Context, check};
/// use serde_json::json;
///
/// let ready = |status: &str, at: &str| {
///     json!({
///         "metadata": { "generation": 1 },
///         "status": { "observedGeneration": 1, "conditions": [{
///             "type": "Ready", "status": status, "reason": "Up", "message": "",
///             "observedGeneration": 1, "lastTransitionTime": at,
///         }] },
///     })
/// };
/// let before = ready("True", "2026-11-21T09:00:00Z");
/// assert!(check(None, &before, &Context::new()).is_empty());
///
/// let heartbeat = ready("True", "2026-11-21T09:00:10Z");
/// let found = check(Some(&before), &heartbeat, &Context::new());
/// let rules: Vec<_> = found.iter().map(|violation| violation.rule.id).collect();
/// assert_eq!(rules, ["D02", "D09"]);
/// ```
pub fn check(previous: Option<&Value>, next: &Value, context: &Context) -> Vec<Violation> {
    let mut found = one::check(next, context);
    if let Some(previous) = previous.filter(|previous| is_same_object(previous, next)) {
        found.extend(pair::check(previous, next, context));
    }
    context.leave_out(&mut found);
    found
}

fn is_same_object(previous: &Value, next: &Value) -> bool {
    previous["metadata"]["uid"] == next["metadata"]["uid"]
}
