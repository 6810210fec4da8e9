//! Random objects of every version of a kind, converted to every other version and back.

use fastrand::Rng;
use jiff::Timestamp;
use okt_core::Graph;
use okt_core::trail::Trail;
use okt_runtime::{LifecycleObject, crd};
use okt_wire::sealed::Sealed;
use okt_wire::versions::KindVersions;
use serde_json::{Map, Value, json};

/// How deep the values are nested that a schema leaves open.
const DEPTH: usize = 3;

/// Converts this many random objects of each version to every other version and back, and checks that each is the same.
///
/// The objects have any spec that the schemas allow, and any position. `OKT_SEED` sets the seed of the first one; a
/// failure prints it.
///
/// ```no_run
/// # use okt_runtime::LifecycleObject;
/// # fn test<Shop: LifecycleObject>() {
/// okt_testing::versions::check::<Shop>(1_000);
/// # }
/// ```
///
/// # Panics
///
/// If the type of a version cannot read what its schema allows, or an object is another one when it comes back. The
/// message names the version, the seed and the object.
#[track_caller]
pub fn check<K: LifecycleObject>(objects: u64) {
    let definition = crd::<K>().unwrap_or_else(|why| panic!("{why}"));
    let versions = KindVersions::of::<K>();
    let first = std::env::var("OKT_SEED")
        .ok()
        .and_then(|it| it.parse().ok());
    let first: u64 = first.unwrap_or_default();
    let seeds = first..first.saturating_add(objects);
    for (version, declared) in definition.spec.versions.iter().zip(versions.all()) {
        let schema = version.schema.as_ref().map(serde_json::to_value);
        let schema = schema.and_then(Result::ok).unwrap_or_default();
        for seed in seeds.clone() {
            let mut maker = Maker {
                random: Rng::with_seed(seed),
                graph: declared.graph,
            };
            let mut object = maker.object(&schema["openAPIV3Schema"]);
            object["apiVersion"] = json!(format!("{}/{}", definition.spec.group, version.name));
            object["kind"] = json!(definition.spec.names.kind);
            if let Err(why) = versions.read(&object) {
                panic!(
                    "the schema of {} allows what its type cannot read: {why}; again with OKT_SEED={seed}\n{object:#}",
                    version.name
                );
            }
            for other in versions.all() {
                let there = versions.convert(object.clone(), &other.name);
                let back = there
                    .clone()
                    .and_then(|it| versions.convert(it, &version.name));
                assert!(
                    back.as_ref() == Ok(&object),
                    "an object of {} differs after it was one of {}; again with OKT_SEED={seed}\nbefore: {object:#}\nthere: {there:#?}\nback: {back:#?}",
                    version.name,
                    other.name
                );
            }
        }
    }
}

/// Makes objects of one version.
struct Maker {
    random: Rng,
    graph: &'static Graph<'static>,
}

impl Maker {
    fn object(&mut self, schema: &Value) -> Value {
        let properties = &schema["properties"];
        let mut metadata = json!({
            "name": "random",
            "namespace": "default",
            "uid": format!("{:032x}", self.random.u128(..)),
            "generation": self.random.u8(1..),
            "resourceVersion": self.random.u32(..).to_string(),
        });
        if self.random.bool() {
            metadata["annotations"] = json!({ "demo": self.text() });
        }
        let mut object =
            json!({ "metadata": metadata, "spec": self.value(&properties["spec"], 0) });
        if self.random.u8(..8) > 0 {
            object["status"] = self.status(&properties["status"]);
        }
        object
    }

    fn status(&mut self, schema: &Value) -> Value {
        let mut status = self.value(schema, 0);
        let Some(fields) = status.as_object_mut() else {
            return status;
        };
        for own in ["lifecycle", "conditions", "recordedResources"] {
            fields.remove(own);
        }
        if !self.graph.states.is_empty() && self.random.u8(..8) > 0 {
            let memory = &schema["properties"]["lifecycle"]["properties"]["memory"];
            fields.insert("lifecycle".to_owned(), self.position(memory));
        }
        if self.random.bool() {
            let condition = json!({
                "type": "Ready", "status": "False", "reason": "Working", "message": self.text(),
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            fields.insert("conditions".to_owned(), json!([condition]));
        }
        status
    }

    fn state(&mut self) -> &'static str {
        let states = self.graph.states;
        states[self.random.usize(..states.len())].name
    }

    /// Returns a position as an operator writes it.
    fn position(&mut self, memory: &Value) -> Value {
        let (mut trail, mut history, mut from) = (Trail::default(), Vec::new(), String::new());
        let walk: Vec<_> = (0..self.random.u64(1..12)).map(|_| self.state()).collect();
        for (number, state) in (1_u64..).zip(&walk) {
            trail.push(state);
            history.push(json!({
                "transition": number, "from": from, "to": state, "cause": "DesiredState",
                "at": "2026-01-01T00:00:00Z", "generation": 1,
            }));
            if from.is_empty() {
                let first = history.last_mut().and_then(Value::as_object_mut);
                first.map(|it| it.remove("from"));
            }
            (*state).clone_into(&mut from);
        }
        let mut position = json!({
            "state": from, "since": Timestamp::UNIX_EPOCH, "transition": walk.len(), "jumps": 0,
            "rounds": 1, "revision": "aa", "changed": "bb", "revisionGeneration": 1,
            "desired": { "state": self.state(), "transition": 1, "reached": self.random.bool() },
            "trail": trail.to_string(), "history": history, "graph": "sha256:aa",
        });
        if self.random.bool() {
            position["visit"] = json!({
                "state": self.state(), "request": self.text(), "transition": 1, "outcome": "Reached",
            });
        }
        if memory.is_object() && self.random.bool() {
            let value = self.value(&memory["properties"]["value"], 0);
            position["memory"] = serde_json::to_value(Sealed::new(value)).unwrap_or_default();
        }
        position
    }

    /// Returns a value that a schema allows, with the defaults that an API server fills in.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(choices) = schema["enum"].as_array() {
            let choices: Vec<_> = choices.iter().filter(|it| !it.is_null()).collect();
            return self.random.choice(choices).cloned().unwrap_or_default();
        }
        if schema["x-kubernetes-int-or-string"] == json!(true) {
            return if self.random.bool() {
                json!(self.random.u16(..))
            } else {
                json!(self.text())
            };
        }
        match schema["type"].as_str() {
            Some("object") => self.fields(schema, depth),
            Some("array") => {
                let items =
                    (0..self.random.usize(..3)).map(|_| self.value(&schema["items"], depth + 1));
                let mut items: Vec<_> = items.collect();
                if schema["x-kubernetes-list-type"] == json!("set") {
                    items.dedup();
                }
                Value::Array(items)
            }
            // One that every type of numbers has.
            Some("integer") => json!(self.random.u8(1..=100)),
            Some("number") => json!(f64::from(self.random.i16(..)) / 8.0),
            Some("boolean") => json!(self.random.bool()),
            Some("string") => match schema["format"].as_str() {
                Some("date-time") => json!("2026-01-01T00:00:00Z"),
                Some("date") => json!("2026-01-01"),
                _ => json!(self.text()),
            },
            // Anything is allowed.
            _ if depth > DEPTH => json!(self.text()),
            _ => json!({ self.text(): self.text() }),
        }
    }

    fn fields(&mut self, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let required = schema["required"].as_array().into_iter().flatten();
            let is_there =
                required.into_iter().any(|it| it == name) || field.get("default").is_some();
            if is_there || self.random.bool() {
                let value = self.value(field, depth + 1);
                fields.insert(name.clone(), value);
            }
        }
        let any = &schema["additionalProperties"];
        if any.is_object() {
            for _ in 0..self.random.usize(..3) {
                let value = self.value(any, depth + 1);
                fields.insert(self.text(), value);
            }
        }
        Value::Object(fields)
    }

    fn text(&mut self) -> String {
        let letters = (0..self.random.usize(1..6)).map(|_| self.random.alphanumeric());
        letters.collect()
    }
}
