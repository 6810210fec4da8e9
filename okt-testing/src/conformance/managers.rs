//! Behaviours of `managedFields`.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{
    claim::{Given, Outcome},
    world::World,
};

/// Returns the entries in short form: manager, operation, subresource.
fn entries(object: &DynamicObject) -> Vec<String> {
    let fields = object.metadata.managed_fields.as_deref();
    let short = |entry: &Option<String>| entry.clone().unwrap_or_default();
    fields
        .unwrap_or_default()
        .iter()
        .map(|entry| {
            let (manager, operation) = (short(&entry.manager), short(&entry.operation));
            format!("{manager} {operation} {}", short(&entry.subresource))
        })
        .collect()
}

/// Returns the fields of the entry with this index.
fn fields(object: &DynamicObject, number: usize) -> Option<&Value> {
    let entry = object.metadata.managed_fields.as_ref()?.get(number)?;
    Some(&entry.fields_v1.as_ref()?.0)
}

fn by(manager: &str) -> PostParams {
    PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    }
}

async fn a_create_is_an_update_by_its_manager(world: &World) -> Outcome {
    let mut object = world.widget("a", json!({ "color": "red", "tags": ["x"] }));
    object.metadata.labels = Some([("l".to_owned(), "v".to_owned())].into());
    let made = world.widgets().create(&by("maker"), &object).await?;
    ensure_eq!(entries(&made), ["maker Update "]);
    let entry = &made.metadata.managed_fields.as_ref().given()?[0];
    ensure_eq!(entry.fields_type.as_deref(), Some("FieldsV1"));
    ensure_eq!(entry.api_version, Some(world.api_version()));
    ensure!(entry.time.is_some());
    ensure_eq!(
        fields(&made, 0),
        Some(&json!({
            "f:metadata": { "f:labels": { ".": {}, "f:l": {} } },
            "f:spec": {
                ".": {},
                "f:color": {},
                "f:replicas": {},
                "f:tags": { ".": {}, "v:\"x\"": {} },
            },
        }))
    );
    Ok(())
}

async fn a_manager_without_a_name_is_named_by_its_user_agent(world: &World) -> Outcome {
    let object = serde_json::to_vec(&world.widget("a", json!({})))?;
    let headers = [
        ("content-type", "application/json"),
        ("user-agent", "brewer/v1.2 (linux/amd64)"),
    ];
    let reply = world.send("POST", &world.path(), &headers, object).await?;
    let made: DynamicObject = serde_json::from_value(reply.json()?)?;
    ensure_eq!(entries(&made), ["brewer Update "]);
    Ok(())
}

async fn a_status_has_an_entry_of_its_own(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let patch = Patch::Merge(json!({ "status": { "phase": "Up" } }));
    let params = PatchParams {
        field_manager: Some("watcher".to_owned()),
        ..PatchParams::default()
    };
    let patched = world.widgets().patch_status("a", &params, &patch).await?;
    ensure_eq!(
        entries(&patched),
        ["unknown Update ", "watcher Update status"]
    );
    ensure_eq!(
        fields(&patched, 1),
        Some(&json!({ "f:status": { "f:phase": {} } }))
    );
    Ok(())
}

async fn appliers_come_first(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let params = PatchParams::apply("zoe");
    let applied = world
        .apply_spec(&params, "a", json!({ "name": "abc" }))
        .await?;
    ensure_eq!(entries(&applied), ["zoe Apply ", "unknown Update "]);
    Ok(())
}

async fn an_update_adds_to_the_entry_of_its_manager(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let patched = world
        .merge("a", json!({ "spec": { "name": "abc" } }))
        .await?;
    ensure_eq!(entries(&patched), ["unknown Update "]);
    let spec = &fields(&patched, 0).given()?["f:spec"];
    ensure!(spec.get("f:name").is_some() && spec.get("f:color").is_some());
    Ok(())
}

async fn who_owns_nothing_any_more_is_not_listed(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let params = PatchParams::apply("zoe");
    world
        .apply_spec(&params, "a", json!({ "color": "red" }))
        .await?;
    let applied = world.apply_spec(&params, "a", json!({})).await?;
    ensure!(
        !entries(&applied)
            .iter()
            .any(|entry| entry.starts_with("zoe") && fields(&applied, 0) == Some(&json!({})))
    );
    ensure!(applied.data["spec"].get("color").is_none());
    Ok(())
}

async fn a_manager_name_of_more_than_128_bytes_is_422(world: &World) -> Outcome {
    let object = serde_json::to_vec(&world.widget("a", json!({})))?;
    let path = format!("{}?fieldManager={}", world.path(), "x".repeat(129));
    let headers = [("content-type", "application/json")];
    let reply = world.send("POST", &path, &headers, object).await?;
    ensure_eq!(reply.code, 422);
    ensure_eq!(
        reply.message()?,
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes"
    );
    Ok(())
}

behaviours! { "managers":
    further a_create_is_an_update_by_its_manager,
    further a_manager_without_a_name_is_named_by_its_user_agent,
    further a_status_has_an_entry_of_its_own,
    further appliers_come_first,
    further an_update_adds_to_the_entry_of_its_manager,
    further who_owns_nothing_any_more_is_not_listed,
    further a_manager_name_of_more_than_128_bytes_is_422,
}
