//! Behaviours of server-side apply for lists and maps.

use kube::api::Patch;
use serde_json::json;

use super::{
    claim::{Given, Outcome, refusal},
    world::{World, by, fields_of},
};

async fn two_managers_keep_conditions_of_their_own(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let ready = json!({ "type": "Ready", "status": "True" });
    let fast = json!({ "type": "Fast", "status": "False" });
    world
        .apply_status("one", "a", json!({ "conditions": [ready] }))
        .await?;
    let both = world
        .apply_status("two", "a", json!({ "conditions": [fast] }))
        .await?;
    ensure_eq!(
        both.data["status"]["conditions"].as_array().given()?.len(),
        2
    );
    ensure_eq!(
        fields_of(&both, "one"),
        Some(json!({ "f:status": { "f:conditions": {
            "k:{\"type\":\"Ready\"}": { ".": {}, "f:type": {}, "f:status": {} },
        } } }))
    );
    Ok(())
}

async fn an_omitted_own_condition_is_dropped_and_others_are_not(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let condition = |kind: &str| json!({ "type": kind, "status": "True" });
    let own = json!({ "conditions": [condition("Ready"), condition("Fast")] });
    world.apply_status("one", "a", own).await?;
    let other = json!({ "conditions": [condition("Other")] });
    world.apply_status("two", "a", other).await?;
    let less = json!({ "conditions": [condition("Ready")] });
    let applied = world.apply_status("one", "a", less).await?;
    let conditions = applied.data["status"]["conditions"].as_array().given()?;
    let kinds: Vec<_> = conditions
        .iter()
        .map(|condition| &condition["type"])
        .collect();
    ensure_eq!(kinds, ["Ready", "Other"]);
    Ok(())
}

async fn an_emptied_list_is_dropped(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let own = json!({ "conditions": [{ "type": "Ready", "status": "True" }], "phase": "Up" });
    world.apply_status("m", "a", own).await?;
    let applied = world
        .apply_status("m", "a", json!({ "phase": "Up" }))
        .await?;
    ensure!(applied.data["status"].get("conditions").is_none());
    Ok(())
}

async fn a_set_is_merged_by_value(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "tags": ["x", "y"] }))
        .await?;
    let both = world
        .apply_spec(&by("two"), "a", json!({ "tags": ["z"] }))
        .await?;
    ensure_eq!(both.data["spec"]["tags"], json!(["x", "y", "z"]));
    let less = world
        .apply_spec(&by("one"), "a", json!({ "tags": ["y"] }))
        .await?;
    ensure_eq!(less.data["spec"]["tags"], json!(["y", "z"]));
    Ok(())
}

async fn an_atomic_list_belongs_to_one(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "plain": ["x"] }))
        .await?;
    let outcome = world
        .apply_spec(&by("two"), "a", json!({ "plain": ["y"] }))
        .await;
    ensure!(refusal(outcome)?.message.ends_with(": .spec.plain"));
    let taken = world
        .apply_spec(&by("two").force(), "a", json!({ "plain": ["y"] }))
        .await?;
    ensure_eq!(taken.data["spec"]["plain"], json!(["y"]));
    Ok(())
}

async fn an_atomic_map_belongs_to_one(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "whole": { "a": "1" } }))
        .await?;
    let spec = json!({ "whole": { "b": "2" } });
    let taken = world.apply_spec(&by("two").force(), "a", spec).await?;
    ensure_eq!(taken.data["spec"]["whole"], json!({ "b": "2" }));
    Ok(())
}

async fn a_map_is_merged_by_key(world: &World) -> Outcome {
    world
        .apply_spec(&by("one"), "a", json!({ "labels": { "a": "1" } }))
        .await?;
    let both = world
        .apply_spec(&by("two"), "a", json!({ "labels": { "b": "2" } }))
        .await?;
    ensure_eq!(both.data["spec"]["labels"], json!({ "a": "1", "b": "2" }));
    Ok(())
}

async fn one_key_twice_is_500(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let ready = json!({ "type": "Ready", "status": "True" });
    let outcome = world
        .apply_status("m", "a", json!({ "conditions": [ready, ready] }))
        .await;
    ensure_eq!(refusal(outcome)?.code, 500);
    Ok(())
}

async fn labels_and_finalizers_are_applied_item_by_item(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let patch = |finalizer: &str, label: &str| {
        Patch::Apply(json!({
            "apiVersion": world.api_version(),
            "kind": "Widget",
            "metadata": { "finalizers": [finalizer], "labels": { label: "x" } },
        }))
    };
    let api = world.widgets();
    api.patch("a", &by("one"), &patch("okt.dev/one", "one"))
        .await?;
    let both = api
        .patch("a", &by("two"), &patch("okt.dev/two", "two"))
        .await?;
    ensure_eq!(both.metadata.finalizers.as_ref().given()?.len(), 2);
    ensure_eq!(both.metadata.labels.as_ref().given()?.len(), 2);
    ensure_eq!(
        fields_of(&both, "two"),
        Some(json!({ "f:metadata": {
            "f:finalizers": { "v:\"okt.dev/two\"": {} },
            "f:labels": { "f:two": {} },
        } }))
    );
    Ok(())
}

behaviours! { "merging":
    18 two_managers_keep_conditions_of_their_own,
    19 an_omitted_own_condition_is_dropped_and_others_are_not,
    further an_emptied_list_is_dropped,
    further a_set_is_merged_by_value,
    further an_atomic_list_belongs_to_one,
    further an_atomic_map_belongs_to_one,
    further a_map_is_merged_by_key,
    further one_key_twice_is_500,
    further labels_and_finalizers_are_applied_item_by_item,
}
