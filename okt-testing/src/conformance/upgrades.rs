//! Behaviours of a kind whose CRD changes its versions.

use futures::TryStreamExt;
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams, WatchEvent},
};
use serde_json::json;

use super::{
    claim::{Given, Outcome, eventually, refusal},
    versioned::{
        ALPHA, BETA, apply, change, change_at_once, crd, create, duplicates, merge, served,
        widgets, with,
    },
    world::{World, events_only, version},
};

async fn a_switch_of_the_stored_version_rewrites_what_is_written_though_it_is_the_same(
    world: &World,
) -> Outcome {
    let world = &with(world, duplicates).await?;
    let made = create(world, ALPHA, "a", json!({ "color": "red" })).await?;
    let same = merge(world, BETA, "a", json!({})).await?;
    ensure_eq!(version(&same)?, version(&made)?);
    let changed = change(world, &duplicates(world, BETA)).await?;
    let stored = changed.status.given()?.stored_versions;
    ensure_eq!(stored, Some(vec![ALPHA.to_owned(), BETA.to_owned()]));
    let seen = widgets(world, ALPHA).get("a").await?;
    ensure_eq!(version(&seen)?, version(&made)?);
    let migrated = merge(world, ALPHA, "a", json!({})).await?;
    ensure!(version(&migrated)? != version(&made)?);
    ensure_eq!(migrated.metadata.generation, made.metadata.generation);
    for kind in [ALPHA, BETA] {
        let same = merge(world, kind, "a", json!({})).await?;
        ensure_eq!(version(&same)?, version(&migrated)?);
    }
    Ok(())
}

async fn a_version_that_is_not_served_is_404_and_its_objects_stay(world: &World) -> Outcome {
    let world = &with(world, duplicates).await?;
    create(world, ALPHA, "a", json!({ "color": "red" })).await?;
    let mut crd = duplicates(world, BETA);
    crd["spec"]["versions"][0]["served"] = false.into();
    change(world, &crd).await?;
    let status = refusal(widgets(world, ALPHA).get("a").await)?;
    ensure_eq!(status.code, 404);
    ensure_eq!(status.message, "404 page not found");
    let seen = widgets(world, BETA).get("a").await?;
    ensure_eq!(seen.data["spec"], json!({ "color": "red" }));
    Ok(())
}

async fn a_version_goes_when_nothing_is_stored_in_it_any_more(world: &World) -> Outcome {
    let world = &with(world, duplicates).await?;
    create(world, ALPHA, "a", json!({ "color": "red" })).await?;
    change(world, &duplicates(world, BETA)).await?;
    let mut last = duplicates(world, BETA);
    last["spec"]["versions"].as_array_mut().given()?.remove(0);
    let status = refusal(change_at_once(world, &last).await)?;
    ensure_eq!(status.code, 422);
    ensure!(
        status.message.contains("status.storedVersions[0]: Invalid value: \"v1alpha1\": missing from spec.versions; v1alpha1 was previously a storage version"),
        "{}",
        status.message
    );
    merge(world, BETA, "a", json!({})).await?;
    let migrated = json!({ "status": { "storedVersions": [BETA] } });
    let params = PatchParams::default();
    let crds = world.crds();
    let name = world.crd_name();
    crds.patch_status(&name, &params, &Patch::Merge(migrated))
        .await?;
    let changed = change(world, &last).await?;
    let stored = changed.status.given()?.stored_versions;
    ensure_eq!(stored, Some(vec![BETA.to_owned()]));
    // Managed fields of a removed version: an apply fails, and an update drops all managed fields.
    let status = refusal(apply(world, BETA, "a", "n", json!({ "old": "x" })).await)?;
    ensure_eq!(status.code, 500);
    ensure_eq!(
        status.message,
        format!(
            "request to convert CR to an invalid group/version: {}/{ALPHA}",
            world.group
        )
    );
    let updated = merge(world, BETA, "a", json!({ "spec": { "old": "y" } })).await?;
    ensure_eq!(updated.managed_fields().len(), 0);
    Ok(())
}

async fn watches_end_when_the_spec_of_their_crd_changes(world: &World) -> Outcome {
    let world = &with(world, duplicates).await?;
    let list = widgets(world, ALPHA).list(&ListParams::default()).await?;
    let from = list.metadata.resource_version.given()?;
    let params = events_only().timeout(200);
    let watch = widgets(world, ALPHA).watch(&params, &from).await?;
    create(world, BETA, "a", json!({})).await?;
    change(world, &duplicates(world, BETA)).await?;
    let events: Vec<_> = watch.try_collect().await?;
    ensure!(
        matches!(events.as_slice(), [WatchEvent::Added(object)] if object.name_any() == "a"),
        "{events:?}"
    );
    Ok(())
}

async fn an_apply_fails_that_does_not_fit_into_the_version_of_another_manager(
    world: &World,
) -> Outcome {
    let world = &with(world, crd).await?;
    let mut plain = crd(world, BETA);
    let size = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/size";
    *plain.pointer_mut(size).given()? = json!({ "type": "string" });
    change(world, &plain).await?;
    apply(world, ALPHA, "a", "m", json!({ "old": "x" })).await?;
    let outcome = apply(world, BETA, "a", "n", json!({ "new": "x" })).await;
    let status = refusal(outcome)?;
    ensure_eq!(status.code, 500);
    ensure_eq!(
        status.message,
        "failed to convert new object: .spec.new: field not declared in schema"
    );
    // An update succeeds, and drops all managed fields.
    let updated = merge(world, BETA, "a", json!({ "spec": { "new": "x" } })).await?;
    ensure_eq!(updated.data["spec"]["new"], "x");
    ensure_eq!(updated.managed_fields().len(), 0);
    Ok(())
}

async fn discovery_lists_versions_by_their_stability(world: &World) -> Outcome {
    let world = world.own_group();
    let mut crd = crd(&world, ALPHA);
    let versions = crd["spec"]["versions"].as_array_mut().given()?;
    for name in ["v1", "v2beta1", "zeta", "v10"] {
        let mut other = versions[0].clone();
        other["name"] = name.into();
        other["storage"] = false.into();
        versions.push(other);
    }
    world.create_crd(crd).await?;
    let path = format!("/apis/{}", world.group);
    let found = eventually("all versions are found", || async {
        let reply = world.send("GET", &path, &[], "").await?;
        if reply.code != 200 {
            return Ok(None);
        }
        let group = reply.json()?;
        let count = group["versions"].as_array().map(Vec::len);
        Ok((count == Some(6)).then_some(group))
    })
    .await?;
    let versions = found["versions"].as_array().given()?;
    let versions: Vec<_> = versions
        .iter()
        .filter_map(|version| version["version"].as_str())
        .collect();
    ensure_eq!(versions, ["v10", "v1", "v2beta1", BETA, ALPHA, "zeta"]);
    ensure_eq!(found["preferredVersion"]["version"], "v10");
    Ok(())
}

async fn a_deprecated_version_warns(world: &World) -> Outcome {
    let world = &world.own_group();
    let mut crd = duplicates(world, ALPHA);
    crd["spec"]["versions"][0]["deprecated"] = true.into();
    world.create_crd(crd).await?;
    served(world, ALPHA).await?;
    let path = |version: &str| {
        format!(
            "/apis/{}/{version}/namespaces/{}/widgets",
            world.group, world.namespace
        )
    };
    let reply = world.send("GET", &path(ALPHA), &[], "").await?;
    let group = &world.group;
    ensure_eq!(
        reply.header("warning"),
        format!("299 - \"{group}/{ALPHA} Widget is deprecated; use {group}/{BETA} Widget\"")
    );
    let missing = format!("{}/none", path(ALPHA));
    let reply = world.send("GET", &missing, &[], "").await?;
    ensure_eq!(reply.code, 404);
    ensure!(reply.header("warning").contains("is deprecated"));
    let reply = world.send("GET", &path(BETA), &[], "").await?;
    ensure_eq!(reply.header("warning"), "");
    Ok(())
}

async fn what_versions_have_in_common_is_checked_once(world: &World) -> Outcome {
    let world = &world.own_group();
    let bad = json!({ "type": "text" });
    let mut both = duplicates(world, ALPHA);
    let schema = "/schema/openAPIV3Schema/properties/spec/properties/color";
    for index in [0, 1] {
        let path = format!("/spec/versions/{index}{schema}");
        *both.pointer_mut(&path).given()? = bad.clone();
    }
    let status = refusal(world.create_crd(both).await)?;
    ensure!(
        status.message.contains("is invalid: spec.validation.openAPIV3Schema.properties[spec].properties[color].type: Unsupported value: \"text\""),
        "{}",
        status.message
    );
    let mut second = crd(world, ALPHA);
    *second
        .pointer_mut(&format!("/spec/versions/1{schema}"))
        .given()? = bad;
    let status = refusal(world.create_crd(second).await)?;
    ensure!(
        status.message.contains("spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[color].type: Unsupported value: \"text\""),
        "{}",
        status.message
    );
    let mut same = crd(world, ALPHA);
    same["spec"]["versions"][1]["name"] = ALPHA.into();
    let status = refusal(world.create_crd(same).await)?;
    ensure!(
        status.message.contains("must contain unique version names"),
        "{}",
        status.message
    );
    Ok(())
}

async fn selectable_fields_are_taken_only_where_the_schema_is(world: &World) -> Outcome {
    let world = &world.own_group();
    // The selectable fields are the same in all versions, but each version has its own schema.
    let mut same = crd(world, ALPHA);
    for version in [0, 1] {
        same["spec"]["versions"][version]["selectableFields"] =
            json!([{ "jsonPath": ".spec.color" }]);
    }
    let status = refusal(world.create_crd(same).await)?;
    ensure!(
        status.message.ends_with("is invalid: spec.selectableFields: Invalid value: \"\": may only be set when validations.schema is included"),
        "{}",
        status.message
    );
    let mut one = duplicates(world, ALPHA);
    one["spec"]["versions"][1]["selectableFields"] = json!([{ "jsonPath": ".spec.color" }]);
    let status = refusal(world.create_crd(one).await)?;
    ensure!(
        status.message.ends_with("is invalid: spec.versions[1].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included"),
        "{}",
        status.message
    );
    Ok(())
}

behaviours! { "upgrades":
    further a_switch_of_the_stored_version_rewrites_what_is_written_though_it_is_the_same,
    further a_version_that_is_not_served_is_404_and_its_objects_stay,
    further a_version_goes_when_nothing_is_stored_in_it_any_more,
    further watches_end_when_the_spec_of_their_crd_changes,
    further an_apply_fails_that_does_not_fit_into_the_version_of_another_manager,
    further discovery_lists_versions_by_their_stability,
    further a_deprecated_version_warns,
    further selectable_fields_are_taken_only_where_the_schema_is,
    further what_versions_have_in_common_is_checked_once,
}
