//! An API server that answers late, never, or with failures only: nothing waits for ever, and nothing is asked in haste.

use std::time::Duration;

use kube::Client;
use okt::{Group, Membership, Monitoring, Operator};
use okt_testing::{Fault, OnRequest, Verb};
use okt_tests::{
    Database, Databases, KioskState, Kiosks, OPERATOR, Proxy, Rig, Served, ShelfState::Filled,
    Shelves, assert_contains,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// The kinds that an operator of shelves reads: its CRD, its own kind, and kiosks, which it owns and refers to.
const KINDS: [&str; 3] = ["customresourcedefinitions", "shelves", "kiosks"];

/// A cluster with a shelf, and no operator.
async fn shelf() -> Rig<Shelves> {
    let rig = Rig::<Shelves>::without_operator_of().await;
    let _kiosks = Rig::<Kiosks>::beside(&rig).await;
    rig.create("shelf", json!({})).await;
    rig
}

/// Returns how many requests of this verb for a kind the operator has sent since a mark.
fn sent<A: Served>(rig: &Rig<A>, since: okt_testing::Mark, verb: Verb, resource: &str) -> usize {
    let all = rig.server.requests_since(since).into_iter();
    let own = all.filter(|it| it.client == OPERATOR && it.verb == verb && it.resource == resource);
    own.count()
}

#[tokio::test(start_paused = true)]
async fn a_list_or_a_watch_that_is_never_answered_begins_anew() {
    for verb in [Verb::List, Verb::Watch] {
        for resource in KINDS {
            let rig = shelf().await;
            rig.inject(Fault::no_answer().on(verb).resource(resource).times(4));
            rig.start();
            let begun = Instant::now();
            rig.until_ready("shelf", Filled).await;
            // A change comes through the watch.
            rig.pass(Duration::from_mins(3)).await;
            rig.patch("shelf", json!({ "spec": { "kiosks": ["late"] } }))
                .await;
            rig.pass(Duration::from_mins(3)).await;
            let seen = rig.server.versions().resource("shelves").name("shelf");
            assert!(!seen.course("/status/observedGeneration").is_empty());
            let took = begun.elapsed();
            assert!(
                took < Duration::from_mins(15),
                "{verb} {resource}: {took:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_acts_again_when_every_open_connection_had_fallen_silent() {
    let rig = shelf().await;
    let mut silent = Vec::new();
    for fault in [
        Fault::no_answer().on(Verb::List),
        Fault::no_answer().on(Verb::Watch),
    ] {
        silent.push(rig.inject(fault));
    }
    let monitoring = Monitoring::new();
    rig.start_with(|operator| operator.monitoring(&monitoring));
    sleep(Duration::from_secs(30)).await;
    for silent in silent {
        silent.end();
    }
    // The requests that were sent stay without an answer.
    rig.pass(Duration::from_mins(7)).await;
    assert!(
        monitoring.readiness().is_ok(),
        "{:?}",
        monitoring.readiness()
    );
    rig.until_ready("shelf", Filled).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_seen_in_readiness_and_metrics_and_begins_anew() {
    let (rig, monitoring) = (shelf().await, Monitoring::new());
    rig.start_with(|operator| operator.monitoring(&monitoring));
    rig.until_ready("shelf", Filled).await;
    rig.pass(Duration::from_mins(10)).await;
    assert!(
        monitoring.readiness().is_ok(),
        "a quiet watch is none that is silent"
    );
    for resource in KINDS {
        // What is open says nothing more, and nothing new is answered.
        let reads = Fault::no_answer().on_reads().resource(resource);
        let away = rig.inject(reads);
        rig.server.end_watches();
        rig.pass(Duration::from_mins(6)).await;
        let problem = monitoring.readiness().expect_err(resource);
        assert_contains(&problem, "the API server has not served the watch of");
        let text = monitoring.metrics();
        let silences = text.lines().filter_map(|line| {
            let line = line.strip_prefix("okt_watch_silence_seconds{controller=\"shelf\",")?;
            let (kind, seconds) = line.split_once("} ")?;
            Some((kind.to_owned(), seconds.parse::<f64>().ok()?))
        });
        let silences: Vec<_> = silences.collect();
        assert_eq!(silences.len(), 3, "{text}");
        let silent = silences.iter().filter(|it| it.1 >= 300.0).count();
        assert_eq!(silent, 1, "{silences:?}");
        away.end();
        rig.pass(Duration::from_mins(4)).await;
        assert!(
            monitoring.readiness().is_ok(),
            "{:?}",
            monitoring.readiness()
        );
    }
}

/// Every way in which a request fails.
fn failures() -> Vec<(&'static str, Fault<OnRequest>)> {
    vec![
        ("500", Fault::internal_error()),
        ("503", Fault::unavailable()),
        ("504", Fault::timeout()),
        ("410", Fault::gone()),
        ("401", Fault::unauthorized()),
        ("403", Fault::forbidden()),
        (
            "404",
            Fault::answer(
                404,
                "NotFound",
                "the server could not find the requested resource",
            ),
        ),
        ("429", Fault::too_many_requests(Duration::from_secs(30))),
        ("broken", Fault::break_connection()),
        ("cut", Fault::cut_body(10)),
    ]
}

#[tokio::test(start_paused = true)]
async fn reads_that_fail_are_repeated_less_and_less() {
    for (what, fault) in failures() {
        for verb in [Verb::List, Verb::Watch] {
            for resource in KINDS {
                let rig = shelf().await;
                let failing = fault.clone().on(verb).resource(resource);
                let failing = rig.inject(failing);
                rig.start();
                let since = rig.server.mark();
                rig.pass(Duration::from_hours(1)).await;
                // Kiosks are watched four times: as owned objects, and by three references.
                let watches = if resource == "kiosks" { 4 } else { 1 };
                for counted in [Verb::List, Verb::Watch] {
                    let sent = sent(&rig, since, counted, resource) / watches;
                    assert!(
                        sent <= 90,
                        "{what} of {verb} {resource}: {sent} {counted} requests in an hour"
                    );
                }
                failing.end();
                let ended = Instant::now();
                rig.until_ready("shelf", Filled).await;
                let took = ended.elapsed();
                let longest = Duration::from_secs(75);
                assert!(took <= longest, "{what} of {verb} {resource}: {took:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_not_repeated_before_the_time_that_the_server_asks_for() {
    for verb in [Verb::List, Verb::Watch] {
        let rig = shelf().await;
        rig.inject(
            Fault::too_many_requests(Duration::from_mins(5))
                .on(verb)
                .resource("shelves"),
        );
        rig.start();
        let since = rig.server.mark();
        rig.pass(Duration::from_hours(1)).await;
        let sent = sent(&rig, since, verb, "shelves");
        // An operator also checks every ten minutes that the history of the server has not gone back, by a list.
        assert!((10..=18).contains(&sent), "{verb}: {sent} in an hour");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_not_repeated_before_the_time_that_the_server_asks_for() {
    for resource in ["kiosks", "configmaps"] {
        let rig = Rig::<Kiosks>::of().await;
        let asks = rig.inject(
            Fault::too_many_requests(Duration::from_mins(5))
                .on(Verb::Apply)
                .resource(resource),
        );
        rig.create_with("kiosk", json!({ "maps": { "map": "a" } }))
            .await;
        rig.pass(Duration::from_mins(1)).await;
        let since = rig.server.mark();
        for change in ["b", "c", "d"] {
            rig.patch("kiosk", json!({ "spec": { "maps": { "map": change } } }))
                .await;
            rig.pass(Duration::from_secs(20)).await;
        }
        assert_eq!(sent(&rig, since, Verb::Apply, resource), 0, "{resource}");
        rig.pass(Duration::from_mins(20)).await;
        let sent = sent(&rig, since, Verb::Apply, resource);
        assert!((3..=5).contains(&sent), "{resource}: {sent} in 20 minutes");
        asks.end();
        rig.until_ready("kiosk", KioskState::Open).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_whose_leases_are_never_answered_is_not_ready_and_leads_when_they_are() {
    for verb in [Verb::List, Verb::Watch] {
        let rig = Rig::<Kiosks>::without_operator_of().await;
        let silent = rig.inject(Fault::no_answer().on(verb).resource("leases"));
        let group = Group::new("kiosks", "default").virtual_time();
        let membership = Membership::join(rig.server.client_named(OPERATOR), group);
        let monitoring = Monitoring::new();
        rig.start_with(|operator| operator.replicas(&membership).monitoring(&monitoring));
        rig.create("kiosk", json!({})).await;
        let since = rig.server.mark();
        rig.pass(Duration::from_mins(6)).await;
        let problem = monitoring.readiness().expect_err("it acts on nothing");
        assert!(problem.contains("the watch of Lease"), "{problem}");
        let sent = sent(&rig, since, verb, "leases");
        assert!(sent <= 40, "{verb}: {sent} in six minutes");
        silent.end();
        rig.until_ready("kiosk", KioskState::Open).await;
        membership.leave().await;
    }
}

#[tokio::test]
async fn an_operator_behind_a_proxy_that_swallowed_everything_goes_on_when_it_forwards_again() {
    let rig = Rig::<Databases>::without_operator_of().await;
    let served = rig.server.serve().await.expect("a port");
    let proxy = Proxy::to(served.address()).await;
    let address = format!("http://{}", proxy.address());
    let config = kube::Config::new(address.parse().expect("an address"));
    let client = Client::try_from(config).expect("a client");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let monitoring = Monitoring::new();
    let operator = Operator::new(client, rig.app.clone())
        .virtual_time()
        .monitoring(&monitoring);
    let operator = tokio::spawn(operator.run(async { stopped.await.unwrap_or_default() }));
    rig.create("first", json!({})).await;
    is_ready(&rig, "first").await;
    proxy.swallow(true);
    rig.create("second", json!({})).await;
    // Nothing comes any more, so only timers are left.
    tokio::time::pause();
    sleep(Duration::from_mins(7)).await;
    let problem = monitoring.readiness().expect_err("it knows nothing new");
    assert!(problem.contains("has not served the watch"), "{problem}");
    tokio::time::resume();
    proxy.swallow(false);
    is_ready(&rig, "second").await;
    assert!(
        monitoring.readiness().is_ok(),
        "{:?}",
        monitoring.readiness()
    );
    let _ = stop.send(());
    operator.await.expect("it ends").expect("it ends well");
}

/// Waits until an object is ready; the waits of the operator pass at once.
async fn is_ready(rig: &Rig<Databases>, name: &str) {
    let ready = |it: Option<Database>| {
        let status = it.and_then(|it| it.status).unwrap_or_default();
        status
            .conditions
            .iter()
            .any(|it| it.type_ == "Ready" && it.status == "True")
    };
    while !ready(rig.get(name).await) {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(20)).await;
        tokio::time::resume();
        sleep(Duration::from_millis(300)).await;
    }
}
