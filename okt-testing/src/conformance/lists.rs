//! This file says what lists do: selectors, pages, versions.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PostParams, VersionMatch},
};
use serde_json::json;

use super::{
    claim::{Given, Outcome, refusal},
    world::{World, version},
};

async fn names(world: &World, params: &ListParams) -> kube::Result<Vec<String>> {
    let list = world.widgets().list(params).await?;
    Ok(list.items.iter().map(ResourceExt::name_any).collect())
}

async fn labelled(world: &World) -> Outcome {
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "z")] {
        world.create(name, json!({})).await?;
        let patch = json!({ "metadata": { "labels": { "l": label } } });
        world.merge(name, patch).await?;
    }
    world.create("d", json!({})).await?;
    Ok(())
}

async fn label_selectors_select(world: &World) -> Outcome {
    labelled(world).await?;
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
        let found = names(world, &ListParams::default().labels(selector)).await?;
        ensure_eq!(found, expected, "{selector}");
    }
    let bad = world
        .widgets()
        .list(&ListParams::default().labels("l in x"))
        .await;
    ensure_eq!(refusal(bad)?.code, 400);
    Ok(())
}

async fn field_selectors_know_name_namespace_and_what_the_crd_declares(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    world.create("b", json!({ "color": "blue" })).await?;
    let by = |fields: &str| ListParams::default().fields(fields);
    ensure_eq!(names(world, &by("metadata.name=a")).await?, ["a"]);
    ensure_eq!(
        names(
            world,
            &by(&format!("metadata.namespace={}", world.namespace))
        )
        .await?,
        ["a", "b"]
    );
    ensure_eq!(names(world, &by("spec.color=blue")).await?, ["b"]);
    ensure_eq!(names(world, &by("spec.color!=blue")).await?, ["a"]);
    let status = refusal(world.widgets().list(&by("spec.name=x")).await)?;
    ensure_eq!(
        (status.code, status.message.as_str()),
        (400, "field label not supported: spec.name")
    );
    Ok(())
}

async fn pages_are_of_one_version(world: &World) -> Outcome {
    for name in ["a", "b", "c", "d", "e"] {
        world.create(name, json!({})).await?;
    }
    let first = world
        .widgets()
        .list(&ListParams::default().limit(2))
        .await?;
    ensure_eq!(first.metadata.remaining_item_count, Some(3));
    let token = first.metadata.continue_.given()?;
    world.create("bb", json!({})).await?;
    world
        .widgets()
        .delete("d", &DeleteParams::default())
        .await?;
    let params = ListParams::default().limit(2).continue_token(&token);
    let second = world.widgets().list(&params).await?;
    let found: Vec<_> = second.items.iter().map(ResourceExt::name_any).collect();
    ensure_eq!(found, ["c", "d"], "as it was when the first page was read");
    ensure_eq!(
        second.metadata.resource_version,
        first.metadata.resource_version
    );
    let token = second.metadata.continue_.given()?;
    let params = ListParams::default().limit(2).continue_token(&token);
    let third = world.widgets().list(&params).await?;
    ensure_eq!(third.items.len(), 1);
    ensure_eq!(third.metadata.continue_.unwrap_or_default(), "");
    Ok(())
}

async fn a_list_of_an_exact_version_is_as_it_was(world: &World) -> Outcome {
    let old = world.create("a", json!({})).await?;
    world.create("b", json!({})).await?;
    let params = ListParams::default()
        .at(&version(&old)?)
        .matching(VersionMatch::Exact);
    ensure_eq!(names(world, &params).await?, ["a"]);
    Ok(())
}

async fn a_list_not_older_than_a_version_may_be_newer(world: &World) -> Outcome {
    let old = world.create("a", json!({})).await?;
    world.create("b", json!({})).await?;
    world.caught_up().await?;
    let params = ListParams::default()
        .at(&version(&old)?)
        .matching(VersionMatch::NotOlderThan);
    ensure_eq!(names(world, &params).await?, ["a", "b"]);
    Ok(())
}

async fn how_a_version_matches_is_checked(world: &World) -> Outcome {
    for (query, message) in [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersionMatch=Other&resourceVersion=1",
            "resourceVersionMatch: Unsupported value: \"Other\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
    ] {
        let path = format!("{}?{query}", world.path());
        let reply = world.send("GET", &path, &[], "").await?;
        ensure_eq!(reply.code, 422, "{query}");
        let said = reply.message()?;
        ensure!(said.contains(message), "{query}: {said}");
    }
    Ok(())
}

async fn a_page_token_that_is_none_is_400(world: &World) -> Outcome {
    let params = ListParams::default().limit(1).continue_token("bogus");
    let status = refusal(world.widgets().list(&params).await)?;
    ensure_eq!(status.code, 400);
    Ok(())
}

async fn a_version_of_the_future_is_504(world: &World) -> Outcome {
    let params = ListParams::default().at("99999999999");
    let status = refusal(world.widgets().list(&params).await)?;
    ensure_eq!(status.code, 504);
    ensure!(
        status
            .message
            .starts_with("Timeout: Too large resource version")
    );
    Ok(())
}

async fn a_list_of_all_namespaces_has_all(world: &World) -> Outcome {
    let other = format!("{}-other", world.namespace);
    world.create_namespace(&other).await?;
    world.create("a", json!({})).await?;
    let other: Api<DynamicObject> = Api::namespaced_with(world.client(), &other, &world.resource());
    other
        .create(&PostParams::default(), &world.widget("b", json!({})))
        .await?;
    let all = world.all_widgets().list(&ListParams::default()).await?;
    let mine = |object: &&DynamicObject| {
        let namespace = object.namespace();
        namespace.is_some_and(|namespace| namespace.starts_with(&world.namespace))
    };
    ensure_eq!(all.items.iter().filter(mine).count(), 2);
    ensure_eq!(names(world, &ListParams::default()).await?, ["a"]);
    Ok(())
}

behaviours! { "lists":
    28 label_selectors_select,
    27 field_selectors_know_name_namespace_and_what_the_crd_declares,
    32 pages_are_of_one_version,
    further a_list_of_an_exact_version_is_as_it_was,
    further a_list_not_older_than_a_version_may_be_newer,
    further how_a_version_matches_is_checked,
    further a_page_token_that_is_none_is_400,
    further a_version_of_the_future_is_504,
    further a_list_of_all_namespaces_has_all,
}
