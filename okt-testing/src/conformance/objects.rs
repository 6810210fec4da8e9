//! Behaviours of creating, reading, changing and deleting objects.

use std::collections::BTreeSet;

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    claim::{Given, Outcome, refusal},
    world::{World, version},
};

async fn a_created_object_has_identity_and_generation_one(world: &World) -> Outcome {
    let made = world.create("a", json!({})).await?;
    ensure!(made.uid().is_some());
    ensure!(made.creation_timestamp().is_some());
    ensure_eq!(made.metadata.generation, Some(1));
    version(&made)?.parse::<u64>()?;
    Ok(())
}

async fn creating_twice_is_409_already_exists(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let status = refusal(world.create("a", json!({})).await)?;
    ensure_eq!(
        (status.code, status.reason.as_str()),
        (409, "AlreadyExists")
    );
    ensure_eq!(
        status.message,
        format!("widgets.{} \"a\" already exists", world.group)
    );
    Ok(())
}

async fn a_get_of_nothing_is_404(world: &World) -> Outcome {
    let status = refusal(world.widgets().get("a").await)?;
    ensure_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    ensure_eq!(
        status.message,
        format!("widgets.{} \"a\" not found", world.group)
    );
    Ok(())
}

async fn a_list_has_a_resource_version(world: &World) -> Outcome {
    let made = world.create("a", json!({})).await?;
    let list = world.widgets().list(&ListParams::default()).await?;
    let whole = list.metadata.resource_version.given()?.parse::<u64>()?;
    ensure!(whole >= version(&made)?.parse()?, "it is {whole}");
    ensure_eq!(list.items.len(), 1);
    Ok(())
}

async fn the_generation_moves_with_spec_alone(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = world.merge("a", labels).await?;
    ensure_eq!(patched.metadata.generation, Some(1));
    let status = json!({ "phase": "Up" });
    let patched = world.apply_status("m", "a", status).await?;
    ensure_eq!(patched.metadata.generation, Some(1));
    let spec = json!({ "spec": { "color": "red" } });
    let patched = world.merge("a", spec).await?;
    ensure_eq!(patched.metadata.generation, Some(2));
    Ok(())
}

async fn a_put_with_an_old_resource_version_is_409(world: &World) -> Outcome {
    let mut old = world.create("a", json!({})).await?;
    world
        .merge("a", json!({ "spec": { "color": "red" } }))
        .await?;
    old.data["spec"]["color"] = "blue".into();
    let status = refusal(world.replace(&old).await)?;
    ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    ensure_eq!(
        status.message,
        format!(
            "Operation cannot be fulfilled on widgets.{} \"a\": the object has been modified; please apply your changes to the latest version and try again",
            world.group
        )
    );
    Ok(())
}

async fn a_put_of_a_custom_resource_without_a_version_is_422(world: &World) -> Outcome {
    let mut object = world.create("a", json!({})).await?;
    object.metadata.resource_version = None;
    let status = refusal(world.replace(&object).await)?;
    ensure_eq!(status.code, 422);
    ensure!(
        status
            .message
            .contains("metadata.resourceVersion: Invalid value: 0")
    );
    Ok(())
}

async fn a_put_with_the_current_version_is_written(world: &World) -> Outcome {
    let mut object = world.create("a", json!({})).await?;
    object.data["spec"]["color"] = "red".into();
    let new = world.replace(&object).await?;
    ensure_eq!(new.data["spec"]["color"], "red");
    ensure_eq!(new.metadata.uid, object.metadata.uid);
    ensure_ne!(version(&new)?, version(&object)?);
    Ok(())
}

async fn a_put_that_changes_nothing_keeps_the_resource_version(world: &World) -> Outcome {
    let object = world.create("a", json!({})).await?;
    // The defaults of the status are written with the first update.
    let object = world.replace(&object).await?;
    let same = world.replace(&object).await?;
    ensure_eq!(version(&same)?, version(&object)?);
    Ok(())
}

async fn a_put_or_a_patch_of_nothing_is_404(world: &World) -> Outcome {
    let object = world.widget("a", json!({}));
    ensure_eq!(refusal(world.replace(&object).await)?.code, 404);
    ensure_eq!(refusal(world.merge("a", json!({})).await)?.code, 404);
    Ok(())
}

async fn an_object_of_the_past_is_not_written_over_its_successor(world: &World) -> Outcome {
    let mut old = world.create("a", json!({})).await?;
    world
        .widgets()
        .delete("a", &DeleteParams::default())
        .await?;
    let new = world.create("a", json!({})).await?;
    old.metadata
        .resource_version
        .clone_from(&new.metadata.resource_version);
    let status = refusal(world.replace(&old).await)?;
    ensure_eq!(status.code, 409);
    ensure!(
        status
            .message
            .contains("Precondition failed: UID in precondition"),
        "{}",
        status.message
    );
    Ok(())
}

async fn identity_cannot_be_patched_away(world: &World) -> Outcome {
    let object = world.create("a", json!({})).await?;
    let patch = json!({ "metadata": { "creationTimestamp": null, "generation": 9 } });
    let patched = world.merge("a", patch).await?;
    ensure_eq!(
        patched.metadata.creation_timestamp,
        object.metadata.creation_timestamp
    );
    ensure_eq!(patched.metadata.generation, Some(1));
    let other = json!({ "metadata": { "uid": "x" } });
    let status = refusal(world.merge("a", other).await)?;
    ensure_eq!(status.code, 422);
    ensure!(
        status
            .message
            .ends_with("metadata.uid: Invalid value: \"x\": field is immutable")
    );
    Ok(())
}

async fn a_dry_run_is_not_persisted(world: &World) -> Outcome {
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let made = world
        .widgets()
        .create(&params, &world.widget("a", json!({})))
        .await?;
    ensure_eq!(
        made.data["spec"]["replicas"],
        1,
        "the answer is what would have been stored"
    );
    ensure_eq!(refusal(world.widgets().get("a").await)?.code, 404);

    world.create("b", json!({})).await?;
    let patch = Patch::Merge(json!({ "spec": { "color": "red" } }));
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    world.widgets().patch("b", &params, &patch).await?;
    ensure!(world.get("b").await?.data["spec"].get("color").is_none());
    let params = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    world.widgets().delete("b", &params).await?;
    world.get("b").await?;
    Ok(())
}

async fn generate_name_gives_each_object_its_own(world: &World) -> Outcome {
    let mut object = world.widget("x", json!({}));
    object.metadata.name = None;
    object.metadata.generate_name = Some("w-".to_owned());
    let mut names = BTreeSet::new();
    for _ in 0..100 {
        let made = world
            .widgets()
            .create(&PostParams::default(), &object)
            .await?;
        let name = made.name_any();
        ensure!(name.starts_with("w-") && name.len() == 7, "{name}");
        names.insert(name);
    }
    ensure_eq!(names.len(), 100);
    Ok(())
}

async fn a_name_that_is_no_dns_subdomain_is_422(world: &World) -> Outcome {
    for name in ["A", "a_b", "-a", "a-"] {
        let status = refusal(world.create(name, json!({})).await)?;
        ensure_eq!(status.code, 422, "{name}");
        ensure!(
            status.message.contains("RFC 1123 subdomain"),
            "{}",
            status.message
        );
    }
    Ok(())
}

async fn a_label_that_is_none_is_422(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let patch = json!({ "metadata": { "labels": { "a": "no spaces" } } });
    ensure_eq!(refusal(world.merge("a", patch).await)?.code, 422);
    Ok(())
}

async fn creating_in_a_namespace_that_is_not_there_is_404(world: &World) -> Outcome {
    let api: Api<DynamicObject> =
        Api::namespaced_with(world.client(), "nowhere", &world.resource());
    let outcome = api
        .create(&PostParams::default(), &world.widget("a", json!({})))
        .await;
    let status = refusal(outcome)?;
    ensure_eq!(status.code, 404);
    ensure_eq!(status.message, "namespaces \"nowhere\" not found");
    Ok(())
}

async fn a_resource_version_on_create_is_500(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({}));
    object.metadata.resource_version = Some("5".to_owned());
    let outcome = world
        .widgets()
        .create(&PostParams::default(), &object)
        .await;
    ensure_eq!(refusal(outcome)?.code, 500);
    Ok(())
}

async fn metadata_alone_is_served_where_it_is_asked_for(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let meta = world.widgets().get_metadata("a").await?;
    ensure_eq!(meta.types.given()?.kind, "PartialObjectMetadata");
    ensure_eq!(meta.metadata.name.as_deref(), Some("a"));
    let list = world
        .widgets()
        .list_metadata(&ListParams::default())
        .await?;
    ensure_eq!(list.items.len(), 1);
    Ok(())
}

async fn the_scale_reads_and_writes_the_replicas(world: &World) -> Outcome {
    world.create("a", json!({ "replicas": 2 })).await?;
    world
        .apply_status("m", "a", json!({ "replicas": 1, "selector": "a=b" }))
        .await?;
    let scale = world.widgets().get_scale("a").await?;
    ensure_eq!(scale.spec.given()?.replicas, Some(2));
    let status = scale.status.given()?;
    ensure_eq!(
        (status.replicas, status.selector.as_deref()),
        (1, Some("a=b"))
    );
    let patch = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    let scale = world
        .widgets()
        .patch_scale("a", &PatchParams::default(), &patch)
        .await?;
    ensure_eq!(scale.spec.given()?.replicas, Some(5));
    let object = world.get("a").await?;
    ensure_eq!(object.data["spec"]["replicas"], 5);
    ensure_eq!(object.metadata.generation, Some(2));
    let too_many = Patch::Merge(json!({ "spec": { "replicas": 50 } }));
    let outcome = world
        .widgets()
        .patch_scale("a", &PatchParams::default(), &too_many)
        .await;
    ensure_eq!(
        refusal(outcome)?.code,
        422,
        "the schema holds for the scale too"
    );
    Ok(())
}

async fn a_scale_below_zero_is_422(world: &World) -> Outcome {
    world.create("a", json!({ "replicas": 2 })).await?;
    let patch = Patch::Merge(json!({ "spec": { "replicas": -1 } }));
    let params = PatchParams::default();
    let status = refusal(world.widgets().patch_scale("a", &params, &patch).await)?;
    ensure_eq!(status.code, 422);
    Ok(())
}

behaviours! { "objects":
    2 a_created_object_has_identity_and_generation_one,
    3 creating_twice_is_409_already_exists,
    4 a_get_of_nothing_is_404,
    5 a_list_has_a_resource_version,
    6 the_generation_moves_with_spec_alone,
    7 a_put_with_an_old_resource_version_is_409,
    further a_put_of_a_custom_resource_without_a_version_is_422,
    further a_put_with_the_current_version_is_written,
    further a_put_that_changes_nothing_keeps_the_resource_version,
    further a_put_or_a_patch_of_nothing_is_404,
    further an_object_of_the_past_is_not_written_over_its_successor,
    further identity_cannot_be_patched_away,
    30 a_dry_run_is_not_persisted,
    31 generate_name_gives_each_object_its_own,
    further a_name_that_is_no_dns_subdomain_is_422,
    further a_label_that_is_none_is_422,
    further creating_in_a_namespace_that_is_not_there_is_404,
    further a_resource_version_on_create_is_500,
    36 metadata_alone_is_served_where_it_is_asked_for,
    29 the_scale_reads_and_writes_the_replicas,
    further a_scale_below_zero_is_422,
}
