//! What the validation rules of a definition accept and refuse, and with which message, on any cluster.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use serde_json::{Value, json};

use crate::{Cluster, Databases, Served};

/// Returns the message of a rule, without the common beginning of all messages.
fn words(written: Result<(), kube::Error>) -> String {
    match written {
        Ok(()) => "accepted".to_owned(),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            let (_, words) = status.message.split_once("is invalid: ").expect("a reason");
            words.to_owned()
        }
        Err(error) => panic!("{error}"),
    }
}

/// Writes two statuses and returns the answer to the second one; the first one may be null.
pub async fn answer<A: Served>(
    cluster: &Cluster<A>,
    name: &str,
    first: Value,
    second: Value,
) -> String {
    cluster.create_raw(A::object(name, json!({}))).await;
    if !first.is_null() {
        let first = cluster.patch_status(name, first).await;
        assert_eq!(words(first), "accepted", "{name}");
    }
    words(cluster.patch_status(name, second).await)
}

/// Returns a status with a lifecycle.
pub fn at(state: &str, transition: u64, jumps: u64) -> Value {
    json!({ "lifecycle": { "state": state, "transition": transition, "jumps": jumps } })
}

/// Checks that each move, from a transition number and a number of jumps, is accepted or refused as expected.
pub async fn check_moves<A: Served>(
    cluster: &Cluster<A>,
    (transition, jumps): (u64, u64),
    moves: &[(&str, &str, u64, bool)],
) {
    for (number, (from, to, next, accepted)) in moves.iter().enumerate() {
        let name = format!("b-{number}");
        let (before, after) = (at(from, transition, jumps), at(to, *next, jumps));
        let answered = answer(cluster, &name, before, after).await;
        println!("{from} to {to}, transition {next}: {answered}");
        assert_eq!(
            answered == "accepted",
            *accepted,
            "{from} to {to}: {answered}"
        );
    }
}

/// Checks what the definition of databases accepts, and with which messages it refuses the rest.
pub async fn check_messages(cluster: &Cluster<Databases>) {
    let no_edge = |from: &str, to: &str| {
        format!(
            "status.lifecycle: Forbidden: the graph has no edge from {from} to {to}, and `jumps` counts no jump"
        )
    };
    let counts = "status.lifecycle: Forbidden: `transition` goes up by one with each change of state, and only then";
    let first = "status.lifecycle: Forbidden: the first state of an object is Start; another one is a jump, which `jumps` counts";
    let shape = |condition: Value| json!({ "conditions": [condition] });
    for (what, before, after, message) in [
            ("an edge", at("Start", 1, 0), at("Running", 2, 0), "accepted".to_owned()),
            ("an edge of a failure", at("Start", 1, 0), at("Failed", 2, 0), "accepted".to_owned()),
            ("nothing changes", at("Start", 1, 0), at("Start", 1, 0), "accepted".to_owned()),
            ("no edge", at("Start", 1, 0), at("Stopping", 2, 0), no_edge("Start", "Stopping")),
            ("no state", at("Start", 1, 0), at("Zombie", 2, 0), no_edge("Start", "Zombie")),
            ("a jump", at("Start", 1, 0), at("Stopping", 2, 1), "accepted".to_owned()),
            ("transition goes down", at("Running", 5, 1), at("Running", 4, 1), counts.to_owned()),
            ("transition stands still", at("Running", 5, 1), at("Stopping", 5, 1), counts.to_owned()),
            ("transition leaps", at("Running", 5, 1), at("Stopping", 7, 1), counts.to_owned()),
            ("transition without a move", at("Running", 5, 1), at("Running", 6, 1), counts.to_owned()),
            ("jumps goes down", at("Running", 5, 2), at("Running", 5, 1), "status.lifecycle: Forbidden: `jumps` never goes down".to_owned()),
            ("a leaf is left for the entry", at("End", 5, 1), at("Start", 6, 1), "accepted".to_owned()),
            ("a leaf is left for another state", at("End", 5, 1), at("Running", 6, 1), no_edge("End", "Running")),
            ("the first state is the entry", Value::Null, at("Start", 1, 0), "accepted".to_owned()),
            ("the first state is a jump", Value::Null, at("Running", 1, 1), "accepted".to_owned()),
            ("the first state is a leaf", Value::Null, at("End", 1, 0), first.to_owned()),
            ("the first state is another", Value::Null, at("Running", 1, 0), first.to_owned()),
            ("a backup is restored", Value::Null, at("Running", 7, 0), "accepted".to_owned()),
            ("the lifecycle goes", at("Start", 1, 0), json!({ "lifecycle": null }), "status: Forbidden: a recorded lifecycle cannot be removed".to_owned()),
            (
                "a condition without a reason",
                Value::Null,
                shape(json!({ "type": "Ready", "status": "True", "message": "", "lastTransitionTime": "2026-11-21T09:00:00Z" })),
                "status.conditions[0].reason: Required value".to_owned(),
            ),
            (
                "a condition of another status",
                Value::Null,
                shape(json!({ "type": "Ready", "status": "Maybe", "reason": "Running", "message": "", "lastTransitionTime": "2026-11-21T09:00:00Z" })),
                "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"True\", \"False\", \"Unknown\"".to_owned(),
            ),
        ] {
            let name = what.replace(' ', "-");
            let answered = answer(cluster, &name, before, after).await;
            println!("{what}: {answered}");
            assert!(answered.contains(&message), "{what}: {answered} is not {message}");
        }
}
