//! A cluster-scoped kind with its own status fields, former state names and a field outside the revision.

use std::time::Duration;

use okt::{LifecycleObject, Operator, OperatorError};
use okt_tests::{Database, DatabaseState, Databases, Objects, Rig, Served, SiteState, Sites};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_object_is_created_and_deleted() {
    let rig = Rig::<Sites>::of().await;
    rig.create_ready("s", SiteState::Online).await;
    rig.request("s");
    rig.delete_until_gone("s").await;
    let ran: Vec<_> = rig.app.ran().into_iter().map(|(state, _)| state).collect();
    assert_eq!(
        ran,
        [SiteState::Building, SiteState::Online, SiteState::Gone]
    );
    // 1 for each of 3 transitions, 1 at rest, 2 for the finalizer; the end of the leaf's work is part of the
    // finalizer's write.
    assert_eq!(rig.wire.writes().len(), 6, "{:#?}", rig.wire.writes());
}

#[tokio::test(start_paused = true)]
async fn status_fields_of_the_application_are_written_with_a_transition_or_every_ten_seconds() {
    let rig = Rig::<Sites>::of().await;
    rig.app.set_pages(1);
    let site = rig.create_ready("s", SiteState::Online).await;
    assert_eq!(site.status.expect("a status").extra.pages, 1);
    rig.pass(Duration::from_secs(1)).await;
    rig.wire.clear();
    for pages in 2..62 {
        rig.app.set_pages(pages);
        rig.request("s");
        rig.pass(Duration::from_secs(1)).await;
    }
    let writes = rig.wire.writes().len();
    assert!((5..=7).contains(&writes), "{writes}");
    rig.pass(Duration::from_secs(40)).await;
    let site = rig.object("s").await;
    assert_eq!(site.status.expect("a status").extra.pages, 61);
    rig.writes_nothing_for(Duration::from_mins(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_outside_the_revision_runs_nothing() {
    let rig = Rig::<Sites>::of().await;
    rig.create_ready("s", SiteState::Online).await;
    for replicas in 1..10 {
        rig.patch("s", json!({ "spec": { "replicas": replicas } }))
            .await;
        rig.until_ready("s", SiteState::Online).await;
    }
    assert_eq!(rig.app.ran().len(), 2);
    let site = rig.object("s").await;
    let seen = site
        .status_of()
        .and_then(|status| status.observed_generation);
    assert_eq!(
        seen, site.metadata.generation,
        "the spec counts as observed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_the_on_change_trigger_also_when_it_was_made_without_an_operator() {
    let rig = Rig::<Sites>::of().await;
    rig.create_ready("s", SiteState::Online).await;
    rig.kill().await;
    rig.patch("s", json!({ "spec": { "theme": "dark" } })).await;
    rig.start();
    rig.until_ready("s", SiteState::Online).await;
    let position = rig.position("s").await;
    assert_eq!(position.trail, ">Building>Online>Rebuilding>Online>");
    assert_eq!(position.history[2].cause, "OnChange");
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(rig.position("s").await.transition, 4);
}

#[tokio::test(start_paused = true)]
async fn a_former_state_name_in_the_record_causes_no_transition() {
    let rig = Rig::<Sites>::without_operator_of().await;
    rig.create("s", json!({ "state": "Live" })).await;
    let old = json!({ "lifecycle": {
        "state": "Live", "transition": 2, "jumps": 1, "desired": { "state": "Live", "transition": 0 },
    } });
    rig.patch_status("s", old).await.expect("it is accepted");
    rig.start();
    rig.until_ready("s", SiteState::Online).await;
    let position = rig.position("s").await;
    assert_eq!(
        (position.state.as_str(), position.transition, position.jumps),
        ("Online", 2, 1)
    );
    let desired = position.desired.expect("a desired state");
    assert_eq!(
        (desired.transition, desired.reached),
        (0, true),
        "the desired state is the same"
    );
    assert_eq!(rig.events().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn work_of_a_leaf_is_retried_and_then_the_object_is_released() {
    let rig = Rig::<Sites>::of().await;
    rig.create("s", json!({ "state": "Gone" })).await;
    rig.until_ready("s", SiteState::Gone).await;
    rig.delete_until_gone("s").await;
    rig.create_ready("s", SiteState::Online).await;
    rig.app.fail_in_leaf(3);
    rig.delete_until_gone("s").await;
    let gone = |(state, _): &(SiteState, String)| *state == SiteState::Gone;
    assert_eq!(rig.app.ran().iter().filter(|ran| gone(ran)).count(), 1 + 4);
}

#[tokio::test(start_paused = true)]
async fn an_operator_of_one_namespace_leaves_the_others_alone() {
    let mut rig = Rig::<Databases>::without_operator().await;
    for namespace in ["team-a", "team-b"] {
        rig.create_namespace(namespace).await;
        let database = Databases::object("db", json!({}));
        rig.within::<Database>(namespace).make(database).await;
    }
    rig.create("db", json!({})).await;
    // A namespace that is listed twice counts once.
    rig.options.namespaces = vec!["default".into(), "team-a".into(), "default".into()];
    rig.start();
    rig.until_ready("db", DatabaseState::Running).await;
    rig.pass(Duration::from_mins(1)).await;
    let state = async |namespace: &str| {
        let database = rig.within::<Database>(namespace).read("db").await;
        database
            .status
            .and_then(|status| status.lifecycle)
            .map(|l| l.state.to_string())
    };
    assert_eq!(state("team-a").await.as_deref(), Some("Running"));
    assert_eq!(state("team-b").await, None);
    assert_eq!(rig.app.ran().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn namespaces_for_a_cluster_scoped_kind_are_an_error() {
    let rig = Rig::<Sites>::without_operator_of().await;
    let operator = Operator::new(rig.client.clone(), rig.app.clone()).namespaces(["default"]);
    let error = operator.run(std::future::pending()).await;
    let error = error.expect_err("sites are cluster-scoped");
    assert!(matches!(error, OperatorError::ClusterScoped(kind) if kind == "Site"));
}
