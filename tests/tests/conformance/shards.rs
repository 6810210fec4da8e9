//! Behaviors of lists and watches of a part of the objects, with the feature gate `ShardedListAndWatch`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::world::{JSON, MERGE, TABLE, World, names, uid, version};

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

/// Returns a selector of one object alone.
fn only(hash: u128) -> String {
    range(UID, hash, hash + 1)
}

/// Returns a path with a shard selector.
fn sharded(path: &str, selector: &str) -> String {
    let selector: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}shardSelector={selector}")
}

/// Checks the names of the listed widgets of a selector.
async fn lists(world: &World, query: &str, selector: &str, expected: &[&str]) {
    let path = sharded(&format!("{}{query}", world.path()), selector);
    let list = world.get(&path).await.ok();
    assert_eq!(names(&list), expected, "{query} {selector}");
}

/// Creates widgets; returns the hashes of their uids, by name.
async fn widgets<'n>(world: &World, names: &[&'n str]) -> BTreeMap<&'n str, u128> {
    let mut hashes = BTreeMap::new();
    for name in names {
        let widget = world.create(name, json!({})).await.ok();
        hashes.insert(*name, hash(uid(&widget)));
    }
    hashes
}

async fn a_list_has_the_objects_whose_hash_is_in_the_range(world: &World) {
    let hashes = widgets(world, &["a", "b", "c", "d", "e", "f"]).await;
    let mut sorted: Vec<_> = hashes.values().copied().collect();
    sorted.sort_unstable();
    // The start is the hash of an object, which belongs to the second range and not to the first.
    let middle = sorted[3];
    for range in [0..middle, middle..END, 0..END, middle..middle + 1] {
        let inside = hashes.iter().filter(|(_, hash)| range.contains(hash));
        let expected: Vec<_> = inside.map(|(name, _)| *name).collect();
        let selector = self::range(UID, range.start, range.end);
        lists(world, "", &selector, &expected).await;
    }
}

async fn ranges_may_be_joined_and_overlap(world: &World) {
    let hashes = widgets(world, &["a", "b", "c"]).await;
    let (a, b, all) = (only(hashes["a"]), only(hashes["b"]), range(UID, 0, END));
    for (selector, expected) in [
        (format!("{a} || {b}"), &["a", "b"][..]),
        (format!("({b}||({a}))"), &["a", "b"]),
        (format!("{a} || {a}"), &["a"]),
        (format!("{a} || {all}"), &["a", "b", "c"]),
    ] {
        lists(world, "", &selector, expected).await;
    }
}

async fn the_namespace_may_be_hashed_instead_of_the_uid(world: &World) {
    widgets(world, &["a", "b"]).await;
    let own = hash(&world.namespace);
    let selector = range(NAMESPACE, own, own + 1);
    lists(world, "", &selector, &["a", "b"]).await;
    let all = format!("/apis/{}/widgets", world.api_version());
    let list = world.get(&sharded(&all, &selector)).await.ok();
    assert_eq!(names(&list), ["a", "b"], "of all namespaces");
    lists(world, "", &range(NAMESPACE, own + 1, END), &[]).await;
}

async fn a_cluster_scoped_object_has_the_empty_namespace(world: &World) {
    let namespace = format!("/api/v1/namespaces/{}", world.namespace);
    let own = hash(uid(&world.get(&namespace).await.ok()));
    let path = format!(
        "/api/v1/namespaces?fieldSelector=metadata.name={}",
        world.namespace
    );
    let none = hash("");
    for (selector, count) in [
        (range(NAMESPACE, none, none + 1), 1),
        (range(NAMESPACE, none + 1, END), 0),
        (range(NAMESPACE, 0, none), 0),
        (only(own), 1),
    ] {
        let list = world.get(&sharded(&path, &selector)).await.ok();
        assert_eq!(names(&list).len(), count, "{selector}");
    }
}

async fn only_a_whole_list_of_a_built_in_kind_returns_its_ranges(world: &World) {
    let path = world.path_of("v1", "configmaps");
    let map = json!({ "metadata": { "name": "a" } });
    let map = world.post(&path, &map).await.ok();
    let hash = hash(uid(&map));
    let half = range(UID, 0, END);
    let selector = format!("({}) ||\n{half}", only(hash).replace('\'', "\""));
    let list = world.get(&sharded(&path, &selector)).await.ok();
    assert_eq!(names(&list), ["a"]);
    let info = json!({ "selector": format!("{} || {half}", only(hash)) });
    assert_eq!(list["metadata"]["shardInfo"], info);
    let list = world.get(&path).await.ok();
    assert_eq!(list["metadata"]["shardInfo"], json!(null), "no selector");

    for (path, form) in [
        (&path, "as=Table;v=v1;g=meta.k8s.io"),
        (&path, "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        (&world.path(), "charset=utf-8"),
    ] {
        let accept = format!("application/json;{form}");
        let list = world.get_as(&sharded(path, &half), &accept).await.ok();
        assert!(version(&list) > 0);
        assert_eq!(list["metadata"]["shardInfo"], json!(null), "{path} {form}");
    }
}

async fn pages_are_filled_from_the_range(world: &World) {
    let hashes = widgets(world, &["a", "b", "c", "d", "e"]).await;
    let selector = format!("{} || {}", only(hashes["b"]), only(hashes["d"]));
    let path = sharded(&format!("{}?limit=1", world.path()), &selector);
    let mut next = String::new();
    // At least the objects after the page remain; a server that counts in its cache adds those before. There are objects
    // after the second page, so it is followed by one that is empty.
    for (expected, remaining) in [("b", Some(3)), ("d", Some(1)), ("", None)] {
        let page = world.get(&format!("{path}{next}")).await.ok();
        assert_eq!(names(&page).join(" "), expected);
        let left = page["metadata"]["remainingItemCount"].as_u64();
        assert_eq!(left.is_some(), remaining.is_some());
        assert!(left >= remaining, "{left:?}");
        let token = page["metadata"]["continue"].as_str().unwrap_or_default();
        assert_eq!(token.is_empty(), expected.is_empty());
        next = format!("&continue={token}");
    }
}

async fn a_list_of_an_old_or_any_version_keeps_to_the_range(world: &World) {
    let hashes = widgets(world, &["a", "b"]).await;
    let old = version(&world.read("b").await);
    world.remove("a").await.ok();
    world.caught_up().await;
    let (a, b) = (only(hashes["a"]), only(hashes["b"]));
    let exact = format!("?resourceVersion={old}&resourceVersionMatch=Exact");
    lists(world, &exact, &a, &["a"]).await;
    for query in ["", "?resourceVersion=0"] {
        lists(world, query, &a, &[]).await;
        lists(world, query, &b, &["b"]).await;
    }
}

async fn a_range_selects_together_with_labels_and_fields(world: &World) {
    let hashes = widgets(world, &["a", "b", "c"]).await;
    for name in ["a", "b"] {
        let labels = json!({ "labels": { "l": "x" } });
        world.mark(name, labels).await.ok();
    }
    let selector = format!("{} || {}", only(hashes["b"]), only(hashes["c"]));
    for (query, expected) in [
        ("?labelSelector=l%3Dx", &["b"][..]),
        ("?fieldSelector=metadata.name%3Dc", &["c"]),
        ("?fieldSelector=metadata.name%3Da", &[]),
        ("?fieldSelector=metadata.name!%3Db", &["c"]),
    ] {
        lists(world, query, &selector, expected).await;
    }
}

/// Watches widgets for a moment; returns the events in short form.
async fn watch(world: &World, query: &str, selector: &str, accept: &str) -> Vec<String> {
    let path = format!("{}?watch=true&timeoutSeconds=10{query}", world.path());
    let reply = world.get_as(&sharded(&path, selector), accept).await;
    assert_eq!(reply.code, 200, "{}", reply.body);
    let short = |event: Value| {
        let object = match event["object"]["kind"].as_str() {
            Some("Table") => &event["object"]["rows"][0]["object"],
            _ => &event["object"],
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{} {name}", event["type"].as_str().unwrap_or_default())
    };
    reply.lines().into_iter().map(short).collect()
}

async fn a_watch_has_the_events_of_its_range(world: &World) {
    let before = version(&world.create("first", json!({})).await.ok());
    let hashes = widgets(world, &["a", "b", "c"]).await;
    for name in ["a", "b", "c"] {
        world.set(name, json!({ "color": "red" })).await.ok();
    }
    for name in ["c", "b", "a"] {
        world.remove(name).await.ok();
    }
    let selector = format!("{} || {}", only(hashes["a"]), only(hashes["c"]));
    let query = format!("&resourceVersion={before}");
    let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    for accept in [JSON, metadata, TABLE] {
        let events = watch(world, &query, &selector, accept).await;
        let expected = [
            "ADDED a",
            "ADDED c",
            "MODIFIED a",
            "MODIFIED c",
            "DELETED c",
            "DELETED a",
        ];
        assert_eq!(events, expected, "{accept}");
    }
}

async fn a_watch_begins_with_the_objects_of_its_range(world: &World) {
    let hashes = widgets(world, &["a", "b", "c"]).await;
    world.caught_up().await;
    for query in ["", "&resourceVersion=0"] {
        let events = watch(world, query, &only(hashes["b"]), JSON).await;
        assert_eq!(events, ["ADDED b"], "{query}");
    }
}

async fn the_bookmarks_of_a_range_have_the_version_of_all_objects(world: &World) {
    let hashes = widgets(world, &["a", "b"]).await;
    let last = world.create("c", json!({})).await.ok();
    let path = format!(
        "{}?watch=true&timeoutSeconds=10&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        world.path()
    );
    let path = sharded(&path, &only(hashes["a"]));
    let events = world.get(&path).await.lines();
    assert_eq!(events[0]["type"], "ADDED");
    assert_eq!(events[0]["object"]["metadata"]["name"], "a");
    let bookmark = &events[1]["object"];
    let notes = &bookmark["metadata"]["annotations"];
    assert_eq!(notes["k8s.io/initial-events-end"], "true", "{bookmark}");
    assert!(version(bookmark) >= version(&last), "{bookmark}");
}

async fn an_object_of_the_range_that_loses_its_label_is_deleted(world: &World) {
    let before = version(&world.create("first", json!({})).await.ok());
    let hashes = widgets(world, &["a", "b"]).await;
    for label in ["x", "y"] {
        for name in ["a", "b"] {
            let labels = json!({ "labels": { "l": label } });
            world.mark(name, labels).await.ok();
        }
    }
    let query = format!("&resourceVersion={before}&labelSelector=l%3Dx");
    let events = watch(world, &query, &only(hashes["a"]), JSON).await;
    assert_eq!(events, ["ADDED a", "DELETED a"]);
}

async fn a_deletion_of_a_collection_keeps_to_its_range(world: &World) {
    let hashes = widgets(world, &["a", "b", "c"]).await;
    let path = world.path();
    let deleted = world.delete(&sharded(&path, &only(hashes["b"]))).await;
    assert_eq!(names(&deleted.ok()), ["b"]);
    let wrong = world.delete(&sharded(&path, "x")).await;
    wrong.refused(500, "…");
    assert_eq!(names(&world.get(&path).await.ok()), ["a", "c"]);
}

async fn requests_for_one_object_ignore_a_shard_selector(world: &World) {
    let path = sharded(&world.path(), "wrong");
    let widget = world.widget("a", json!({}));
    world.post(&path, &widget).await.ok();
    let path = sharded(&world.at("a"), "wrong");
    world.get(&path).await.ok();
    let red = r#"{ "spec": { "color": "red" } }"#;
    world.patch(&path, MERGE, red).await.ok();
    world.delete(&path).await.ok();
}

async fn the_first_shard_selector_counts_and_an_empty_one_selects_everything(world: &World) {
    let hashes = widgets(world, &["a", "b"]).await;
    let a = only(hashes["a"]);
    for (first, second, expected) in [
        (&*a, "wrong", &["a"][..]),
        ("", "wrong", &["a", "b"]),
        ("", &a, &["a", "b"]),
    ] {
        let path = sharded(&sharded(&world.path(), first), second);
        let list = world.get(&path).await.ok();
        assert_eq!(names(&list), expected, "{first} {second}");
    }
}

/// Checks that lists and watches with this selector are 500, with this message.
async fn refused(world: &World, selector: &str, message: &str) {
    let message = format!("invalid shard selector: {}", message.replace("..", "…"));
    for watch in ["", "?watch=true"] {
        let path = sharded(&format!("{}{watch}", world.path()), selector);
        let status = world.get(&path).await.refused(500, &message);
        assert_eq!(status["code"], 500);
        assert_eq!(status.get("reason"), None);
    }
}

/// Selectors, and the messages that refuse them; the words that [`refuse_all`] replaces are in capitals.
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

/// Refuses each selector of one of the texts above.
async fn refuse_all(world: &World, table: &str) {
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
    for (selector, message) in table.lines().filter_map(|line| line.split_once(" → ")) {
        refused(world, selector, message).await;
    }
}

async fn a_shard_selector_that_is_no_expression_of_ranges_is_500(world: &World) {
    refuse_all(world, NO_RANGES).await;
    let blank = "empty shard selector is not allowed; omit the parameter for unfiltered lists";
    refused(world, " ", blank).await;
}

async fn a_range_that_is_wrong_is_500(world: &World) {
    refuse_all(world, WRONG_RANGES).await;
}

behaviours! { "shards":
    a_list_has_the_objects_whose_hash_is_in_the_range,
    ranges_may_be_joined_and_overlap,
    the_namespace_may_be_hashed_instead_of_the_uid,
    a_cluster_scoped_object_has_the_empty_namespace,
    only_a_whole_list_of_a_built_in_kind_returns_its_ranges,
    pages_are_filled_from_the_range,
    a_list_of_an_old_or_any_version_keeps_to_the_range,
    a_range_selects_together_with_labels_and_fields,
    a_watch_has_the_events_of_its_range,
    a_watch_begins_with_the_objects_of_its_range,
    the_bookmarks_of_a_range_have_the_version_of_all_objects,
    an_object_of_the_range_that_loses_its_label_is_deleted,
    a_deletion_of_a_collection_keeps_to_its_range,
    requests_for_one_object_ignore_a_shard_selector,
    the_first_shard_selector_counts_and_an_empty_one_selects_everything,
    a_shard_selector_that_is_no_expression_of_ranges_is_500,
    a_range_that_is_wrong_is_500,
}
