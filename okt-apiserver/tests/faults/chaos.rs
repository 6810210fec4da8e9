//! Tests of seeded chaos.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, ResourceExt};
use okt_apiserver::{ApiServer, Chaos, Fault, Seed, Verb};

use crate::support::{create, empty, maps, set, x};

/// Writes each of these objects a hundred times, in turn, and returns which writes failed.
async fn failing(chaos: Chaos, names: &[&str]) -> Vec<(String, usize)> {
    let (server, maps) = empty();
    for name in names {
        create(&maps, name).await.unwrap();
    }
    server.misbehave(chaos);
    let mut failing = Vec::new();
    for number in 0..100 {
        for name in names {
            if set(&maps, name, &number.to_string()).await.is_err() {
                failing.push(((*name).to_owned(), number));
            }
        }
    }
    failing
}

fn mix(seed: u64) -> Chaos {
    Chaos::none(seed)
        .with(0.1, Fault::conflict().on(Verb::Patch))
        .with(0.1, Fault::break_connection())
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_repeats_the_faults_and_another_seed_does_not() {
    let first = failing(mix(3), &["a"]).await;
    assert_eq!(failing(mix(3), &["a"]).await, first);
    assert_ne!(failing(mix(4), &["a"]).await, first);
    assert!(
        (10..35).contains(&first.len()),
        "expected about one in five: {}",
        first.len()
    );
}

#[tokio::test(start_paused = true)]
async fn faults_of_one_object_do_not_depend_on_other_objects() {
    let alone = failing(mix(3), &["a"]).await;
    let all = failing(mix(3), &["b", "a", "c"]).await;
    let of = |wanted: &str| -> Vec<_> {
        let of = all.iter().filter(|(name, _)| name == wanted);
        of.map(|(_, number)| *number).collect()
    };
    let alone: Vec<_> = alone.into_iter().map(|(_, number)| number).collect();
    assert_eq!(of("a"), alone);
    assert_ne!(of("b"), alone, "each object has its own faults");
}

#[tokio::test(start_paused = true)]
async fn chaos_ends_after_its_number_of_strikes() {
    assert_eq!(failing(mix(3).at_most(2), &["a"]).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn chaos_ends_after_its_time() {
    let (server, maps) = empty();
    let always = Chaos::none(1).with(1.0, Fault::unavailable());
    server.misbehave(always.lasting(Duration::from_secs(10)));
    create(&maps, "a").await.unwrap_err();
    tokio::time::advance(Duration::from_secs(10)).await;
    create(&maps, "a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn chaos_strikes_within_its_limits_and_those_of_its_faults() {
    let server = ApiServer::new();
    let (operator, user) = (maps(server.client_named("operator")), maps(server.client()));
    let creations = Fault::unavailable().on(Verb::Create).times(2);
    let chaos = server.misbehave(Chaos::none(1).with(1.0, creations).client("operator"));
    create(&user, "a").await.unwrap();
    operator.get("a").await.unwrap();
    for _ in 0..2 {
        create(&operator, "b").await.unwrap_err();
    }
    create(&operator, "b").await.unwrap();
    assert_eq!((chaos.struck(), chaos.matched()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn rates_can_be_raised_together() {
    let few = failing(mix(3), &["a"]).await.len();
    let many = failing(mix(3).times_as_often(4.0), &["a"]).await.len();
    assert!(many > 2 * few, "{many} of {few}");
}

/// Returns the content of a cache after a chaos and ten minutes of calm, and the number of strikes.
async fn cached(seed: Seed, config: watcher::Config) -> (Vec<String>, u64) {
    let server = ApiServer::new();
    let user = maps(server.client());
    let chaos = server.misbehave(Chaos::seeded(seed).times_as_often(3.0).client("operator"));
    let (reader, writer) = reflector::store();
    let operator: Api<ConfigMap> = maps(server.client_named("operator"));
    let stream = reflector(writer, watcher(operator, config));
    let running = tokio::spawn(stream.default_backoff().for_each(|_| async {}));
    for number in 0..200 {
        let name = format!("m{}", number % 5);
        if number < 5 {
            create(&user, &name).await.unwrap();
        }
        set(&user, &name, &number.to_string()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    server.calm();
    tokio::time::sleep(Duration::from_mins(10)).await;
    running.abort();
    let mut seen: Vec<_> = reader
        .state()
        .iter()
        .map(|map| format!("{}={}", map.name_any(), x(map)))
        .collect();
    seen.sort();
    (seen, chaos.struck())
}

#[tokio::test(start_paused = true)]
async fn after_any_chaos_a_cache_is_correct() {
    let lists = watcher::Config::default();
    let streams = watcher::Config::default().streaming_lists();
    for seed in Seed::several(10) {
        for config in [lists.clone(), streams.clone()] {
            let how = format!("seed {seed}, {:?}", config.initial_list_strategy);
            let (seen, struck) = cached(seed, config).await;
            let expected = ["m0=195", "m1=196", "m2=197", "m3=198", "m4=199"];
            assert_eq!(seen, expected, "{how}");
            assert!(struck > 10, "{how} struck {struck} times only");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_is_complete_under_merged_events() {
    for seed in Seed::several(10) {
        let server = ApiServer::new();
        let user = maps(server.client());
        for name in ["a", "b", "c"] {
            create(&user, name).await.unwrap();
        }
        let merges = Fault::merge_events(Duration::from_secs(1));
        server.misbehave(Chaos::none(seed).with(0.5, merges).client("operator"));
        let operator: Api<ConfigMap> = maps(server.client_named("operator"));
        let config = watcher::Config::default().streaming_lists();
        let mut stream = Box::pin(watcher(operator, config));
        let mut there = 0;
        let listing = async {
            while let Some(event) = stream.next().await {
                match event.unwrap() {
                    watcher::Event::InitApply(_) => there += 1,
                    watcher::Event::InitDone => break,
                    _ => {}
                }
            }
        };
        let writing = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            for name in ["a", "b", "c"] {
                set(&user, name, "1").await.unwrap();
            }
        };
        tokio::join!(listing, writing);
        assert_eq!(there, 3, "seed {seed}");
    }
}
