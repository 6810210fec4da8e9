//! Mistakes of users and of controllers, each with the code and the message of Kubernetes; and what looks like a mistake
//! and is none.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::world::World;

const MANIFESTS: &str = include_str!("manifests.yaml");
const CHANGES: &str = include_str!("changes.yaml");
const ACCEPTED: &str = include_str!("accepted.yaml");

/// An object, and what happens to it.
struct Case {
    /// What is wrong or odd.
    name: &'static str,
    /// The code and the message of the refusal.
    refusal: Option<(u16, String)>,
    object: Value,
    changes: Vec<Value>,
    /// Fields that the object has in the end.
    gives: Value,
    /// Where such objects are.
    path: String,
}

/// Reads the cases of a file: of each, a comment says what is wrong, and another one has the code and the message.
fn cases(world: &World, file: &'static str) -> Vec<Case> {
    let documents = file.split("\n---\n").skip(1);
    let cases = documents.map(|text| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("# "));
        let name = lines.next().expect("a name");
        let refusal = lines.next().map(|line| {
            let (code, message) = line.split_once(' ').expect("a message");
            (code.parse().expect("a code"), message.to_owned())
        });
        let mut object: Value = serde_saphyr::from_str(text).expect(name);
        let path = path(world, &object);
        let mut taken = |key: &str| object.as_object_mut()?.remove(key);
        let (changes, gives) = (taken("changes"), taken("gives"));
        Case {
            name,
            refusal,
            path,
            changes: changes.map_or_else(Vec::new, |it| it.as_array().expect("a list").clone()),
            gives: gives.unwrap_or_default(),
            object,
        }
    });
    cases.collect()
}

fn path(world: &World, object: &Value) -> String {
    let kind = object["kind"].as_str().expect("a kind");
    let plural = match kind {
        "Endpoints" => "endpoints".to_owned(),
        "NetworkPolicy" => "networkpolicies".to_owned(),
        kind if kind.ends_with("ss") => format!("{}es", kind.to_lowercase()),
        kind => format!("{}s", kind.to_lowercase()),
    };
    let version = object["apiVersion"].as_str().expect("a version");
    let root = if version.contains('/') { "apis" } else { "api" };
    match kind {
        "CertificateSigningRequest"
        | "IngressClass"
        | "Namespace"
        | "Node"
        | "PersistentVolume"
        | "PriorityClass"
        | "RuntimeClass"
        | "StorageClass"
        | "ValidatingWebhookConfiguration" => format!("/{root}/{version}/{plural}"),
        _ => world.path_of(version, &plural),
    }
}

/// Counts the answers that are not as expected, and prints them all.
#[derive(Default)]
struct Differences(usize);

impl Differences {
    fn check(&mut self, case: &Case, reply: &Reply) {
        let checked = || match &case.refusal {
            Some((code, message)) => drop(reply.refused(*code, message)),
            None => assert_part("", &reply.ok(), &case.gives),
        };
        if catch_unwind(AssertUnwindSafe(checked)).is_err() {
            eprintln!("{} differs", case.name);
            self.0 += 1;
        }
    }
}

/// Asserts that a value has the fields of a part; null stands for a field that is not there.
fn assert_part(path: &str, value: &Value, part: &Value) {
    match part {
        Value::Object(fields) => {
            for (key, field) in fields {
                assert_part(&format!("{path}.{key}"), &value[key], field);
            }
        }
        Value::Array(items) => {
            assert_eq!(value.as_array().map(Vec::len), Some(items.len()), "{path}");
            for (index, item) in items.iter().enumerate() {
                assert_part(&format!("{path}[{index}]"), &value[index], item);
            }
        }
        part => assert_eq!(value, part, "{path}"),
    }
}

async fn wrong_manifests_are_refused_with_the_words_of_kubernetes(world: &World) {
    let mut differences = Differences::default();
    let cases = cases(world, MANIFESTS);
    assert!(cases.len() >= 100, "{}", cases.len());
    for case in cases {
        let path = format!("{}?dryRun=All&fieldValidation=Strict", case.path);
        let reply = world.post(&path, &case.object).await;
        differences.check(&case, &reply);
    }
    assert_eq!(differences.0, 0);
}

async fn wrong_changes_are_refused_with_the_words_of_kubernetes(world: &World) {
    let mut differences = Differences::default();
    let cases = cases(world, CHANGES);
    assert!(cases.len() >= 50, "{}", cases.len());
    for (index, mut case) in cases.into_iter().enumerate() {
        // Each object has a name of its own, which the message has too.
        let name = format!("{}-{index}", world.namespace);
        let (_, message) = case.refusal.as_mut().expect("a refusal");
        for (place, own) in [
            ("\"a\"", format!("\"{name}\"")),
            ("(/a;", format!("(/{name};")),
            ("(a ", format!("({name} ")),
        ] {
            *message = message.replacen(place, &own, 1);
        }
        let reply = live(world, &mut case, &name).await;
        differences.check(&case, &reply);
    }
    assert_eq!(differences.0, 0);
}

async fn what_is_odd_and_valid_is_accepted(world: &World) {
    let mut differences = Differences::default();
    for (index, mut case) in cases(world, ACCEPTED).into_iter().enumerate() {
        let name = format!("{}-{index}", world.namespace);
        let reply = live(world, &mut case, &name).await;
        differences.check(&case, &reply);
    }
    assert_eq!(differences.0, 0);
}

/// Creates an object under a name, changes and deletes it; returns the answer to the last change.
async fn live(world: &World, case: &mut Case, name: &str) -> Reply {
    case.object["metadata"]["name"] = name.into();
    let mut reply = world.post(&case.path, &case.object).await;
    let item = format!("{}/{name}", case.path);
    for change in &case.changes {
        if reply.code >= 300 {
            break;
        }
        let endpoint = change["at"].as_str();
        let path = endpoint.map_or(item.clone(), |at| format!("{item}/{at}"));
        let patch = &change["patch"];
        let config = || named(&case.object, patch);
        reply = match change["as"].as_str() {
            Some("apply") => world.apply_at(&path, "m&force=true", &config()).await,
            Some("update") => world.put(&path, &config()).await,
            Some(form) => {
                let form = if form == "strategic" {
                    "strategic-merge"
                } else {
                    form
                };
                let media = format!("application/{form}-patch+json");
                world.patch(&path, &media, patch).await
            }
            None => world.merge_at(&path, patch).await,
        };
    }
    world.delete(&format!("{item}?gracePeriodSeconds=0")).await;
    reply
}

/// Returns a configuration of an object with these fields.
fn named(object: &Value, fields: &Value) -> Value {
    let mut config = fields.clone();
    for key in ["apiVersion", "kind"] {
        config[key] = object[key].clone();
    }
    config["metadata"]["name"] = object["metadata"]["name"].clone();
    config
}

behaviours! { "mistakes":
    wrong_manifests_are_refused_with_the_words_of_kubernetes,
    wrong_changes_are_refused_with_the_words_of_kubernetes,
    what_is_odd_and_valid_is_accepted,
}
