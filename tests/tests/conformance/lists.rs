//! Behaviors of lists: selectors, pages, versions.

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::reply::Reply;
use crate::table::cases;
use crate::world::{World, names, version};

/// Lists widgets with a query.
async fn list(world: &World, query: &str) -> Reply {
    world.get(&format!("{}?{query}", world.path())).await
}

/// Returns the query of a selector, e.g. of labels.
fn select(key: &str, selector: &str) -> String {
    let pairs = [(key, selector)];
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

async fn lists(world: &World, query: &str, expected: &[&str]) {
    let list = list(world, query).await.ok();
    assert_eq!(names(&list), expected, "{query}");
}

async fn create_all(world: &World, names: &[&str]) {
    for name in names {
        world.create(name, json!({})).await.ok();
    }
}

async fn labelled(world: &World, labels: &[(&str, &str)]) {
    for (name, label) in labels {
        let mut widget = world.widget(name, json!({}));
        widget["metadata"]["labels"] = json!({ "l": label });
        world.post(&world.path(), &widget).await.ok();
    }
    world.create("d", json!({})).await.ok();
}

async fn label_selectors_select(world: &World) {
    labelled(world, &[("a", "x"), ("b", "y"), ("c", "z")]).await;
    for (selector, expected) in [
        ("l=x", &["a"][..]),
        ("l==x", &["a"]),
        ("l!=x", &["b", "c", "d"]),
        ("l in (x, y)", &["a", "b"]),
        ("l notin (x,y)", &["c", "d"]),
        ("l", &["a", "b", "c"]),
        ("!l", &["d"]),
        ("l,l!=x", &["b", "c"]),
        ("l>5", &[]),
    ] {
        lists(world, &select("labelSelector", selector), expected).await;
    }
}

async fn labels_that_are_numbers_can_be_compared(world: &World) {
    labelled(world, &[("a", "9"), ("b", "10"), ("c", "many")]).await;
    for (selector, expected) in [
        ("l>9", &["b"][..]),
        ("l > 8", &["a", "b"]),
        ("l<10", &["a"]),
        ("l<10,l>9", &[]),
    ] {
        lists(world, &select("labelSelector", selector), expected).await;
    }
}

/// Label selectors, and the beginnings of the problems that they are refused for.
const NO_SELECTORS: &str = r#"
-l → <nil>: Invalid value: "-l": name part must consist of…
a/b/c=d → <nil>: Invalid value: "a/b/c": a valid label key must…
l in (x, -y) → values[0][l]: Invalid value: "-y": a valid label must be…
l>x → …
l in x → …
l===x → …
! → …
"#;

async fn a_label_selector_that_no_label_can_meet_is_400(world: &World) {
    for (selector, problem) in cases(NO_SELECTORS) {
        let refused = list(world, &select("labelSelector", selector)).await;
        refused.refused(400, &format!("unable to parse requirement: {problem}"));
    }
}

async fn an_option_that_is_no_number_is_400(world: &World) {
    for (method, query) in [
        ("GET", "limit=many"),
        ("GET", "timeoutSeconds=many"),
        ("GET", "watch=1&timeoutSeconds=many"),
        ("DELETE", "gracePeriodSeconds=many"),
    ] {
        let path = format!("{}?{query}", world.path());
        let refused = world.send(method, &path, &[], "").await;
        let message = r#"strconv.ParseInt: parsing "many": invalid syntax"#;
        refused.refused(400, message);
    }
}

async fn any_word_but_false_and_0_sets_a_flag(world: &World) {
    world.create("a", json!({})).await.ok();
    for (word, watches) in [("yes", true), ("", true), ("0", false), ("False", false)] {
        // If a parameter is given twice, the first one counts.
        let query = format!("watch={word}&watch=1&timeoutSeconds=10");
        let lines = list(world, &query).await.lines();
        assert_eq!(lines[0]["type"] == "ADDED", watches, "{word}: {lines:?}");
    }
}

async fn field_selectors_know_name_namespace_and_what_the_crd_declares(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    world.create("b", json!({ "color": "blue" })).await.ok();
    let namespace = format!("metadata.namespace={}", world.namespace);
    for (selector, expected) in [
        ("metadata.name=a", &["a"][..]),
        (&namespace, &["a", "b"]),
        ("spec.color=blue", &["b"]),
        ("spec.color!=blue", &["a"]),
    ] {
        lists(world, &select("fieldSelector", selector), expected).await;
    }
    let refused = list(world, &select("fieldSelector", "spec.name=x")).await;
    refused.refused(400, "field label not supported: spec.name");
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

async fn pages_are_of_one_version(world: &World) {
    create_all(world, &["a", "b", "c", "d", "e"]).await;
    let first = list(world, "limit=2").await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    world.create("bb", json!({})).await.ok();
    world.remove("d").await.ok();
    let next = format!("limit=2&continue={}", token(&first));
    let second = list(world, &next).await.ok();
    assert_eq!(names(&second), ["c", "d"], "as it was at the first page");
    assert_eq!(version(&second), version(&first));
    let next = format!("limit=2&continue={}", token(&second));
    let third = list(world, &next).await.ok();
    assert_eq!(names(&third), ["e"]);
    assert_eq!(token(&third), "");
}

async fn a_list_of_an_exact_version_is_as_it_was(world: &World) {
    let old = world.create("a", json!({})).await.ok();
    world.create("b", json!({})).await.ok();
    world.caught_up().await;
    let at = |how: &str| {
        format!(
            "resourceVersion={}&resourceVersionMatch={how}",
            version(&old)
        )
    };
    lists(world, &at("Exact"), &["a"]).await;
    // A list that is not older may be newer.
    lists(world, &at("NotOlderThan"), &["a", "b"]).await;
}

/// Parameters of lists, and the problems that they are refused for.
const NO_MATCHES: &str = r#"
Exact → Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
Exact&resourceVersion=0 → Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"
Other&resourceVersion=1 → Unsupported value: "Other": supported values: "Exact", "NotOlderThan", ""
"#;

async fn how_a_version_matches_is_checked(world: &World) {
    for (query, problem) in cases(NO_MATCHES) {
        let refused = list(world, &format!("resourceVersionMatch={query}")).await;
        refused.refused(422, &format!("…resourceVersionMatch: {problem}…"));
    }
}

async fn a_page_token_that_is_none_is_400(world: &World) {
    list(world, "limit=1&continue=bogus")
        .await
        .refused(400, "…");
}

async fn a_version_of_the_future_is_504(world: &World) {
    let refused = list(world, "resourceVersion=99999999999").await;
    refused.refused(504, "Timeout: Too large resource version…");
}

async fn a_list_of_all_namespaces_has_all(world: &World) {
    let other = format!("{}-other", world.namespace);
    world.create_namespace(&other).await;
    world.create("a", json!({})).await.ok();
    let root = format!("/apis/{}", world.api_version());
    let there = format!("{root}/namespaces/{other}/widgets");
    let widget = world.widget("b", json!({}));
    world.post(&there, &widget).await.ok();
    let all = world.get(&format!("{root}/widgets")).await.ok();
    let items = all["items"].as_array().expect("a list").iter();
    let namespaces = items.map(|item| &item["metadata"]["namespace"]);
    let mine = namespaces.filter(|it| **it == *world.namespace || **it == *other);
    assert_eq!(mine.count(), 2);
    lists(world, "", &["a"]).await;
}

async fn a_continued_list_at_a_version_is_400(world: &World) {
    create_all(world, &["a", "b"]).await;
    let page = list(world, "limit=1").await.ok();
    let next = format!("limit=1&continue={}", token(&page));
    for version in ["1", "x"] {
        let refused = list(world, &format!("{next}&resourceVersion={version}")).await;
        let message = "specifying resource version is not allowed when using continue";
        refused.refused(400, message);
    }
    for version in ["", "&resourceVersion=0", "&resourceVersion="] {
        lists(world, &format!("{next}{version}"), &["b"]).await;
    }
}

async fn without_its_feature_gate_a_shard_selector_is_ignored(world: &World) {
    create_all(world, &["a", "b"]).await;
    // No uid has a hash in the first range but by a chance of 1 in 2^64; the other selector is wrong.
    let none = "shardRange(object.metadata.uid,'0x0000000000000000','0x0000000000000001')";
    for selector in [none, "wrong"] {
        let query = format!("shardSelector={selector}");
        lists(world, &query, &["a", "b"]).await;
        let watch = list(world, &format!("{query}&watch=true&timeoutSeconds=10")).await;
        assert_eq!(watch.lines().len(), 2, "{selector}");
    }
    let path = format!("{}?shardSelector=wrong", world.path());
    world.delete(&path).await.ok();
    lists(world, "", &[]).await;
}

async fn a_full_page_of_a_selection_may_be_followed_by_an_empty_one(world: &World) {
    labelled(world, &[("a", "x"), ("b", "y"), ("c", "z")]).await;
    let first = list(world, "labelSelector=l%3Dx&limit=1").await.ok();
    assert_eq!(names(&first), ["a"]);
    assert_ne!(token(&first), "");
    assert!(first["metadata"].get("remainingItemCount").is_none());
    let next = format!("labelSelector=l%3Dx&limit=1&continue={}", token(&first));
    let second = list(world, &next).await.ok();
    assert_eq!((names(&second).len(), token(&second)), (0, ""));
    // A page that is not full is the last one.
    let only = list(world, "labelSelector=l%3Dx&limit=2").await.ok();
    assert_eq!(token(&only), "");
}

async fn a_list_of_any_version_has_no_pages(world: &World) {
    create_all(world, &["a", "b"]).await;
    world.caught_up().await;
    let list = list(world, "limit=1&resourceVersion=0").await.ok();
    assert_eq!((names(&list).len(), token(&list)), (2, ""));
}

behaviours! { "lists":
    label_selectors_select,
    labels_that_are_numbers_can_be_compared,
    a_label_selector_that_no_label_can_meet_is_400,
    an_option_that_is_no_number_is_400,
    any_word_but_false_and_0_sets_a_flag,
    field_selectors_know_name_namespace_and_what_the_crd_declares,
    pages_are_of_one_version,
    a_continued_list_at_a_version_is_400,
    a_list_of_an_exact_version_is_as_it_was,
    how_a_version_matches_is_checked,
    a_page_token_that_is_none_is_400,
    a_version_of_the_future_is_504,
    a_list_of_all_namespaces_has_all,
    a_full_page_of_a_selection_may_be_followed_by_an_empty_one,
    a_list_of_any_version_has_no_pages,
    without_its_feature_gate_a_shard_selector_is_ignored,
}
