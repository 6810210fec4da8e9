//! Behaviours of built-in kinds.

use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event, Namespace, ObjectReference, Secret, Service},
    events::v1::Event as NewEvent,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::events::{self, EventType, Recorder, Reporter},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, refusal},
    world::World,
};

async fn make<K>(world: &World, object: Value) -> Result<K, Failure>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let object: K = serde_json::from_value(object)?;
    let api = world.namespaced();
    Ok(api.create(&PostParams::default(), &object).await?)
}

async fn namespaces_are_there_from_the_start(world: &World) -> Outcome {
    let namespaces: Api<Namespace> = Api::all(world.client());
    let default = namespaces.get("default").await?;
    ensure_eq!(default.status.given()?.phase.as_deref(), Some("Active"));
    let labels = default.metadata.labels.given()?;
    ensure_eq!(labels["kubernetes.io/metadata.name"], "default");
    for name in ["kube-node-lease", "kube-public", "kube-system"] {
        namespaces.get(name).await?;
    }
    Ok(())
}

async fn a_config_map_is_stored_as_it_is(world: &World) -> Outcome {
    let made: ConfigMap = make(
        world,
        json!({ "metadata": { "name": "a" }, "data": { "k": "v" } }),
    )
    .await?;
    ensure_eq!(made.data.given()?["k"], "v");
    ensure_eq!(made.metadata.generation, None);
    Ok(())
}

async fn string_data_of_a_secret_becomes_data(world: &World) -> Outcome {
    let object = json!({ "metadata": { "name": "a" }, "stringData": { "k": "v" } });
    let made: Secret = make(world, object).await?;
    ensure_eq!(made.data.given()?["k"].0, b"v");
    ensure_eq!(made.string_data, None);
    Ok(())
}

async fn a_stale_put_of_a_lease_is_409(world: &World) -> Outcome {
    let mut lease: Lease = make(world, json!({ "metadata": { "name": "l" }, "spec": {} })).await?;
    let api: Api<Lease> = world.namespaced();
    let old = lease.clone();
    lease.spec.as_mut().given()?.holder_identity = Some("a".to_owned());
    api.replace("l", &PostParams::default(), &lease).await?;
    let outcome = api.replace("l", &PostParams::default(), &old).await;
    ensure_eq!(refusal(outcome)?.code, 409);
    Ok(())
}

async fn ports_of_a_service_are_merged_by_port_and_protocol(world: &World) -> Outcome {
    let api: Api<Service> = world.namespaced();
    let ports = |port: i32| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" },
            "spec": { "ports": [{ "port": port, "name": format!("p{port}") }] },
        }))
    };
    api.patch("s", &PatchParams::apply("one"), &ports(80))
        .await?;
    let both = api
        .patch("s", &PatchParams::apply("two"), &ports(81))
        .await?;
    ensure_eq!(both.spec.given()?.ports.given()?.len(), 2);
    Ok(())
}

fn deployment() -> Value {
    json!({
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

async fn a_strategic_merge_patch_merges_containers_by_name(world: &World) -> Outcome {
    make::<Deployment>(world, deployment()).await?;
    let api: Api<Deployment> = world.namespaced();
    let patch = Patch::Strategic(json!({
        "spec": { "template": { "spec": {
            "$setElementOrder/containers": [{ "name": "one" }, { "name": "two" }],
            "containers": [{ "name": "two", "image": "z" }, { "name": "one", "$patch": "delete" }],
        } } },
    }));
    let patched = api.patch("d", &PatchParams::default(), &patch).await?;
    ensure_eq!(patched.metadata.generation, Some(2));
    let containers = patched.spec.template.spec.given()?.containers;
    ensure_eq!(containers.len(), 1);
    ensure_eq!(
        (containers[0].name.as_str(), containers[0].image.as_deref()),
        ("two", Some("z"))
    );
    Ok(())
}

async fn a_deployment_has_a_scale_and_a_status_of_its_own(world: &World) -> Outcome {
    make::<Deployment>(world, deployment()).await?;
    let api: Api<Deployment> = world.namespaced();
    let scale = api.get_scale("d").await?;
    ensure_eq!(scale.status.given()?.selector.as_deref(), Some("a=b"));
    let patch = Patch::Merge(
        json!({ "spec": { "replicas": 9 }, "status": { "replicas": 2, "readyReplicas": 2 } }),
    );
    let patched = api
        .patch_status("d", &PatchParams::default(), &patch)
        .await?;
    ensure_eq!(patched.spec.replicas, Some(2));
    ensure_eq!(patched.status.given()?.ready_replicas, Some(2));
    Ok(())
}

async fn the_selector_of_a_deployment_is_immutable(world: &World) -> Outcome {
    make::<Deployment>(world, deployment()).await?;
    let api: Api<Deployment> = world.namespaced();
    let labels = json!({ "a": "c" });
    let patch = Patch::Merge(json!({ "spec": {
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels } },
    } }));
    let status = refusal(api.patch("d", &PatchParams::default(), &patch).await)?;
    ensure_eq!(status.code, 422);
    ensure_eq!(
        status.message,
        "Deployment.apps \"d\" is invalid: spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable"
    );
    Ok(())
}

async fn the_template_of_a_job_is_immutable(world: &World) -> Outcome {
    let containers = |image: &str| json!([{ "name": "one", "image": image }]);
    let template = json!({ "spec": { "containers": containers("x"), "restartPolicy": "Never" } });
    let job =
        json!({ "metadata": { "name": "j" }, "spec": { "suspend": true, "template": template } });
    make::<Job>(world, job).await?;
    let api: Api<Job> = world.namespaced();
    let params = PatchParams::default();
    let image = json!({ "spec": { "template": { "spec": { "containers": containers("y") } } } });
    let status = refusal(api.patch("j", &params, &Patch::Strategic(image)).await)?;
    ensure_eq!(status.code, 422);
    let message = status.message;
    let begin = "Job.batch \"j\" is invalid: spec.template: Invalid value: {";
    ensure!(
        message.starts_with(begin) && message.ends_with("}: field is immutable"),
        "{message}"
    );
    let more = json!({ "spec": { "parallelism": 2 } });
    let job = api.patch("j", &params, &Patch::Merge(more)).await?;
    ensure_eq!(job.spec.given()?.parallelism, Some(2));
    Ok(())
}

async fn an_immutable_config_map_keeps_its_data(world: &World) -> Outcome {
    let map = json!({ "metadata": { "name": "a" }, "data": { "k": "v" }, "immutable": true });
    make::<ConfigMap>(world, map).await?;
    let api: Api<ConfigMap> = world.namespaced();
    let params = PatchParams::default();
    let data = Patch::Merge(json!({ "data": { "k": "w" } }));
    let status = refusal(api.patch("a", &params, &data).await)?;
    ensure_eq!(status.code, 422);
    ensure_eq!(
        status.message,
        "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set"
    );
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "l": "x" } } }));
    api.patch("a", &params, &labels).await?;
    Ok(())
}

/// Returns an apply patch for the scale of the deployment.
fn scale(replicas: i32) -> Patch<Value> {
    Patch::Apply(json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": { "name": "d" },
        "spec": { "replicas": replicas },
    }))
}

async fn an_applied_scale_of_no_replicas_is_in_the_way_of_another(world: &World) -> Outcome {
    make::<Deployment>(world, deployment()).await?;
    let api: Api<Deployment> = world.namespaced();
    let params = PatchParams::apply("scaler");
    let status = refusal(api.patch_scale("d", &params, &scale(0)).await)?;
    ensure_eq!(status.code, 409);
    let forced = params.clone().force();
    let scaled = api.patch_scale("d", &forced, &scale(0)).await?;
    ensure_eq!(scaled.spec.given()?.replicas, None);
    ensure_eq!(api.get("d").await?.spec.replicas, Some(0));
    let again = api.patch_scale("d", &params, &scale(0)).await?;
    ensure_eq!(
        again.metadata.resource_version,
        scaled.metadata.resource_version
    );
    let other = PatchParams::apply("other");
    let status = refusal(api.patch_scale("d", &other, &scale(0)).await)?;
    ensure_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\": .spec.replicas"
    );
    api.patch_scale("d", &other.force(), &scale(0)).await?;
    let entries = serde_json::to_value(api.get("d").await?.metadata.managed_fields)?;
    let scalers = entries.as_array().given()?.iter();
    let scalers: Vec<_> = scalers
        .filter(|entry| entry["subresource"] == "scale")
        .map(|entry| &entry["manager"])
        .collect();
    ensure_eq!(scalers, ["other"]);
    Ok(())
}

async fn an_applied_scale_of_a_deployment_owns_the_replicas(world: &World) -> Outcome {
    make::<Deployment>(world, deployment()).await?;
    let api: Api<Deployment> = world.namespaced();
    let params = PatchParams::apply("scaler");
    let status = refusal(api.patch_scale("d", &params, &scale(5)).await)?;
    ensure_eq!(status.code, 409);
    ensure!(
        status.message.starts_with("Apply failed with 1 conflict: ")
            && status
                .message
                .ends_with(" using autoscaling/v1: .spec.replicas"),
        "{}",
        status.message
    );
    let forced = params.clone().force();
    let scaled = api.patch_scale("d", &forced, &scale(5)).await?;
    ensure_eq!(scaled.spec.given()?.replicas, Some(5));
    let again = api.patch_scale("d", &params, &scale(5)).await?;
    ensure_eq!(
        again.metadata.resource_version,
        scaled.metadata.resource_version
    );
    api.patch_scale("d", &params, &scale(6)).await?;
    let object = api.get("d").await?;
    ensure_eq!(object.spec.replicas, Some(6));
    let entries = serde_json::to_value(object.metadata.managed_fields)?;
    let entries = entries.as_array().given()?;
    let replicas = |entry: &&Value| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some();
    let owners: Vec<_> = entries.iter().filter(replicas).collect();
    ensure_eq!(owners.len(), 1);
    let owner = owners[0];
    ensure_eq!(owner["manager"], "scaler");
    ensure_eq!(owner["operation"], "Apply");
    ensure_eq!(owner["subresource"], "scale");
    ensure_eq!(owner["apiVersion"], "apps/v1");
    ensure_eq!(owner["fieldsV1"], json!({ "f:spec": { "f:replicas": {} } }));
    let status = refusal(api.patch_scale("d", &params, &scale(-1)).await)?;
    ensure_eq!(status.code, 422);
    ensure_eq!(
        status.message,
        "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
    Ok(())
}

async fn items_of_a_built_in_list_do_not_say_what_they_are(world: &World) -> Outcome {
    make::<ConfigMap>(world, json!({ "metadata": { "name": "a" } })).await?;
    let path = format!("/api/v1/namespaces/{}/configmaps", world.namespace);
    let list: Value = world.request(http::Request::get(path).body(vec![])).await?;
    ensure_eq!(list["kind"], "ConfigMapList");
    ensure!(list["items"][0].get("kind").is_none());
    Ok(())
}

async fn a_recorder_that_says_a_thing_twice_makes_one_event_with_a_series(
    world: &World,
) -> Outcome {
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
    recorder.publish(&event, &regarding).await?;
    recorder.publish(&event, &regarding).await?;
    let events: Api<NewEvent> = world.namespaced();
    let list = events.list(&ListParams::default()).await?;
    ensure_eq!(list.items.len(), 1);
    ensure_eq!(
        list.items[0].series.as_ref().map(|series| series.count),
        Some(2)
    );
    ensure_eq!(list.items[0].note.as_deref(), Some("it moved"));

    let old: Api<Event> = world.namespaced();
    let by = ListParams::default().fields("involvedObject.name=a,involvedObject.uid=u");
    let list = old.list(&by).await?;
    ensure_eq!(list.items.len(), 1, "the core group shows the same event");
    ensure_eq!(list.items[0].message.as_deref(), Some("it moved"));
    Ok(())
}

/// A deployment with a field that no pod has.
fn with_an_unknown_field() -> Value {
    let mut object = deployment();
    object["apiVersion"] = json!("apps/v1");
    object["kind"] = json!("Deployment");
    object["spec"]["template"]["spec"]["hostNames"] = json!(["a"]);
    object
}

async fn an_unknown_field_of_a_deployment_is_not_stored(world: &World) -> Outcome {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", world.namespace);
    let body = serde_json::to_vec(&with_an_unknown_field())?;
    let made: Value = world
        .request(http::Request::post(&path).body(body.clone()))
        .await?;
    ensure!(made["spec"]["template"]["spec"].get("hostNames").is_none());
    let strict = format!("{path}?fieldValidation=Strict");
    let strict = http::Request::post(&strict).body(body);
    let status = refusal(world.request::<Value>(strict).await)?;
    ensure_eq!(status.code, 400);
    let said = "unknown field \"spec.template.spec.hostNames\"";
    ensure!(status.message.contains(said), "{}", status.message);
    Ok(())
}

async fn an_apply_of_an_unknown_field_of_a_deployment_is_500(world: &World) -> Outcome {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", world.namespace);
    let name = deployment()["metadata"]["name"].clone();
    let path = format!("{path}/{}?fieldManager=m", name.as_str().given()?);
    let body = serde_json::to_vec(&with_an_unknown_field())?;
    let apply = http::Request::patch(&path)
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml");
    let status = refusal(world.request::<Value>(apply.body(body)).await)?;
    ensure_eq!(status.code, 500);
    let said = ".spec.template.spec.hostNames: field not declared in schema";
    ensure!(status.message.ends_with(said), "{}", status.message);
    Ok(())
}

behaviours! { "builtin":
    further an_unknown_field_of_a_deployment_is_not_stored,
    further an_apply_of_an_unknown_field_of_a_deployment_is_500,
    further namespaces_are_there_from_the_start,
    further a_config_map_is_stored_as_it_is,
    further string_data_of_a_secret_becomes_data,
    44 a_stale_put_of_a_lease_is_409,
    further ports_of_a_service_are_merged_by_port_and_protocol,
    further a_strategic_merge_patch_merges_containers_by_name,
    further a_deployment_has_a_scale_and_a_status_of_its_own,
    further the_selector_of_a_deployment_is_immutable,
    further the_template_of_a_job_is_immutable,
    further an_immutable_config_map_keeps_its_data,
    further an_applied_scale_of_a_deployment_owns_the_replicas,
    further an_applied_scale_of_no_replicas_is_in_the_way_of_another,
    further items_of_a_built_in_list_do_not_say_what_they_are,
    43 a_recorder_that_says_a_thing_twice_makes_one_event_with_a_series,
}
