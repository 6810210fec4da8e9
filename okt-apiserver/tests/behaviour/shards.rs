//! Tests of shard selectors beyond the conformance suite: the gate, replicas that are behind, and uids.

use std::collections::BTreeSet;

use futures::StreamExt;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectList, PostParams};
use kube::{Api, Client, ResourceExt};
use okt_apiserver::{ApiServer, FeatureGate};

const GATE: FeatureGate = FeatureGate::ShardedListAndWatch;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn sharded() -> ApiServer {
    let server = ApiServer::new();
    server.set_feature_gate(GATE, true);
    server
}

async fn create(client: &Client, number: u64) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut map = ConfigMap::default();
    map.metadata.name = Some(format!("map-{number:04}"));
    maps.create(&PostParams::default(), &map).await.unwrap();
}

/// Returns the path of a list of one of 2^`bits` ranges.
fn path(bits: u32, index: u128) -> String {
    let (start, end) = (index << (64 - bits), (index + 1) << (64 - bits));
    let uid = "object.metadata.uid";
    format!("{MAPS}?shardSelector=shardRange({uid},'0x{start:016x}','0x{end:016x}')")
}

async fn list(client: &Client, path: &str) -> BTreeSet<String> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    let list: ObjectList<ConfigMap> = client.request(request).await.unwrap();
    list.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn the_uids_of_many_objects_are_spread_over_all_ranges() {
    let client = sharded().client();
    for number in 0..1280 {
        create(&client, number).await;
    }
    let mut all = BTreeSet::new();
    for index in 0..64 {
        let range = list(&client, &path(6, index)).await;
        let count = range.len();
        assert!(
            (6..=40).contains(&count),
            "range {index} has {count} of 1280"
        );
        all.extend(range);
    }
    assert_eq!(all.len(), 1280);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_is_turned_off_counts_from_the_next_request_on() {
    let server = sharded();
    let client = server.client();
    for number in 0..16 {
        create(&client, number).await;
    }
    let half = list(&client, &path(1, 0)).await;
    assert!((1..16).contains(&half.len()), "{half:?}");
    let watch = || {
        let path = format!("{}&watch=1&timeoutSeconds=1", path(1, 0));
        let request = Request::get(path).body(Vec::new()).unwrap();
        client.request_events::<ConfigMap>(request)
    };
    let before = watch().await.unwrap();
    server.set_feature_gate(GATE, false);
    let after = watch().await.unwrap();
    assert_eq!(before.count().await, half.len());
    assert_eq!(after.count().await, 16);
    assert_eq!(list(&client, &path(1, 0)).await.len(), 16);
}

/// As a real server counts in its watch cache; if it has to read a page from etcd, it counts those after the page.
#[tokio::test]
async fn what_remains_of_a_range_includes_all_objects_from_its_page_on() {
    let client = sharded().client();
    for number in 0..16 {
        create(&client, number).await;
    }
    let mut path = format!("{}&limit=2", path(1, 0));
    let all: Vec<_> = (0..16).map(|number| format!("map-{number:04}")).collect();
    let mut rest = all.as_slice();
    loop {
        let request = Request::get(&path).body(Vec::new()).unwrap();
        let page: ObjectList<ConfigMap> = client.request(request).await.unwrap();
        let Some(token) = page.metadata.continue_ else {
            break;
        };
        let left = page.metadata.remaining_item_count.unwrap();
        assert_eq!(usize::try_from(left).unwrap(), rest.len() - 2);
        let last = page.items[1].name_any();
        let end = rest.iter().position(|name| *name == last).unwrap();
        rest = &rest[end + 1..];
        path = format!("{}&limit=2&continue={token}", self::path(1, 0));
    }
    assert!(rest.len() < all.len(), "there was more than one page");
}

#[tokio::test]
async fn a_replica_that_is_behind_lists_a_range_as_it_was() {
    let server = sharded();
    let client = server.replica("b").client();
    for number in 0..16 {
        create(&client, number).await;
    }
    let half = list(&client, &path(1, 0)).await;
    server.replica("b").freeze();
    for number in 16..32 {
        create(&client, number).await;
    }
    let cached = format!("{}&resourceVersion=0", path(1, 0));
    assert_eq!(list(&client, &cached).await, half);
    let current = list(&client, &path(1, 0)).await;
    assert!(current.is_superset(&half) && current != half, "{current:?}");
    server.replica("b").release();
    assert_eq!(list(&client, &cached).await, current);
}
