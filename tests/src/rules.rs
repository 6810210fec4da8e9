//! What every status that an operator writes is held against: the rules for all operators, and OKT's own.

use okt_testing::conditions::{self, Context};
use serde_json::Value;

/// The types that every status has, beside the declared ones.
const ALWAYS: [&str; 3] = ["Ready", "Deleting", "Paused"];

/// The types that OKT writes beside the declared ones.
const SOMETIMES: [&str; 2] = ["Reconciling", "Stalled"];

/// The largest status, in bytes.
const STATUS_LIMIT: usize = 8 * 1024;

/// The longest message, in bytes.
const MESSAGE_LIMIT: usize = 1024;

/// The rules for an operator whose graph declares some condition types.
pub(crate) struct Rules {
    own: Vec<String>,
    context: Context,
}

impl Rules {
    pub(crate) fn of(declared: &[String]) -> Self {
        let own = |more: &[&str]| -> Vec<String> {
            let names = ALWAYS.iter().chain(more).map(|name| (*name).to_owned());
            names.chain(declared.iter().cloned()).collect()
        };
        let context = Context::new()
            .declares(own(&[]))
            .owns(own(&SOMETIMES))
            .status_limit(STATUS_LIMIT);
        Self {
            own: own(&SOMETIMES),
            context,
        }
    }

    /// What is wrong with an object as a write of its status left it.
    pub(crate) fn broken(&self, before: Option<&Value>, after: &Value) -> Vec<String> {
        let found = conditions::check(before, after, &self.context);
        let mut broken: Vec<_> = found.iter().map(ToString::to_string).collect();
        let seen = &after["status"]["observedGeneration"];
        let conditions = after["status"]["conditions"].as_array();
        for condition in conditions.into_iter().flatten() {
            let name = condition["type"].as_str().unwrap_or_default();
            if !self.own.iter().any(|own| own == name) {
                continue;
            }
            if condition["observedGeneration"] != *seen {
                broken.push(format!("{name} is of another generation than the status"));
            }
            let bytes = condition["message"].as_str().map_or(0, str::len);
            if bytes > MESSAGE_LIMIT {
                broken.push(format!("the message of {name} has {bytes} bytes"));
            }
        }
        broken
    }
}
