//! Behaviors of the kinds without a CRD: their types, their defaults, their rules, and the subresources that do something.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::world::World;

async fn a_body_in_protobuf_is_read(world: &World) {
    // One entry of data.
    let entry = [field(1, b"key"), field(2, b"value")].concat();
    let map = envelope("v1", "ConfigMap", &field(2, &entry));
    let headers = [
        ("content-type", "application/vnd.kubernetes.protobuf"),
        ("accept", "application/json"),
    ];
    let maps = world.path_of("v1", "configmaps");
    let reply = world.send("POST", &maps, &headers, &map).await;
    assert_eq!(reply.ok()["data"], json!({ "key": "value" }));
    let reply = world.send("POST", &maps, &headers, "no envelope").await;
    reply.refused(400, "…expected prefix…");

    // A hundred seconds after the epoch, and no nanoseconds.
    let spec = field(2, &field(4, &[1 << 3, 100]));
    let lease = envelope("coordination.k8s.io/v1", "Lease", &spec);
    let leases = world.path_of("coordination.k8s.io/v1", "leases");
    let reply = world.send("POST", &leases, &headers, &lease).await;
    assert_eq!(
        reply.ok()["spec"]["renewTime"],
        "1970-01-01T00:01:40.000000Z"
    );
}

/// Returns an envelope with the type of an object, around its metadata with a name and its other fields.
fn envelope(version: &str, kind: &str, fields: &[u8]) -> String {
    let kind = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    let object = [&*field(1, &field(1, b"typed")), fields].concat();
    let envelope = [field(1, &kind), field(2, &object)].concat();
    let body = [b"k8s\0".to_vec(), envelope].concat();
    String::from_utf8(body).expect("all of it is ASCII")
}

/// Returns a field of a message with a length and bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("it is short");
    [&[number << 3 | 2, length], bytes].concat()
}

fn pod() -> Value {
    json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "a", "image": "a:1" }] } })
}

async fn defaults_are_filled_in(world: &World) {
    let pods = world.path_of("v1", "pods");
    let pod = world.post(&pods, &pod()).await.ok();
    assert_eq!(
        pod["spec"]["containers"][0],
        json!({
            "name": "a", "image": "a:1", "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        })
    );
    assert_eq!(pod["spec"]["restartPolicy"], "Always");
    assert_eq!(
        pod["status"],
        json!({ "phase": "Pending", "qosClass": "BestEffort" })
    );

    let deployment = json!({ "metadata": { "name": "a" }, "spec": {
        "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": pod["spec"] },
    } });
    let made = world
        .post(&world.path_of("apps/v1", "deployments"), &deployment)
        .await
        .ok();
    assert_eq!(made["spec"]["replicas"], 1);
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } });
    assert_eq!(made["spec"]["strategy"], rolling);

    let service = json!({ "metadata": { "name": "a" }, "spec": { "ports": [{ "port": 80 }], "type": "NodePort" } });
    let made = world
        .post(&world.path_of("v1", "services"), &service)
        .await
        .ok();
    let spec = &made["spec"];
    assert!(
        spec["clusterIP"]
            .as_str()
            .is_some_and(|ip| ip.starts_with("10.")),
        "{spec}"
    );
    assert!(
        spec["ports"][0]["nodePort"]
            .as_u64()
            .is_some_and(|port| port >= 30_000),
        "{spec}"
    );
    assert_eq!(spec["ports"][0]["targetPort"], 80);
    assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
}

async fn a_quantity_and_a_time_are_stored_in_one_form(world: &World) {
    let mut pod = pod();
    pod["spec"]["containers"][0]["resources"] =
        json!({ "limits": { "memory": "1024Mi", "cpu": 0.5 } });
    let made = world.post(&world.path_of("v1", "pods"), &pod).await.ok();
    let limits = json!({ "memory": "1Gi", "cpu": "500m" });
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({ "limits": limits, "requests": limits })
    );
    let lease = json!({ "metadata": { "name": "a" }, "spec": { "renewTime": "2024-01-01T01:00:00.500000+01:00" } });
    let made = world
        .post(&world.path_of("coordination.k8s.io/v1", "leases"), &lease)
        .await
        .ok();
    assert_eq!(made["spec"]["renewTime"], "2024-01-01T00:00:00.500000Z");
}

async fn a_pod_is_bound_once_and_evicted_unless_a_budget_forbids_it(world: &World) {
    let pods = world.path_of("v1", "pods");
    let mut pod = pod();
    pod["metadata"]["labels"] = json!({ "a": "b" });
    world.post(&pods, &pod).await.ok();
    let binding = json!({ "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n" } });
    let path = format!("{pods}/a/binding");
    assert_eq!(world.post(&path, &binding).await.ok()["status"], "Success");
    let bound = world.get(&format!("{pods}/a")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n");
    let twice = world.post(&path, &binding).await;
    twice.refused(409, "…pod a is already assigned to node \"n\"");

    let running = json!({ "status": { "phase": "Running" } });
    world
        .merge_at(&format!("{pods}/a/status"), &running)
        .await
        .ok();
    let budget = json!({ "metadata": { "name": "a" }, "spec": {
        "minAvailable": 1, "selector": { "matchLabels": { "a": "b" } },
    } });
    let budgets = world.path_of("policy/v1", "poddisruptionbudgets");
    world.post(&budgets, &budget).await.ok();
    let eviction =
        json!({ "metadata": { "name": "a" }, "deleteOptions": { "gracePeriodSeconds": 0 } });
    let path = format!("{pods}/a/eviction");
    let refused = world.post(&path, &eviction).await;
    refused.refused(
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    world.delete(&format!("{budgets}/a")).await.ok();
    let tried = world.post(&format!("{path}?dryRun=All"), &eviction).await;
    assert_eq!(tried.ok()["status"], "Success");
    world.get(&format!("{pods}/a")).await.ok();
    assert_eq!(world.post(&path, &eviction).await.ok()["status"], "Success");
    world
        .get(&format!("{pods}/a"))
        .await
        .refused(404, "pods \"a\" not found");
}

async fn a_service_account_gets_a_token_and_every_access_is_reviewed(world: &World) {
    let accounts = world.path_of("v1", "serviceaccounts");
    world
        .post(&accounts, &json!({ "metadata": { "name": "a" } }))
        .await
        .ok();
    let request = json!({ "spec": { "expirationSeconds": 600 } });
    let made = world.post(&format!("{accounts}/a/token"), &request).await;
    assert_eq!(made.code, 201);
    let token = made.ok()["status"]["token"].clone();
    let review = json!({ "spec": { "token": token } });
    let reviewed = world
        .post("/apis/authentication.k8s.io/v1/tokenreviews", &review)
        .await
        .ok();
    assert_eq!(reviewed["status"]["authenticated"], true, "{reviewed}");
    let name = format!("system:serviceaccount:{}:a", world.namespace);
    assert_eq!(reviewed["status"]["user"]["username"], name);
    let access = json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(
        world.post(path, &access).await.ok()["status"]["allowed"],
        true
    );
    world.get(path).await.refused(405, "…");
}

async fn a_request_for_a_certificate_is_approved(world: &World) {
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let name = &world.namespace;
    let request = json!({ "metadata": { "name": name }, "spec": {
        "request": CERTIFICATE_REQUEST, "signerName": "example.com/a", "usages": ["client auth"],
    } });
    let mut made = world.post(requests, &request).await.ok();
    made["status"] = json!({ "conditions": [{ "type": "Approved", "status": "True", "reason": "A", "message": "b" }] });
    let path = format!("{requests}/{name}/approval");
    let approved = world.put(&path, &made).await.ok();
    let condition = &approved["status"]["conditions"][0];
    assert_eq!(condition["type"], "Approved");
    for time in ["lastTransitionTime", "lastUpdateTime"] {
        assert!(condition[time].is_string(), "{condition}");
    }
    world.delete(&format!("{requests}/{name}")).await.ok();
}

async fn a_limit_range_needs_no_name(world: &World) {
    let ranges = world.path_of("v1", "limitranges");
    let range = json!({ "metadata": {}, "spec": { "limits": [] } });
    let made = world.post(&ranges, &range).await.ok();
    let name = made["metadata"]["name"].as_str().expect("a name");
    assert_eq!(name.len(), 36, "{name}");
    world.delete(&format!("{ranges}/{name}")).await.ok();
}

async fn a_group_that_no_server_has_is_404(world: &World) {
    for path in ["/apis/none.example.com/v1/things", "/apis/none.k8s.io/v1"] {
        world.get(path).await.refused(404, "404 page not found");
    }
}

async fn an_answer_has_the_order_of_its_types_and_an_id(world: &World) {
    let pods = world.path_of("v1", "pods");
    let made = world.post(&pods, &pod()).await;
    let start = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"#;
    assert!(made.body.starts_with(start), "{}", made.body);
    assert!(made.body.ends_with("}\n"), "{}", made.body);
    assert_eq!(made.header("audit-id").len(), 36);
    let listed = world.get(&pods).await;
    let start = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"#;
    assert!(listed.body.starts_with(start), "{}", listed.body);
    let refused = world.get(&format!("{pods}/b")).await;
    let whole = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"b\" not found","reason":"NotFound","details":{"name":"b","kind":"pods"},"code":404}"#;
    assert_eq!(refused.body.trim_end(), whole);
    world.create("a", json!({})).await.ok();
    let own = world.get(&world.at("a")).await;
    assert!(own.body.starts_with(r#"{"apiVersion":""#), "{}", own.body);
    let versions = world.get("/api").await.ok();
    let addresses = &versions["serverAddressByClientCIDRs"];
    assert_eq!(addresses[0]["clientCIDR"], "0.0.0.0/0");
}

/// A request in PEM, in base64: `openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=a`.
const CERTIFICATE_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIRk1HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCQUtNWU1McFFGeWZqSk1kZEZCSlgwNzlybU0rUXZWM2Q4cFpGVUlpWlZrOGRldU5rQmVLNEFTTCtPYy9BKzhkClcwb1BuZWVPVHpjOW1Icm1RNGtXYm1lZ0FEQUtCZ2dxaGtqT1BRUURBZ05IQURCRUFpQnVyb0g4V1dKN0VNbHMKakQ1aUQxVnVzRXIrNzZ0Y3ZRVzgrcjdzMThaL1Z3SWdTcTc0a2Ywemd1dHNXa2MyYVM5UzJlZWpUN2dtVVNPZgp1R0dYRmtPVnJiQT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

behaviours! { "typed":
    a_body_in_protobuf_is_read,
    defaults_are_filled_in,
    a_quantity_and_a_time_are_stored_in_one_form,
    a_pod_is_bound_once_and_evicted_unless_a_budget_forbids_it,
    a_service_account_gets_a_token_and_every_access_is_reviewed,
    a_request_for_a_certificate_is_approved,
    a_limit_range_needs_no_name,
    a_group_that_no_server_has_is_404,
    an_answer_has_the_order_of_its_types_and_an_id,
}
