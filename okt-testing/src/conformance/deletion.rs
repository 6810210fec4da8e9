//! Behaviours of deletion: finalizers, preconditions, owners, collections.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use super::{
    claim::{Given, Outcome, eventually, refusal},
    world::{World, released, version},
};

async fn delete(world: &World, name: &str, params: &DeleteParams) -> kube::Result<()> {
    world.widgets().delete(name, params).await.map(drop)
}

async fn is_gone(world: &World, name: &str) -> kube::Result<bool> {
    Ok(world.widgets().get_opt(name).await?.is_none())
}

async fn a_deletion_answers_with_a_status(world: &World) -> Outcome {
    let made = world.create("a", json!({})).await?;
    let answer = world
        .widgets()
        .delete("a", &DeleteParams::default())
        .await?;
    let status = answer.right().given()?;
    let details = status.details.given()?;
    ensure_eq!(
        (details.name.as_str(), details.kind.as_str()),
        ("a", "widgets")
    );
    ensure_eq!(Some(details.uid), made.metadata.uid);
    ensure!(is_gone(world, "a").await?);
    Ok(())
}

/// Creates a widget and adds a finalizer as operators do.
async fn with_finalizer(world: &World) -> kube::Result<DynamicObject> {
    world.create("a", json!({})).await?;
    let patch = json!([
        { "op": "test", "path": "/metadata/finalizers", "value": null },
        { "op": "add", "path": "/metadata/finalizers", "value": ["okt.dev/a"] },
    ]);
    world.json_patch("a", patch).await
}

async fn a_finalizer_is_added_where_none_is_and_a_deletion_only_marks(world: &World) -> Outcome {
    let held = with_finalizer(world).await?;
    ensure_eq!(held.finalizers(), ["okt.dev/a"]);
    let again = json!([{ "op": "test", "path": "/metadata/finalizers", "value": null }]);
    ensure_eq!(refusal(world.json_patch("a", again).await)?.code, 422);
    let answer = world
        .widgets()
        .delete("a", &DeleteParams::default())
        .await?;
    let marked = answer.left().given()?;
    ensure!(marked.metadata.deletion_timestamp.is_some());
    ensure_eq!(marked.metadata.deletion_grace_period_seconds, Some(0));
    ensure_eq!(
        marked.metadata.generation,
        held.metadata.generation.map(|g| g + 1)
    );
    let again = world
        .widgets()
        .delete("a", &DeleteParams::default())
        .await?;
    ensure_eq!(version(&again.left().given()?)?, version(&marked)?);
    Ok(())
}

async fn no_finalizer_is_added_while_deleting(world: &World) -> Outcome {
    with_finalizer(world).await?;
    delete(world, "a", &DeleteParams::default()).await?;
    let patch = json!({ "metadata": { "finalizers": ["okt.dev/a", "okt.dev/b"] } });
    let status = refusal(world.merge("a", patch).await)?;
    ensure_eq!(status.code, 422);
    ensure!(status.message.ends_with(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{\"okt.dev/b\"}"
    ));
    Ok(())
}

async fn an_object_goes_with_its_last_finalizer(world: &World) -> Outcome {
    with_finalizer(world).await?;
    delete(world, "a", &DeleteParams::default()).await?;
    let patch = json!({ "metadata": { "finalizers": null } });
    world.merge("a", patch).await?;
    ensure!(is_gone(world, "a").await?);
    Ok(())
}

async fn another_uid_is_409(world: &World) -> Outcome {
    let made = world.create("a", json!({})).await?;
    let with = |uid: &str| DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let status = refusal(delete(world, "a", &with("other")).await)?;
    ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    ensure!(
        status
            .message
            .contains("the UID in the precondition (other) does not match the UID in record")
    );
    delete(world, "a", &with(&made.uid().given()?)).await?;
    Ok(())
}

async fn another_version_is_409(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: None,
            resource_version: Some("1".to_owned()),
        }),
        ..DeleteParams::default()
    };
    ensure_eq!(refusal(delete(world, "a", &params).await)?.code, 409);
    Ok(())
}

async fn a_collection_is_deleted_by_selector(world: &World) -> Outcome {
    for name in ["a", "b", "c"] {
        world
            .create(
                name,
                json!({ "color": if name == "b" { "red" } else { "blue" } }),
            )
            .await?;
    }
    let params = ListParams::default().fields("spec.color=blue");
    world
        .widgets()
        .delete_collection(&DeleteParams::default(), &params)
        .await?;
    ensure!(is_gone(world, "a").await? && is_gone(world, "c").await?);
    world.get("b").await?;
    Ok(())
}

async fn a_deletion_of_nothing_is_404(world: &World) -> Outcome {
    let status = refusal(delete(world, "a", &DeleteParams::default()).await)?;
    ensure_eq!(status.code, 404);
    Ok(())
}

async fn an_owner_is_named_in_full(world: &World) -> Outcome {
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a" });
    world.create("a", json!({})).await?;
    let patch = json!({ "metadata": { "ownerReferences": [owner] } });
    let status = refusal(world.merge("a", patch).await)?;
    ensure_eq!(status.code, 422);
    let message = &status.message;
    let expected = "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty";
    ensure!(message.ends_with(expected), "{message}");
    Ok(())
}

async fn an_unknown_propagation_policy_is_422(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let path = format!("{}/a?propagationPolicy=Upwards", world.path());
    let reply = world.send("DELETE", &path, &[], "").await?;
    ensure_eq!(reply.code, 422);
    world.get("a").await?;
    Ok(())
}

async fn owned_map(world: &World, name: &str, owner: &DynamicObject, blocks: bool) -> Outcome {
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "ownerReferences": [{
                "apiVersion": world.api_version(),
                "kind": "Widget",
                "name": owner.name_any(),
                "uid": owner.uid(),
                "blockOwnerDeletion": blocks,
            }],
        },
    }))?;
    maps(world).create(&PostParams::default(), &map).await?;
    Ok(())
}

fn maps(world: &World) -> Api<ConfigMap> {
    world.namespaced()
}

async fn owned_objects_go_with_their_owner(world: &World) -> Outcome {
    let owner = world.create("a", json!({})).await?;
    owned_map(world, "m", &owner, false).await?;
    delete(world, "a", &DeleteParams::background()).await?;
    is_collected(world, "m").await
}

async fn orphans_stay_without_their_reference(world: &World) -> Outcome {
    let owner = world.create("a", json!({})).await?;
    owned_map(world, "m", &owner, false).await?;
    an_object_without_owner_is_collected(world, owner).await?;
    delete(world, "a", &DeleteParams::orphan()).await?;
    eventually("the owner is gone", || async {
        Ok(is_gone(world, "a").await?.then_some(()))
    })
    .await?;
    let map = maps(world).get("m").await?;
    ensure_eq!(map.owner_references(), []);
    Ok(())
}

async fn a_foreground_deletion_waits_for_what_blocks_it(world: &World) -> Outcome {
    let owner = world.create("a", json!({})).await?;
    owned_map(world, "m", &owner, true).await?;
    let held = Patch::Merge(json!({ "metadata": { "finalizers": ["okt.dev/m"] } }));
    let params = PatchParams::default();
    maps(world).patch("m", &params, &held).await?;
    an_object_without_owner_is_collected(world, owner).await?;
    delete(world, "a", &DeleteParams::foreground()).await?;
    ensure_eq!(world.get("a").await?.finalizers(), ["foregroundDeletion"]);
    eventually("what is owned is being deleted", || async {
        Ok(maps(world).get("m").await?.metadata.deletion_timestamp)
    })
    .await?;
    world.get("a").await?;
    maps(world).patch("m", &params, &released()).await?;
    eventually("the owner is gone", || async {
        Ok(is_gone(world, "a").await?.then_some(()))
    })
    .await?;
    Ok(())
}

async fn an_object_whose_owners_never_were_is_collected(world: &World) -> Outcome {
    let owner = world.create("a", json!({})).await?;
    an_object_without_owner_is_collected(world, owner).await
}

/// Makes a map whose owner never was, and waits until it is collected.
///
/// The collector watches each kind on its own, and may see that an owner goes before it sees what is owned. Events of a
/// kind arrive in order, so it then knows all maps that were made before.
async fn an_object_without_owner_is_collected(world: &World, mut owner: DynamicObject) -> Outcome {
    owner.metadata.uid = Some("no-such-uid".to_owned());
    owned_map(world, "n", &owner, false).await?;
    is_collected(world, "n").await
}

async fn is_collected(world: &World, name: &str) -> Outcome {
    eventually("the garbage is collected", || async {
        Ok(maps(world).get_opt(name).await?.is_none().then_some(()))
    })
    .await
}

async fn a_namespace_takes_its_content_along(world: &World) -> Outcome {
    let name = format!("{}-other", world.namespace);
    world.create_namespace(&name).await?;
    let other: Api<ConfigMap> = Api::namespaced(world.client(), &name);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("m".to_owned());
    map.metadata.finalizers = Some(vec!["okt.dev/m".to_owned()]);
    other.create(&PostParams::default(), &map).await?;
    let namespaces: Api<Namespace> = Api::all(world.client());
    namespaces.delete(&name, &DeleteParams::default()).await?;
    let namespace = namespaces.get(&name).await?;
    ensure_eq!(
        namespace.status.given()?.phase.as_deref(),
        Some("Terminating")
    );
    let mut late = ConfigMap::default();
    late.metadata.generate_name = Some("n-".to_owned());
    eventually("nothing is created any more", || async {
        match other.create(&PostParams::default(), &late).await {
            Ok(_) => Ok(None),
            refused => Ok(Some(refusal(refused)?.code).filter(|code| *code == 403)),
        }
    })
    .await?;
    other
        .patch("m", &PatchParams::default(), &released())
        .await?;
    eventually("the namespace is gone", || async {
        Ok(namespaces.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    Ok(())
}

behaviours! { "deletion":
    further a_deletion_answers_with_a_status,
    further a_deletion_of_nothing_is_404,
    further an_owner_is_named_in_full,
    further an_unknown_propagation_policy_is_422,
    38 a_finalizer_is_added_where_none_is_and_a_deletion_only_marks,
    39 no_finalizer_is_added_while_deleting,
    40 an_object_goes_with_its_last_finalizer,
    41 another_uid_is_409,
    further another_version_is_409,
    45 a_collection_is_deleted_by_selector,
    42 owned_objects_go_with_their_owner,
    further orphans_stay_without_their_reference,
    further a_foreground_deletion_waits_for_what_blocks_it,
    further an_object_whose_owners_never_were_is_collected,
    further a_namespace_takes_its_content_along,
}
