//! Limits: at most so many objects at a time, in their order, and no place is lost.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use okt::{Monitoring, reasons};
use okt_testing::{Fault, RequestRecord, Verb};
use okt_tests::{Barge, BargeState, Barges, Rig};
use serde_json::{Value, json};

type Fleet = Rig<Barges>;

/// Creates barges that swim.
async fn fleet(names: &[&str]) -> Fleet {
    let rig = Fleet::of().await;
    for name in names {
        rig.create_with(name, json!({ "version": "1" })).await;
    }
    for name in names {
        rig.until_ready(name, BargeState::Running).await;
    }
    rig
}

async fn upgrade(rig: &Fleet, name: &str, version: &str) {
    rig.patch(name, json!({ "spec": { "version": version } }))
        .await;
}

/// Returns the names of the barges in the limit.
async fn inside(rig: &Fleet) -> Vec<String> {
    let all = rig
        .api()
        .list(&ListParams::default())
        .await
        .expect("barges");
    let inside = all.items.into_iter().filter(Barge::is_inside);
    inside.filter_map(|barge| barge.metadata.name).collect()
}

/// Returns the leases with places.
async fn tables(rig: &Fleet) -> Vec<Lease> {
    let leases: Api<Lease> = Api::all(rig.client.clone());
    let labelled = ListParams::default().labels("okt.dev/places-of-group");
    leases.list(&labelled).await.expect("leases").items
}

/// Returns the places of the only table.
async fn places(rig: &Fleet) -> Value {
    let table = tables(rig).await.into_iter().next().expect("a table");
    let annotations = table.metadata.annotations.expect("annotations");
    let table: Value = serde_json::from_str(&annotations["okt.dev/places"]).expect("JSON");
    table["places"].clone()
}

fn is_table(request: &RequestRecord) -> bool {
    let name = request.name.as_deref().unwrap_or_default();
    request.resource == "leases" && name.contains("-rollout-")
}

/// Returns the leases of limits, and the only one of them by name.
async fn only_table(rig: &Fleet) -> (Api<Lease>, String) {
    let table = tables(rig).await.into_iter().next().expect("a table");
    let namespace = table.metadata.namespace.expect("a namespace");
    let leases = Api::namespaced(rig.client.clone(), &namespace);
    (leases, table.metadata.name.expect("a name"))
}

async fn annotate_table(rig: &Fleet, annotation: &str, value: &str) {
    let (leases, name) = only_table(rig).await;
    let annotated = json!({ "metadata": { "annotations": { (annotation): value } } });
    let (parameters, annotated) = (PatchParams::default(), Patch::Merge(annotated));
    let patched = leases.patch(&name, &parameters, &annotated).await;
    patched.expect("a table");
}

async fn set_max(rig: &Fleet, max: u32) {
    annotate_table(rig, "okt.dev/max", &max.to_string()).await;
}

#[tokio::test(start_paused = true)]
async fn one_goes_after_the_other_and_each_costs_one_write_of_the_table() {
    let rig = fleet(&["a", "b", "c"]).await;
    rig.wire.clear();
    for name in ["b", "a", "c"] {
        upgrade(&rig, name, "2").await;
        rig.pass(Duration::from_secs(2)).await;
    }
    assert_eq!(inside(&rig).await, ["b"]);
    for name in ["a", "c"] {
        rig.until_message(
            name,
            "Ready",
            reasons::WAITING_FOR_LIMIT,
            "Upgrading waits for a place in the limit rollout",
        )
        .await;
        assert!(rig.condition(name, "Stalled").await.is_none());
    }
    rig.pass(Duration::from_mins(11)).await;
    assert_eq!(inside(&rig).await, ["a"]);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(inside(&rig).await, ["c"]);
    rig.pass(Duration::from_mins(10)).await;
    for name in ["a", "b", "c"] {
        rig.until_ready(name, BargeState::Running).await;
    }
    assert_eq!(*rig.app.upgraded.lock(), ["b", "a", "c"]);
    let writes = rig.wire.writes().into_iter();
    let writes: Vec<String> = writes.filter(|it| it.contains("/leases")).collect();
    assert_eq!(writes.len(), 3, "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_where_the_first_one_stopped() {
    let rig = fleet(&["a", "b", "c"]).await;
    for name in ["a", "b", "c"] {
        upgrade(&rig, name, "2").await;
        rig.pass(Duration::from_secs(2)).await;
    }
    for _ in 0..3 {
        rig.restart().await;
        rig.pass(Duration::from_mins(3)).await;
        assert_eq!(inside(&rig).await.len(), 1);
    }
    rig.pass(Duration::from_mins(40)).await;
    for name in ["a", "b", "c"] {
        rig.until_ready(name, BargeState::Running).await;
    }
    rig.pass(Duration::from_mins(1)).await;
    upgrade(&rig, "c", "3").await;
    rig.until_in("c", BargeState::Upgrading).await;
    assert_eq!(
        places(&rig).await.as_array().map(Vec::len),
        Some(1),
        "a place is lost"
    );
}

/// The acceptance case A4.
#[tokio::test(start_paused = true)]
async fn a_failed_upgrade_keeps_its_place_until_a_person_gives_another_one() {
    let rig = fleet(&["a", "b", "c"]).await;
    rig.app.fail.lock().insert("a".to_owned());
    for name in ["a", "b", "c"] {
        upgrade(&rig, name, "2").await;
        rig.pass(Duration::from_secs(2)).await;
    }
    rig.pass(Duration::from_mins(11)).await;
    rig.until_in("a", BargeState::Failed).await;
    rig.writes_nothing_for(Duration::from_hours(1)).await;
    assert_eq!(inside(&rig).await, ["a"]);
    set_max(&rig, 2).await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(inside(&rig).await, ["a", "b"]);
    rig.pass(Duration::from_mins(11)).await;
    assert_eq!(inside(&rig).await, ["a", "c"]);
    // It is mended, and gives its place back.
    rig.ask_for("a", json!({ "state": "Running", "request": "mended" }))
        .await;
    rig.until_ready("a", BargeState::Running).await;
    // Nobody goes on while the number is 0.
    set_max(&rig, 0).await;
    rig.pass(Duration::from_mins(11)).await;
    upgrade(&rig, "b", "3").await;
    rig.pass(Duration::from_hours(1)).await;
    assert!(inside(&rig).await.is_empty());
    set_max(&rig, 1).await;
    rig.until_in("b", BargeState::Upgrading).await;
}

/// The acceptance case A5.
#[tokio::test(start_paused = true)]
async fn an_object_made_anew_under_its_name_has_no_place() {
    let rig = fleet(&["a", "b"]).await;
    for name in ["a", "b"] {
        upgrade(&rig, name, "2").await;
        rig.pass(Duration::from_secs(2)).await;
    }
    assert_eq!(inside(&rig).await, ["a"]);
    rig.kill().await;
    rig.patch("a", json!({ "metadata": { "finalizers": null } }))
        .await;
    rig.delete_until_gone("a").await;
    rig.create_with("a", json!({ "version": "1" })).await;
    rig.start();
    rig.until_in("b", BargeState::Upgrading).await;
    rig.until_ready("a", BargeState::Running).await;
    upgrade(&rig, "a", "2").await;
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(inside(&rig).await, ["b"]);
    rig.pass(Duration::from_mins(10)).await;
    assert_eq!(inside(&rig).await, ["a"]);
    assert_eq!(places(&rig).await.as_array().map(Vec::len), Some(1));
}

#[tokio::test(start_paused = true)]
async fn each_group_has_its_own_places_and_the_lowest_rank_goes_first() {
    let rig = Fleet::of().await;
    for (name, zone, rank) in [("a", "x", 5), ("b", "x", 7), ("c", "x", -1), ("d", "y", 0)] {
        let spec = json!({ "version": "1", "zone": zone, "rank": rank });
        rig.create_with(name, spec).await;
        rig.until_ready(name, BargeState::Running).await;
    }
    for name in ["a", "b", "c", "d"] {
        upgrade(&rig, name, "2").await;
        rig.pass(Duration::from_secs(2)).await;
    }
    assert_eq!(inside(&rig).await, ["a", "d"]);
    rig.until_message(
        "b",
        "Ready",
        reasons::WAITING_FOR_LIMIT,
        "the limit rollout/x",
    )
    .await;
    rig.pass(Duration::from_mins(40)).await;
    let upgraded = rig.app.upgraded.lock().clone();
    let in_x: Vec<&String> = upgraded.iter().filter(|name| *name != "d").collect();
    assert_eq!(in_x, ["a", "c", "b"]);
    assert_eq!(tables(&rig).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_an_object_waits_for_no_place_and_counts() {
    let rig = fleet(&["a", "b", "c"]).await;
    upgrade(&rig, "a", "2").await;
    rig.until_in("a", BargeState::Upgrading).await;
    // It fails where it runs, although the only place is taken.
    rig.create_with("d", json!({ "version": "sinking" })).await;
    rig.until_in("d", BargeState::Failed).await;
    assert_eq!(inside(&rig).await, ["a", "d"]);
    upgrade(&rig, "c", "2").await;
    rig.pass(Duration::from_mins(11)).await;
    // One has left, and the other one still counts.
    assert_eq!(inside(&rig).await, ["d"]);
    // A deletion waits for nothing, and frees the place.
    rig.delete_until_gone("d").await;
    rig.until_in("c", BargeState::Upgrading).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_undone_gives_up_its_turn() {
    let rig = fleet(&["a", "b", "c"]).await;
    for name in ["a", "b", "c"] {
        upgrade(&rig, name, "2").await;
        rig.pass(Duration::from_secs(2)).await;
    }
    upgrade(&rig, "b", "1").await;
    rig.until_ready("b", BargeState::Running).await;
    rig.pass(Duration::from_mins(11)).await;
    assert_eq!(inside(&rig).await, ["c"]);
    rig.pass(Duration::from_mins(11)).await;
    assert!(inside(&rig).await.is_empty());
}

/// The acceptance case A2.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_changed_before_its_move_binds_the_same_place_again() {
    let rig = fleet(&["a", "b"]).await;
    rig.wire.clear();
    let late = Fault::delay(Duration::from_secs(5)).subresource("status");
    let late = rig.inject(late.resource("barges").name("a").times(1));
    upgrade(&rig, "a", "2").await;
    rig.pass(Duration::from_secs(1)).await;
    upgrade(&rig, "b", "2").await;
    rig.pass(Duration::from_secs(1)).await;
    let since = places(&rig).await[0]["since"].clone();
    rig.patch("a", json!({ "metadata": { "labels": { "looked": "at" } } }))
        .await;
    rig.until_in("a", BargeState::Upgrading).await;
    assert_eq!(late.struck(), 1);
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(inside(&rig).await, ["a"]);
    assert_eq!(places(&rig).await[0]["since"], since, "the same place");
    let writes = rig.wire.writes().into_iter();
    let writes: Vec<String> = writes.filter(|it| it.contains("/leases")).collect();
    assert_eq!(
        writes.len(),
        2,
        "the place, and the same one again: {writes:?}"
    );
    let versions = rig.server.versions();
    let waits = versions.resource("barges").name("a");
    let waits = waits.course("/status/lifecycle/waiting/gate");
    assert!(waits.iter().all(Value::is_null), "it has waited: {waits:?}");
}

/// The acceptance case A6; what the older release has written is in the status.
#[tokio::test(start_paused = true)]
async fn what_a_release_without_the_limit_has_let_in_counts() {
    let rig = fleet(&["a", "b", "c", "d"]).await;
    *rig.app.places.lock() = 2;
    rig.kill().await;
    for name in ["a", "b", "c"] {
        let moved =
            json!({ "lifecycle": { "state": "Upgrading", "transition": 3, "action": null } });
        rig.patch_status(name, moved).await.expect("a status");
    }
    upgrade(&rig, "d", "2").await;
    rig.start();
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(inside(&rig).await, ["a", "b", "c"]);
    rig.until_reason("d", "Ready", reasons::WAITING_FOR_LIMIT)
        .await;
    assert_eq!(places(&rig).await.as_array().map(Vec::len), Some(3));
    // Two are left, and that is as many as may be inside.
    let mended = json!({ "lifecycle": { "state": "Running", "transition": 4, "action": null } });
    rig.patch_status("a", mended.clone())
        .await
        .expect("a status");
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(inside(&rig).await, ["b", "c"]);
    rig.patch_status("b", mended).await.expect("a status");
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(inside(&rig).await, ["c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_deleted_is_made_anew_and_a_move_on_its_way_counts() {
    let rig = fleet(&["a", "b"]).await;
    let late = Fault::delay(Duration::from_secs(10)).subresource("status");
    let _late = rig.inject(late.resource("barges").name("a").times(1));
    upgrade(&rig, "a", "2").await;
    rig.pass(Duration::from_secs(1)).await;
    let (leases, name) = only_table(&rig).await;
    leases
        .delete(&name, &DeleteParams::default())
        .await
        .expect("it is deleted");
    upgrade(&rig, "b", "2").await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(inside(&rig).await, ["a"]);
    rig.pass(Duration::from_mins(11)).await;
    assert_eq!(inside(&rig).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_read_is_named_and_gives_out_nothing() {
    let rig = fleet(&["a", "b"]).await;
    upgrade(&rig, "a", "2").await;
    rig.until_in("a", BargeState::Upgrading).await;
    annotate_table(&rig, "okt.dev/places", "nothing").await;
    rig.pass(Duration::from_secs(1)).await;
    upgrade(&rig, "b", "2").await;
    let (leases, name) = only_table(&rig).await;
    rig.until_message(
        "b",
        "Ready",
        reasons::WAITING_FOR_LIMIT,
        &format!(
            "the Lease {name} cannot be read: bring back the release that wrote it, or delete it"
        ),
    )
    .await;
    rig.pass(Duration::from_mins(30)).await;
    assert!(inside(&rig).await.is_empty());
    leases
        .delete(&name, &DeleteParams::default())
        .await
        .expect("it is deleted");
    rig.until_in("b", BargeState::Upgrading).await;
    // A number that is none lets nobody in.
    annotate_table(&rig, "okt.dev/max", "many").await;
    upgrade(&rig, "a", "3").await;
    rig.pass(Duration::from_hours(1)).await;
    assert!(inside(&rig).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_written_holds_those_who_wait_and_not_what_happens() {
    let rig = fleet(&["a", "b"]).await;
    let forbidden = rig.inject(Fault::forbidden().resource("leases").matching(is_table));
    let created = rig.inject(Fault::forbidden().resource("leases").on(Verb::Create));
    upgrade(&rig, "a", "2").await;
    rig.until_message("a", "Ready", reasons::WAITING_FOR_LIMIT, "rollout: 403")
        .await;
    rig.create_with("c", json!({ "version": "sinking" })).await;
    rig.until_in("c", BargeState::Failed).await;
    rig.wire.clear();
    rig.pass(Duration::from_mins(10)).await;
    let asked = created.struck() + forbidden.struck();
    assert!(asked < 80, "{asked} requests in ten minutes");
    for fault in [forbidden, created] {
        fault.end();
    }
    // What has happened counts, once that can be written.
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(inside(&rig).await, ["c"]);
    rig.delete_until_gone("c").await;
    rig.until_in("a", BargeState::Upgrading).await;
}

#[tokio::test(start_paused = true)]
async fn metrics_count_who_waits_and_who_is_inside_by_group() {
    let (rig, monitoring) = (Fleet::without_operator_of().await, Monitoring::new());
    rig.start_with(|operator| operator.monitoring(&monitoring));
    for (name, zone) in [("a", "x"), ("b", "x"), ("c", "x"), ("d", "y")] {
        rig.create_with(name, json!({ "version": "1", "zone": zone }))
            .await;
        rig.until_ready(name, BargeState::Running).await;
    }
    let has = |line: &str| {
        let text = monitoring.metrics();
        assert!(
            text.contains(&format!("\n{line}\n")),
            "no {line} in\n{text}"
        );
    };
    has(r#"okt_gate_waiting{controller="barge",gate="rollout",group=""} 0.0"#);
    for name in ["a", "b", "c", "d"] {
        upgrade(&rig, name, "2").await;
        rig.pass(Duration::from_secs(2)).await;
    }
    has(r#"okt_gate_waiting{controller="barge",gate="rollout",group="x"} 2.0"#);
    has(r#"okt_gate_inside{controller="barge",gate="rollout",group="x"} 1.0"#);
    has(r#"okt_gate_inside{controller="barge",gate="rollout",group="y"} 1.0"#);
}
