//! Behaviours of lists: selectors, pages, versions.

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
        ("l>5", vec![]),
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

async fn labels_that_are_numbers_can_be_compared(world: &World) -> Outcome {
    for (name, label) in [("a", "9"), ("b", "10"), ("c", "many")] {
        let mut widget = world.widget(name, json!({}));
        widget.labels_mut().insert("n".to_owned(), label.to_owned());
        world
            .widgets()
            .create(&PostParams::default(), &widget)
            .await?;
    }
    world.create("d", json!({})).await?;
    for (selector, expected) in [
        ("n>9", vec!["b"]),
        ("n > 8", vec!["a", "b"]),
        ("n<10", vec!["a"]),
        ("n<10,n>9", vec![]),
    ] {
        let found = names(world, &ListParams::default().labels(selector)).await?;
        ensure_eq!(found, expected, "{selector}");
    }
    Ok(())
}

async fn a_label_selector_that_no_label_can_meet_is_400(world: &World) -> Outcome {
    for (selector, message) in [
        (
            "-l",
            "unable to parse requirement: <nil>: Invalid value: \"-l\": name part must consist of",
        ),
        (
            "a/b/c=d",
            "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must",
        ),
        (
            "l in (x, -y)",
            "unable to parse requirement: values[0][l]: Invalid value: \"-y\": a valid label must be",
        ),
        ("l>x", "unable to parse requirement: "),
        ("l in x", "unable to parse requirement: "),
        ("l===x", "unable to parse requirement: "),
        ("!", "unable to parse requirement: "),
    ] {
        let params = ListParams::default().labels(selector);
        let status = refusal(world.widgets().list(&params).await)?;
        ensure_eq!(status.code, 400, "{selector}");
        let said = status.message;
        ensure!(said.starts_with(message), "{selector}: {said}");
    }
    Ok(())
}

async fn an_option_that_is_no_number_is_400(world: &World) -> Outcome {
    for (method, query) in [
        ("GET", "limit=many"),
        ("GET", "timeoutSeconds=many"),
        ("GET", "watch=1&timeoutSeconds=many"),
        ("DELETE", "gracePeriodSeconds=many"),
    ] {
        let path = format!("{}?{query}", world.path());
        let reply = world.send(method, &path, &[], "").await?;
        ensure_eq!(reply.code, 400, "{query}");
        let said = reply.message()?;
        ensure_eq!(said, "strconv.ParseInt: parsing \"many\": invalid syntax");
    }
    Ok(())
}

async fn any_word_but_false_and_0_sets_a_flag(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    for (word, watches) in [("yes", true), ("", true), ("0", false), ("False", false)] {
        // If a parameter is given twice, the first one counts.
        let path = format!("{}?watch={word}&watch=1&timeoutSeconds=10", world.path());
        let reply = world.send("GET", &path, &[], "").await?;
        let first = reply.lines()?.into_iter().next().given()?;
        ensure_eq!(first["type"] == "ADDED", watches, "{word}: {first}");
    }
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
    let there: Api<DynamicObject> = Api::namespaced_with(world.client(), &other, &world.resource());
    there
        .create(&PostParams::default(), &world.widget("b", json!({})))
        .await?;
    let all = world.all_widgets().list(&ListParams::default()).await?;
    let mine = |object: &&DynamicObject| {
        let namespace = object.namespace();
        namespace.is_some_and(|it| it == world.namespace || it == other)
    };
    ensure_eq!(all.items.iter().filter(mine).count(), 2);
    ensure_eq!(names(world, &ListParams::default()).await?, ["a"]);
    Ok(())
}

async fn a_continued_list_at_a_version_is_400(world: &World) -> Outcome {
    for name in ["a", "b"] {
        world.create(name, json!({})).await?;
    }
    let page = ListParams::default().limit(1);
    let list = world.widgets().list(&page).await?;
    let token = list.metadata.continue_.given()?;
    let path = format!(
        "{}?limit=1&continue={token}&resourceVersion=1",
        world.path()
    );
    let reply = world.send("GET", &path, &[], "").await?;
    ensure_eq!(reply.code, 400);
    ensure_eq!(
        reply.message()?,
        "specifying resource version is not allowed when using continue"
    );
    Ok(())
}

async fn without_its_feature_gate_a_shard_selector_is_ignored(world: &World) -> Outcome {
    for name in ["a", "b"] {
        world.create(name, json!({})).await?;
    }
    // No uid has a hash in the first range but by a chance of 1 in 2^64; the other selector is wrong.
    let none = "shardRange(object.metadata.uid,'0x0000000000000000','0x0000000000000001')";
    for selector in [none, "wrong"] {
        let path = format!("{}?shardSelector={selector}", world.path());
        let list = world.send("GET", &path, &[], "").await?.json()?;
        ensure_eq!(list["items"].as_array().given()?.len(), 2, "{selector}");
        let path = format!("{path}&watch=true&timeoutSeconds=10");
        let events = world.send("GET", &path, &[], "").await?.lines()?;
        ensure_eq!(events.len(), 2, "{selector}");
    }
    let path = format!("{}?shardSelector=wrong", world.path());
    ensure_eq!(world.send("DELETE", &path, &[], "").await?.code, 200);
    ensure_eq!(names(world, &ListParams::default()).await?, [""; 0]);
    Ok(())
}

async fn a_full_page_of_a_selection_may_be_followed_by_an_empty_one(world: &World) -> Outcome {
    labelled(world).await?;
    let page = ListParams::default().labels("l=x").limit(1);
    let first = world.widgets().list(&page).await?;
    ensure_eq!(first.items.len(), 1);
    let token = first.metadata.continue_.given()?;
    ensure_ne!(token, "");
    ensure_eq!(first.metadata.remaining_item_count, None);
    let second = world.widgets().list(&page.continue_token(&token)).await?;
    ensure_eq!(second.items.len(), 0);
    ensure_eq!(second.metadata.continue_.unwrap_or_default(), "");
    // A page that is not full is the last one.
    let page = ListParams::default().labels("l=x").limit(2);
    let only = world.widgets().list(&page).await?;
    ensure_eq!(only.metadata.continue_.unwrap_or_default(), "");
    Ok(())
}

async fn a_list_of_any_version_has_no_pages(world: &World) -> Outcome {
    for name in ["a", "b"] {
        world.create(name, json!({})).await?;
    }
    world.caught_up().await?;
    let path = format!("{}?limit=1&resourceVersion=0", world.path());
    let list = world.send("GET", &path, &[], "").await?.json()?;
    ensure_eq!(list["items"].as_array().given()?.len(), 2);
    ensure_eq!(list["metadata"]["continue"], "");
    Ok(())
}

behaviours! { "lists":
    28 label_selectors_select,
    further labels_that_are_numbers_can_be_compared,
    further a_label_selector_that_no_label_can_meet_is_400,
    further an_option_that_is_no_number_is_400,
    further any_word_but_false_and_0_sets_a_flag,
    27 field_selectors_know_name_namespace_and_what_the_crd_declares,
    32 pages_are_of_one_version,
    further a_continued_list_at_a_version_is_400,
    further a_list_of_an_exact_version_is_as_it_was,
    further a_list_not_older_than_a_version_may_be_newer,
    further how_a_version_matches_is_checked,
    further a_page_token_that_is_none_is_400,
    further a_version_of_the_future_is_504,
    further a_list_of_all_namespaces_has_all,
    further a_full_page_of_a_selection_may_be_followed_by_an_empty_one,
    further a_list_of_any_version_has_no_pages,
    further without_its_feature_gate_a_shard_selector_is_ignored,
}
