//! Behaviours of lists and watches of a part of the objects, with the feature gate `ShardedListAndWatch`.

use std::collections::BTreeMap;

use http::header::ACCEPT;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome},
    world::{World, version},
};

const UID: &str = "object.metadata.uid";
const NAMESPACE: &str = "object.metadata.namespace";
/// The end of the last range.
const END: u128 = 1 << 64;

/// The 64-bit FNV-1a hash of a text.
fn hash(text: &str) -> u128 {
    let mut hash: u64 = 14_695_981_039_346_656_037;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    hash.into()
}

fn range(field: &str, start: u128, end: u128) -> String {
    format!("shardRange({field}, '0x{start:016x}', '0x{end:016x}')")
}

/// Returns a path with a shard selector.
fn sharded(path: &str, selector: &str) -> String {
    let selector: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}shardSelector={selector}")
}

/// Gets a list, or sends another request for a collection, which must succeed.
async fn list(world: &World, method: &str, path: &str) -> Result<Value, Failure> {
    let reply = world.send(method, path, &[], "").await?;
    ensure_eq!(reply.code, 200, "{path}: {}", reply.text());
    reply.json()
}

/// Returns the names of the items of a list.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}

/// Returns the names of the listed widgets of a selector.
async fn select(world: &World, query: &str, selector: &str) -> Result<Vec<String>, Failure> {
    let path = sharded(&format!("{}{query}", world.path()), selector);
    let list = list(world, "GET", &path).await?;
    Ok(names(&list).into_iter().map(str::to_owned).collect())
}

/// Creates widgets; returns the hashes of their uids, by name.
async fn widgets(world: &World, names: &[&str]) -> Result<BTreeMap<String, u128>, Failure> {
    let mut hashes = BTreeMap::new();
    for name in names {
        let widget = world.create(name, json!({})).await?;
        hashes.insert((*name).to_owned(), hash(&widget.uid().given()?));
    }
    Ok(hashes)
}

/// Returns a selector of one object alone.
fn only(hash: u128) -> String {
    range(UID, hash, hash + 1)
}

async fn a_list_has_the_objects_whose_hash_is_in_the_range(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b", "c", "d", "e", "f"]).await?;
    let mut sorted: Vec<_> = hashes.values().copied().collect();
    sorted.sort_unstable();
    // The start is the hash of an object, which belongs to the second range and not to the first.
    let middle = sorted[3];
    for (start, end) in [(0, middle), (middle, END), (0, END), (middle, middle + 1)] {
        let expected: Vec<_> = (hashes.iter())
            .filter(|(_, hash)| (start..end).contains(hash))
            .map(|(name, _)| name.clone())
            .collect();
        let found = select(world, "", &range(UID, start, end)).await?;
        ensure_eq!(found, expected, "{start} {end}");
    }
    Ok(())
}

async fn ranges_may_be_joined_and_overlap(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b", "c"]).await?;
    let (a, b) = (only(hashes["a"]), only(hashes["b"]));
    for (selector, expected) in [
        (format!("{a} || {b}"), vec!["a", "b"]),
        (format!("({b}||({a}))"), vec!["a", "b"]),
        (format!("{a} || {a}"), vec!["a"]),
        (
            format!("{a} || {}", range(UID, 0, END)),
            vec!["a", "b", "c"],
        ),
    ] {
        ensure_eq!(select(world, "", &selector).await?, expected, "{selector}");
    }
    Ok(())
}

async fn the_namespace_may_be_hashed_instead_of_the_uid(world: &World) -> Outcome {
    widgets(world, &["a", "b"]).await?;
    let own = hash(&world.namespace);
    let selector = range(NAMESPACE, own, own + 1);
    ensure_eq!(select(world, "", &selector).await?, ["a", "b"]);
    let all = format!("/apis/{}/v1/widgets", world.group);
    let listed = list(world, "GET", &sharded(&all, &selector)).await?;
    ensure_eq!(names(&listed), ["a", "b"], "of all namespaces");
    let selector = range(NAMESPACE, own + 1, END);
    ensure_eq!(select(world, "", &selector).await?, [""; 0]);
    Ok(())
}

async fn a_cluster_scoped_object_has_the_empty_namespace(world: &World) -> Outcome {
    let path = format!(
        "/api/v1/namespaces?fieldSelector=metadata.name={}",
        world.namespace
    );
    let none = hash("");
    for (selector, count) in [
        (range(NAMESPACE, none, none + 1), 1),
        (range(NAMESPACE, none + 1, END), 0),
        (range(NAMESPACE, 0, none), 0),
    ] {
        let listed = list(world, "GET", &sharded(&path, &selector)).await?;
        ensure_eq!(names(&listed).len(), count, "{selector}");
    }
    let own = Api::<Namespace>::all(world.client());
    let own = own.get(&world.namespace).await?.uid().given()?;
    let listed = list(world, "GET", &sharded(&path, &only(hash(&own)))).await?;
    ensure_eq!(names(&listed).len(), 1);
    Ok(())
}

async fn only_a_whole_list_of_a_built_in_kind_tells_its_ranges(world: &World) -> Outcome {
    let maps: Api<ConfigMap> = world.namespaced();
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    let map = maps.create(&PostParams::default(), &map).await?;
    let hash = hash(&map.uid().given()?);
    let path = format!("/api/v1/namespaces/{}/configmaps", world.namespace);
    let half = range(UID, 0, END);
    let selector = format!("({}) ||\n{half}", only(hash).replace('\'', "\""));
    let told = format!("{} || {half}", only(hash));
    let listed = list(world, "GET", &sharded(&path, &selector)).await?;
    ensure_eq!(names(&listed), ["a"]);
    ensure_eq!(listed["metadata"]["shardInfo"], json!({ "selector": told }));
    let listed = list(world, "GET", &path).await?;
    ensure_eq!(listed["metadata"]["shardInfo"], json!(null), "no selector");

    for (path, form) in [
        (&path, "as=Table;v=v1;g=meta.k8s.io"),
        (&path, "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        (&world.path(), "charset=utf-8"),
    ] {
        let accept = format!("application/json;{form}");
        let path = sharded(path, &half);
        let headers = [(ACCEPT.as_str(), accept.as_str())];
        let listed = world.send("GET", &path, &headers, "").await?.json()?;
        ensure!(
            listed["metadata"]["resourceVersion"].is_string(),
            "{listed}"
        );
        ensure_eq!(
            listed["metadata"]["shardInfo"],
            json!(null),
            "{path} {form}"
        );
    }
    Ok(())
}

async fn pages_are_filled_from_the_range(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b", "c", "d", "e"]).await?;
    let selector = format!("{} || {}", only(hashes["b"]), only(hashes["d"]));
    let path = sharded(&format!("{}?limit=1", world.path()), &selector);
    let mut pages = Vec::new();
    let mut next = String::new();
    loop {
        let page = list(world, "GET", &format!("{path}{next}")).await?;
        pages.push(names(&page).join(" "));
        // The objects after the page, at least; a server that counts in its cache adds those before.
        let left = page["metadata"]["remainingItemCount"].as_u64();
        let token = page["metadata"]["continue"].as_str().unwrap_or_default();
        match pages.len() {
            1 => ensure!(left >= Some(3), "{left:?}"),
            2 => ensure!(left >= Some(1), "{left:?}"),
            _ => ensure_eq!(left, None),
        }
        if token.is_empty() {
            break;
        }
        next = format!("&continue={token}");
    }
    // There are objects after the second page, so it is followed by one that is empty.
    ensure_eq!(pages, ["b", "d", ""]);
    Ok(())
}

async fn a_list_of_an_old_or_any_version_keeps_to_the_range(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b"]).await?;
    let old = world.get("b").await?;
    world
        .widgets()
        .delete("a", &DeleteParams::default())
        .await?;
    world.caught_up().await?;
    let selector = only(hashes["a"]);
    let exact = format!(
        "?resourceVersion={}&resourceVersionMatch=Exact",
        version(&old)?
    );
    ensure_eq!(select(world, &exact, &selector).await?, ["a"]);
    for query in ["", "?resourceVersion=0"] {
        ensure_eq!(select(world, query, &selector).await?, [""; 0], "{query}");
        let b = only(hashes["b"]);
        ensure_eq!(select(world, query, &b).await?, ["b"], "{query}");
    }
    Ok(())
}

async fn a_range_selects_together_with_labels_and_fields(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b", "c"]).await?;
    for name in ["a", "b"] {
        let labels = json!({ "metadata": { "labels": { "l": "x" } } });
        world.merge(name, labels).await?;
    }
    let selector = format!("{} || {}", only(hashes["b"]), only(hashes["c"]));
    for (query, expected) in [
        ("?labelSelector=l%3Dx", vec!["b"]),
        ("?fieldSelector=metadata.name%3Dc", vec!["c"]),
        ("?fieldSelector=metadata.name%3Da", vec![]),
        ("?fieldSelector=metadata.name!%3Db", vec!["c"]),
    ] {
        ensure_eq!(select(world, query, &selector).await?, expected, "{query}");
    }
    Ok(())
}

/// Watches widgets for a moment; returns the events in short form.
async fn watch(
    world: &World,
    query: &str,
    selector: &str,
    accept: &str,
) -> Result<Vec<String>, Failure> {
    let path = format!("{}?watch=true&timeoutSeconds=10{query}", world.path());
    let headers = [(ACCEPT.as_str(), accept)];
    let path = sharded(&path, selector);
    let reply = world.send("GET", &path, &headers, "").await?;
    ensure_eq!(reply.code, 200, "{}", reply.text());
    let short = |event: Value| {
        let object = match event["object"]["kind"].as_str() {
            Some("Table") => &event["object"]["rows"][0]["object"],
            _ => &event["object"],
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{} {name}", event["type"].as_str().unwrap_or_default())
    };
    Ok(reply.lines()?.into_iter().map(short).collect())
}

const WHOLE: &str = "application/json";

async fn a_watch_has_the_events_of_its_range(world: &World) -> Outcome {
    let before = version(&world.create("first", json!({})).await?)?;
    let hashes = widgets(world, &["a", "b", "c"]).await?;
    for name in ["a", "b", "c"] {
        let red = json!({ "spec": { "color": "red" } });
        world.merge(name, red).await?;
    }
    for name in ["c", "b", "a"] {
        world
            .widgets()
            .delete(name, &DeleteParams::default())
            .await?;
    }
    let selector = format!("{} || {}", only(hashes["a"]), only(hashes["c"]));
    let query = format!("&resourceVersion={before}");
    for accept in [
        WHOLE,
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ] {
        let events = watch(world, &query, &selector, accept).await?;
        let expected = [
            "ADDED a",
            "ADDED c",
            "MODIFIED a",
            "MODIFIED c",
            "DELETED c",
            "DELETED a",
        ];
        ensure_eq!(events, expected, "{accept}");
    }
    Ok(())
}

async fn a_watch_begins_with_the_objects_of_its_range(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b", "c"]).await?;
    world.caught_up().await?;
    for query in ["", "&resourceVersion=0"] {
        let events = watch(world, query, &only(hashes["b"]), WHOLE).await?;
        ensure_eq!(events, ["ADDED b"], "{query}");
    }
    Ok(())
}

async fn the_bookmarks_of_a_range_have_the_version_of_all_objects(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b"]).await?;
    let last = world.create("c", json!({})).await?;
    let path = format!(
        "{}?watch=true&timeoutSeconds=10&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        world.path()
    );
    let path = sharded(&path, &only(hashes["a"]));
    let events = world.send("GET", &path, &[], "").await?.lines()?;
    ensure_eq!(events[0]["type"], "ADDED");
    ensure_eq!(events[0]["object"]["metadata"]["name"], "a");
    let metadata = &events[1]["object"]["metadata"];
    ensure_eq!(
        metadata["annotations"]["k8s.io/initial-events-end"],
        "true",
        "{}",
        events[1]
    );
    let told: u64 = metadata["resourceVersion"].as_str().given()?.parse()?;
    ensure!(told >= version(&last)?.parse()?, "{told}");
    Ok(())
}

async fn an_object_of_the_range_that_loses_its_label_is_deleted(world: &World) -> Outcome {
    let before = version(&world.create("first", json!({})).await?)?;
    let hashes = widgets(world, &["a", "b"]).await?;
    for label in ["x", "y"] {
        for name in ["a", "b"] {
            let labels = json!({ "metadata": { "labels": { "l": label } } });
            world.merge(name, labels).await?;
        }
    }
    let query = format!("&resourceVersion={before}&labelSelector=l%3Dx");
    let events = watch(world, &query, &only(hashes["a"]), WHOLE).await?;
    ensure_eq!(events, ["ADDED a", "DELETED a"]);
    Ok(())
}

async fn a_deletion_of_a_collection_keeps_to_its_range(world: &World) -> Outcome {
    let hashes = widgets(world, &["a", "b", "c"]).await?;
    let path = world.path();
    let deleted = list(world, "DELETE", &sharded(&path, &only(hashes["b"]))).await?;
    ensure_eq!(names(&deleted), ["b"]);
    ensure_eq!(names(&list(world, "GET", &path).await?), ["a", "c"]);
    let wrong = world.send("DELETE", &sharded(&path, "x"), &[], "").await?;
    ensure_eq!(wrong.code, 500);
    ensure_eq!(names(&list(world, "GET", &path).await?), ["a", "c"]);
    Ok(())
}

async fn requests_for_one_object_ignore_a_shard_selector(world: &World) -> Outcome {
    let path = sharded(&world.path(), "wrong");
    let widget = serde_json::to_string(&world.widget("a", json!({})))?;
    let json = [("content-type", "application/json")];
    let merge = [("content-type", "application/merge-patch+json")];
    let reply = world.send("POST", &path, &json, widget).await?;
    ensure_eq!(reply.code, 201, "{}", reply.text());
    let path = sharded(&format!("{}/a", world.path()), "wrong");
    for (method, headers, body) in [
        ("GET", &[][..], ""),
        ("PATCH", &merge, r#"{ "spec": { "color": "red" } }"#),
        ("DELETE", &[], ""),
    ] {
        let reply = world.send(method, &path, headers, body).await?;
        ensure_eq!(reply.code, 200, "{method}: {}", reply.text());
    }
    Ok(())
}

async fn the_first_shard_selector_counts_and_an_empty_one_selects_everything(
    world: &World,
) -> Outcome {
    let hashes = widgets(world, &["a", "b"]).await?;
    let a = only(hashes["a"]);
    for (selectors, expected) in [
        ([a.as_str(), "wrong"], vec!["a"]),
        (["", "wrong"], vec!["a", "b"]),
        (["", &a], vec!["a", "b"]),
    ] {
        let path = sharded(&sharded(&world.path(), selectors[0]), selectors[1]);
        let listed = list(world, "GET", &path).await?;
        ensure_eq!(names(&listed), expected, "{selectors:?}");
    }
    Ok(())
}

/// Checks that lists and watches with this selector are 500, with this message.
async fn refused(world: &World, selector: &str, message: &str) -> Outcome {
    for watch in ["", "?watch=true"] {
        let path = sharded(&format!("{}{watch}", world.path()), selector);
        let reply = world.send("GET", &path, &[], "").await?;
        let status = reply.json()?;
        ensure_eq!(
            (reply.code, &status["code"], status.get("reason")),
            (500, &json!(500), None),
            "{selector}: {status}"
        );
        let said = reply.message()?;
        let why = said.strip_prefix("invalid shard selector: ");
        let is_so = match message.strip_suffix("..") {
            Some(start) => why.is_some_and(|why| why.starts_with(start)),
            None => why == Some(message),
        };
        ensure!(is_so, "{selector}: {said}\n  expected: {message}");
    }
    Ok(())
}

/// Selectors, and the messages that refuse them; the words for [`written_out`] are in capitals.
///
/// Parsers differ in the tokens that they expected instead, which are left out here.
const NO_RANGES: &str = r#"
LOW && LOW → unsupported function "_&&_"; only shardRange() and || are allowed
!LOW → unsupported function "!_"; only shardRange() and || are allowed
shardrange(UID, ZERO, HALF) → unsupported function "shardrange"; only shardRange() and || are allowed
LOW || true → unexpected expression kind 5; expected shardRange() call or || operator
[LOW] → unexpected expression kind 4; expected shardRange() call or || operator
a → unexpected expression kind 3; expected shardRange() call or || operator
a.b → unexpected expression kind 7; expected shardRange() call or || operator
{} → unexpected expression kind 6; expected shardRange() call or || operator
LOW or LOW → CEL parse error: Syntax error: mismatched input 'or' expecting ..
LOW || → CEL parse error: Syntax error: ..
(LOW → CEL parse error: Syntax error: ..
LOW; → CEL parse error: Syntax error: token recognition error at: ';'
LOW || shardRange(object.metadata.namespace, ZERO, LAST) → all shard ranges must use the same field, got "UID" and "object.metadata.namespace"
"#;

/// The same for selectors of one range.
const WRONG_RANGES: &str = r#"
shardRange() → shardRange() requires exactly 3 arguments, got 0
shardRange(UID, ZERO) → shardRange() requires exactly 3 arguments, got 2
shardRange(metadata.uid, ZERO, HALF) → unsupported field path "metadata.uid"; supported: UID, object.metadata.namespace
shardRange(object.metadata.name, ZERO, HALF) → unsupported field path "object.metadata.name"; supported: UID, object.metadata.namespace
shardRange('UID', ZERO, HALF) → shardRange() first argument: expected field path (e.g. UID), got expression kind 5
shardRange(object.metadata['uid'], ZERO, HALF) → shardRange() first argument: expected field path (e.g. UID), got expression kind 1
shardRange(UID, HALF, HALF) → shard range start 0x8000000000000000 must be less than end 0x8000000000000000
shardRange(UID, HALF, ZERO) → shard range start 0x8000000000000000 must be less than end 0x0000000000000000
shardRange(UID, LAST, HALF) → shard range start 0x10000000000000000 must be less than end 0x8000000000000000
shardRange(UID, ZERO, '0x10000000000000001') → hexEnd: 17-digit hex value must be LAST (2^64), got "0x10000000000000001"
shardRange(UID, '0x00000000000000000', HALF) → hexStart: 17-digit hex value must be LAST (2^64), got "0x00000000000000000"
shardRange(UID, ZERO, '0x100000000000000000') → hexEnd: hex value too long (18 chars, max 17): "100000000000000000"
shardRange(UID, '0xééééééééé', HALF) → hexStart: hex value too long (18 chars, max 17): "ééééééééé"
shardRange(UID, '0000000000000000', HALF) → hexStart must have '0x' prefix, got "0000000000000000"
shardRange(UID, '0X0000000000000000', HALF) → hexStart must have '0x' prefix, got "0X0000000000000000"
shardRange(UID, '', HALF) → hexStart must have '0x' prefix, got ""
shardRange(UID, '0x', HALF) → hexStart: hex value is required after '0x'
shardRange(UID, ZERO, '0xF000000000000000') → hexEnd: invalid hex character "F" in "0xF000000000000000"
shardRange(UID, '0xA', HALF) → hexStart: invalid hex character "A" in "0xA"
shardRange(UID, '0x0', HALF) → hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" (did you mean "0x0000000000000000"?)
shardRange(UID, ZERO, '0x8') → hexEnd must be a 0x-prefixed 16-digit hex value, got "0x8" (did you mean "0x0000000000000008"?)
shardRange(UID, 0, HALF) → hexStart must be a string literal, got int64
shardRange(UID, 1u, HALF) → hexStart must be a string literal, got uint64
shardRange(UID, 1.5, HALF) → hexStart must be a string literal, got float64
shardRange(UID, true, HALF) → hexStart must be a string literal, got bool
shardRange(UID, null, HALF) → hexStart must be a string literal, got structpb.NullValue
shardRange(UID, b'0x0000000000000000', HALF) → hexStart must be a string literal, got []uint8
shardRange(UID, ZERO, a) → hexEnd must be a string literal (e.g. '0xff'), got expression kind 3
"#;

/// Returns the pairs of one of the texts above.
fn written_out(table: &str) -> Vec<(String, String)> {
    let words = [
        ("LOW", "shardRange(UID, ZERO, HALF)"),
        ("UID", UID),
        ("ZERO", "'0x0000000000000000'"),
        ("HALF", "'0x8000000000000000'"),
        ("LAST", "'0x10000000000000000'"),
    ];
    let table = words.iter().fold(table.to_owned(), |text, (word, full)| {
        text.replace(word, full)
    });
    let pairs = table.lines().filter_map(|line| line.split_once(" → "));
    pairs
        .map(|(selector, message)| (selector.to_owned(), message.to_owned()))
        .collect()
}

async fn a_shard_selector_that_is_no_expression_of_ranges_is_500(world: &World) -> Outcome {
    for (selector, message) in written_out(NO_RANGES) {
        refused(world, &selector, &message).await?;
    }
    let blank = "empty shard selector is not allowed; omit the parameter for unfiltered lists";
    refused(world, " ", blank).await
}

async fn a_range_that_is_wrong_is_500(world: &World) -> Outcome {
    for (selector, message) in written_out(WRONG_RANGES) {
        refused(world, &selector, &message).await?;
    }
    Ok(())
}

behaviours! { "shards":
    further a_list_has_the_objects_whose_hash_is_in_the_range,
    further ranges_may_be_joined_and_overlap,
    further the_namespace_may_be_hashed_instead_of_the_uid,
    further a_cluster_scoped_object_has_the_empty_namespace,
    further only_a_whole_list_of_a_built_in_kind_tells_its_ranges,
    further pages_are_filled_from_the_range,
    further a_list_of_an_old_or_any_version_keeps_to_the_range,
    further a_range_selects_together_with_labels_and_fields,
    further a_watch_has_the_events_of_its_range,
    further a_watch_begins_with_the_objects_of_its_range,
    further the_bookmarks_of_a_range_have_the_version_of_all_objects,
    further an_object_of_the_range_that_loses_its_label_is_deleted,
    further a_deletion_of_a_collection_keeps_to_its_range,
    further requests_for_one_object_ignore_a_shard_selector,
    further the_first_shard_selector_counts_and_an_empty_one_selects_everything,
    further a_shard_selector_that_is_no_expression_of_ranges_is_500,
    further a_range_that_is_wrong_is_500,
}
