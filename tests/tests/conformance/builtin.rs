//! Behaviors of built-in kinds.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{self, EventType, Recorder, Reporter};
use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::table::{cases, parse};
use crate::world::{MERGE, STRATEGIC, TABLE, World, YAML, managers, names, released, version};

async fn namespaces_are_there_from_the_start(world: &World) {
    let default = world.get("/api/v1/namespaces/default").await.ok();
    assert_eq!(default["status"]["phase"], "Active");
    let labels = &default["metadata"]["labels"];
    assert_eq!(labels["kubernetes.io/metadata.name"], "default");
    for name in ["kube-node-lease", "kube-public", "kube-system"] {
        world.get(&format!("/api/v1/namespaces/{name}")).await.ok();
    }
}

async fn a_config_map_is_stored_as_it_is(world: &World) {
    let maps = world.path_of("v1", "configmaps");
    let data = json!({ "k": "v" });
    let map = json!({ "metadata": { "name": "a" }, "data": data });
    let made = world.post(&maps, &map).await.ok();
    assert_eq!(made["data"], data);
    assert_eq!(made["metadata"].get("generation"), None);
    // The items of a list do not name their kind.
    let list = world.get(&maps).await.ok();
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["items"][0].get("kind"), None);
    assert_eq!(list["items"][0]["data"], data);
}

async fn string_data_of_a_secret_becomes_data(world: &World) {
    let secret = json!({ "metadata": { "name": "a" }, "stringData": { "k": "v" } });
    let path = world.path_of("v1", "secrets");
    let made = world.post(&path, &secret).await.ok();
    assert_eq!(made["data"], json!({ "k": "dg==" }));
    assert_eq!(made.get("stringData"), None);
}

async fn ports_of_a_service_are_merged_by_port_and_protocol(world: &World) {
    let path = format!("{}/s", world.path_of("v1", "services"));
    let service = |port: i32| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" },
            "spec": { "ports": [{ "port": port, "name": format!("p{port}") }] },
        })
    };
    world.apply_at(&path, "one", &service(80)).await.ok();
    let both = world.apply_at(&path, "two", &service(81)).await.ok();
    let ports = both["spec"]["ports"].as_array().expect("ports");
    assert_eq!(ports.len(), 2);
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "d" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "one", "image": "x" }, { "name": "two", "image": "y" }] },
            },
        },
    })
}

/// Creates the deployment, and returns its path.
async fn create_deployment(world: &World) -> String {
    let path = world.path_of("apps/v1", "deployments");
    world.post(&path, &deployment()).await.ok();
    format!("{path}/d")
}

async fn a_strategic_merge_patch_merges_containers_by_name(world: &World) {
    let path = create_deployment(world).await;
    let patch = json!({
        "spec": { "template": { "spec": {
            "$setElementOrder/containers": [{ "name": "one" }, { "name": "two" }],
            "containers": [{ "name": "two", "image": "z" }, { "name": "one", "$patch": "delete" }],
        } } },
    });
    let patched = world.patch(&path, STRATEGIC, &patch).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
    let containers = &patched["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().expect("a list").len(), 1);
    assert_eq!(containers[0]["name"], "two");
    assert_eq!(containers[0]["image"], "z");
}

async fn a_deployment_has_a_scale_and_a_status_of_its_own(world: &World) {
    let path = create_deployment(world).await;
    let scale = world.get(&format!("{path}/scale")).await.ok();
    assert_eq!(scale["status"]["selector"], "a=b");
    let patch =
        json!({ "spec": { "replicas": 9 }, "status": { "replicas": 2, "readyReplicas": 2 } });
    let status = format!("{path}/status");
    let patched = world.merge_at(&status, &patch).await.ok();
    assert_eq!(patched["spec"]["replicas"], 2);
    assert_eq!(patched["status"]["readyReplicas"], 2);
}

/// Applies the scale of the deployment.
async fn scale(world: &World, path: &str, manager: &str, replicas: i32) -> Reply {
    let scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": { "name": "d" },
        "spec": { "replicas": replicas },
    });
    world
        .apply_at(&format!("{path}/scale"), manager, &scale)
        .await
}

async fn an_applied_scale_of_no_replicas_is_in_the_way_of_another(world: &World) {
    let path = &create_deployment(world).await;
    scale(world, path, "scaler", 0).await.refused(409, "…");
    let scaled = scale(world, path, "scaler&force=true", 0).await.ok();
    assert_eq!(scaled["spec"].get("replicas"), None);
    let object = world.get(path).await.ok();
    assert_eq!(object["spec"]["replicas"], 0);
    let again = scale(world, path, "scaler", 0).await.ok();
    assert_eq!(version(&again), version(&scaled));
    scale(world, path, "other", 0).await.refused(
        409,
        r#"Apply failed with 1 conflict: conflict with "scaler" with subresource "scale": .spec.replicas"#,
    );
    scale(world, path, "other&force=true", 0).await.ok();
    let mut scalers = managers(&world.get(path).await.ok());
    scalers.retain(|entry| entry.ends_with("scale"));
    assert_eq!(scalers, ["other Apply scale"]);
}

async fn an_applied_scale_of_a_deployment_owns_the_replicas(world: &World) {
    let path = &create_deployment(world).await;
    let conflict = "Apply failed with 1 conflict: … using autoscaling/v1: .spec.replicas";
    scale(world, path, "scaler", 5).await.refused(409, conflict);
    let scaled = scale(world, path, "scaler&force=true", 5).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let again = scale(world, path, "scaler", 5).await.ok();
    assert_eq!(version(&again), version(&scaled));
    scale(world, path, "scaler", 6).await.ok();
    let object = world.get(path).await.ok();
    assert_eq!(object["spec"]["replicas"], 6);
    let entries = object["metadata"]["managedFields"].as_array();
    let replicas = |entry: &&Value| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some();
    let mut owners: Vec<_> = entries
        .expect("entries")
        .iter()
        .filter(replicas)
        .cloned()
        .collect();
    owners[0]["time"] = Value::Null;
    let own = json!({
        "manager": "scaler", "operation": "Apply", "subresource": "scale", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:replicas": {} } }, "time": null,
    });
    assert_eq!(owners, [own]);
    scale(world, path, "scaler", -1).await.refused(
        422,
        r#"Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#,
    );
}

async fn a_recorder_that_publishes_an_event_twice_makes_one_with_a_series(world: &World) {
    let recorder = Recorder::new(world.client(), Reporter::from("okt"));
    let regarding = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        name: Some("a".to_owned()),
        namespace: Some(world.namespace.clone()),
        uid: Some("u".to_owned()),
        ..ObjectReference::default()
    };
    let event = events::Event {
        type_: EventType::Normal,
        reason: "Moved".to_owned(),
        note: Some("it moved".to_owned()),
        action: "Move".to_owned(),
        secondary: None,
    };
    for _ in 0..2 {
        let published = recorder.publish(&event, &regarding).await;
        published.expect("an event");
    }
    let list = world
        .get(&world.path_of("events.k8s.io/v1", "events"))
        .await
        .ok();
    assert_eq!(names(&list).len(), 1);
    assert_eq!(list["items"][0]["series"]["count"], 2);
    assert_eq!(list["items"][0]["note"], "it moved");
    // The core group shows the same event.
    let by = "?fieldSelector=involvedObject.name%3Da,involvedObject.uid%3Du";
    let list = world
        .get(&format!("{}{by}", world.path_of("v1", "events")))
        .await
        .ok();
    assert_eq!(names(&list).len(), 1);
    assert_eq!(list["items"][0]["message"], "it moved");
}

async fn an_unknown_field_of_a_deployment_is_not_stored(world: &World) {
    let path = world.path_of("apps/v1", "deployments");
    let mut object = deployment();
    object["spec"]["template"]["spec"]["hostNames"] = json!(["a"]);
    let made = world.post(&path, &object).await.ok();
    let pod = &made["spec"]["template"]["spec"];
    assert_eq!(pod.get("hostNames"), None);
    let strict = format!("{path}?fieldValidation=Strict");
    let refused = world.post(&strict, &object).await;
    refused.refused(400, r#"…unknown field "spec.template.spec.hostNames"…"#);
    let applied = world.apply_at(&format!("{path}/d"), "m", &object).await;
    let message = "….spec.template.spec.hostNames: field not declared in schema";
    applied.refused(500, message);
}

/// The paths of kinds with an object, and what is expected of it: its status (a status with counts of other controllers or
/// times is left out), its generation, the code of a PUT that would create it, and its cells in kubectl.
const KINDS: &str = r#"
HERE/resourcequotas {"spec":{"hard":{"pods":"2"}}} → {"status":{},"generation":null,"put":404,"cells":["",""]}
HERE/endpoints {"subsets":[{"addresses":[{"ip":"10.1.1.1"}],"ports":[{"port":80}]}]} → {"status":null,"generation":null,"put":201,"cells":["10.1.1.1:80"]}
HERE/limitranges {"spec":{"limits":[{"type":"Container","max":{"cpu":"1"}}]}} → {"status":null,"generation":null,"put":201,"cells":[]}
HERE/replicationcontrollers {"spec":{"replicas":1,"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"x"}]}}}} → {"generation":1,"put":404,"cells":[1,0,0,"a","x","a=b"]}
/api/v1/persistentvolumes {"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}} → {"generation":null,"put":404,"cells":["1Gi","RWO","Retain","Pending","","","<unset>","","Filesystem"]}
BUDGETS {"spec":{"maxUnavailable":1,"selector":{"matchLabels":{"a":"b"}}}} → {"status":{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0},"generation":1,"put":404,"cells":["N/A","1",0]}
/api/v1/nodes {"spec":{"unschedulable":true}} → {"generation":null,"put":404,"cells":["Unknown,SchedulingDisabled","<none>","","<none>","<none>","<unknown>","<unknown>","<unknown>"]}
AUTOSCALERS {"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"a"},"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},{"type":"Pods","pods":{"metric":{"name":"a"},"target":{"type":"AverageValue","averageValue":"1500m"}}},{"type":"Object","object":{"metric":{"name":"a"},"describedObject":{"kind":"Service","name":"a"},"target":{"type":"Value","value":1}}}]}} → {"generation":null,"put":404,"cells":["Deployment/a","cpu: <unknown>/50%, <unknown>/1500m + 1 more...","1",3,0]}
POLICIES {"spec":{"podSelector":{"matchLabels":{"b":"c"},"matchExpressions":[{"key":"a","operator":"In","values":["z","y"]},{"key":"d","operator":"DoesNotExist"}]}}} → {"generation":1,"put":404,"cells":["a in (y,z),b=c,!d"]}
SLICES {"addressType":"IPv4","ports":[{"port":80},{"name":"b"}],"endpoints":[{"addresses":["10.1.1.1"]},{"addresses":["10.1.1.2"]},{"addresses":["10.1.1.3"]},{"addresses":["10.1.1.4"]}]} → {"status":null,"generation":2,"put":404,"cells":["IPv4","80,b","10.1.1.1,10.1.1.2,10.1.1.3 + 1 more..."]}
/apis/networking.k8s.io/v1/ingressclasses {"spec":{"controller":"a.b/c","parameters":{"apiGroup":"a.b","kind":"C","name":"d"}}} → {"status":null,"generation":1,"put":404,"cells":["a.b/c","C.a.b/d"]}
/apis/storage.k8s.io/v1/storageclasses {"provisioner":"a.b/c"} → {"status":null,"generation":null,"put":404,"cells":["a.b/c","Delete","Immediate",false]}
/apis/scheduling.k8s.io/v1/priorityclasses {"value":7} → {"status":null,"generation":1,"put":404,"cells":[7,false,"PreemptLowerPriority"]}
INGRESSES {"spec":{"rules":[{"host":"a.b","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"number":80}}}}]}}]}} → {"status":{"loadBalancer":{}},"generation":1,"put":404,"cells":["<none>","a.b","","80"]}
"#;

async fn kinds_differ_in_status_generation_and_columns_and_few_are_created_by_a_put(world: &World) {
    let here = format!("/api/v1/namespaces/{}", world.namespace);
    let ingresses = world.path_of("networking.k8s.io/v1", "ingresses");
    let budgets = world.path_of("policy/v1", "poddisruptionbudgets");
    let table = KINDS
        .replace("HERE", &here)
        .replace("BUDGETS", &budgets)
        .replace("INGRESSES", &ingresses)
        .replace(
            "AUTOSCALERS",
            &world.path_of("autoscaling/v2", "horizontalpodautoscalers"),
        )
        .replace(
            "POLICIES",
            &world.path_of("networking.k8s.io/v1", "networkpolicies"),
        )
        .replace(
            "SLICES",
            &world.path_of("discovery.k8s.io/v1", "endpointslices"),
        );
    for (case, expected) in cases(&table) {
        let (path, object) = case.split_once(' ').expect("both");
        let (mut object, expected) = (parse(object), parse(expected));
        // The name of an object of the cluster is to be its own.
        let [first, second] = ["a", "b"].map(|name| format!("{}-{name}", world.namespace));
        object["metadata"] = json!({ "name": first });
        let made = world.post(path, &object).await.ok();
        if let Some(status) = expected.get("status") {
            assert_eq!(made["status"], *status, "{path}");
        }
        let item = format!("{path}/{first}");
        let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
        let changed = world.merge_at(&item, &labelled).await.ok();
        let generation = &changed["metadata"]["generation"];
        assert_eq!(*generation, expected["generation"], "{path}");
        assert_eq!(cells(world, &item).await, expected["cells"], "{path}");
        object["metadata"]["name"] = second.as_str().into();
        let put = world.put(&format!("{path}/{second}"), &object).await;
        assert_eq!(json!(put.code), expected["put"], "{path}");
        world.merge_at(&item, &released()).await.ok();
        world.delete(&item).await.ok();
    }
}

/// Returns the cells of an object as kubectl shows it, without its name and its age.
async fn cells(world: &World, path: &str) -> Value {
    let table = world.get_as(path, TABLE).await.ok();
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    let shown = columns.iter().zip(cells).skip(1);
    let shown = shown.filter(|(column, _)| {
        let name = column["name"].as_str();
        !matches!(name, Some("Age" | "Created At"))
    });
    shown.map(|(_, cell)| cell.clone()).collect()
}

async fn endpoints_are_deprecated(world: &World) {
    let reply = world.get(&world.path_of("v1", "endpoints")).await;
    let warning =
        "299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\"";
    assert_eq!(reply.header("warning"), warning);
}

/// Objects with a number that has a point, and the places of these numbers.
const FLOATS: &str = r#"
coordination.k8s.io/v1 leases Lease {"leaseDurationSeconds":15.0} → 15.0 LeaseSpec.spec.leaseDurationSeconds
v1 services Service {"ports":[{"port":80.0}]} → 80.0 ServicePort.spec.ports.port
v1 pods Pod {"containers":[{"name":"a","image":"x","resources":{"limits":{"cpu":1.0}},"readinessProbe":{"tcpSocket":{"port":1},"periodSeconds":1.0}}]} → 1.0 Probe.spec.containers.readinessProbe.periodSeconds
"#;

/// An integer of a built-in kind is written without a point in JSON; YAML has no such difference.
async fn a_whole_number_with_a_decimal_point_is_no_integer(world: &World) {
    let go = |place: &str| {
        let (number, field) = place.split_once(' ').expect("both");
        format!("json: cannot unmarshal number {number} into Go struct field {field} of type int32")
    };
    for (case, place) in cases(FLOATS) {
        let words: Vec<_> = case.splitn(4, ' ').collect();
        let (kind, spec) = (words[2], words[3]);
        let path = world.path_of(words[0], words[1]);
        let body = format!(r#"{{"metadata":{{"name":"r"}},"spec":{spec}}}"#);
        let refused = world.post(&path, &body).await;
        let message = go(place);
        let message = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {message}");
        refused.refused(400, &message);
        let headers = [("content-type", YAML)];
        let made = world.send("POST", &path, &headers, &body).await;
        assert_eq!(made.code, 201, "{path}");
    }
    let path = create_deployment(world).await;
    let patch = r#"{"spec":{"replicas":2.0}}"#;
    let refused = world.patch(&path, MERGE, patch).await;
    refused.refused(422, &format!("…{}", go("2.0 DeploymentSpec.spec.replicas")));
    let patched = world.patch(&path, STRATEGIC, patch).await.ok();
    assert_eq!(patched["spec"]["replicas"], 2);
}

behaviours! { "builtin":
    an_unknown_field_of_a_deployment_is_not_stored,
    namespaces_are_there_from_the_start,
    a_config_map_is_stored_as_it_is,
    string_data_of_a_secret_becomes_data,
    ports_of_a_service_are_merged_by_port_and_protocol,
    a_strategic_merge_patch_merges_containers_by_name,
    a_deployment_has_a_scale_and_a_status_of_its_own,
    an_applied_scale_of_a_deployment_owns_the_replicas,
    an_applied_scale_of_no_replicas_is_in_the_way_of_another,
    kinds_differ_in_status_generation_and_columns_and_few_are_created_by_a_put,
    endpoints_are_deprecated,
    a_whole_number_with_a_decimal_point_is_no_integer,
    a_recorder_that_publishes_an_event_twice_makes_one_with_a_series,
}
