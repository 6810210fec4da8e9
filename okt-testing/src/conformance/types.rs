//! Behaviours of the types of built-in kinds, as far as operators need them: defaults, field
//! ownership, status writes, generations.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy},
};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, refusal},
    world::World,
};

async fn service(world: &World) -> Result<Service, Failure> {
    let object = json!({
        "metadata": { "name": "a" },
        "spec": { "clusterIP": "None", "ports": [{ "port": 80 }] },
    });
    let object = serde_json::from_value(object)?;
    let services: Api<Service> = world.namespaced();
    Ok(services.create(&PostParams::default(), &object).await?)
}

async fn deployment(world: &World) -> Result<Deployment, Failure> {
    let object = json!({
        "metadata": { "name": "a", "labels": { "l": "v" } },
        "spec": {
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } },
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "one", "image": "x", "args": [] }] },
            },
        },
    });
    let object = serde_json::from_value(object)?;
    let deployments: Api<Deployment> = world.namespaced();
    Ok(deployments.create(&PostParams::default(), &object).await?)
}

async fn a_service_gets_what_its_type_gives(world: &World) -> Outcome {
    let made = service(world).await?;
    let spec = serde_json::to_value(made.spec)?;
    ensure_eq!(spec["type"], "ClusterIP");
    ensure_eq!(spec["sessionAffinity"], "None");
    ensure_eq!(spec["internalTrafficPolicy"], "Cluster");
    ensure_eq!(spec["ports"][0]["targetPort"], 80);
    ensure_eq!(
        serde_json::to_value(made.status)?,
        json!({ "loadBalancer": {} })
    );
    Ok(())
}

async fn an_update_of_a_service_need_not_repeat_its_address(world: &World) -> Outcome {
    let mut object = service(world).await?;
    object.spec.as_mut().given()?.cluster_ip = None;
    let services: Api<Service> = world.namespaced();
    let params = PostParams::default();
    let replaced = services.replace("a", &params, &object).await?;
    ensure_eq!(replaced.spec.given()?.cluster_ip.as_deref(), Some("None"));
    Ok(())
}

async fn a_put_creates_a_service(world: &World) -> Outcome {
    let object = json!({
        "metadata": { "name": "new" },
        "spec": { "clusterIP": "None", "ports": [{ "port": 80 }] },
    });
    let object = serde_json::from_value(object)?;
    let services: Api<Service> = world.namespaced();
    let params = PostParams::default();
    services.replace("new", &params, &object).await?;
    services.get("new").await?;
    Ok(())
}

async fn the_parts_of_a_deployment_are_owned_by_what_is_in_them(world: &World) -> Outcome {
    let made = deployment(world).await?;
    let entries = made.metadata.managed_fields.given()?;
    let fields = &entries[0].fields_v1.as_ref().given()?.0;
    let strategy = &fields["f:spec"]["f:strategy"];
    ensure!(strategy.get(".").is_none(), "{strategy}");
    ensure!(
        strategy["f:rollingUpdate"].get("f:maxSurge").is_some(),
        "{strategy}"
    );
    let template = &fields["f:spec"]["f:template"];
    ensure!(template.get(".").is_none(), "{template}");
    ensure!(template["f:metadata"].get(".").is_none(), "{template}");
    let containers = made.spec.template.spec.given()?.containers;
    ensure_eq!(containers[0].args, None);
    Ok(())
}

async fn the_generation_of_a_deployment_counts_its_annotations(world: &World) -> Outcome {
    deployment(world).await?;
    let deployments: Api<Deployment> = world.namespaced();
    let params = PatchParams::default();
    let note = |text: &str| {
        Patch::Merge(json!({ "metadata": { "annotations": { "okt.dev/note": text } } }))
    };
    let patched = deployments.patch("a", &params, &note("one")).await?;
    ensure_eq!(patched.metadata.generation, Some(2));
    let patched = deployments.patch_status("a", &params, &note("two")).await?;
    ensure_eq!(patched.metadata.generation, Some(2));
    ensure_eq!(patched.metadata.annotations.given()?["okt.dev/note"], "two");
    Ok(())
}

async fn the_status_of_a_built_in_kind_writes_metadata_too(world: &World) -> Outcome {
    service(world).await?;
    deployment(world).await?;
    let patch = Patch::Merge(json!({
        "metadata": { "labels": { "l": "w" }, "finalizers": ["okt.dev/one"] },
    }));
    let params = PatchParams::default();
    let services: Api<Service> = world.namespaced();
    let patched = services.patch_status("a", &params, &patch).await?;
    ensure_eq!(patched.metadata.labels.given()?["l"], "w");
    ensure_eq!(patched.metadata.finalizers.given()?, ["okt.dev/one"]);
    let deployments: Api<Deployment> = world.namespaced();
    let patched = deployments.patch_status("a", &params, &patch).await?;
    ensure_eq!(
        patched.metadata.labels.given()?["l"],
        "v",
        "but for its labels"
    );
    ensure_eq!(patched.metadata.finalizers.given()?, ["okt.dev/one"]);
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    services.patch("a", &params, &released).await?;
    deployments.patch("a", &params, &released).await?;
    Ok(())
}

async fn a_second_deletion_may_say_anew_what_becomes_of_dependents(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({}));
    object.metadata.finalizers = Some(vec!["okt.dev/one".to_owned()]);
    let api = world.widgets();
    api.create(&PostParams::default(), &object).await?;
    api.delete("a", &DeleteParams::default()).await?;
    // A dry run, because a garbage collector could interfere.
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        dry_run: true,
        ..DeleteParams::default()
    };
    let marked = api.delete("a", &params).await?.left().given()?;
    let finalizers = marked.metadata.finalizers.given()?;
    ensure_eq!(finalizers, ["okt.dev/one", "foregroundDeletion"]);
    Ok(())
}

async fn a_number_with_a_point_is_another_one_each_time(world: &World) -> Outcome {
    world.create("a", json!({ "free": { "n": 1 } })).await?;
    let patch: Value = json!([{ "op": "add", "path": "/spec/free/n", "value": 1.0 }]);
    for generation in [2, 3] {
        let patched = world.json_patch("a", patch.clone()).await?;
        ensure_eq!(patched.metadata.generation, Some(generation));
    }
    ensure_eq!(world.get("a").await?.data["spec"]["free"]["n"], json!(1));
    Ok(())
}

async fn a_lease_that_a_dry_run_would_create_keeps_the_version_it_came_with(
    world: &World,
) -> Outcome {
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases/a?dryRun=All",
        world.namespace
    );
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": "a", "resourceVersion": "1" },
        "spec": {},
    });
    let headers = [("content-type", "application/json")];
    let reply = world
        .send("PUT", &path, &headers, lease.to_string())
        .await?;
    ensure_eq!(reply.code, 201);
    ensure_eq!(reply.json()?["metadata"]["resourceVersion"], "1");
    Ok(())
}

async fn an_apply_that_leaves_no_metadata_must_name_the_object(world: &World) -> Outcome {
    let config = |metadata: Value| {
        Patch::Apply(json!({
            "apiVersion": world.api_version(),
            "kind": "Widget",
            "metadata": metadata,
            "spec": {},
        }))
    };
    let api = world.widgets();
    let params = PatchParams::apply("m");
    let named = config(json!({ "name": "a", "labels": {} }));
    api.patch("a", &params, &named).await?;
    let unnamed = config(json!({ "finalizers": [] }));
    let status = refusal(api.patch("a", &params, &unnamed).await)?;
    ensure_eq!(status.code, 400);
    ensure!(
        status.message.ends_with("name must be provided"),
        "{}",
        status.message
    );
    Ok(())
}

behaviours! { "types":
    further a_service_gets_what_its_type_gives,
    further an_update_of_a_service_need_not_repeat_its_address,
    further a_put_creates_a_service,
    further the_parts_of_a_deployment_are_owned_by_what_is_in_them,
    further the_generation_of_a_deployment_counts_its_annotations,
    further the_status_of_a_built_in_kind_writes_metadata_too,
    further a_second_deletion_may_say_anew_what_becomes_of_dependents,
    further a_number_with_a_point_is_another_one_each_time,
    further a_lease_that_a_dry_run_would_create_keeps_the_version_it_came_with,
    further an_apply_that_leaves_no_metadata_must_name_the_object,
}
