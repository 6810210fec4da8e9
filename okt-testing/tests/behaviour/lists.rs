//! This file tests lists: selectors, pages, versions.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams},
};
use serde_json::json;

use crate::support::{
    create, create_namespace, merge, refusal, server, version, widget, widget_resource, widgets,
};

async fn names(client: &kube::Client, params: &ListParams) -> Vec<String> {
    let list = widgets(client).list(params).await.unwrap();
    list.items.iter().map(ResourceExt::name_any).collect()
}

async fn labelled(client: &kube::Client) {
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "z")] {
        create(client, name, json!({})).await;
        let patch = json!({ "metadata": { "labels": { "l": label } } });
        merge(client, name, patch).await.unwrap();
    }
    create(client, "d", json!({})).await;
}

#[tokio::test]
async fn label_selectors_select() {
    let (_server, client) = server().await;
    labelled(&client).await;
    for (selector, expected) in [
        ("l=x", vec!["a"]),
        ("l==x", vec!["a"]),
        ("l!=x", vec!["b", "c", "d"]),
        ("l in (x, y)", vec!["a", "b"]),
        ("l notin (x,y)", vec!["c", "d"]),
        ("l", vec!["a", "b", "c"]),
        ("!l", vec!["d"]),
        ("l,l!=x", vec!["b", "c"]),
    ] {
        let found = names(&client, &ListParams::default().labels(selector)).await;
        assert_eq!(found, expected, "{selector}");
    }
    let bad = widgets(&client)
        .list(&ListParams::default().labels("l in x"))
        .await;
    assert_eq!(refusal(bad).code, 400);
}

#[tokio::test]
async fn field_selectors_know_name_namespace_and_what_the_crd_declares() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "color": "red" })).await;
    create(&client, "b", json!({ "color": "blue" })).await;
    let by = |fields: &str| ListParams::default().fields(fields);
    assert_eq!(names(&client, &by("metadata.name=a")).await, ["a"]);
    assert_eq!(
        names(&client, &by("metadata.namespace=default")).await,
        ["a", "b"]
    );
    assert_eq!(names(&client, &by("spec.color=blue")).await, ["b"]);
    assert_eq!(names(&client, &by("spec.color!=blue")).await, ["a"]);
    let status = refusal(widgets(&client).list(&by("spec.name=x")).await);
    assert_eq!(
        (status.code, status.message.as_str()),
        (400, "field label not supported: spec.name")
    );
}

#[tokio::test]
async fn pages_are_of_one_version() {
    let (_server, client) = server().await;
    for name in ["a", "b", "c", "d", "e"] {
        create(&client, name, json!({})).await;
    }
    let first = widgets(&client)
        .list(&ListParams::default().limit(2))
        .await
        .unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    let token = first.metadata.continue_.unwrap();
    create(&client, "bb", json!({})).await;
    widgets(&client)
        .delete("d", &DeleteParams::default())
        .await
        .unwrap();
    let params = ListParams::default().limit(2).continue_token(&token);
    let second = widgets(&client).list(&params).await.unwrap();
    let found: Vec<_> = second.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(found, ["c", "d"], "as it was when the first page was read");
    assert_eq!(
        second.metadata.resource_version,
        first.metadata.resource_version
    );
    let token = second.metadata.continue_.unwrap();
    let params = ListParams::default().limit(2).continue_token(&token);
    let third = widgets(&client).list(&params).await.unwrap();
    assert_eq!(third.items.len(), 1);
    assert_eq!(third.metadata.continue_.unwrap_or_default(), "");
}

#[tokio::test]
async fn a_page_of_a_forgotten_version_is_410() {
    let (server, client) = server().await;
    for name in ["a", "b", "c"] {
        create(&client, name, json!({})).await;
    }
    let first = widgets(&client)
        .list(&ListParams::default().limit(1))
        .await
        .unwrap();
    create(&client, "d", json!({})).await;
    server.compact();
    let token = first.metadata.continue_.unwrap();
    let params = ListParams::default().limit(1).continue_token(&token);
    let status = refusal(widgets(&client).list(&params).await);
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test]
async fn a_list_of_an_exact_version_is_as_it_was() {
    let (_server, client) = server().await;
    let old = create(&client, "a", json!({})).await;
    create(&client, "b", json!({})).await;
    let params = ListParams::default()
        .at(&version(&old))
        .matching(kube::api::VersionMatch::Exact);
    assert_eq!(names(&client, &params).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_of_the_future_is_504_after_three_seconds() {
    let (_server, client) = server().await;
    let before = tokio::time::Instant::now();
    let params = ListParams::default().at("999999");
    let status = refusal(widgets(&client).list(&params).await);
    assert_eq!(status.code, 504);
    assert!(
        status
            .message
            .starts_with("Timeout: Too large resource version")
    );
    assert_eq!(before.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn a_list_of_all_namespaces_has_all() {
    let (_server, client) = server().await;
    create_namespace(&client, "other").await;
    create(&client, "a", json!({})).await;
    let other: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "other", &widget_resource());
    other
        .create(&PostParams::default(), &widget("b", json!({})))
        .await
        .unwrap();
    let all: Api<DynamicObject> = Api::all_with(client.clone(), &widget_resource());
    assert_eq!(
        all.list(&ListParams::default()).await.unwrap().items.len(),
        2
    );
    assert_eq!(names(&client, &ListParams::default()).await, ["a"]);
}
