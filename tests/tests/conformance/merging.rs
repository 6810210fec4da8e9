//! Behaviors of server-side apply for lists and maps.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::world::{World, owned};

fn condition(kind: &str) -> Value {
    json!({ "type": kind, "status": "True" })
}

async fn each_manager_keeps_conditions_of_its_own(world: &World) {
    world.create("a", json!({})).await.ok();
    let apply = async |manager: &str, kinds: &[&str]| {
        let conditions: Vec<_> = kinds.iter().map(|kind| condition(kind)).collect();
        let status = json!({ "conditions": conditions });
        let applied = world.apply_status(manager, "a", status).await.ok();
        let shown = applied["status"]["conditions"].as_array().cloned();
        let kinds = shown.expect("a list").into_iter();
        let kinds: Vec<_> = kinds.map(|condition| condition["type"].clone()).collect();
        (applied, kinds)
    };
    apply("one", &["Ready", "Fast"]).await;
    let (both, kinds) = apply("two", &["Other"]).await;
    assert_eq!(kinds, ["Ready", "Fast", "Other"]);
    let fields = |kind: &str| {
        let item = format!("f:status/f:conditions/k:{{\"type\":\"{kind}\"}}");
        [".", "f:status", "f:type"].map(|field| format!("{item}/{field}"))
    };
    assert_eq!(
        owned(&both, "one"),
        [fields("Fast"), fields("Ready")].concat()
    );
    assert_eq!(owned(&both, "two"), fields("Other"));
    let (_, kinds) = apply("one", &["Ready"]).await;
    assert_eq!(kinds, ["Ready", "Other"], "an omitted own one is dropped");
}

async fn an_emptied_list_is_dropped(world: &World) {
    world.create("a", json!({})).await.ok();
    let own = json!({ "conditions": [condition("Ready")], "phase": "Up" });
    world.apply_status("m", "a", own).await.ok();
    let applied = world.apply_status("m", "a", json!({ "phase": "Up" })).await;
    assert_eq!(applied.ok()["status"].get("conditions"), None);
}

async fn a_set_is_merged_by_value_and_a_map_by_key(world: &World) {
    let one = json!({ "tags": ["x", "y"], "labels": { "a": "1" } });
    world.apply("one", "a", one).await.ok();
    let two = json!({ "tags": ["z"], "labels": { "b": "2" } });
    let both = world.apply("two", "a", two).await.ok();
    assert_eq!(both["spec"]["tags"], json!(["x", "y", "z"]));
    assert_eq!(both["spec"]["labels"], json!({ "a": "1", "b": "2" }));
    let less = world.apply("one", "a", json!({ "tags": ["y"] })).await.ok();
    assert_eq!(less["spec"]["tags"], json!(["y", "z"]));
}

async fn an_atomic_list_or_map_belongs_to_one(world: &World) {
    for (key, one, two) in [
        ("plain", json!(["x"]), json!(["y"])),
        ("whole", json!({ "a": "1" }), json!({ "b": "2" })),
    ] {
        world.apply("one", "a", json!({ key: one })).await.ok();
        let refused = world.apply("two", "a", json!({ key: two })).await;
        refused.refused(409, &format!("…: .spec.{key}"));
        let taken = world.force("two", "a", json!({ key: two })).await.ok();
        assert_eq!(taken["spec"][key], two);
    }
}

async fn one_key_twice_is_500(world: &World) {
    world.create("a", json!({})).await.ok();
    let twice = json!({ "conditions": [condition("Ready"), condition("Ready")] });
    world.apply_status("m", "a", twice).await.refused(500, "…");
}

async fn labels_and_finalizers_are_applied_item_by_item(world: &World) {
    world.create("a", json!({})).await.ok();
    let apply = async |manager: &str| {
        let finalizers = [format!("okt.dev/{manager}")];
        let config = json!({
            "apiVersion": world.api_version(),
            "kind": "Widget",
            "metadata": { "finalizers": finalizers, "labels": { manager: "x" } },
        });
        world.apply_at(&world.at("a"), manager, &config).await.ok()
    };
    apply("one").await;
    let both = apply("two").await;
    let finalizers = json!(["okt.dev/one", "okt.dev/two"]);
    assert_eq!(both["metadata"]["finalizers"], finalizers);
    assert_eq!(
        both["metadata"]["labels"],
        json!({ "one": "x", "two": "x" })
    );
    let fields = ["f:finalizers/v:\"okt.dev/two\"", "f:labels/f:two"];
    let fields = fields.map(|field| format!("f:metadata/{field}"));
    assert_eq!(owned(&both, "two"), fields);
}

behaviours! { "merging":
    each_manager_keeps_conditions_of_its_own,
    an_emptied_list_is_dropped,
    a_set_is_merged_by_value_and_a_map_by_key,
    an_atomic_list_or_map_belongs_to_one,
    one_key_twice_is_500,
    labels_and_finalizers_are_applied_item_by_item,
}
