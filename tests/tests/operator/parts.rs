//! Triggers that name parts of the spec: each is raised by a change of what it names, once, and by nothing else.

use std::time::Duration;

use jiff::Timestamp;
use kube::CustomResource;
use kube::api::ListParams;
use okt::view::{Kind, View, Why};
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use okt_tests::{Objects, Rig, Served, assert_contains};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Makes a release of the operator, whose triggers and whose disks have something more or other.
macro_rules! release {
    ($release:ident, { $($triggers:tt)* }, { $($disk:tt)* }) => {
        mod $release {
            use super::*;

            #[lifecycle_graph(spec(ClusterSpec))]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub(super) enum ClusterState {
                #[entry]
                #[child(Running)]
                Starting,
                #[rest(idle)]
                $($triggers)*
                #[child(Parked)]
                #[child(Gone)]
                Running,
                #[child(Running)]
                Upgrading,
                #[child(Running)]
                Resizing,
                #[child(Running)]
                Moving,
                #[rest(idle)]
                #[child(Running)]
                Parked,
                #[leaf(idle)]
                Gone,
            }

            #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
            #[kube(
                group = "demo.okt.dev",
                version = "v1",
                kind = "Cluster",
                namespaced,
                status = "Status<ClusterState>",
            )]
            #[serde(default, rename_all = "camelCase")]
            #[derive(Default)]
            pub(super) struct ClusterSpec {
                pub(super) lifecycle: Desired<ClusterState>,
                pub(super) version: String,
                pub(super) disk: Disk,
                pub(super) zones: Vec<String>,
                pub(super) note: String,
            }

            impl ClusterSpec {
                /// The zones, in whatever order they stand.
                #[allow(dead_code, reason = "not every release asks")]
                fn sorted_zones(&self) -> Vec<&str> {
                    let mut zones: Vec<&str> = self.zones.iter().map(String::as_str).collect();
                    zones.sort_unstable();
                    zones
                }
            }

            #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
            #[serde(default)]
            pub(super) struct Disk {
                pub(super) size: u32,
                pub(super) class: String,
                $($disk)*
            }

            #[derive(Clone, Default)]
            pub(super) struct Clusters;

            impl ClusterStateHandler for Clusters {
                type Context = Action<Cluster>;
                type Error = Failure;

                async fn starting(&self, _: &Action<Cluster>) -> Result<cluster_state::AfterStarting, Failure> {
                    Ok(cluster_state::AfterStarting::Next)
                }

                async fn upgrading(&self, _: &Action<Cluster>) -> Result<cluster_state::AfterUpgrading, Failure> {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    Ok(cluster_state::AfterUpgrading::Next)
                }

                async fn resizing(&self, _: &Action<Cluster>) -> Result<cluster_state::AfterResizing, Failure> {
                    Ok(cluster_state::AfterResizing::Next)
                }

                async fn moving(&self, _: &Action<Cluster>) -> Result<cluster_state::AfterMoving, Failure> {
                    Ok(cluster_state::AfterMoving::Next)
                }
            }

            impl Application for Clusters {
                type Resource = Cluster;
            }

            impl Served for Clusters {}
        }
    };
}

release!(
    parts,
    {
        #[trigger(Upgrading, on_change(version, disk))]
        #[trigger(Resizing, on_change(note))]
        #[trigger(Moving, on_change(sorted_zones()))]
    },
    {}
);
release!(
    fields,
    {
        #[trigger(Upgrading, on_change(version))]
        #[trigger(Resizing, on_change(disk.size))]
        #[trigger(Moving, on_change)]
    },
    {}
);
// A disk has one more field, and more triggers name parts.
release!(
    later,
    {
        #[trigger(Upgrading, on_change(version, disk))]
        #[trigger(Resizing, on_change(zones))]
        #[trigger(Moving, on_change(note))]
    },
    { pub(super) encrypted: bool, }
);

const NAME: &str = "cluster";

/// Returns what `kubectl okt why` answers about the object.
async fn why<A: Served>(rig: &Rig<A>) -> String {
    let kinds = Kind::all(&rig.client).await.expect("kinds");
    let kind = kinds.iter().find(|it| it.is_called("cluster"));
    let kind = kind.expect("the kind");
    let listed = kind.list(&rig.client, None, ListParams::default()).await;
    let object = listed.expect("a list").pop().expect("an object");
    let view = View::of(kind, object);
    let now = Timestamp::now();
    let why = Why::of(&rig.client, &view, now).await;
    let causes: Vec<String> = why.causes.iter().map(|it| it.what.clone()).collect();
    format!("{}. {}", why.place(&view, now), causes.join(" "))
}

/// Returns the transitions since a number of them: the state that each led to, and what changed.
async fn since<A: Served>(rig: &Rig<A>, number: u64) -> Vec<String> {
    let object = rig.raw().read(NAME).await;
    let history = object.data["status"]["lifecycle"]["history"].as_array();
    let is_since = |it: &&Value| it["transition"].as_u64() > Some(number);
    let text = |it: &Value| {
        let changed = it["changed"].as_str().unwrap_or_default();
        format!("{} {changed}", it["to"].as_str().unwrap_or_default())
    };
    let rows = history.expect("a history").iter().filter(is_since);
    rows.map(|it| text(it).trim_end().to_owned()).collect()
}

async fn transitions<A: Served>(rig: &Rig<A>) -> u64 {
    let object = rig.raw().read(NAME).await;
    let number = &object.data["status"]["lifecycle"]["transition"];
    number.as_u64().expect("a number")
}

/// Changes the spec; returns the transitions that this causes.
async fn edit<A: Served>(rig: &Rig<A>, spec: Value) -> Vec<String> {
    let before = transitions(rig).await;
    rig.patch(NAME, json!({ "spec": spec })).await;
    rig.pass(Duration::from_mins(2)).await;
    since(rig, before).await
}

#[tokio::test(start_paused = true)]
async fn a_trigger_is_raised_by_a_change_of_the_parts_that_it_names() {
    let rig = Rig::<parts::Clusters>::of().await;
    rig.create_ready(NAME, parts::ClusterState::Running).await;
    let changed = edit(&rig, json!({ "version": "2" })).await;
    assert_eq!(changed, ["Upgrading version", "Running"]);
    let changed = edit(&rig, json!({ "disk": { "class": "ssd" } })).await;
    assert_eq!(changed, ["Upgrading disk", "Running"]);
    let changed = edit(&rig, json!({ "version": "3", "disk": { "size": 9 } })).await;
    assert_eq!(changed, ["Upgrading version, disk", "Running"]);
    let changed = edit(&rig, json!({ "zones": ["b", "a"] })).await;
    assert_eq!(changed, ["Moving sorted_zones()", "Running"]);
    let none: [&str; 0] = [];
    let changed = edit(&rig, json!({ "zones": ["a", "b"] })).await;
    assert_eq!(changed, none, "the value that is computed is the same");
    let changed = edit(&rig, json!({ "lifecycle": { "state": "Running" } })).await;
    assert_eq!(changed, none);
    rig.restart().await;
    assert_eq!(edit(&rig, json!({ "lifecycle": null })).await, none);
}

#[tokio::test(start_paused = true)]
async fn of_several_changes_each_takes_its_edge_in_the_order_of_the_triggers() {
    let rig = Rig::<parts::Clusters>::of().await;
    rig.create_ready(NAME, parts::ClusterState::Running).await;
    let changed = edit(&rig, json!({ "zones": ["c"], "note": "n", "version": "2" })).await;
    let in_turn = [
        "Upgrading version",
        "Running",
        "Resizing note",
        "Running",
        "Moving sorted_zones()",
        "Running",
    ];
    assert_eq!(changed, in_turn);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_for_any_change_takes_what_no_trigger_before_it_names() {
    let rig = Rig::<fields::Clusters>::of().await;
    rig.create_ready(NAME, fields::ClusterState::Running).await;
    let changed = edit(&rig, json!({ "disk": { "size": 5 } })).await;
    assert_eq!(
        changed,
        ["Resizing disk.size", "Running", "Moving", "Running"]
    );
    let changed = edit(&rig, json!({ "disk": { "class": "ssd" } })).await;
    assert_eq!(changed, ["Moving", "Running"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_in_another_state_is_not_lost() {
    let rig = Rig::<parts::Clusters>::of().await;
    rig.create_ready(NAME, parts::ClusterState::Running).await;
    // While the object is elsewhere, and is written there; and while no operator runs.
    let parked = edit(&rig, json!({ "lifecycle": { "state": "Parked" } })).await;
    assert_eq!(parked, ["Parked"]);
    rig.patch(NAME, json!({ "spec": { "note": "n" } })).await;
    rig.pass(Duration::from_mins(1)).await;
    rig.kill().await;
    rig.patch(NAME, json!({ "spec": { "version": "2" } })).await;
    rig.start();
    rig.pass(Duration::from_mins(1)).await;
    let back = edit(&rig, json!({ "lifecycle": { "state": "Running" } })).await;
    let in_turn = [
        "Running",
        "Upgrading version",
        "Running",
        "Resizing note",
        "Running",
    ];
    assert_eq!(back, in_turn);
}

#[tokio::test(start_paused = true)]
async fn a_change_during_the_work_that_an_edge_led_to_takes_the_edge_again() {
    let rig = Rig::<parts::Clusters>::of().await;
    rig.create_ready(NAME, parts::ClusterState::Running).await;
    let before = transitions(&rig).await;
    rig.patch(NAME, json!({ "spec": { "version": "2" } })).await;
    rig.pass(Duration::from_secs(10)).await;
    assert_contains(&why(&rig).await, "since version changed, and is to be in");
    rig.patch(NAME, json!({ "spec": { "version": "3", "note": "n" } }))
        .await;
    rig.pass(Duration::from_secs(30)).await;
    let waits = "A change of note has taken no edge yet: the operator takes it when the object is in Running.";
    assert_contains(&why(&rig).await, waits);
    rig.pass(Duration::from_mins(5)).await;
    let in_turn = [
        "Upgrading version",
        "Running",
        "Upgrading version",
        "Running",
        "Resizing note",
        "Running",
    ];
    assert_eq!(since(&rig, before).await, in_turn);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_names_other_parts_or_has_more_fields_in_them_moves_nothing() {
    let first = Rig::<parts::Clusters>::of().await;
    first.create_ready(NAME, parts::ClusterState::Running).await;
    edit(&first, json!({ "version": "2", "zones": ["a"] })).await;
    let before = transitions(&first).await;
    first.kill().await;
    let rig = Rig::<later::Clusters>::beside(&first).await;
    rig.start();
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before);
    let count = || {
        let requests = rig.server.requests().into_iter();
        let writes = requests.filter(|it| it.is_write() && it.resource == "clusters");
        writes.count()
    };
    let writes = count();
    rig.restart().await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(count(), writes, "the parts that it names are recorded once");
    let none: [&str; 0] = [];
    assert_eq!(
        edit(&rig, json!({ "lifecycle": { "state": "Running" } })).await,
        none
    );
    // What somebody changes takes its edge, also one that the release before did not name.
    assert_eq!(
        edit(&rig, json!({ "zones": ["b"] })).await,
        ["Resizing zones", "Running"]
    );
    let changed = edit(&rig, json!({ "disk": { "encrypted": true } })).await;
    assert_eq!(changed, ["Upgrading disk", "Running"]);
    rig.restart().await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(
        edit(&rig, json!({ "note": "n" })).await,
        ["Moving note", "Running"]
    );
}
