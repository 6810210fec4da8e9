//! Behaviours of server-side apply.

use kube::{api::Patch, core::Status};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, refusal},
    world::{World, by, fields_of, version},
};

async fn an_apply_creates_what_is_not_there(world: &World) -> Outcome {
    let made = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(made.metadata.generation, Some(1));
    ensure_eq!(made.data["spec"], json!({ "color": "red", "replicas": 1 }));
    ensure_eq!(
        fields_of(&made, "m"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
    Ok(())
}

async fn an_apply_with_a_version_creates_what_is_not_there_and_changes_nothing_else(
    world: &World,
) -> Outcome {
    let apply = |color: &'static str| async move {
        let mut config = world.widget("a", json!({ "color": color }));
        // No object has this version: it is that of the empty store.
        config.metadata.resource_version = Some("1".to_owned());
        let params = by("m").force();
        (world.widgets())
            .patch("a", &params, &Patch::Apply(&config))
            .await
    };
    let made = apply("red").await?;
    ensure_eq!(
        fields_of(&made, "m"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
    let status = refusal(apply("blue").await)?;
    ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let there = world.get("a").await?;
    ensure_eq!(version(&there)?, version(&made)?);
    Ok(())
}

async fn an_identical_apply_keeps_the_resource_version(world: &World) -> Outcome {
    let made = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    // The defaults of the status are written with the first update.
    let settled = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_ne!(version(&made)?, version(&settled)?);
    let again = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(version(&settled)?, version(&again)?);
    let status = json!({ "phase": "Up" });
    let first = world.apply_status("m", "a", status.clone()).await?;
    let second = world.apply_status("m", "a", status).await?;
    ensure_eq!(version(&first)?, version(&second)?);
    ensure_eq!(
        first.metadata.managed_fields,
        second.metadata.managed_fields
    );
    Ok(())
}

async fn a_field_of_another_applier_is_409_with_its_name(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let status = refusal(
        world
            .apply_spec(&by("two"), "a", json!({ "color": "blue" }))
            .await,
    )?;
    ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    ensure_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.color"
    );
    let causes = status.details.given()?.causes;
    ensure_eq!(causes[0].reason, "FieldManagerConflict");
    ensure_eq!(causes[0].field, ".spec.color");
    Ok(())
}

async fn several_conflicts_are_listed_by_manager(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red", "replicas": 2 }))
        .await?;
    let spec = json!({ "color": "blue", "replicas": 3 });
    let status = refusal(world.apply_spec(&by("two"), "a", spec).await)?;
    ensure_eq!(
        status.message,
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.color\n- .spec.replicas"
    );
    Ok(())
}

async fn a_field_written_by_an_update_is_409_too(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let status = refusal(
        world
            .apply_spec(&by("two"), "a", json!({ "color": "blue" }))
            .await,
    )?;
    ensure_eq!(
        status.message,
        format!(
            "Apply failed with 1 conflict: conflict with \"unknown\" using {}/v1: .spec.color",
            world.group
        )
    );
    Ok(())
}

async fn agreeing_on_a_value_shares_it(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let shared = world
        .apply_spec(&by("two"), "a", json!({ "color": "red" }))
        .await?;
    let own = Some(json!({ "f:spec": { "f:color": {} } }));
    ensure_eq!(
        (fields_of(&shared, "one"), fields_of(&shared, "two")),
        (own.clone(), own)
    );
    Ok(())
}

async fn force_takes_the_field_over(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let taken = world
        .apply_spec(&by("two").force(), "a", json!({ "color": "blue" }))
        .await?;
    ensure_eq!(taken.data["spec"]["color"], "blue");
    ensure_eq!(fields_of(&taken, "one"), None);
    ensure_eq!(
        fields_of(&taken, "two"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
    Ok(())
}

async fn an_update_takes_the_field_over(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red", "name": "abc" }))
        .await?;
    let updated = world
        .merge("a", json!({ "spec": { "color": "blue" } }))
        .await?;
    ensure_eq!(
        fields_of(&updated, "one"),
        Some(json!({ "f:spec": { "f:name": {} } }))
    );
    ensure_eq!(
        fields_of(&updated, "unknown"),
        Some(json!({ "f:spec": { "f:color": {} } }))
    );
    Ok(())
}

async fn an_omitted_own_field_is_removed(world: &World) -> Outcome {
    let spec = json!({ "color": "red", "name": "abc" });
    world.apply_spec(&by("m"), "a", spec).await?;
    let applied = world
        .apply_spec(&by("m"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(
        applied.data["spec"],
        json!({ "color": "red", "replicas": 1 })
    );
    Ok(())
}

async fn an_omitted_field_that_another_owns_stays(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red", "name": "abc" }))
        .await?;
    world
        .apply_spec(&by("two"), "a", json!({ "name": "abc" }))
        .await?;
    let applied = world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    ensure_eq!(applied.data["spec"]["name"], "abc");
    Ok(())
}

async fn an_undeclared_field_is_500(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let status = refusal(world.apply_status("m", "a", json!({ "bogus": 1 })).await)?;
    ensure_eq!(status.code, 500);
    ensure!(
        status
            .message
            .ends_with(".status.bogus: field not declared in schema"),
        "{}",
        status.message
    );
    Ok(())
}

/// Applies a body and returns why it is refused.
async fn refused(world: &World, body: Value) -> Result<Status, Failure> {
    refusal(
        world
            .widgets()
            .patch("a", &by("m"), &Patch::Apply(body))
            .await,
    )
}

async fn an_apply_without_kind_is_400(world: &World) -> Outcome {
    let bodies = [
        json!({ "spec": {} }),
        json!({ "kind": "Widget", "spec": {} }),
    ];
    world.create("a", json!({})).await?;
    for body in bodies {
        ensure_eq!(refused(world, body).await?.code, 400);
    }
    Ok(())
}

async fn an_apply_of_managed_fields_is_400(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let body = json!({
        "apiVersion": world.api_version(),
        "kind": "Widget",
        "metadata": { "managedFields": [] },
    });
    let status = refused(world, body).await?;
    ensure_eq!(
        (status.code, status.message.as_str()),
        (400, "metadata.managedFields must be nil")
    );
    Ok(())
}

async fn apply_yaml(world: &World, name: &str, query: &str) -> kube::Result<Value> {
    let version = world.api_version();
    let body = format!(
        "apiVersion: {version}\nkind: Widget\nmetadata:\n  name: {name}\nspec:\n  color: red\n"
    );
    let request = http::Request::patch(format!("{}/{name}{query}", world.path()))
        .header("content-type", "application/apply-patch+yaml")
        .body(body.into_bytes());
    world.request(request).await
}

async fn an_apply_without_a_manager_is_refused(world: &World) -> Outcome {
    let status = refusal(apply_yaml(world, "a", "").await)?;
    ensure_eq!(status.code, 422);
    ensure!(status.message.contains("fieldManager"));
    Ok(())
}

async fn a_configuration_may_be_yaml(world: &World) -> Outcome {
    apply_yaml(world, "a", "?fieldManager=m").await?;
    ensure_eq!(world.get("a").await?.data["spec"]["color"], "red");
    Ok(())
}

async fn resetting_managed_fields_empties_them(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "color": "red" }))
        .await?;
    let reset = json!({ "metadata": { "managedFields": [{}] } });
    let object = world.merge("a", reset).await?;
    ensure_eq!(object.metadata.managed_fields, None);
    let status = refusal(
        world
            .apply_spec(&by("two"), "a", json!({ "color": "blue" }))
            .await,
    )?;
    ensure!(
        status.message.contains("before-first-apply"),
        "{}",
        status.message
    );
    Ok(())
}

async fn an_apply_to_what_has_not_the_types_of_its_schema_is_500(world: &World) -> Outcome {
    let params = by("m");
    world
        .apply_spec(&params, "a", json!({ "color": "red" }))
        .await?;
    // A list is accepted for a string with a format; such an object gets no managed fields.
    let patched = world
        .merge("a", json!({ "spec": { "started": ["noon"] } }))
        .await?;
    ensure_eq!(patched.metadata.managed_fields, None);
    let refused = world
        .apply_spec(&params, "a", json!({ "color": "red" }))
        .await;
    let status = refusal(refused)?;
    ensure_eq!(status.code, 500);
    ensure_eq!(
        status.message,
        format!(
            "failed to create manager for existing fields: failed to convert new object ({}/a; {}, Kind=Widget) to smd typed: .spec.started: expected any scalar, got &{{[noon]}}",
            world.namespace,
            world.api_version()
        )
    );
    Ok(())
}

behaviours! { "apply":
    further an_apply_creates_what_is_not_there,
    further an_apply_with_a_version_creates_what_is_not_there_and_changes_nothing_else,
    9 an_identical_apply_keeps_the_resource_version,
    10 a_field_of_another_applier_is_409_with_its_name,
    further several_conflicts_are_listed_by_manager,
    further a_field_written_by_an_update_is_409_too,
    further agreeing_on_a_value_shares_it,
    11 force_takes_the_field_over,
    further an_update_takes_the_field_over,
    further an_omitted_own_field_is_removed,
    further an_omitted_field_that_another_owns_stays,
    further an_undeclared_field_is_500,
    further an_apply_without_kind_is_400,
    further an_apply_of_managed_fields_is_400,
    further an_apply_without_a_manager_is_refused,
    further a_configuration_may_be_yaml,
    further resetting_managed_fields_empties_them,
    further an_apply_to_what_has_not_the_types_of_its_schema_is_500,
}
