//! What the README shows of kubectl happens: the same objects, with the operator of notebooks and the API in the process.

use std::future::pending;
use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use okt::{Operator, crd};
use okt_examples::notes_operator::{Keeper, Model, Notes};
use okt_testing::ApiServer;
use serde_json::{Value, json};

/// The columns of `kubectl get notes` that do not change with time.
fn row(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|it| it["type"] == "Ready"));
    let ready = ready.cloned().unwrap_or_default();
    let life = &object["status"]["lifecycle"];
    let columns = [
        &object["metadata"]["name"],
        &life["state"],
        &life["desired"]["state"],
        &ready["status"],
        &ready["reason"],
    ];
    columns.map(|it| it.as_str().unwrap_or_default()).join(" ")
}

async fn patch(notes: &Api<Notes>, name: &str, patch: Value) {
    let patched = notes
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.expect("it is accepted");
    // The work of the model is instant; an observation is due each second.
    tokio::time::sleep(Duration::from_secs(20)).await;
}

/// Returns the refusal of a write of the status.
async fn refusal(notes: &Api<Notes>, name: &str, status: Value) -> String {
    let patch = Patch::Merge(json!({ "status": status }));
    match (notes.patch_status(name, &PatchParams::default(), &patch)).await {
        Err(kube::Error::Api(status)) => status.message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_readme_shows_of_kubectl_happens() {
    let server = ApiServer::new();
    let definitions = Api::all(server.client());
    let definition = crd::<Notes>().expect("a CRD");
    let made = definitions
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("the CRD is accepted");
    let keeper = Keeper::of(Model::default());
    let operator = Operator::new(server.client_named("operator"), keeper);
    tokio::spawn(operator.virtual_time().run(pending()));

    let notes: Api<Notes> = Api::default_namespaced(server.client());
    for name in ["red", "green"] {
        let object = json!({
            "apiVersion": "demo.okt.dev/v1", "kind": "Notes",
            "metadata": { "name": name }, "spec": {},
        });
        let object = serde_json::from_value(object).expect("an object");
        notes
            .create(&PostParams::default(), &object)
            .await
            .expect("it is accepted");
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let lifecycle = |lifecycle: Value| json!({ "spec": { "lifecycle": lifecycle } });
    let visit = json!({ "visit": { "state": "Servicing", "request": "nightly-7" } });
    patch(&notes, "red", lifecycle(visit)).await;
    patch(&notes, "green", lifecycle(json!({ "state": "ReadOnly" }))).await;
    patch(&notes, "green", lifecycle(json!({ "state": "Running" }))).await;

    let readme = super::read("README.md");
    let shown = readme
        .split("$ kubectl get notes -w\n")
        .nth(1)
        .expect("the transcript");
    let (table, rest) = shown.split_once("\n\n").expect("its end");
    let versions = server.versions().resource("notes");
    let mut seen = versions.iter().map(|version| row(&version.object()));
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [name, state, _since, desired, ready, reason, ..] = columns[..] else {
            panic!("{line}");
        };
        let wanted = [name, state, desired, ready, reason].join(" ");
        assert!(
            seen.any(|row| row == wanted),
            "never, or not in this order: {line}"
        );
    }

    let green = notes.get("green").await.expect("it exists");
    let conditions = green.status.expect("a status").conditions;
    let stalled = conditions.into_iter().find(|it| it.type_ == "Stalled");
    assert!(rest.contains(&format!("\n{}\n", stalled.expect("it is").message)));
    let transition = green_transition(&notes).await;
    let jumped = json!({ "lifecycle": { "state": "Servicing", "transition": transition + 1 } });
    let why = refusal(&notes, "green", jumped).await;
    let why = why.split_once("is invalid: ").expect("a refusal").1;
    assert!(rest.contains(&format!("is invalid: {why}\n")), "{why}");
}

async fn green_transition(notes: &Api<Notes>) -> u64 {
    let green = notes.get("green").await.expect("it exists");
    let position = green.status.and_then(|status| status.lifecycle);
    position.expect("a position").transition
}
