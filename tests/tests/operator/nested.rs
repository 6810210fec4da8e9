//! JSON nested deeper than a parser allows: it affects only its own object.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use kube::client::Body;
use kube::runtime::watcher;
use okt::Operator;
use okt::view::{Kind, View};
use okt_tests::{
    KioskState::*, Kiosks, OPERATOR, Rig, Served, ShelfState, Shelves, assert_contains,
};
use serde_json::{Value, json};

/// A depth at which a parser with the usual limit reads the value alone, but not within a list.
const IN_A_LIST: usize = 123;

/// The deepest value that the JSON decoder of a real server accepts, minus what surrounds it.
const DEEPEST: usize = 9_990;

/// The placeholder for a deep value in a created object.
const DEEP: &str = "nested deeply";

/// A client that replaces the placeholder in answers with a value of this depth.
fn deepened(client: &Client, depth: usize) -> Client {
    let inner = client.clone();
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, deep) = (inner.clone(), deep.clone());
        async move {
            let mut response = client.send(request).await?;
            response.headers_mut().remove("content-length");
            Ok::<_, kube::Error>(response.map(|body| {
                body.map_frame(move |frame| {
                    frame.map_data(|data| {
                        let text = String::from_utf8_lossy(&data);
                        Bytes::from(text.replace(&format!("\"{DEEP}\""), &deep))
                    })
                })
            }))
        }
    });
    Client::new(service, client.default_namespace())
}

/// Starts an operator whose client sees deep values; returns its task.
fn shown<A: Served>(rig: &Rig<A>, depth: usize) -> tokio::task::JoinHandle<()> {
    let client = deepened(&rig.server.client_named(OPERATOR), depth);
    let operator = Operator::new(client, rig.app.clone()).virtual_time();
    tokio::spawn(async move {
        operator.run(std::future::pending()).await.expect("it runs");
    })
}

fn deep(name: &str) -> Value {
    json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Kiosk",
        "metadata": { "name": name },
        "spec": { "free": DEEP },
    })
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_nested_too_deeply_is_reported_and_stops_no_other() {
    for depth in [IN_A_LIST, DEEPEST] {
        let rig = Rig::<Kiosks>::without_operator_of().await;
        rig.create_raw(deep("listed")).await;
        let operator = shown(&rig, depth);
        rig.create_ready("first", Open).await;
        rig.create_raw(deep("watched")).await;
        rig.create_ready("second", Open).await;
        for name in ["listed", "watched"] {
            if depth == IN_A_LIST {
                rig.until_ready(name, Open).await;
                continue;
            }
            rig.until_message(name, "Stalled", "Undecodable", "recursion limit exceeded")
                .await;
        }
        rig.writes_nothing_for(Duration::from_hours(1)).await;
        operator.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_became_nested_too_deeply_can_be_abandoned() {
    let rig = Rig::<Kiosks>::without_operator_of().await;
    let operator = shown(&rig, DEEPEST);
    rig.create_ready("kiosk", Open).await;
    rig.patch("kiosk", json!({ "spec": { "free": DEEP } }))
        .await;
    rig.until_reason("kiosk", "Stalled", "Undecodable").await;
    rig.delete("kiosk").await;
    rig.pass(Duration::from_mins(1)).await;
    let stalled = rig
        .condition("kiosk", "Stalled")
        .await
        .expect("a condition");
    assert_contains(&stalled.message, "okt.dev/abandon");
    rig.abandon("kiosk").await;
    rig.until_gone("kiosk").await;
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn an_owned_or_referred_object_that_is_nested_too_deeply_stops_no_other() {
    let rig = Rig::<Shelves>::without_operator_of().await;
    let kiosks = Rig::<Kiosks>::beside(&rig).await;
    for name in ["owned", "referred"] {
        let mut stranger = deep(name);
        stranger["metadata"]["labels"] = json!({ "okt.dev/owner-kind": "Shelf.demo.okt.dev" });
        kiosks.create_raw(stranger).await;
    }
    let operator = shown(&rig, DEEPEST);
    rig.create_ready("shelf", ShelfState::Filled).await;
    assert!(
        rig.app.sees_kiosks().is_empty(),
        "objects that cannot be read are left out"
    );
    operator.abort();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_nested_too_deeply_hides_no_other_from_a_view() {
    for depth in [IN_A_LIST, DEEPEST] {
        let rig = Rig::<Kiosks>::of().await;
        rig.create_raw(deep("deep")).await;
        rig.create_ready("first", Open).await;
        let client = deepened(&rig.client, depth);
        let kinds = Kind::all(&client).await.expect("kinds");
        let kind = kinds
            .iter()
            .find(|it| it.is_called("kiosk"))
            .expect("a kind");
        let listed = kind.list(&client, None, ListParams::default()).await;
        let listed = listed.expect("a list");
        let seen = |objects: Vec<DynamicObject>| -> Vec<(String, bool)> {
            let views = objects.into_iter().map(|object| View::of(kind, object));
            let views = views.map(|it| (it.name().to_owned(), it.ready().1 == "Unreadable"));
            views.collect()
        };
        let is_unreadable = depth == DEEPEST;
        let wanted = [
            ("deep".to_owned(), is_unreadable),
            ("first".to_owned(), false),
        ];
        assert_eq!(seen(listed), wanted);
        let events = kind.events(&client, None, watcher::Config::default());
        let first = events.filter_map(async |event| match event {
            Ok(watcher::Event::InitApply(object)) => Some(object),
            _ => None,
        });
        assert_eq!(seen(first.take(2).collect().await), wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_cannot_be_read_hides_no_kind() {
    let rig = Rig::<Kiosks>::of().await;
    rig.create_ready("first", Open).await;
    // A description that is no text does not decode.
    let inner = rig.client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = inner.clone();
        async move {
            let is_one = request.uri().path().ends_with("/kiosks.demo.okt.dev");
            let mut response = client.send(request).await?;
            response.headers_mut().remove("content-length");
            Ok::<_, kube::Error>(response.map(move |body| {
                body.map_frame(move |frame| {
                    frame.map_data(|data| {
                        let text = String::from_utf8_lossy(&data);
                        let broken = text.replace(
                            r#""openAPIV3Schema":{"#,
                            r#""openAPIV3Schema":{"description":[],"#,
                        );
                        if is_one {
                            Bytes::from(broken)
                        } else {
                            data.clone()
                        }
                    })
                })
            }))
        }
    });
    let client = Client::new(service, "default");
    let kinds = Kind::all(&client).await.expect("kinds");
    let kind = kinds
        .iter()
        .find(|it| it.is_called("kiosk"))
        .expect("a kind");
    assert!(kind.graph().is_some(), "{:?}", kind.graph);
    let listed = kind
        .list(&client, None, ListParams::default())
        .await
        .expect("a list");
    assert_eq!(listed.len(), 1);
}
