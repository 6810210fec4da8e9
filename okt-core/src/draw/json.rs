//! A graph as JSON, as in the annotation `okt.dev/graph` of the CRD.

use alloc::format;
use alloc::string::{String, ToString};

use super::{cause, roles};
use crate::duration;
use crate::graph::{Cause, Graph, Kind};

impl Graph<'_> {
    /// The version of the format, in its field `format`.
    ///
    /// A reader may rely on every field of a version; a new one only adds fields.
    pub const JSON_FORMAT: u32 = 1;

    /// Writes a graph as one line of JSON.
    ///
    /// Fields: `format`, `name`, `doc`, `kind` (`lifecycle` or `pass`), `states`; of a state `name`, `doc`,
    /// `roles`, `was`, `triggers` (`to`, `cause`, and `after`, `deadline` or `attempts`), `children` (the last is Next),
    /// `conditions`, `noRoutes`. Empty texts and lists are left out.
    ///
    /// ```
    /// # use okt_core::{Graph, Kind, Mark, Marks, State, StateId, routes::Routes};
    /// # const fn state(name: &'static str, marks: Marks, children: &'static [StateId]) -> State<'static> {
    /// #     State { name, variant: name, doc: "", was: &[], marks, triggers: &[], children, conditions: &[], no_routes: &[] }
    /// # }
    /// let states = [
    ///     state("Start", Marks(0).with(Mark::Entry), &[StateId(1)]),
    ///     state("End", Marks(0).with(Mark::Leaf), &[]),
    /// ];
    /// let graph = Graph { name: "App", doc: "", kind: Kind::Lifecycle, states: &states, routes: Routes::NONE };
    /// assert_eq!(
    ///     graph.json(),
    ///     r#"{"format":1,"name":"App","kind":"lifecycle","states":[{"name":"Start","roles":["entry"],"children":["End"]},{"name":"End","roles":["leaf"]}]}"#
    /// );
    /// ```
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = JsonObject::new();
        text.raw("format", &Self::JSON_FORMAT.to_string());
        text.text("name", self.name);
        text.text("doc", self.doc);
        text.text(
            "kind",
            match self.kind {
                Kind::Lifecycle => "lifecycle",
                Kind::Pass => "pass",
            },
        );
        let states = self.iter().map(|(_, state)| {
            let mut object = JsonObject::new();
            object.text("name", state.name);
            object.text("doc", state.doc);
            object.list("roles", roles(state).into_iter().map(quoted));
            object.list("was", state.was.iter().map(|name| quoted(name)));
            object.list(
                "triggers",
                state.triggers.iter().map(|trigger| {
                    let mut object = JsonObject::new();
                    object.text("to", self.name_of(trigger.to));
                    if let Some(words) = cause(trigger.cause) {
                        object.text("cause", &words);
                    }
                    match trigger.cause {
                        Cause::After(after) => object.text("after", &duration::text(after)),
                        Cause::Deadline(time) => object.text("deadline", &duration::text(time)),
                        Cause::OnError { attempts } => {
                            object.raw("attempts", &format!("{attempts}"));
                        }
                        Cause::Named | Cause::OnDelete | Cause::OnChange | Cause::OnGiveUp => {}
                    }
                    object.end()
                }),
            );
            object.list(
                "children",
                state.children.iter().map(|to| quoted(self.name_of(*to))),
            );
            object.list(
                "conditions",
                state.conditions.iter().map(|condition| {
                    let mut object = JsonObject::new();
                    object.text("type", condition.name);
                    object.text("status", condition.status.as_str());
                    object.text("reason", condition.reason);
                    object.text("message", condition.message);
                    object.end()
                }),
            );
            object.list(
                "noRoutes",
                state.no_routes.iter().map(|claim| {
                    let mut object = JsonObject::new();
                    object.text("to", self.name_of(claim.to));
                    object.text("reason", claim.reason);
                    object.end()
                }),
            );
            object.end()
        });
        text.list("states", states);
        text.end()
    }
}

/// A JSON object that is written field by field.
struct JsonObject(String);

impl JsonObject {
    fn new() -> Self {
        Self(String::from("{"))
    }

    fn raw(&mut self, name: &str, value: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&format!("\"{name}\":{value}"));
    }

    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.raw(name, &quoted(value));
        }
    }

    fn list(&mut self, name: &str, items: impl Iterator<Item = String>) {
        let items: alloc::vec::Vec<String> = items.collect();
        if !items.is_empty() {
            self.raw(name, &format!("[{}]", items.join(",")));
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A JSON string (RFC 8259, section 7).
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if u32::from(c) < 0x20 => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
