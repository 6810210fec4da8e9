//! This file tests how objects are created, read, changed and deleted.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use okt_testing::RequestRecord;
use serde_json::json;

use crate::support::{
    apply_status, create, get, json_patch, merge, refusal, replace, server, try_create, version,
    widget, widget_resource, widgets,
};

#[tokio::test]
async fn an_accepted_crd_is_established_at_once() {
    let (_server, client) = server().await;
    let crds: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(client);
    let crd = crds.get("widgets.demo.okt.dev").await.unwrap();
    let conditions = crd.status.unwrap().conditions.unwrap();
    assert!(
        conditions
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
    );
}

#[tokio::test]
async fn a_created_object_has_identity_and_generation_one() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    assert!(made.uid().is_some());
    assert!(made.creation_timestamp().is_some());
    assert_eq!(made.metadata.generation, Some(1));
    version(&made).parse::<u64>().unwrap();
}

#[tokio::test]
async fn creating_twice_is_409_already_exists() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let status = refusal(try_create(&client, "a", json!({})).await);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (409, "AlreadyExists")
    );
    assert_eq!(status.message, "widgets.demo.okt.dev \"a\" already exists");
}

#[tokio::test]
async fn a_get_of_nothing_is_404() {
    let (_server, client) = server().await;
    let status = refusal(widgets(&client).get("a").await);
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert_eq!(status.message, "widgets.demo.okt.dev \"a\" not found");
}

#[tokio::test]
async fn a_list_has_a_resource_version() {
    let (_server, client) = server().await;
    let made = create(&client, "a", json!({})).await;
    let list = widgets(&client).list(&ListParams::default()).await.unwrap();
    assert_eq!(list.metadata.resource_version, Some(version(&made)));
    assert_eq!(list.items.len(), 1);
}

#[tokio::test]
async fn the_generation_moves_with_spec_alone() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = merge(&client, "a", labels).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(1));
    let status = json!({ "phase": "Up" });
    let patched = apply_status(&client, "m", "a", status).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(1));
    let spec = json!({ "spec": { "color": "red" } });
    let patched = merge(&client, "a", spec).await.unwrap();
    assert_eq!(patched.metadata.generation, Some(2));
}

#[tokio::test]
async fn a_put_with_an_old_resource_version_is_409() {
    let (_server, client) = server().await;
    let mut old = create(&client, "a", json!({})).await;
    merge(&client, "a", json!({ "spec": { "color": "red" } }))
        .await
        .unwrap();
    old.data["spec"]["color"] = "blue".into();
    let status = refusal(replace(&client, &old).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on widgets.demo.okt.dev \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

#[tokio::test]
async fn a_put_of_a_custom_resource_without_a_version_is_422() {
    let (_server, client) = server().await;
    let mut object = create(&client, "a", json!({})).await;
    object.metadata.resource_version = None;
    let status = refusal(replace(&client, &object).await);
    assert_eq!(status.code, 422);
    assert!(
        status
            .message
            .contains("metadata.resourceVersion: Invalid value: 0")
    );
}

#[tokio::test]
async fn a_put_with_the_current_version_is_written() {
    let (_server, client) = server().await;
    let mut object = create(&client, "a", json!({})).await;
    object.data["spec"]["color"] = "red".into();
    let new = replace(&client, &object).await.unwrap();
    assert_eq!(new.data["spec"]["color"], "red");
    assert_eq!(new.metadata.uid, object.metadata.uid);
    assert_ne!(version(&new), version(&object));
}

#[tokio::test]
async fn a_put_that_changes_nothing_keeps_the_resource_version() {
    let (_server, client) = server().await;
    let object = create(&client, "a", json!({})).await;
    // The status that the schema gives is written with the first write.
    let object = replace(&client, &object).await.unwrap();
    let same = replace(&client, &object).await.unwrap();
    assert_eq!(version(&same), version(&object));
}

#[tokio::test]
async fn identity_cannot_be_patched_away() {
    let (_server, client) = server().await;
    let object = create(&client, "a", json!({})).await;
    let patch = json!({ "metadata": { "creationTimestamp": null, "generation": 9 } });
    let patched = merge(&client, "a", patch).await.unwrap();
    assert_eq!(
        patched.metadata.creation_timestamp,
        object.metadata.creation_timestamp
    );
    assert_eq!(patched.metadata.generation, Some(1));
    let other = json!({ "metadata": { "uid": "x" } });
    let status = refusal(merge(&client, "a", other).await);
    assert_eq!(status.code, 422);
    assert!(
        status
            .message
            .ends_with("metadata.uid: Invalid value: \"x\": field is immutable")
    );
}

#[tokio::test]
async fn a_json_patch_whose_test_fails_is_422() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "color": "red" })).await;
    let patch = json!([
        { "op": "test", "path": "/spec/color", "value": "blue" },
        { "op": "replace", "path": "/spec/color", "value": "green" },
    ]);
    let status = refusal(json_patch(&client, "a", patch).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(get(&client, "a").await.data["spec"]["color"], "red");
}

#[tokio::test]
async fn a_json_patch_whose_test_holds_is_done() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "color": "red" })).await;
    let patch = json!([
        { "op": "test", "path": "/spec/color", "value": "red" },
        { "op": "replace", "path": "/spec/color", "value": "green" },
    ]);
    let patched = json_patch(&client, "a", patch).await.unwrap();
    assert_eq!(patched.data["spec"]["color"], "green");
}

#[tokio::test]
async fn a_merge_patch_with_an_old_version_is_409() {
    let (_server, client) = server().await;
    let old = create(&client, "a", json!({})).await;
    merge(&client, "a", json!({ "spec": { "color": "red" } }))
        .await
        .unwrap();
    let patch =
        json!({ "metadata": { "resourceVersion": version(&old) }, "spec": { "color": "blue" } });
    assert_eq!(refusal(merge(&client, "a", patch).await).code, 409);
}

#[tokio::test]
async fn a_strategic_merge_patch_of_a_custom_resource_is_415() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let patch = Patch::Strategic(json!({ "spec": { "color": "red" } }));
    let outcome = widgets(&client)
        .patch("a", &PatchParams::default(), &patch)
        .await;
    let status = refusal(outcome);
    assert_eq!(
        (status.code, status.reason.as_str()),
        (415, "UnsupportedMediaType")
    );
}

#[tokio::test]
async fn a_dry_run_is_not_persisted() {
    let (server, client) = server().await;
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let made = widgets(&client)
        .create(&params, &widget("a", json!({})))
        .await
        .unwrap();
    assert_eq!(
        made.data["spec"]["replicas"], 1,
        "the answer is what would have been stored"
    );
    assert_eq!(refusal(widgets(&client).get("a").await).code, 404);

    create(&client, "b", json!({})).await;
    let patch = Patch::Merge(json!({ "spec": { "color": "red" } }));
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    widgets(&client).patch("b", &params, &patch).await.unwrap();
    assert!(get(&client, "b").await.data["spec"].get("color").is_none());
    let params = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    widgets(&client).delete("b", &params).await.unwrap();
    get(&client, "b").await;
    let writes = server
        .requests()
        .into_iter()
        .filter(RequestRecord::is_write)
        .count();
    assert_eq!(writes, 2, "the CRD and b");
}

#[tokio::test]
async fn generate_name_gives_each_object_its_own() {
    let (_server, client) = server().await;
    let mut object = widget("x", json!({}));
    object.metadata.name = None;
    object.metadata.generate_name = Some("w-".to_owned());
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let made = widgets(&client)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        let name = made.name_any();
        assert!(name.starts_with("w-") && name.len() == 7, "{name}");
        names.insert(name);
    }
    assert_eq!(names.len(), 100);
}

#[tokio::test]
async fn a_name_that_is_no_dns_subdomain_is_422() {
    let (_server, client) = server().await;
    for name in ["A", "a_b", "-a", "a-"] {
        let status = refusal(try_create(&client, name, json!({})).await);
        assert_eq!(status.code, 422, "{name}");
        assert!(
            status.message.contains("RFC 1123 subdomain"),
            "{}",
            status.message
        );
    }
}

#[tokio::test]
async fn a_label_that_is_none_is_422() {
    let (_server, client) = server().await;
    create(&client, "a", json!({})).await;
    let patch = json!({ "metadata": { "labels": { "a": "no spaces" } } });
    assert_eq!(refusal(merge(&client, "a", patch).await).code, 422);
}

#[tokio::test]
async fn creating_in_a_namespace_that_is_not_there_is_404() {
    let (_server, client) = server().await;
    let api: Api<DynamicObject> = Api::namespaced_with(client, "nowhere", &widget_resource());
    let outcome = api
        .create(&PostParams::default(), &widget("a", json!({})))
        .await;
    let status = refusal(outcome);
    assert_eq!(status.code, 404);
    assert_eq!(status.message, "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn a_resource_version_on_create_is_500() {
    let (_server, client) = server().await;
    let mut object = widget("a", json!({}));
    object.metadata.resource_version = Some("5".to_owned());
    let outcome = widgets(&client)
        .create(&PostParams::default(), &object)
        .await;
    assert_eq!(refusal(outcome).code, 500);
}

#[tokio::test]
async fn metadata_alone_is_served_where_it_is_asked_for() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "color": "red" })).await;
    let meta = widgets(&client).get_metadata("a").await.unwrap();
    assert_eq!(meta.types.unwrap().kind, "PartialObjectMetadata");
    assert_eq!(meta.metadata.name.as_deref(), Some("a"));
    let list = widgets(&client)
        .list_metadata(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(list.items.len(), 1);
}

#[tokio::test]
async fn the_scale_reads_and_writes_the_replicas() {
    let (_server, client) = server().await;
    create(&client, "a", json!({ "replicas": 2 })).await;
    apply_status(
        &client,
        "m",
        "a",
        json!({ "replicas": 1, "selector": "a=b" }),
    )
    .await
    .unwrap();
    let scale = widgets(&client).get_scale("a").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(2));
    let status = scale.status.unwrap();
    assert_eq!(
        (status.replicas, status.selector.as_deref()),
        (1, Some("a=b"))
    );
    let patch = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    let scale = widgets(&client)
        .patch_scale("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(5));
    let object = get(&client, "a").await;
    assert_eq!(object.data["spec"]["replicas"], 5);
    assert_eq!(object.metadata.generation, Some(2));
    let too_many = Patch::Merge(json!({ "spec": { "replicas": 50 } }));
    let outcome = widgets(&client)
        .patch_scale("a", &PatchParams::default(), &too_many)
        .await;
    assert_eq!(
        refusal(outcome).code,
        422,
        "the schema holds for the scale too"
    );
}

#[tokio::test]
async fn every_client_of_a_server_sees_one_store() {
    let (server, client) = server().await;
    create(&client, "a", json!({})).await;
    get(&server.client(), "a").await;
    get(&server.clone().client(), "a").await;
}
