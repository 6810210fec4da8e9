//! Compares the answers to updates of built-in kinds with those of a real API server (kube-apiserver 1.36.1): which
//! fields nobody may change.

use okt_testing::ApiServer;
use serde_json::{Value, json};

use crate::support::{post, send};

const CORE: &str = "/api/v1/namespaces/default";
const APPS: &str = "/apis/apps/v1/namespaces/default";
const BATCH: &str = "/apis/batch/v1/namespaces/default";

/// A server with one object, which the patches change in turn.
struct Changes {
    server: ApiServer,
    path: String,
}

impl Changes {
    /// Creates the object `a`.
    async fn of(path: &str, mut object: Value) -> Self {
        let server = ApiServer::new();
        object["metadata"]["name"] = "a".into();
        let path = path.to_owned();
        assert_eq!(post(&server, &path, &object).await.0, 201, "{path}");
        Self { server, path }
    }

    async fn merge(&self, patch: &Value) -> Result<Value, (u16, String)> {
        self.merge_at("", patch).await
    }

    async fn merge_at(&self, subresource: &str, patch: &Value) -> Result<Value, (u16, String)> {
        let path = format!("{}/a{subresource}", self.path);
        send(&self.server, "PATCH", &path, patch).await
    }

    async fn accepts(&self, patch: Value) {
        let answer = self.merge(&patch).await;
        assert!(answer.is_ok(), "{patch}: {answer:?}");
    }

    async fn refuses(&self, patch: Value, message: &str) {
        let answer = self.merge(&patch).await;
        let refusal = answer.expect_err("a refusal");
        assert_eq!(refusal, (422, message.to_owned()), "{patch}");
    }

    /// Checks the beginning of a message that shows a whole object.
    async fn refuses_with(&self, patch: Value, begin: &str) {
        let answer = self.merge(&patch).await;
        let (code, message) = answer.expect_err("a refusal");
        assert_eq!(code, 422, "{patch}");
        assert!(message.starts_with(begin), "{patch}: {message}");
    }
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "a", "image": "x" }] },
    })
}

fn workload() -> Value {
    json!({ "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": template() } })
}

#[tokio::test]
async fn a_pod_keeps_its_spec_except_for_a_few_fields() {
    const FIELDS: &str = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";
    let spec = json!({ "containers": [{ "name": "a", "image": "x" }], "restartPolicy": "Never" });
    let pod = Changes::of(&format!("{CORE}/pods"), json!({ "spec": spec })).await;
    let container = |container: Value| json!({ "spec": { "containers": [container] } });
    let spec = |key: &str, value: Value| json!({ "spec": { key: value } });

    pod.accepts(container(json!({ "name": "a", "image": "y" })))
        .await;
    let defaults = json!({ "name": "a", "image": "y", "imagePullPolicy": "Always", "ports": [], "tty": false });
    pod.accepts(container(defaults)).await;
    pod.accepts(spec("dnsPolicy", json!("ClusterFirst"))).await;
    pod.accepts(json!({ "metadata": { "labels": { "a": "b" } } }))
        .await;
    let command = json!({ "name": "a", "image": "y", "command": ["z"] });
    pod.refuses_with(container(command), FIELDS).await;
    pod.refuses_with(spec("nodeName", json!("n")), FIELDS).await;
    pod.refuses_with(spec("restartPolicy", json!("Always")), FIELDS)
        .await;
    pod.refuses_with(spec("restartPolicy", Value::Null), FIELDS)
        .await;
    pod.refuses_with(spec("terminationGracePeriodSeconds", json!(1)), FIELDS)
        .await;
    let two = json!([{ "name": "a", "image": "y" }, { "name": "b", "image": "z" }]);
    let added = "spec.containers: Forbidden: pod updates may not add or remove containers";
    pod.refuses(spec("containers", two), added).await;
    // A server stores whether a struct is empty or missing.
    let empty = json!({ "name": "a", "image": "y", "securityContext": {} });
    pod.refuses_with(container(empty), FIELDS).await;
    pod.accepts(spec("securityContext", json!({}))).await;
    pod.accepts(spec("enableServiceLinks", json!(true))).await;
    let space = "spec.containers[0].image: Invalid value: \" y\": must not have leading or trailing whitespace";
    pod.refuses(container(json!({ "name": "a", "image": " y" })), space)
        .await;
    let image = "spec.containers[0].image: Required value";
    pod.refuses(container(json!({ "name": "a" })), image).await;

    let deadline = |value: Value| spec("activeDeadlineSeconds", value);
    let refused = |what: &str| format!("spec.activeDeadlineSeconds: Invalid value: {what}");
    pod.accepts(deadline(json!(10))).await;
    let later = refused("20: must be less than or equal to previous value");
    pod.refuses(deadline(json!(20)), &later).await;
    let unset = refused("null: must not update from a positive integer to nil value");
    pod.refuses(deadline(Value::Null), &unset).await;
    let range = refused("-1: must be between");
    let range =
        format!("[{range} 1 and 2147483647, inclusive, {range} 0 and 2147483647, inclusive]");
    pod.refuses(deadline(json!(-1)), &range).await;

    let one = json!({ "key": "a", "operator": "Exists", "effect": "NoExecute" });
    pod.accepts(spec("tolerations", json!([one]))).await;
    let longer = json!([{ "key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3 }]);
    pod.accepts(spec("tolerations", longer)).await;
    let kept = "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds";
    pod.refuses(spec("tolerations", json!([])), kept).await;
    let gate = "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'";
    pod.refuses(spec("schedulingGates", json!([{ "name": "g" }])), gate)
        .await;

    let status = json!({ "status": { "phase": "Running" }, "spec": { "nodeName": "n" } });
    let answer = pod.merge_at("/status", &status).await.unwrap();
    assert_eq!(answer["status"]["phase"], "Running");
    assert_eq!(answer["spec"].get("nodeName"), None);
}

#[tokio::test]
async fn a_gated_pod_loses_its_gates_and_gains_node_selectors() {
    let spec = json!({
        "containers": [{ "name": "a", "image": "x" }],
        "schedulingGates": [{ "name": "g" }],
        "nodeSelector": { "a": "b" },
        "terminationGracePeriodSeconds": -1,
    });
    let pod = Changes::of(&format!("{CORE}/pods"), json!({ "spec": spec })).await;
    pod.accepts(json!({ "spec": { "nodeSelector": { "c": "d" } } }))
        .await;
    pod.accepts(json!({ "spec": { "terminationGracePeriodSeconds": 1 } }))
        .await;
    pod.refuses_with(
        json!({ "spec": { "nodeSelector": { "a": "c" } } }),
        "spec.nodeSelector: Invalid value: ",
    )
    .await;
    pod.accepts(json!({ "spec": { "schedulingGates": null } }))
        .await;
    pod.refuses_with(
        json!({ "spec": { "nodeSelector": { "e": "f" } } }),
        "spec: Forbidden: pod updates may not change fields other than ",
    )
    .await;
}

#[tokio::test]
async fn the_selector_of_a_workload_is_immutable() {
    let selector = json!({ "spec": { "selector": { "matchLabels": { "a": "c" } } } });
    let both = json!({ "spec": {
        "selector": { "matchLabels": { "a": "c" } },
        "template": { "metadata": { "labels": { "a": "c" } } },
    } });
    let labels = json!({ "spec": { "template": { "metadata": { "labels": { "a": "c" } } } } });
    let mismatch = |value: &str| {
        format!(
            "spec.template.metadata.labels: Invalid value: {{\"a\":\"{value}\"}}: `selector` does not match template `labels`"
        )
    };
    let kept = "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable";
    let forbidden = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    for (plural, kept, labels_first) in [
        ("deployments", kept, true),
        ("replicasets", kept, true),
        ("daemonsets", kept, false),
        ("statefulsets", forbidden, true),
    ] {
        let changes = Changes::of(&format!("{APPS}/{plural}"), workload()).await;
        let expected = if labels_first {
            format!("[{}, {kept}]", mismatch("b"))
        } else {
            format!("[{kept}, {}]", mismatch("b"))
        };
        changes.refuses(selector.clone(), &expected).await;
        changes.refuses(both.clone(), kept).await;
        changes.refuses(labels.clone(), &mismatch("c")).await;
        let image = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "a", "image": "y" }] } } } });
        changes.accepts(image).await;
    }
    let set = Changes::of(&format!("{APPS}/statefulsets"), workload()).await;
    let claims = json!([{
        "metadata": { "name": "v" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    for (key, value) in [
        ("serviceName", json!("c")),
        ("podManagementPolicy", json!("Parallel")),
        ("volumeClaimTemplates", claims),
    ] {
        set.refuses(json!({ "spec": { key: value } }), forbidden)
            .await;
    }
    set.accepts(json!({ "spec": { "podManagementPolicy": "OrderedReady" } }))
        .await;
    set.accepts(
        json!({ "spec": { "replicas": 3, "minReadySeconds": 1, "revisionHistoryLimit": 3 } }),
    )
    .await;
}

#[tokio::test]
async fn a_job_keeps_its_template_and_its_completions() {
    let mut template = template();
    template["spec"]["restartPolicy"] = "Never".into();
    let job = Changes::of(
        &format!("{BATCH}/jobs"),
        json!({ "spec": { "template": template } }),
    )
    .await;
    let spec = |key: &str, value: Value| json!({ "spec": { key: value } });
    let kept = |field: &str, value: &str| {
        format!("spec.{field}: Invalid value: {value}: field is immutable")
    };
    let selector = json!({ "matchLabels": { "a": "b" } });
    let shown = "{\"matchLabels\":{\"a\":\"b\"}}";
    job.refuses(spec("selector", selector), &kept("selector", shown))
        .await;
    job.accepts(spec("completions", json!(1))).await;
    job.refuses(spec("completions", json!(3)), &kept("completions", "3"))
        .await;
    job.refuses(
        spec("completionMode", json!("Indexed")),
        &kept("completionMode", "\"Indexed\""),
    )
    .await;
    job.refuses(
        spec("managedBy", json!("a/b")),
        &kept("managedBy", "\"a/b\""),
    )
    .await;
    let policy = json!({ "spec": { "restartPolicy": "OnFailure" } });
    job.refuses_with(spec("template", policy), "spec.template: Invalid value: {")
        .await;
    let links = json!({ "spec": { "enableServiceLinks": true } });
    job.refuses_with(spec("template", links), "spec.template: Invalid value: {")
        .await;
    job.accepts(json!({ "spec": {
        "parallelism": 3, "suspend": true, "backoffLimit": 2,
        "activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 4,
    } }))
    .await;
    let placed = json!({ "spec": { "nodeSelector": { "a": "b" } } });
    job.refuses_with(
        spec("template", placed.clone()),
        "spec.template: Invalid value: {",
    )
    .await;
    let suspended =
        json!({ "status": { "conditions": [{ "type": "Suspended", "status": "True" }] } });
    job.merge_at("/status", &suspended).await.unwrap();
    job.accepts(spec("template", placed)).await;
    let image = json!({ "spec": { "containers": [{ "name": "a", "image": "z" }] } });
    job.refuses_with(
        spec("template", image),
        "spec.template.spec: Invalid value: {",
    )
    .await;
}

#[tokio::test]
async fn a_claim_keeps_its_spec_except_for_the_size_once_it_is_bound() {
    const FIELDS: &str = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    let path = format!("{CORE}/persistentvolumeclaims");
    let claim = Changes::of(&path, json!({ "spec": spec })).await;
    let spec = |key: &str, value: Value| json!({ "spec": { key: value } });
    let size = |size: &str| spec("resources", json!({ "requests": { "storage": size } }));
    claim.refuses_with(size("2Gi"), FIELDS).await;
    claim.accepts(size("1024Mi")).await;
    claim
        .refuses_with(spec("accessModes", json!(["ReadWriteMany"])), FIELDS)
        .await;
    claim.accepts(spec("volumeMode", json!("Filesystem"))).await;
    let mode = format!("[{FIELDS}- spec.volumeMode: ");
    let answer = claim.merge(&spec("volumeMode", json!("Block"))).await;
    let (_, message) = answer.unwrap_err();
    assert!(
        message.ends_with(", volumeMode: Invalid value: \"Block\": field is immutable]"),
        "{mode} {message}"
    );
    for key in ["storageClassName", "volumeName"] {
        claim.accepts(spec(key, json!("x"))).await;
        claim.refuses_with(spec(key, json!("y")), FIELDS).await;
    }
    let bound = json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } });
    claim.merge_at("/status", &bound).await.unwrap();
    let smaller =
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity";
    claim.refuses(size("500Mi"), smaller).await;
    claim.accepts(size("2Gi")).await;
    claim
        .accepts(spec("volumeAttributesClassName", json!("q")))
        .await;
}

#[tokio::test]
async fn immutable_data_stays_as_it_is() {
    let kept =
        |field: &str| format!("{field}: Forbidden: field is immutable when `immutable` is set");
    for plural in ["configmaps", "secrets"] {
        let object = json!({ "data": { "a": "YQ==" }, "immutable": true });
        let changes = Changes::of(&format!("{CORE}/{plural}"), object).await;
        changes
            .refuses(json!({ "data": { "a": "Yg==" } }), &kept("data"))
            .await;
        changes
            .refuses(json!({ "immutable": false }), &kept("immutable"))
            .await;
        changes
            .accepts(json!({ "metadata": { "labels": { "a": "b" } } }))
            .await;
    }
    let maps = Changes::of(
        &format!("{CORE}/configmaps"),
        json!({ "data": { "a": "b" }, "immutable": true }),
    )
    .await;
    let all = json!({ "immutable": null, "data": null, "binaryData": { "z": "Yg==" } });
    let expected = ["immutable", "data", "binaryData"].map(kept).join(", ");
    maps.refuses(all, &format!("[{expected}]")).await;
    let secret = Changes::of(&format!("{CORE}/secrets"), json!({})).await;
    let expected = "type: Invalid value: \"a/b\": field is immutable";
    secret.refuses(json!({ "type": "a/b" }), expected).await;
    secret.accepts(json!({ "type": "" })).await;
}

#[tokio::test]
async fn a_service_keeps_its_address_and_a_binding_its_role() {
    let service = json!({ "spec": { "ports": [{ "port": 80 }], "clusterIP": "10.0.0.1" } });
    let service = Changes::of(&format!("{CORE}/services"), service).await;
    let address = |address: Value| json!({ "spec": { "clusterIP": address } });
    let kept = |address: &str| {
        format!("spec.clusterIPs[0]: Invalid value: [\"{address}\"]: may not change once set")
    };
    service
        .refuses(address(json!("10.0.0.77")), &kept("10.0.0.77"))
        .await;
    service.refuses(address(json!("None")), &kept("None")).await;
    for nothing in [json!(""), Value::Null] {
        let answer = service.merge(&address(nothing)).await.unwrap();
        assert_eq!(answer["spec"]["clusterIP"], "10.0.0.1");
    }
    let outside =
        json!({ "spec": { "type": "ExternalName", "externalName": "a.b", "clusterIP": null } });
    service.accepts(outside).await;

    let rbac = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let role =
        json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "q" });
    let binding = Changes::of(rbac, json!({ "roleRef": role })).await;
    let expected = "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\"Name\":\"z\"}: cannot change roleRef";
    binding
        .refuses(json!({ "roleRef": { "name": "z" } }), expected)
        .await;
}
