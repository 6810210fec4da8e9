//! Behaviors of the limits of names, labels and replicas.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::table::{cases, json_cases, parse};
use crate::world::{APPLY, JSON_PATCH, MERGE, STRATEGIC, World, YAML};

/// Creates an object with this metadata.
async fn create(world: &World, plural: &str, metadata: Value) -> Reply {
    let path = world.path_of("v1", plural);
    world.post(&path, &json!({ "metadata": metadata })).await
}

/// Replaces the words of a table that stand for long texts.
fn written_out(table: &str) -> String {
    let words = [
        ("LONGER", "a".repeat(254)),
        ("LONG", "a".repeat(64)),
        ("LABEL", "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')".to_owned()),
        ("SUBDOMAIN", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned()),
    ];
    words.iter().fold(table.to_owned(), |table, (word, text)| {
        table.replace(word, text)
    })
}

/// Labels, and the problems that they are refused for.
const LABELS: &str = r#"
{"a b":"c"} → "a b": name part LABEL
{"LONG":"c"} → "LONG": name part must be no more than 63 bytes
{"a":"LONG"} → "LONG": must be no more than 63 bytes
{"LONGER/b":"c"} → "LONGER/b": prefix part must be no more than 253 bytes
{"a/b/c":"d"} → "a/b/c": a valid label key LABEL with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
{"a/":"d"} → "a/": name part must be non-empty, …
"#;

async fn a_label_has_a_syntax_and_a_maximum_length(world: &World) {
    for (labels, problem) in json_cases(&written_out(LABELS)) {
        let metadata = json!({ "name": "a", "labels": labels });
        let refused = create(world, "configmaps", metadata).await;
        let message = format!("…metadata.labels: Invalid value: {problem}");
        refused.refused(422, &message);
    }
}

/// Metadata of a kind, and the problem that it is refused for.
const METADATA: &str = r#"
configmaps {"name":"LONGER"} → metadata.name: Invalid value: "LONGER": must be no more than 253 characters
services {"name":"LONG"} → …metadata.name: Invalid value: "LONG": must be no more than 63 characters…
configmaps {"name":"a","finalizers":["nope"]} → metadata.finalizers[0]: Invalid value: "nope": name is neither a standard finalizer name nor is it fully qualified
The beginning of a generated name is checked too.
configmaps {"generateName":"-a"} → [metadata.generateName: Invalid value: "-a": SUBDOMAIN, metadata.name: Invalid value: "-a…
configmaps {"generateName":"a_"} → [metadata.generateName: Invalid value: "a_": SUBDOMAIN, metadata.name: Invalid value: "a_…
A server tolerates a final dash, and with it the character before.
configmaps {"generateName":"A-"} → metadata.name: Invalid value: "A-…
configmaps {"generateName":"LONGER"} → metadata.generateName: Invalid value: "LONGER": must be no more than 253 characters
"#;

async fn a_name_and_a_finalizer_have_a_syntax_and_a_maximum_length(world: &World) {
    for (case, problem) in cases(&written_out(METADATA)) {
        let (plural, metadata) = case.split_once(' ').expect("both");
        let refused = create(world, plural, parse(metadata)).await;
        refused.refused(422, &format!("…is invalid: {problem}"));
    }
    let named = json!({ "name": "a", "generateName": "A-" });
    create(world, "configmaps", named).await.ok();
    let generated = json!({ "generateName": "x".repeat(60) });
    let made = create(world, "configmaps", generated).await.ok();
    let name = made["metadata"]["name"].as_str().expect("a name");
    assert_eq!(name.len(), 63, "{name}");
    let roles = world.path_of("rbac.authorization.k8s.io/v1", "roles");
    let role = json!({ "metadata": { "name": "a%b/c" } });
    world.post(&roles, &role).await.refused(
        422,
        r#"…is invalid: [metadata.name: Invalid value: "a%b/c": may not contain '/', metadata.name: Invalid value: "a%b/c": may not contain '%']"#,
    );
}

/// Creates a Deployment and a widget, and returns their paths.
async fn scaled(world: &World) -> [String; 2] {
    let template = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "a", "image": "x" }] },
    });
    let spec =
        json!({ "replicas": 1, "selector": { "matchLabels": { "a": "b" } }, "template": template });
    let deployments = world.path_of("apps/v1", "deployments");
    let deployment = json!({ "metadata": { "name": "d" }, "spec": spec });
    world.post(&deployments, &deployment).await.ok();
    world.create("d", json!({ "replicas": 1 })).await.ok();
    [format!("{deployments}/d"), world.at("d")]
}

async fn a_scale_has_a_whole_number_of_replicas_that_is_not_negative(world: &World) {
    let [deployment, widget] = scaled(world).await.map(|path| format!("{path}/scale"));
    let go = |found: &str| {
        format!(
            "json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32"
        )
    };
    let whole = |name: &str, replicas: i32| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": { "name": name }, "spec": { "replicas": replicas },
        })
    };
    let negative = "spec.replicas: Invalid value: -1: must be greater than or equal to 0";
    let below = ".spec.replicas: Invalid value: -1: should be a non-negative integer";
    let text = go("string");
    let untyped =
        "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";
    let handled = format!("Scale in version \"v1\" cannot be handled as a Scale: {text}");
    for (path, negative, kindless) in [
        (&deployment, negative, &*handled),
        (&widget, below, untyped),
    ] {
        let patch = json!({ "spec": { "replicas": -1 } });
        let negative = format!("…{negative}…");
        world.merge_at(path, &patch).await.refused(422, &negative);
        world
            .put(path, &whole("d", -1))
            .await
            .refused(422, &negative);
        for (number, found) in [
            ("1.0", "number 1.0"),
            ("1.5", "number 1.5"),
            ("3000000000", "number 3000000000"),
            ("\"x\"", "string"),
        ] {
            let patch = format!("{{\"spec\":{{\"replicas\":{number}}}}}");
            let refused = world.patch(path, MERGE, &patch).await;
            refused.refused(422, &format!("…{}", go(found)));
        }
        let other = world.put(path, &whole("e", 1)).await;
        let message = "the name of the object (e) does not match the name on the URL (d)";
        other.refused(400, message);
        let patch = json!({ "spec": { "replicas": "x" } });
        world.put(path, &patch).await.refused(400, kindless);
    }
    let patch = r#"{"spec":{"replicas":2.0}}"#;
    let patched = world.patch(&deployment, STRATEGIC, patch).await.ok();
    assert_eq!(patched["spec"]["replicas"], 2);
}

async fn a_whole_number_with_a_decimal_point_is_no_number_of_replicas(world: &World) {
    world.create("d", json!({ "replicas": 1 })).await.ok();
    let refusal = |name: &str, field: &str, number: u8| {
        format!(
            "Widget.demo.okt.dev \"{name}\" is invalid: .{field}.replicas: Invalid value: 0: .{field}.replicas accessor error: {number} is of the type float64, expected int64"
        )
    };
    let (path, status) = (world.at("d"), world.at("d/status"));
    let merge = |field: &str| format!(r#"{{"{field}":{{"replicas":2.0}}}}"#);
    let add = r#"[{"op":"add","path":"/spec/replicas","value":2.0}]"#.to_owned();
    for (path, media, body, field) in [
        (&path, MERGE, merge("spec"), "spec"),
        (&path, JSON_PATCH, add, "spec"),
        (&status, MERGE, merge("status"), "status"),
    ] {
        let refused = world.patch(path, media, &body).await;
        refused.refused(422, &refusal("d", field, 2));
    }
    let made = world.widget("e", json!({ "replicas": 77 })).to_string();
    let float = made.replace(":77", ":1.0");
    let refused = world.post(&world.path(), &float).await;
    refused.refused(422, &refusal("e", "spec", 1));
    // YAML has no such difference, nor has any other field.
    let headers = [("content-type", YAML)];
    let made = world.send("POST", &world.path(), &headers, &float).await;
    assert_eq!(made.ok()["spec"], json!({ "replicas": 1 }));
    let other = r#"{"status":{"observedGeneration":2.0}}"#;
    world.patch(&status, MERGE, other).await.ok();
    let config = world.widget("d", json!({ "replicas": 77 })).to_string();
    let path = world.at("d?fieldManager=a&force=true");
    let applied = world
        .patch(&path, APPLY, &config.replace(":77", ":2.0"))
        .await;
    assert_eq!(applied.ok()["spec"]["replicas"], 2);
}

behaviours! { "limits":
    a_label_has_a_syntax_and_a_maximum_length,
    a_name_and_a_finalizer_have_a_syntax_and_a_maximum_length,
    a_scale_has_a_whole_number_of_replicas_that_is_not_negative,
    a_whole_number_with_a_decimal_point_is_no_number_of_replicas,
}
