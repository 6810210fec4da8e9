//! Behaviors of updates of built-in kinds: the fields that nobody may change.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::table::json_cases;
use crate::world::World;

/// Creates the object `a`, and returns its path.
async fn create(world: &World, api_version: &str, plural: &str, mut object: Value) -> String {
    let path = world.path_of(api_version, plural);
    object["metadata"]["name"] = "a".into();
    world.post(&path, &object).await.ok();
    format!("{path}/a")
}

/// Merges the patches of a table one after the other: each is accepted, or refused with a message.
async fn merge_all(world: &World, path: &str, table: &str) {
    for (patch, expected) in json_cases(table) {
        let reply = world.merge_at(path, &patch).await;
        match expected {
            "accepted" => drop(reply.ok()),
            message => drop(reply.refused(422, &format!("…is invalid: {message}"))),
        }
    }
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "a", "image": "x" }] },
    })
}

/// FIELDS stands for the fields that a pod may change.
const POD: &str = r#"
{"spec":{"containers":[{"name":"a","image":"y"}]}} → accepted
{"spec":{"containers":[{"name":"a","image":"y","imagePullPolicy":"Always","ports":[],"tty":false}]}} → accepted
{"spec":{"dnsPolicy":"ClusterFirst"}} → accepted
{"metadata":{"labels":{"a":"b"}}} → accepted
{"spec":{"containers":[{"name":"a","image":"y","command":["z"]}]}} → FIELDS
{"spec":{"nodeName":"n"}} → FIELDS
{"spec":{"restartPolicy":"Always"}} → FIELDS
{"spec":{"restartPolicy":null}} → FIELDS
{"spec":{"terminationGracePeriodSeconds":1}} → FIELDS
{"spec":{"containers":[{"name":"a","image":"y"},{"name":"b","image":"z"}]}} → spec.containers: Forbidden: pod updates may not add or remove containers
A server stores whether a struct is empty or missing.
{"spec":{"containers":[{"name":"a","image":"y","securityContext":{}}]}} → FIELDS
{"spec":{"securityContext":{}}} → accepted
{"spec":{"enableServiceLinks":true}} → accepted
{"spec":{"containers":[{"name":"a","image":" y","imagePullPolicy":"Always"}]}} → spec.containers[0].image: Invalid value: " y": must not have leading or trailing whitespace
{"spec":{"containers":[{"name":"a","imagePullPolicy":"Always"}]}} → spec.containers[0].image: Required value
{"spec":{"activeDeadlineSeconds":10}} → accepted
{"spec":{"activeDeadlineSeconds":20}} → spec.activeDeadlineSeconds: Invalid value: 20: must be less than or equal to previous value
{"spec":{"activeDeadlineSeconds":null}} → spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value
{"spec":{"activeDeadlineSeconds":-1}} → [spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive, spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive]
{"spec":{"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute"}]}} → accepted
{"spec":{"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":3}]}} → accepted
{"spec":{"tolerations":[]}} → spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds
{"spec":{"schedulingGates":[{"name":"g"}]}} → spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'
"#;

async fn a_pod_keeps_its_spec_except_for_a_few_fields(world: &World) {
    let fields = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)…";
    let pod = json!({ "containers": [{ "name": "a", "image": "x" }], "restartPolicy": "Never" });
    let path = create(world, "v1", "pods", json!({ "spec": pod })).await;
    merge_all(world, &path, &POD.replace("FIELDS", fields)).await;
    let status = json!({ "status": { "phase": "Running" }, "spec": { "nodeName": "n" } });
    let patched = world.merge_at(&format!("{path}/status"), &status).await;
    let patched = patched.ok();
    assert_eq!(patched["status"]["phase"], "Running");
    assert_eq!(patched["spec"].get("nodeName"), None);
}

const GATED_POD: &str = r#"
{"spec":{"nodeSelector":{"c":"d"}}} → accepted
{"spec":{"terminationGracePeriodSeconds":1}} → accepted
{"spec":{"nodeSelector":{"a":"c"}}} → spec.nodeSelector: Invalid value: …
{"spec":{"schedulingGates":null}} → accepted
{"spec":{"nodeSelector":{"e":"f"}}} → spec: Forbidden: pod updates may not change fields other than …
"#;

async fn a_gated_pod_loses_its_gates_and_gains_node_selectors(world: &World) {
    let pod = json!({
        "containers": [{ "name": "a", "image": "x" }],
        "schedulingGates": [{ "name": "g" }],
        "nodeSelector": { "a": "b" },
        "terminationGracePeriodSeconds": -1,
    });
    let path = create(world, "v1", "pods", json!({ "spec": pod })).await;
    merge_all(world, &path, GATED_POD).await;
}

/// BOTH stands for a mismatch with the selector and KEPT, in an order.
const WORKLOAD: &str = r#"
{"spec":{"selector":{"matchLabels":{"a":"c"}}}} → [BOTH]
{"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}}}}} → KEPT
{"spec":{"template":{"metadata":{"labels":{"a":"c"}}}}} → spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`
{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"y"}]}}}} → accepted
"#;

const STATEFUL_SET: &str = r#"
{"spec":{"serviceName":"c"}} → KEPT
{"spec":{"podManagementPolicy":"Parallel"}} → KEPT
{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}} → KEPT
{"spec":{"podManagementPolicy":"OrderedReady"}} → accepted
{"spec":{"replicas":3,"minReadySeconds":1,"revisionHistoryLimit":3}} → accepted
"#;

async fn the_selector_of_a_workload_is_immutable(world: &World) {
    let mismatch = r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#;
    let kept = r#"spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable"#;
    let forbidden = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    let workload =
        json!({ "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": template() } });
    for (plural, kept, both) in [
        ("deployments", kept, [mismatch, kept]),
        ("replicasets", kept, [mismatch, kept]),
        ("daemonsets", kept, [kept, mismatch]),
        ("statefulsets", forbidden, [mismatch, forbidden]),
    ] {
        let path = create(world, "apps/v1", plural, workload.clone()).await;
        let table = WORKLOAD.replace("BOTH", &both.join(", "));
        merge_all(world, &path, &table.replace("KEPT", kept)).await;
    }
    let path = format!("{}/a", world.path_of("apps/v1", "statefulsets"));
    let table = STATEFUL_SET.replace("KEPT", forbidden);
    merge_all(world, &path, &table).await;
}

const JOB: &str = r#"
{"spec":{"selector":{"matchLabels":{"a":"b"}}}} → …spec.selector: Invalid value: {"matchLabels":{"a":"b"…}}: field is immutable…
{"spec":{"completions":1}} → accepted
{"spec":{"completions":3}} → spec.completions: Invalid value: 3: field is immutable
{"spec":{"completionMode":"Indexed"}} → spec.completionMode: Invalid value: "Indexed": field is immutable
{"spec":{"managedBy":"a/b"}} → spec.managedBy: Invalid value: "a/b": field is immutable
{"spec":{"template":{"spec":{"restartPolicy":"OnFailure"}}}} → spec.template: Invalid value: {…}: field is immutable
{"spec":{"template":{"spec":{"enableServiceLinks":true}}}} → spec.template: Invalid value: {…}: field is immutable
{"spec":{"parallelism":3,"suspend":true,"backoffLimit":2,"activeDeadlineSeconds":3,"ttlSecondsAfterFinished":4}} → accepted
{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}} → spec.template: Invalid value: {…}: field is immutable
"#;

const SUSPENDED_JOB: &str = r#"
{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}} → accepted
{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"z"}]}}}} → spec.template.spec: Invalid value: {…
"#;

async fn a_job_keeps_its_template_and_its_completions(world: &World) {
    let mut template = template();
    template["spec"]["restartPolicy"] = "Never".into();
    let job = json!({ "spec": { "template": template } });
    let path = create(world, "batch/v1", "jobs", job).await;
    merge_all(world, &path, JOB).await;
    let status = json!({ "conditions": [{ "type": "Suspended", "status": "True" }] });
    let patch = json!({ "status": status });
    world.merge_at(&format!("{path}/status"), &patch).await.ok();
    merge_all(world, &path, SUSPENDED_JOB).await;
}

const CLAIM: &str = r#"
{"spec":{"resources":{"requests":{"storage":"2Gi"}}}} → FIELDS…
{"spec":{"resources":{"requests":{"storage":"1024Mi"}}}} → accepted
{"spec":{"accessModes":["ReadWriteMany"]}} → FIELDS…
{"spec":{"volumeMode":"Filesystem"}} → accepted
{"spec":{"volumeMode":"Block"}} → [FIELDS…, volumeMode: Invalid value: "Block": field is immutable]
{"spec":{"storageClassName":"x"}} → accepted
{"spec":{"storageClassName":"y"}} → FIELDS…
{"spec":{"volumeName":"x"}} → accepted
{"spec":{"volumeName":"y"}} → FIELDS…
"#;

const BOUND_CLAIM: &str = r#"
{"spec":{"resources":{"requests":{"storage":"500Mi"}}}} → spec.resources.requests.storage: Forbidden: field can not be less than status.capacity
{"spec":{"volumeAttributesClassName":"q"}} → accepted
"#;

async fn a_claim_keeps_its_spec_except_for_the_size_once_it_is_bound(world: &World) {
    let fields = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    let size = |size: &str| json!({ "requests": { "storage": size } });
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "resources": size("1Gi") });
    let claim = json!({ "spec": claim });
    let path = create(world, "v1", "persistentvolumeclaims", claim).await;
    merge_all(world, &path, &CLAIM.replace("FIELDS", fields)).await;
    let bound = json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } });
    world.merge_at(&format!("{path}/status"), &bound).await.ok();
    merge_all(world, &path, BOUND_CLAIM).await;
    // An admission plugin wants a storage class of volumes that can grow.
    let larger = json!({ "spec": { "resources": size("2Gi") } });
    let grown = world.merge_at(&path, &larger).await;
    assert!(matches!(grown.code, 200 | 403), "{grown:?}");
}

const IMMUTABLE: &str = r#"
{"data":{"a":"Yg=="}} → data: KEPT
{"immutable":false} → immutable: KEPT
{"metadata":{"labels":{"a":"b"}}} → accepted
"#;

const IMMUTABLE_MAP: &str = r#"
{"immutable":null,"data":null,"binaryData":{"z":"Yg=="}} → [immutable: KEPT, data: KEPT, binaryData: KEPT]
"#;

const SECRET: &str = r#"
{"type":"a/b"} → type: Invalid value: "a/b": field is immutable
{"type":""} → accepted
"#;

async fn immutable_data_stays_as_it_is(world: &World) {
    let kept = "Forbidden: field is immutable when `immutable` is set";
    for (plural, more) in [("configmaps", IMMUTABLE_MAP), ("secrets", SECRET)] {
        let object = json!({ "data": { "a": "YQ==" }, "immutable": true });
        let path = create(world, "v1", plural, object).await;
        for table in [IMMUTABLE, more] {
            merge_all(world, &path, &table.replace("KEPT", kept)).await;
        }
    }
}

const SERVICE: &str = r#"
{"spec":{"clusterIP":"10.0.0.77"}} → spec.clusterIPs[0]: Invalid value: ["10.0.0.77"]: may not change once set
{"spec":{"type":"ExternalName","externalName":"a.b","clusterIP":null}} → accepted
"#;

const BINDING: &str = r#"
{"roleRef":{"name":"z"}} → roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"z"}: cannot change roleRef
"#;

async fn a_service_keeps_its_address_and_a_binding_its_role(world: &World) {
    let selector = json!({ "a": "b" });
    let service = json!({ "ports": [{ "port": 80 }], "clusterIP": "None", "selector": selector });
    let path = create(world, "v1", "services", json!({ "spec": service })).await;
    for nothing in [json!(""), Value::Null] {
        let patch = json!({ "spec": { "clusterIP": nothing } });
        let same = world.merge_at(&path, &patch).await.ok();
        assert_eq!(same["spec"]["clusterIP"], "None");
    }
    merge_all(world, &path, SERVICE).await;

    let rbac = "rbac.authorization.k8s.io";
    let role = json!({ "apiGroup": rbac, "kind": "Role", "name": "q" });
    let binding = json!({ "roleRef": role });
    let path = create(world, &format!("{rbac}/v1"), "rolebindings", binding).await;
    merge_all(world, &path, BINDING).await;
}

behaviours! { "kept":
    a_pod_keeps_its_spec_except_for_a_few_fields,
    a_gated_pod_loses_its_gates_and_gains_node_selectors,
    the_selector_of_a_workload_is_immutable,
    a_job_keeps_its_template_and_its_completions,
    a_claim_keeps_its_spec_except_for_the_size_once_it_is_bound,
    immutable_data_stays_as_it_is,
    a_service_keeps_its_address_and_a_binding_its_role,
}
