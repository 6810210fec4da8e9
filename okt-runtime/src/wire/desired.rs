//! What a spec asks for: a state to be kept in, and a state to be gone through once.

use std::borrow::Cow;
use std::fmt;

use okt_core::facts::Named;
use okt_core::{Lifecycle, Mark};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

/// The longest request, in bytes; the CRD refuses longer ones.
pub const REQUEST_LIMIT: usize = 253;

/// A state by its wire name, which the graph may not know.
///
/// An unknown name decodes: it concerns one object only, and that one says so in its conditions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateName<S> {
    /// A state of the graph, by its present or a former name.
    Known(S),
    /// Some other word.
    Unknown(String),
}

impl<S: Lifecycle> StateName<S> {
    /// Reads a wire name.
    pub fn of(name: &str) -> Self {
        S::from_name(name).map_or_else(|| Self::Unknown(name.to_owned()), Self::Known)
    }

    /// The wire name; the present one where it was a former one.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(state) => state.name(),
            Self::Unknown(name) => name,
        }
    }

    /// The state, if the graph knows it.
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
///     state: Running                                  # to be kept in; by default the graph's own choice
///     visit: { state: Servicing, request: nightly-7 } # to be gone through once per request
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "S: Lifecycle", deserialize = "S: Lifecycle")
)]
pub struct Desired<S> {
    /// The state to be kept in; where there is none, the first resting state on the Next way from the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName<S>>,
    /// Any text; a new one asks again, out of a holding state or a leaf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// A state to be gone through once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<Visit<S>>,
}

impl<S> Desired<S> {
    /// Nothing is wished.
    pub(crate) const NONE: Self = Self {
        state: None,
        request: None,
        visit: None,
    };
}

impl<S> Default for Desired<S> {
    fn default() -> Self {
        Self::NONE
    }
}

/// A wish to go through a state once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    bound(serialize = "S: Lifecycle", deserialize = "S: Lifecycle")
)]
pub struct Visit<S> {
    /// The state.
    pub state: StateName<S>,
    /// Any text; the same state is visited once per text.
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
        let mut schema = json_schema!({
            "type": "object",
            "description": "Where the application should be in its life.",
            "properties": {
                "state": {
                    "type": "string",
                    "description": format!("The state to be kept in; {home} where none is given."),
                    "enum": names::<S>(|state| !state.is_passing()),
                },
                "request": {
                    "type": "string",
                    "description": "Any text; a new one asks again, out of a state that holds or a leaf.",
                    "maxLength": REQUEST_LIMIT,
                },
            },
        });
        let visits = names::<S>(|state| state.is(Mark::Visit));
        if !visits.is_empty() {
            schema.pointer_mut("/properties").and_then(|p| p.as_object_mut()).map(|properties| {
                properties.insert("visit".into(), json!({
                    "type": "object",
                    "description": "A state to be gone through once; then the object goes on to the desired state again.",
                    "required": ["state"],
                    "properties": {
                        "state": { "type": "string", "enum": visits },
                        "request": {
                            "type": "string",
                            "description": "Any text; the same state is visited once per text.",
                            "maxLength": REQUEST_LIMIT,
                        },
                    },
                }))
            });
        }
        schema
    }
}

/// The wire names, former ones included, of the states a spec may ask for and that are of the chosen kind.
fn names<S: Lifecycle>(chosen: impl Fn(&okt_core::State<'static>) -> bool) -> Vec<&'static str> {
    S::GRAPH
        .iter()
        .filter(|(id, state)| chosen(state) && S::GRAPH.may_be_desired(*id))
        .flat_map(|(_, state)| std::iter::once(state.name).chain(state.was.iter().copied()))
        .collect()
}
