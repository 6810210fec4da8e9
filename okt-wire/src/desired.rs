//! The lifecycle field of a spec: the desired state, a visit, and the approval of a plan.

use std::borrow::Cow;
use std::fmt;

use okt_core::facts::Named;
use okt_core::{Lifecycle, Mark, Plan};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

/// The longest request, in bytes; the CRD refuses longer ones.
pub const REQUEST_LIMIT: usize = 253;

/// A state by its wire name, which the graph may not know.
///
/// An unknown name is not a decoding error: it affects one object only, whose conditions report it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateName<S> {
    /// A state of the graph, by its present or a former name.
    Known(S),
    /// A name that the graph does not know.
    Unknown(String),
}

impl<S: Lifecycle> StateName<S> {
    /// Parses a wire name.
    pub fn of(name: &str) -> Self {
        S::from_name(name).map_or_else(|| Self::Unknown(name.to_owned()), Self::Known)
    }

    /// Returns the wire name; for a former name the present one.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(state) => state.name(),
            Self::Unknown(name) => name,
        }
    }

    /// Returns the state, if the graph knows it.
    pub fn known(&self) -> Option<S> {
        match self {
            Self::Known(state) => Some(*state),
            Self::Unknown(_) => None,
        }
    }

    pub(crate) fn named(&self) -> Named {
        self.known()
            .map_or(Named::Unknown, |state| Named::Known(state.id()))
    }
}

impl<S: Lifecycle> fmt::Display for StateName<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<S: Lifecycle> Serialize for StateName<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, S: Lifecycle> Deserialize<'de> for StateName<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Cow::<str>::deserialize(deserializer)?))
    }
}

/// The lifecycle field of a spec.
///
/// ```yaml
/// spec:
///   lifecycle:
///     state: Running                                  # the desired state; the graph has a default
///     visit: { state: Servicing, request: nightly-7 } # a visit, once per request
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "S: Lifecycle", deserialize = "S: Lifecycle")
)]
pub struct Desired<S> {
    /// The desired state; by default the first resting state or leaf on the Next path from the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName<S>>,
    /// Any text; a new one requests the desired state again, which leads out of a holding state or a leaf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// A state to visit once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<Visit<S>>,
    /// The plan that a person approves (e.g. `9c1f20aa`), for the gates of the graph that wait for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
}

impl<S> Desired<S> {
    /// No desired state, request, visit or approval.
    #[doc(hidden)]
    pub const NONE: Self = Self {
        state: None,
        request: None,
        visit: None,
        approve: None,
    };

    /// Returns the plan that is approved; none if the text is no plan.
    pub fn approved(&self) -> Option<Plan> {
        Plan::parse(self.approve.as_deref()?)
    }
}

impl<S> Default for Desired<S> {
    fn default() -> Self {
        Self::NONE
    }
}

/// A visit: a one-time detour through a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "S: Lifecycle", deserialize = "S: Lifecycle")
)]
pub struct Visit<S> {
    /// The state to visit.
    pub state: StateName<S>,
    /// Any text; the object visits the same state once per text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
}

impl<S: Lifecycle> JsonSchema for Desired<S> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Desired{}", S::GRAPH.name).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let graph = S::GRAPH;
        let home = graph.home().map_or("", |home| graph.name_of(home));
        let mut properties = json!({
            "state": {
                "type": "string",
                "description": format!("The state to keep; {home} by default."),
                "enum": names::<S>(|state| !state.is_passing()),
            },
            "request": {
                "type": "string",
                "description": "Any text; a new one asks again, also in a holding state or a leaf.",
                "maxLength": REQUEST_LIMIT,
            },
        });
        // A visit with arguments is for requests.
        let visits = names::<S>(|state| state.is(Mark::Visit) && !state.is(Mark::Args));
        if !visits.is_empty() {
            properties["visit"] = json!({
                "type": "object",
                "description": "A state to pass through once; the object then returns to the desired state.",
                "required": ["state"],
                "properties": {
                    "state": { "type": "string", "enum": visits },
                    "request": {
                        "type": "string",
                        "description": "Any text; the same state is visited once per text.",
                        "maxLength": REQUEST_LIMIT,
                    },
                },
            });
        }
        if graph.has_approvals() {
            properties["approve"] = json!({
                "type": "string",
                "description": "The plan to approve, from status.lifecycle.waiting.plan.",
                "pattern": "^[0-9a-f]{8}$",
            });
        }
        json_schema!({
            "type": "object",
            "description": "The desired state of the application.",
            "properties": properties,
        })
    }
}

/// Returns the wire names, former ones included, of the chosen states that a spec may request.
fn names<S: Lifecycle>(chosen: impl Fn(&okt_core::State<'static>) -> bool) -> Vec<&'static str> {
    S::GRAPH
        .iter()
        .filter(|(id, state)| chosen(state) && S::GRAPH.may_be_desired(*id))
        .flat_map(|(_, state)| std::iter::once(state.name).chain(state.was.iter().copied()))
        .collect()
}
