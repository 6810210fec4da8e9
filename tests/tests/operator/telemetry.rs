//! Reports of an operator in addition to the status: events for sinks, Kubernetes Events, metrics, health.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, ListParams};
use okt::k8s_openapi::api::core::v1::ObjectReference;
use okt::{
    Answer, Delivery, Event, EventPolicy, Group, LifecycleEvent, Membership, Monitoring,
    Occurrence, Outcome, Sink, TransitionEvent, Undelivered,
};
use okt_testing::Fault;
use okt_tests::{DatabaseState::*, Databases, OPERATOR, Reply, Rig, numbered};
use parking_lot::{Mutex, MutexGuard};

/// A sink that keeps the events of all objects.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Arc<LifecycleEvent>>>>);

impl Sink for Kept {
    async fn record(&self, event: Arc<LifecycleEvent>) {
        self.all().push(event);
    }
}

impl Kept {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<LifecycleEvent>>> {
        self.0.lock()
    }

    /// Returns a line for each event.
    fn lines(&self) -> Vec<String> {
        let events = self.all();
        events.iter().map(|event| line(&event.occurrence)).collect()
    }
}

fn line(occurrence: &Occurrence) -> String {
    match occurrence {
        Occurrence::Transition {
            transition,
            edge,
            cause,
            ..
        } => {
            let (number, from, to) = (transition.transition, &transition.from, &transition.to);
            format!("{number}: {from}>{to} by {} {cause:?}", edge.as_str())
        }
        Occurrence::AttemptStarted { attempt, resumed } => {
            let again = if *resumed { " again" } else { "" };
            format!("{} {} starts{again}", attempt.state, attempt.number)
        }
        Occurrence::AttemptEnded {
            attempt, outcome, ..
        } => {
            let result = match outcome {
                Outcome::Failed { reason, .. } => format!("failed: {reason}"),
                other => other.as_str().to_owned(),
            };
            format!("{} {} {result}", attempt.state, attempt.number)
        }
        Occurrence::AttemptScheduled { attempt, after } => {
            format!("{} {} in {after:?}", attempt.state, attempt.number)
        }
        Occurrence::Trouble { reason, .. } => format!("trouble: {reason}"),
        Occurrence::Abandoned { state } => format!("abandoned: {state:?}"),
        other => format!("{other:?}"),
    }
}

async fn with_sink() -> (Rig, Kept) {
    let (rig, kept) = (Rig::without_operator().await, Kept::default());
    rig.start_with(|operator| operator.sink(kept.clone()));
    (rig, kept)
}

#[tokio::test(start_paused = true)]
async fn a_sink_gets_every_transition_and_attempt_of_a_life_in_order() {
    let (rig, kept) = with_sink().await;
    rig.app.next_time(Start, Reply::Fail("no disk"));
    rig.create_ready("db", Running).await;
    rig.delete_until_gone("db").await;
    let lines = kept.lines();
    let (wait, rest) = (&lines[4], [&lines[..4], &lines[5..]].concat());
    assert!(wait.starts_with("Start 2 in "), "{wait}");
    assert_eq!(
        rest,
        [
            "1: >Start by entry Created",
            "Start 1 starts",
            "Start 1 failed: Refused",
            "trouble: Refused",
            "Start 2 starts",
            "Start 2 succeeded",
            "2: Start>Running by child DesiredState",
            "Running 1 starts",
            "Running 1 succeeded",
            "3: Running>Stopping by child Deletion",
            "Stopping 1 starts",
            "Stopping 1 succeeded",
            "4: Stopping>End by child Deletion",
        ]
    );
    let events = kept.all();
    let uid = events[0].object.uid.as_deref().expect("a uid");
    for event in &*events {
        assert_eq!(event.object.kind.as_deref(), Some("Database"));
        assert_eq!(event.object.name.as_deref(), Some("db"));
        assert_eq!(event.object.uid.as_deref(), Some(uid));
        assert_eq!(event.trace_id().len(), 32);
    }
    let of_spec: Vec<_> = events.iter().map(|event| event.trace_id()).collect();
    assert_eq!(of_spec.first(), of_spec.get(8), "one trace per generation");
    assert_ne!(
        of_spec.first(),
        of_spec.last(),
        "a deletion is a generation"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_attempt_ends_as_cancelled_and_a_resumed_one_starts_again() {
    let (rig, kept) = with_sink().await;
    rig.app.limit_attempts(Duration::from_hours(2));
    rig.begin_work(Start, Reply::Hang).await;
    rig.kill().await;
    rig.start_with(|operator| operator.sink(kept.clone()));
    rig.until_ready("db", Running).await;
    rig.app.next_time(Servicing, Reply::UntilCancelled);
    rig.visit("db", "Servicing", None).await;
    // By the trigger `after`.
    rig.until_in("db", Failed).await;
    rig.pass(Duration::from_secs(1)).await;
    let lines = kept.lines();
    assert_eq!(
        &lines[..4],
        [
            "1: >Start by entry Created",
            "Start 1 starts",
            "Start 1 starts again",
            "Start 1 succeeded",
        ]
    );
    assert!(
        lines.contains(&"Servicing 1 cancelled".to_owned()),
        "{lines:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_waits_for_its_next_call_ends_as_cancelled() {
    let (rig, kept) = with_sink().await;
    rig.create_ready("db", Running).await;
    for _ in 0..10 {
        let wait = Answer::Wait(Duration::from_hours(1));
        rig.app.next_time(Servicing, Reply::Answer(wait));
    }
    rig.visit("db", "Servicing", None).await;
    // By the trigger `after`.
    rig.until_in("db", Failed).await;
    let lines = kept.lines();
    let of_servicing = |line: &&String| line.starts_with("Servicing");
    let of_servicing: Vec<_> = lines.iter().filter(of_servicing).collect();
    assert_eq!(
        of_servicing,
        ["Servicing 1 starts", "Servicing 1 cancelled"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_happened_is_told_once_when_the_answer_to_its_write_is_lost() {
    let mut lives = Vec::new();
    for lost in [
        None,
        Some(Fault::break_connection()),
        Some(Fault::break_connection().after_commit()),
        Some(Fault::no_answer().after_commit()),
    ] {
        let (rig, kept) = (Rig::without_operator().await, Kept::default());
        if let Some(lost) = lost {
            let writes = lost.client(OPERATOR).subresource("status").on_writes();
            rig.server.inject(writes.every(2));
        }
        rig.start_with(|operator| operator.sink(kept.clone()));
        rig.create_ready("db", Running).await;
        rig.delete_until_gone("db").await;
        // Work that is found on record is resumed, also if this process has recorded it.
        let lines = kept.lines().into_iter();
        let life: Vec<_> = lines.map(|line| line.replace(" again", "")).collect();
        lives.push(life);
    }
    for life in &lives[1..] {
        assert_eq!(*life, lives[0]);
    }
}

/// A sink that panics, or never returns.
struct Bad(bool);

impl Sink for Bad {
    async fn record(&self, _: Arc<LifecycleEvent>) {
        assert!(!self.0, "a sink that panics");
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_or_hangs_disturbs_neither_objects_nor_other_sinks() {
    let (rig, kept) = (Rig::without_operator().await, Kept::default());
    rig.start_with(|operator| {
        let operator = operator.sink(Bad(true)).sink(Bad(false));
        operator.sink(kept.clone())
    });
    rig.create_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(kept.lines().len(), 6);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_happened_before_a_stop_reaches_the_sinks() {
    struct Slow(Kept);
    impl Sink for Slow {
        async fn record(&self, event: Arc<LifecycleEvent>) {
            tokio::time::sleep(Duration::from_secs(2)).await;
            self.0.record(event).await;
        }
    }
    let (rig, kept) = (Rig::without_operator().await, Kept::default());
    rig.start_with(|operator| operator.sink(Slow(kept.clone())));
    rig.create_ready("db", Running).await;
    rig.stop().await;
    assert_eq!(kept.lines().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_which_transitions_are_events() {
    for (policy, expected) in [
        (EventPolicy::None, &[][..]),
        (EventPolicy::WarningsAndTriggers, &["Warning Failed"]),
        (
            EventPolicy::All,
            &[
                "Normal EnteredStart",
                "Warning EnteredFailed",
                "Warning Failed",
            ],
        ),
    ] {
        let rig = Rig::without_operator().await;
        rig.start_with(|operator| operator.events(policy));
        rig.app.next_time(Start, Reply::FailPermanently("no disk"));
        rig.create_in("db", Failed).await;
        rig.pass(Duration::from_secs(1)).await;
        assert_eq!(rig.events().await, expected, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_a_handler_are_published_merged_and_bounded() {
    let rig = Rig::without_operator().await;
    rig.start();
    let backup = ObjectReference {
        kind: Some("Volume".to_owned()),
        name: Some("backup".to_owned()),
        ..ObjectReference::default()
    };
    let event = Event::normal("Formatted", "Format", "the disk is empty").related(backup);
    rig.app.next_times(3, Start, &Reply::Publish(event.clone()));
    for number in 0..100 {
        let reason = format!("Bad{number}");
        let event = Event::warning(reason, "Format", "x".repeat(5000));
        rig.app.next_time(Start, Reply::Publish(event));
    }
    rig.create_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    let events = rig.events().await;
    assert_eq!(events[0], "Normal Formatted");
    assert_eq!(
        events.len(),
        23,
        "25 at once, of which three are one: {events:#?}"
    );
    assert!(rig.notes().await.iter().all(|note| note.len() <= 1024));
}

#[tokio::test(start_paused = true)]
async fn metrics_count_objects_transitions_and_attempts_and_end_with_the_objects() {
    let (rig, monitoring) = (Rig::without_operator().await, Monitoring::new());
    rig.start_with(|operator| operator.monitoring(&monitoring));
    rig.app.next_time(Start, Reply::Fail("no disk"));
    rig.create_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    let text = monitoring.metrics();
    for line in [
        r#"okt_objects{controller="database",state="Running"} 1.0"#,
        r#"okt_objects{controller="database",state="Start"} 0.0"#,
        r#"okt_action_attempts_total{controller="database",state="Start",result="failed"} 1"#,
        r#"okt_action_attempts_total{controller="database",state="Start",result="succeeded"} 1"#,
        r#"okt_action_retries_total{controller="database",state="Start"} 1"#,
        r#"okt_actions_running{controller="database",state="Start"} 0"#,
        r#"okt_troubles_total{controller="database",reason="Refused"} 1"#,
        r#"okt_writes_total{controller="database",kind="finalizer"} 1"#,
        r#"workqueue_depth{name="database",controller="database",priority="0"} 0.0"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="database"} 16"#,
        r#"controller_runtime_reconcile_errors_total{controller="database"} 0"#,
        r#"controller_runtime_active_workers{controller="database"} 0.0"#,
    ] {
        assert!(
            text.contains(&format!("\n{line}\n")),
            "no {line} in\n{text}"
        );
    }
    let moved = r#"okt_transitions_total{controller="database",from="Start",to="Running",edge="child",cause="DesiredState"} 1"#;
    assert!(text.contains(moved), "{text}");
    rig.delete_until_gone("db").await;
    rig.pass(Duration::from_secs(1)).await;
    let text = monitoring.metrics();
    let gone = r#"okt_objects{controller="database",state="Running"} 0.0"#;
    assert!(text.contains(gone), "{text}");
    rig.stop().await;
    assert!(!monitoring.metrics().contains("okt_objects{"));
}

#[tokio::test(start_paused = true)]
async fn objects_that_come_and_go_leave_no_series() {
    const ROUNDS: usize = 4;
    // With 2,500 they are ten thousand, in seven minutes.
    let objects = std::env::var("OKT_OBJECTS").map_or(20, |it| it.parse().expect("a number"));
    let (rig, monitoring) = (Rig::without_operator().await, Monitoring::new());
    rig.start_with(|operator| operator.monitoring(&monitoring));
    let mut after_each = Vec::new();
    for round in 0..ROUNDS {
        let names = numbered(&format!("db-{round}"), 0..objects);
        rig.create_all_ready(&names, Running).await;
        let (delete, list) = (DeleteParams::default(), ListParams::default());
        let deleted = rig.raw().delete_collection(&delete, &list).await;
        deleted.expect("the deletion is accepted");
        for name in &names {
            rig.until_gone(name).await;
        }
        rig.pass(Duration::from_secs(1)).await;
        let text = monitoring.metrics();
        let stopped = format!(
            r#"okt_transitions_total{{controller="database",from="Stopping",to="End",edge="child",cause="Deletion"}} {}"#,
            (round + 1) * objects
        );
        assert!(text.contains(&stopped), "no {stopped} in\n{text}");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        after_each.push(samples.count());
    }
    println!("series after each {objects} objects: {after_each:?}");
    assert_eq!(after_each, vec![after_each[0]; ROUNDS]);
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_ready_once_its_crd_fits_and_its_caches_are_filled() {
    let (rig, monitoring) = (Rig::<Databases>::bare(), Monitoring::new());
    assert_eq!(
        monitoring.readiness(),
        Err("[-] no operator runs yet\n".to_owned())
    );
    rig.start_with(|operator| operator.monitoring(&monitoring));
    rig.pass(Duration::from_secs(1)).await;
    let why = monitoring.readiness().expect_err("there is no CRD");
    assert!(why.contains("there is no CRD"), "{why}");
    rig.define(okt::crd::<okt_tests::Database>().expect("a CRD"))
        .await;
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(
        monitoring.readiness(),
        Ok("[+] database: ready\n".to_owned())
    );
    rig.create_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    assert!(
        monitoring.status().contains("1  Running"),
        "{}",
        monitoring.status()
    );
}

/// A delivery that takes everything.
struct Nowhere;

impl Delivery for Nowhere {
    async fn deliver(&self, _: &TransitionEvent) -> Result<(), Undelivered> {
        Ok(())
    }
}

/// Returns the names of the metrics in a text, as samples have them.
fn names(text: &str) -> std::collections::BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .filter_map(|line| line.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_docs_list_every_metric_and_no_other() {
    let (rig, monitoring) = (Rig::without_operator().await, Monitoring::new());
    let group = Group::new("databases", "default")
        .replica("a")
        .virtual_time();
    let membership = Membership::join(rig.client.clone(), group);
    rig.start_with(|operator| {
        let operator = operator.monitoring(&monitoring).replicas(&membership);
        operator.deliver(Nowhere)
    });
    rig.app.next_time(Start, Reply::Fail("no disk"));
    rig.create_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    let whole = include_str!("../../../docs/monitoring.md");
    let (_, page) = whole.split_once("\n## Metrics\n").expect("metrics");
    let (page, _) = page.split_once("\n## ").expect("another section");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let listed: std::collections::BTreeSet<String> = cells
        .flat_map(|cell| cell.split(", "))
        .map(|name| name.trim_matches('`').to_owned())
        // No client of this test is counted, and it has no webhooks: `admitted` reads their metrics.
        .filter(|name| !name.starts_with("rest_client_") && !name.contains("_webhook_"))
        .collect();
    let served = names(&monitoring.metrics());
    assert_eq!(served, listed);

    // The dashboards that others publish find their metrics.
    let (_, others) = whole.split_once("\n| published in |").expect("a table");
    let (others, _) = others.split_once("\n\n").expect("more");
    let words = others.split('`').skip(1).step_by(2);
    let metrics: Vec<_> = words
        .filter(|word| !word.contains(['.', '*']) && !word.starts_with("rest_client_"))
        .collect();
    assert!(metrics.len() > 10, "{metrics:?}");
    for metric in metrics {
        assert!(served.contains(metric), "{metric} is not served");
    }
}
