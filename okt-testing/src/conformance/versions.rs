//! Behaviours of a kind in several versions that are converted by name alone.

use futures::{StreamExt, TryStreamExt};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent},
};
use serde_json::json;

use super::{
    claim::{Failure, Given, Outcome, eventually, refusal},
    versioned::{
        ALPHA, BETA, api_version, apply, crd, create, duplicates, merge, widget, widgets, with,
    },
    world::{World, events_only, fields_of, version},
};

async fn an_object_is_one_in_all_versions(world: &World) -> Outcome {
    let world = &with(world, crd).await?;
    let made = create(world, ALPHA, "a", json!({ "color": "red", "old": "x" })).await?;
    ensure_eq!(api_version(&made), format!("{}/{ALPHA}", world.group));
    let seen = widgets(world, BETA).get("a").await?;
    ensure_eq!(api_version(&seen), format!("{}/{BETA}", world.group));
    ensure_eq!(seen.uid(), made.uid());
    ensure_eq!(version(&seen)?, version(&made)?);
    let listed = widgets(world, BETA).list(&ListParams::default()).await?;
    ensure_eq!(listed.items.len(), 1);
    ensure_eq!(
        api_version(&listed.items[0]),
        format!("{}/{BETA}", world.group)
    );
    ensure_eq!(
        refusal(create(world, BETA, "a", json!({})).await)?.code,
        409
    );
    let mut object = seen;
    object.data["spec"]["color"] = "blue".into();
    let params = PostParams::default();
    let put = widgets(world, BETA).replace("a", &params, &object).await?;
    let seen = widgets(world, ALPHA).get("a").await?;
    ensure_eq!(version(&seen)?, version(&put)?);
    ensure_eq!(seen.data["spec"], json!({ "color": "blue" }));
    Ok(())
}

async fn a_version_shows_what_it_knows_and_defaults_are_of_the_one_that_is_stored(
    world: &World,
) -> Outcome {
    let world = &with(world, crd).await?;
    create(world, ALPHA, "a", json!({ "color": "red", "old": "x" })).await?;
    let seen = widgets(world, BETA).get("a").await?;
    ensure_eq!(seen.data["spec"], json!({ "color": "red" }));
    // A field that the storage version does not have is lost, also in the response to its writer.
    let made = create(world, BETA, "b", json!({ "new": "x", "color": "red" })).await?;
    ensure_eq!(made.data["spec"], json!({ "color": "red" }));
    let fields = fields_of(&made, "unknown").given()?;
    ensure!(fields["f:spec"]["f:new"].is_object(), "{fields}");
    Ok(())
}

async fn an_object_is_checked_in_the_version_that_it_comes_in(world: &World) -> Outcome {
    let world = &with(world, crd).await?;
    create(world, ALPHA, "a", json!({ "color": "yellow" })).await?;
    let status = refusal(create(world, BETA, "b", json!({ "color": "yellow" })).await)?;
    ensure_eq!(status.code, 422);
    ensure!(
        status.message.contains("spec.color: Too long"),
        "{}",
        status.message
    );
    let object = widget(world, ALPHA, "c", json!({}));
    let made = widgets(world, BETA)
        .create(&PostParams::default(), &object)
        .await;
    let status = refusal(made)?;
    ensure_eq!(status.code, 400);
    let group = &world.group;
    ensure_eq!(
        status.message,
        format!(
            "the API version in the data ({group}/{ALPHA}) does not match the expected API version ({group}/{BETA})"
        )
    );
    Ok(())
}

async fn a_patch_puts_no_object_into_another_version(world: &World) -> Outcome {
    let world = &with(world, crd).await?;
    create(world, ALPHA, "a", json!({})).await?;
    let group = &world.group;
    let patch = json!({ "apiVersion": format!("{group}/{ALPHA}") });
    let status = refusal(merge(world, BETA, "a", patch).await)?;
    ensure_eq!(status.code, 422);
    ensure_eq!(
        status.message,
        format!(
            "Widget.{group} \"a\" is invalid: apiVersion: Invalid value: \"{group}/{ALPHA}\": must be {group}/{BETA}"
        )
    );
    Ok(())
}

async fn each_version_is_watched_with_the_same_versions_of_objects(world: &World) -> Outcome {
    let world = &with(world, crd).await?;
    let list = widgets(world, BETA).list(&ListParams::default()).await?;
    let from = list.metadata.resource_version.given()?;
    create(world, ALPHA, "a", json!({ "old": "x" })).await?;
    merge(world, BETA, "a", json!({ "spec": { "color": "red" } })).await?;
    widgets(world, ALPHA)
        .delete("a", &DeleteParams::default())
        .await?;
    let mut versions = Vec::new();
    for version in [ALPHA, BETA] {
        let params = events_only().timeout(60);
        let watch = widgets(world, version).watch(&params, &from).await?;
        let events: Vec<_> = watch.take(3).try_collect().await?;
        let [
            WatchEvent::Added(added),
            WatchEvent::Modified(modified),
            WatchEvent::Deleted(deleted),
        ] = events.as_slice()
        else {
            return Err(Failure::new(format!("{events:?}")));
        };
        let mut seen = Vec::new();
        for object in [added, modified, deleted] {
            ensure_eq!(api_version(object), format!("{}/{version}", world.group));
            seen.push(object.resource_version());
        }
        ensure_eq!(added.data["spec"].get("old").is_some(), version == ALPHA);
        versions.push(seen);
    }
    ensure_eq!(versions[0], versions[1]);
    Ok(())
}

async fn what_is_selected_and_printed_is_of_the_version(world: &World) -> Outcome {
    let world = &with(world, crd).await?;
    create(world, ALPHA, "a", json!({ "old": "x" })).await?;
    create(world, ALPHA, "b", json!({ "old": "y" })).await?;
    let old = ListParams::default().fields("spec.old=x");
    let found = widgets(world, ALPHA).list(&old).await?;
    ensure_eq!(found.items.len(), 1);
    let status = refusal(widgets(world, BETA).list(&old).await)?;
    ensure_eq!(status.message, "field label not supported: spec.old");
    for (version, columns) in [(ALPHA, ["Name", "Age"]), (BETA, ["Name", "New"])] {
        let path = format!(
            "/apis/{}/{version}/namespaces/{}/widgets",
            world.group, world.namespace
        );
        let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
        let table = world.send("GET", &path, &accept, "").await?.json()?;
        let names = table["columnDefinitions"].as_array().given()?;
        let names: Vec<_> = names
            .iter()
            .filter_map(|column| column["name"].as_str())
            .collect();
        ensure_eq!(names, columns);
    }
    Ok(())
}

async fn who_applies_is_one_manager_and_who_updates_is_one_for_each_version(
    world: &World,
) -> Outcome {
    let world = &with(world, duplicates).await?;
    apply(
        world,
        ALPHA,
        "a",
        "m",
        json!({ "color": "red", "old": "x" }),
    )
    .await?;
    // A field that the manager no longer sets is removed, whatever the version.
    let applied = apply(world, BETA, "a", "m", json!({ "color": "red" })).await?;
    ensure_eq!(applied.data["spec"], json!({ "color": "red" }));
    let entries = applied.managed_fields();
    ensure_eq!(entries.len(), 1);
    ensure_eq!(
        entries[0].api_version,
        Some(format!("{}/{BETA}", world.group))
    );
    let params = PatchParams {
        field_manager: Some("u".to_owned()),
        ..PatchParams::default()
    };
    for (version, patch) in [
        (ALPHA, json!({ "spec": { "color": "blue" } })),
        (BETA, json!({ "spec": { "old": "y" } })),
    ] {
        let api = widgets(world, version);
        api.patch("a", &params, &Patch::Merge(patch)).await?;
    }
    let seen = widgets(world, BETA).get("a").await?;
    let mut versions: Vec<_> = seen
        .managed_fields()
        .iter()
        .filter(|entry| entry.manager.as_deref() == Some("u"))
        .filter_map(|entry| entry.api_version.clone())
        .collect();
    versions.sort();
    ensure_eq!(
        versions,
        [ALPHA, BETA].map(|version| format!("{}/{version}", world.group))
    );
    let status = refusal(apply(world, BETA, "a", "n", json!({ "color": "green" })).await)?;
    ensure_eq!(
        status.message,
        format!(
            "Apply failed with 1 conflict: conflict with \"u\" using {}/{ALPHA}: .spec.color",
            world.group
        )
    );
    Ok(())
}

async fn a_deletion_in_one_version_is_one_in_all(world: &World) -> Outcome {
    let world = &with(world, duplicates).await?;
    let mut object = widget(world, BETA, "a", json!({ "color": "red" }));
    object.metadata.finalizers = Some(vec!["okt.dev/a".to_owned()]);
    let params = PostParams::default();
    widgets(world, BETA).create(&params, &object).await?;
    let deleted = widgets(world, BETA)
        .delete("a", &DeleteParams::default())
        .await?;
    let deleted = deleted.left().given()?;
    ensure_eq!(api_version(&deleted), format!("{}/{BETA}", world.group));
    let seen = widgets(world, ALPHA).get("a").await?;
    ensure!(seen.metadata.deletion_timestamp.is_some());
    merge(
        world,
        ALPHA,
        "a",
        json!({ "metadata": { "finalizers": null } }),
    )
    .await?;
    ensure_eq!(refusal(widgets(world, BETA).get("a").await)?.code, 404);
    Ok(())
}

async fn an_owner_by_any_version_is_an_owner(world: &World) -> Outcome {
    let world = &with(world, duplicates).await?;
    let owner = create(world, ALPHA, "a", json!({})).await?;
    let mut map = k8s_openapi::api::core::v1::ConfigMap::default();
    map.metadata.name = Some("owned".to_owned());
    map.metadata.owner_references = Some(vec![serde_json::from_value(json!({
        "apiVersion": format!("{}/{BETA}", world.group), "kind": "Widget",
        "name": "a", "uid": owner.uid(),
    }))?]);
    let maps = world.namespaced::<k8s_openapi::api::core::v1::ConfigMap>();
    maps.create(&PostParams::default(), &map).await?;
    widgets(world, ALPHA)
        .delete("a", &DeleteParams::default())
        .await?;
    eventually("what it owns is collected", || async {
        Ok(maps.get_opt("owned").await?.is_none().then_some(()))
    })
    .await
}

behaviours! { "versions":
    further an_object_is_one_in_all_versions,
    further a_version_shows_what_it_knows_and_defaults_are_of_the_one_that_is_stored,
    further an_object_is_checked_in_the_version_that_it_comes_in,
    further a_patch_puts_no_object_into_another_version,
    further each_version_is_watched_with_the_same_versions_of_objects,
    further what_is_selected_and_printed_is_of_the_version,
    further who_applies_is_one_manager_and_who_updates_is_one_for_each_version,
    further a_deletion_in_one_version_is_one_in_all,
    further an_owner_by_any_version_is_an_owner,
}
