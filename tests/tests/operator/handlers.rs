//! Handlers, called like any function with arguments of `okt_testing`: no operator, no API.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use okt::{Application, Failure, StateOnRecord, Which};
use okt_testing::{action, context, pass};
use okt_tests::{Ladder, LadderSpec};
use okt_tests::{Shop, ShopSpec, ShopState, Shops};
use serde_json::{Value, from_value, json};

fn shop() -> Shop {
    Shop::new("corner", ShopSpec::default())
}

fn deployment(ready: i32) -> Deployment {
    let deployment = json!({
        "metadata": { "name": "till", "generation": 1 },
        "spec": {
            "selector": { "matchLabels": { "app": "till" } },
            "template": {
                "metadata": { "labels": { "app": "till" } },
                "spec": { "containers": [{ "name": "till", "image": "till" }] },
            },
        },
        "status": {
            "observedGeneration": 1,
            "replicas": 1,
            "updatedReplicas": 1,
            "availableReplicas": ready,
        },
    });
    from_value(deployment).expect("a deployment")
}

#[tokio::test]
async fn a_handler_gets_the_object_its_state_and_what_it_owns_and_refers_to() {
    let secret: Secret = from_value(json!({ "metadata": { "name": "key" } })).expect("a secret");
    let cx = action(shop())
        .state(ShopState::Open)
        .time_in_state(Duration::from_mins(5))
        .attempt(3)
        .resumed()
        .owned(&deployment(1))
        .referred(&secret)
        .build();
    assert_eq!(cx.object().name_any(), "corner");
    assert_eq!(cx.object().namespace().as_deref(), Some("default"));
    assert_eq!(cx.state(), StateOnRecord::Known(ShopState::Open));
    let time = cx.time_in_state().expect("a time");
    assert!((299..=360).contains(&time.as_secs()), "{time:?}");
    assert!(context(shop()).build().time_in_state().is_none());
    assert!(cx.attempt_age() < Duration::from_mins(1));
    assert_eq!((cx.attempt(), cx.resumed()), (3, true));
    let owned = cx.owned::<Deployment>().expect("declared");
    assert_eq!(
        owned[0].labels()["okt.dev/owner"],
        cx.object().uid().unwrap()
    );
    let status = owned[0].status.as_ref().expect("a status");
    assert_eq!(status.available_replicas, Some(1));
    assert!(cx.referred::<Secret>("key").expect("declared").is_some());
    assert!(cx.referred::<Secret>("other").expect("declared").is_none());
    cx.wait_ready(&[Which::all()]).await.expect("it is ready");
}

#[tokio::test]
async fn a_cancelled_handler_that_waits_for_resources_ends() {
    let cx = action(shop()).cancelled().owned(&deployment(0)).build();
    cx.cancelled().await;
    let failure = cx.wait_ready(&[Which::all()]).await;
    assert_eq!(
        failure.expect_err("it cannot become ready").reason(),
        "Cancelled"
    );
}

#[tokio::test]
async fn asking_for_a_kind_that_is_not_declared_is_an_error_with_the_line_to_add() {
    let cx = context(shop()).build();
    let why = "the operator's code asks for ConfigMap objects, and its `watches` does not declare that kind: add `.owns::<ConfigMap>()`";
    let failure = Failure::permanent("KindNotDeclared", why);
    assert_eq!(cx.owned::<ConfigMap>(), Err(failure));
    let failure = cx.referred::<ConfigMap>("a").expect_err("not declared");
    assert!(
        failure
            .message()
            .ends_with("add `.refers::<ConfigMap>(..)`"),
        "{failure}"
    );
    let declared = context(shop()).watches(Shops::watches).build();
    assert_eq!(declared.owned::<ConfigMap>(), Ok(Vec::new()));
}

#[tokio::test]
async fn the_objects_that_a_step_puts_are_seen() {
    let cx = pass(Ladder::new("tall", LadderSpec::default())).build();
    assert_eq!(cx.objects(), Ok(Vec::<Value>::new()));
    let map: ConfigMap = from_value(json!({ "metadata": { "name": "rungs" } })).expect("a map");
    cx.put(map);
    let objects = cx.objects().expect("objects");
    assert_eq!(objects[0]["kind"], "ConfigMap");
    assert_eq!(objects[0]["metadata"]["name"], "rungs");
}

#[tokio::test]
#[should_panic(expected = "the namespace")]
async fn a_resource_that_the_object_cannot_own_is_refused_with_the_reason() {
    let elsewhere = json!({ "metadata": { "name": "map", "namespace": "elsewhere" } });
    let map: ConfigMap = from_value(elsewhere).expect("a map");
    action(shop()).owned(&map).build();
}
