//! Behaviors of a kind whose CRD changes its versions.

use futures::TryStreamExt;
use kube::ResourceExt;
use kube::api::WatchEvent;
use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::versioned::{ALPHA, BETA, change, change_at_once, crd, duplicates, with};
use crate::world::{World, events_only, eventually, managers, version};

async fn a_switch_of_the_stored_version_rewrites_what_is_written_though_it_is_the_same(
    world: &World,
) {
    let worlds = with(world, duplicates).await;
    let [alpha, beta] = &worlds;
    let made = alpha.create("a", json!({ "color": "red" })).await.ok();
    let same = beta.merge("a", json!({})).await.ok();
    assert_eq!(version(&same), version(&made));
    let changed = change(alpha, &duplicates(alpha, BETA)).await;
    let stored = &changed["status"]["storedVersions"];
    assert_eq!(*stored, json!([ALPHA, BETA]));
    assert_eq!(version(&alpha.read("a").await), version(&made));
    let migrated = alpha.merge("a", json!({})).await.ok();
    assert_ne!(version(&migrated), version(&made));
    assert_eq!(migrated["metadata"]["generation"], 1);
    for world in &worlds {
        let same = world.merge("a", json!({})).await.ok();
        assert_eq!(version(&same), version(&migrated));
    }
}

async fn a_version_that_is_not_served_is_404_and_its_objects_stay(world: &World) {
    let [alpha, beta] = with(world, duplicates).await;
    alpha.create("a", json!({ "color": "red" })).await.ok();
    let mut crd = duplicates(&alpha, BETA);
    crd["spec"]["versions"][0]["served"] = false.into();
    change(&beta, &crd).await;
    let gone = alpha.get(&alpha.at("a")).await;
    gone.refused(404, "404 page not found");
    let seen = beta.read("a").await;
    assert_eq!(seen["spec"], json!({ "color": "red" }));
}

async fn a_version_goes_when_nothing_is_stored_in_it_any_more(world: &World) {
    let [alpha, beta] = with(world, duplicates).await;
    alpha.create("a", json!({ "color": "red" })).await.ok();
    change(&alpha, &duplicates(&alpha, BETA)).await;
    let mut last = duplicates(&alpha, BETA);
    let versions = last["spec"]["versions"].as_array_mut();
    versions.expect("versions").remove(0);
    let refused = change_at_once(&beta, &last).await;
    refused.refused(422, r#"…status.storedVersions[0]: Invalid value: "v1alpha1": missing from spec.versions; v1alpha1 was previously a storage version…"#);
    beta.merge("a", json!({})).await.ok();
    let migrated = json!({ "status": { "storedVersions": [BETA] } });
    let path = format!("{}/status", beta.crd_path());
    beta.merge_at(&path, &migrated).await.ok();
    let changed = change(&beta, &last).await;
    assert_eq!(changed["status"]["storedVersions"], json!([BETA]));
    // Managed fields of a removed version: an apply fails, and an update drops all managed fields.
    let refused = beta.apply("n", "a", json!({ "old": "x" })).await;
    let message = "request to convert CR to an invalid group/version: demo.okt.dev/v1alpha1";
    refused.refused(500, message);
    let updated = beta.set("a", json!({ "old": "y" })).await.ok();
    assert_eq!(managers(&updated), [""; 0]);
}

async fn watches_end_when_the_spec_of_their_crd_changes(world: &World) {
    let [alpha, beta] = with(world, duplicates).await;
    let from = version(&alpha.get(&alpha.path()).await.ok()).to_string();
    let params = events_only().timeout(200);
    let api = alpha.widgets();
    let watch = api.watch(&params, &from).await.expect("a watch");
    beta.create("a", json!({})).await.ok();
    change(&alpha, &duplicates(&alpha, BETA)).await;
    let events: Vec<_> = watch.try_collect().await.expect("events");
    let is_it =
        matches!(events.as_slice(), [WatchEvent::Added(object)] if object.name_any() == "a");
    assert!(is_it, "{events:?}");
}

async fn an_apply_fails_that_does_not_fit_into_the_version_of_another_manager(world: &World) {
    let [alpha, beta] = with(world, crd).await;
    let mut plain = crd(&alpha, BETA);
    let size = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/size";
    *plain.pointer_mut(size).expect("it is there") = json!({ "type": "string" });
    change(&alpha, &plain).await;
    alpha.apply("m", "a", json!({ "old": "x" })).await.ok();
    let refused = beta.apply("n", "a", json!({ "new": "x" })).await;
    let message = "failed to convert new object: .spec.new: field not declared in schema";
    refused.refused(500, message);
    // An update succeeds, and drops all managed fields.
    let updated = beta.set("a", json!({ "new": "x" })).await.ok();
    assert_eq!(updated["spec"]["new"], "x");
    assert_eq!(managers(&updated), [""; 0]);
}

async fn discovery_lists_versions_by_their_stability(world: &World) {
    let world = world.own_group();
    let mut crd = crd(&world, ALPHA);
    let versions = crd["spec"]["versions"].as_array_mut().expect("versions");
    for name in ["v1", "v2beta1", "zeta", "v10"] {
        let mut other = versions[0].clone();
        other["name"] = name.into();
        other["storage"] = false.into();
        versions.push(other);
    }
    world.create_crd(&crd).await.ok();
    let path = format!("/apis/{}", world.group);
    let found = eventually("all versions are found", async || {
        let reply = world.get(&path).await;
        let group = (reply.code == 200).then(|| reply.json())?;
        let versions = group["versions"].as_array()?;
        (versions.len() == 6).then_some(group)
    })
    .await;
    let versions = found["versions"].as_array().expect("versions").iter();
    let versions: Vec<_> = versions.map(|version| &version["version"]).collect();
    let expected = ["v10", "v1", "v2beta1", BETA, ALPHA, "zeta"];
    assert_eq!(versions, expected);
    assert_eq!(found["preferredVersion"]["version"], "v10");
}

async fn a_deprecated_version_warns(world: &World) {
    let world = world.own_group();
    let mut crd = duplicates(&world, ALPHA);
    crd["spec"]["versions"][0]["deprecated"] = true.into();
    world.create_crd(&crd).await.ok();
    let [alpha, beta] = [ALPHA, BETA].map(|version| world.in_version(version));
    alpha.served().await;
    let (old, new) = (alpha.api_version(), beta.api_version());
    let warning = format!("299 - \"{old} Widget is deprecated; use {new} Widget\"");
    for (path, code) in [(alpha.path(), 200), (alpha.at("none"), 404)] {
        let reply = alpha.get(&path).await;
        assert_eq!((reply.code, reply.header("warning")), (code, &*warning));
    }
    let reply = beta.get(&beta.path()).await;
    assert_eq!(reply.header("warning"), "");
}

async fn what_versions_have_in_common_is_checked_once(world: &World) {
    let world = world.own_group();
    let both = &[0, 1][..];
    let color = "schema/openAPIV3Schema/properties/spec/properties/color";
    let text = json!({ "type": "text" });
    let unsupported =
        "openAPIV3Schema.properties[spec].properties[color].type: Unsupported value: \"text\"…";
    let fields = json!([{ "jsonPath": ".spec.color" }]);
    let only = "selectableFields: Invalid value: \"\": may only be set when";
    for (mut crd, versions, place, value, message) in [
        (
            duplicates(&world, ALPHA),
            both,
            color,
            &text,
            format!("spec.validation.{unsupported}"),
        ),
        (
            crd(&world, ALPHA),
            &[1],
            color,
            &text,
            format!("…spec.versions[1].schema.{unsupported}"),
        ),
        (
            crd(&world, ALPHA),
            &[1],
            "name",
            &json!(ALPHA),
            "…must contain unique version names…".to_owned(),
        ),
        // The selectable fields are the same in all versions, but each version has its own schema.
        (
            crd(&world, ALPHA),
            both,
            "selectableFields",
            &fields,
            format!("spec.{only} validations.schema is included"),
        ),
        (
            duplicates(&world, ALPHA),
            &[1],
            "selectableFields",
            &fields,
            format!("spec.versions[1].{only} `version.schema.openAPIV3Schema` is not included"),
        ),
    ] {
        for index in versions {
            let version = &mut crd["spec"]["versions"][index];
            let place = place.split('/').fold(version, |value, key| &mut value[key]);
            *place = Value::clone(value);
        }
        let refused = world.create_crd(&crd).await;
        refused.refused(422, &format!("…is invalid: {message}"));
    }
}

behaviours! { "upgrades":
    a_switch_of_the_stored_version_rewrites_what_is_written_though_it_is_the_same,
    a_version_that_is_not_served_is_404_and_its_objects_stay,
    a_version_goes_when_nothing_is_stored_in_it_any_more,
    watches_end_when_the_spec_of_their_crd_changes,
    an_apply_fails_that_does_not_fit_into_the_version_of_another_manager,
    discovery_lists_versions_by_their_stability,
    a_deprecated_version_warns,
    what_versions_have_in_common_is_checked_once,
}
