//! Invalid objects: valid ones with random holes and replacements, and plain noise.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Number, Value, json};

/// An invalid object in parts: metadata and spec are created, then the status is written, then the object may be
/// deleted.
#[derive(Clone, Debug)]
pub(crate) struct Stranger {
    pub(crate) annotations: Value,
    pub(crate) finalizers: Value,
    pub(crate) spec: Option<Value>,
    pub(crate) status: Option<Value>,
    pub(crate) deleted: bool,
}

/// Generates a stranger.
pub(crate) fn stranger() -> impl Strategy<Value = Stranger> {
    let finalizers = select(vec![
        json!([]),
        json!(["okt.dev/lifecycle"]),
        json!(["demo.okt.dev/other"]),
        json!(["demo.okt.dev/other", "okt.dev/lifecycle"]),
    ]);
    (
        annotations(),
        finalizers,
        prop_oneof![
            6 => holes(spec()).prop_map(Some),
            1 => noise().prop_map(Some),
            1 => Just(None),
        ],
        prop_oneof![
            8 => holes(status()).prop_map(Some),
            1 => noise().prop_map(Some),
            1 => Just(None),
        ],
        prop::bool::weighted(0.2),
    )
        .prop_map(
            |(annotations, finalizers, spec, status, deleted)| Stranger {
                annotations,
                finalizers,
                spec,
                status,
                deleted,
            },
        )
}

fn annotations() -> impl Strategy<Value = Value> {
    let keys = select(vec![
        "okt.dev/paused",
        "okt.dev/abandon",
        "okt.dev/graph",
        "demo.okt.dev/note",
    ]);
    btree_map(keys, text(), 0..3).prop_map(|annotations| json!(annotations))
}

fn spec() -> impl Strategy<Value = Value> {
    (state(), text(), state(), text(), any::<[bool; 4]>()).prop_map(
        |(desired, request, visit, visited, has)| {
            let mut lifecycle = Map::new();
            if has[0] {
                lifecycle.insert("state".to_owned(), desired.into());
            }
            if has[1] {
                lifecycle.insert("request".to_owned(), request.into());
            }
            if has[2] {
                let visit = json!({ "state": visit, "request": visited });
                lifecycle.insert("visit".to_owned(), visit);
            }
            let mut spec = json!({ "storage": "1Gi" });
            if has[3] {
                spec["lifecycle"] = lifecycle.into();
            }
            spec
        },
    )
}

fn status() -> impl Strategy<Value = Value> {
    (
        (state(), time(), number(), number(), number()),
        (state(), number(), any::<bool>()),
        (state(), text(), number(), name()),
        (name(), number(), name(), number(), any::<bool>()),
        (trail(), text(), text(), text()),
        vec((number(), state(), state(), time(), name()), 0..12),
        vec((name(), name(), name(), text(), time(), number()), 0..8),
    )
        .prop_map(
            |(position, desired, visit, action, texts, history, conditions)| {
                let history: Vec<Value> = history
                    .into_iter()
                    .map(|(transition, from, to, at, cause)| {
                        json!({ "transition": transition, "from": from, "to": to, "at": at, "cause": cause })
                    })
                    .collect();
                let conditions: Vec<Value> = conditions
                    .into_iter()
                    .map(|(type_, status, reason, message, at, generation)| {
                        json!({ "type": type_, "status": status, "reason": reason, "message": message,
                            "lastTransitionTime": at, "observedGeneration": generation })
                    })
                    .collect();
                json!({
                    "observedGeneration": position.2,
                    "lifecycle": {
                        "state": position.0, "since": position.1, "transition": position.2,
                        "jumps": position.3, "rounds": position.4,
                        "desired": { "state": desired.0, "transition": desired.1, "reached": desired.2 },
                        "visit": { "state": visit.0, "request": visit.1, "transition": visit.2, "outcome": visit.3 },
                        "action": { "id": action.0, "attempt": action.1, "phase": action.2,
                            "generation": action.3, "leaving": action.4, "startedAt": position.1,
                            "failure": { "reason": texts.1, "message": texts.2 } },
                        "failure": { "reason": texts.2, "message": texts.1 },
                        "trail": texts.0, "revision": texts.1, "changed": texts.2, "graph": texts.3,
                        "history": history,
                    },
                    "conditions": conditions,
                })
            },
        )
}

/// Removes or replaces parts of a value, down to single leaves.
fn holes(whole: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let hole = (
        vec(any::<Index>(), 0..5),
        prop::option::weighted(0.7, noise()),
    );
    (whole, vec(hole, 0..4)).prop_map(|(mut whole, holes)| {
        for (path, with) in holes {
            punch(&mut whole, &path, with);
        }
        whole
    })
}

/// Follows a path as far as it leads, and removes or replaces the value there.
fn punch(value: &mut Value, path: &[Index], with: Option<Value>) {
    let [first, rest @ ..] = path else {
        *value = with.unwrap_or_default();
        return;
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let name = first
                .get(&fields.keys().cloned().collect::<Vec<_>>())
                .clone();
            if rest.is_empty() && with.is_none() {
                fields.remove(&name);
            } else if let Some(field) = fields.get_mut(&name) {
                punch(field, rest, with);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let length = items.len();
            punch(&mut items[first.index(length)], rest, with);
        }
        leaf => *leaf = with.unwrap_or_default(),
    }
}

/// Generates any JSON, a few levels deep.
fn noise() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name(), inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0..20_u64).prop_map(Value::from),
        1 => select(vec![i64::MIN, -1, i64::from(u32::MAX), i64::MAX]).prop_map(Value::from),
        1 => Just(Value::from(u64::MAX)),
    ]
}

fn state() -> impl Strategy<Value = String> {
    let known = vec!["Start", "Running", "Servicing", "Stopping", "Failed", "End"];
    prop_oneof![
        12 => select(known).prop_map(str::to_owned),
        1 => select(vec!["Zombie", "running", "Next", "Stay", ""]).prop_map(str::to_owned),
        1 => text(),
    ]
}

/// Generates known names and others.
fn name() -> impl Strategy<Value = String> {
    let known = vec![
        "Ready",
        "Reconciling",
        "Stalled",
        "Deleting",
        "Paused",
        "Available",
        "True",
        "False",
        "Unknown",
        "Pending",
        "Done",
        "Failed",
        "Reached",
        "Refused",
        "lifecycle",
        "state",
        "conditions",
        "spec",
    ];
    prop_oneof![6 => select(known).prop_map(str::to_owned), 1 => text()]
}

fn time() -> impl Strategy<Value = Value> {
    let times = vec![
        "2026-11-21T09:00:00Z",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "-009999-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-11-21",
        "soon",
        "",
    ];
    prop_oneof![
        6 => select(times).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => number(),
    ]
}

fn trail() -> impl Strategy<Value = String> {
    let trails = vec![
        ">Start>Running>",
        ">Start>(Running<<>>Servicing)x2>Running>Servicing>",
        ">(A>B)x4294967296>",
        ">(((((",
        ">)x",
        ">>",
        "",
    ];
    prop_oneof![4 => select(trails).prop_map(str::to_owned), 1 => text()]
}

fn text() -> impl Strategy<Value = String> {
    let odd = vec!["true", "false", "", "okt", "<", ">(", "\u{0}", "\u{1F980}"];
    prop_oneof![
        4 => vec(prop::char::range(' ', '~'), 0..20).prop_map(String::from_iter),
        2 => vec(any::<char>(), 0..12).prop_map(String::from_iter),
        1 => select(odd).prop_map(str::to_owned),
        1 => (0..3000_usize).prop_map(|length| "\u{e4}".repeat(length)),
    ]
}
