//! The delivery of transitions to another system: at least once, in order, whatever happens to operator and receiver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use okt::{Delivery, TransitionEvent, Undelivered};
use okt_tests::{DatabaseState::*, Reply, Rig, assert_within};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::time::Instant;

/// A receiver of transitions; clones share it.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    /// The transitions of each object, in the order in which they arrived first.
    objects: BTreeMap<String, Vec<TransitionEvent>>,
    arrivals: usize,
    /// What an attempt does, by its number.
    fails: Option<fn(usize) -> Fault>,
    attempts: usize,
    /// Contents that an earlier event with the same id did not have.
    broken: Vec<String>,
}

/// What goes wrong with an attempt.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The event does not arrive.
    Lost,
    /// The event arrives, and the answer does not.
    AnswerLost,
    Refused,
}

impl Receiver {
    fn failing(fails: fn(usize) -> Fault) -> Self {
        let receiver = Self::default();
        receiver.book().fails = Some(fails);
        receiver
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock()
    }

    /// Returns the numbers of an object's transitions, in the order in which they arrived first.
    fn numbers(&self, uid: &str) -> Vec<u64> {
        let book = self.book();
        let events = book.objects.get(uid).into_iter().flatten();
        events.map(TransitionEvent::number).collect()
    }
}

impl Delivery for Receiver {
    async fn deliver(&self, event: &TransitionEvent) -> Result<(), Undelivered> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let mut book = self.book();
        book.attempts += 1;
        let fault = book.fails.map_or(Fault::None, |fails| fails(book.attempts));
        if fault == Fault::Lost {
            return Err(Undelivered::retry("it is lost"));
        }
        if fault == Fault::Refused {
            return Err(Undelivered::refused("it is refused"));
        }
        book.arrivals += 1;
        let events = book.objects.entry(event.uid().to_owned()).or_default();
        match events.iter().find(|known| known.id() == event.id()) {
            Some(known) if known == event => {}
            Some(known) => {
                let what = format!("{known:?} and {event:?}");
                book.broken.push(what);
            }
            None => events.push(event.clone()),
        }
        match fault {
            Fault::AnswerLost => Err(Undelivered::retry("the answer is lost")),
            _ => Ok(()),
        }
    }
}

/// A receiver that never answers about objects whose name begins with `silent`.
#[derive(Clone, Default)]
struct Deaf(Receiver);

impl Delivery for Deaf {
    async fn deliver(&self, event: &TransitionEvent) -> Result<(), Undelivered> {
        let name = event.object.name.as_deref().unwrap_or_default();
        if name.starts_with("silent") {
            std::future::pending::<()>().await;
        }
        self.0.deliver(event).await
    }
}

#[tokio::test(start_paused = true)]
async fn transitions_of_others_do_not_wait_for_receivers_that_never_answer() {
    let (rig, receiver) = (Rig::without_operator().await, Deaf::default());
    rig.start_with(|operator| operator.deliver(receiver.clone()));
    for number in 0..64 {
        rig.create(&format!("silent-{number}"), json!({})).await;
    }
    // First with all of them new, and then with all of them known as silent.
    for (name, wait) in [("first", 10), ("second", 3)] {
        let db = rig.create_ready(name, Running).await;
        rig.pass(Duration::from_secs(wait)).await;
        let numbers = receiver.0.numbers(&uid(&db));
        assert_eq!(numbers.len(), 2, "{name}: {numbers:?}");
        rig.pass(Duration::from_mins(20)).await;
    }
}

fn uid(object: &okt_tests::Database) -> String {
    object.metadata.uid.clone().expect("a uid")
}

async fn with(receiver: &Receiver) -> Rig {
    let rig = Rig::without_operator().await;
    start(&rig, receiver);
    rig
}

fn start(rig: &Rig, receiver: &Receiver) {
    rig.start_with(|operator| operator.deliver(receiver.clone()));
}

#[tokio::test(start_paused = true)]
async fn each_transition_of_a_life_is_delivered_once_in_order_and_costs_no_write() {
    let receiver = Receiver::default();
    let rig = with(&receiver).await;
    let mark = rig.server.mark();
    let db = rig.create_ready("db", Running).await;
    rig.delete_until_gone("db").await;
    rig.pass(Duration::from_secs(1)).await;
    let book = receiver.book();
    let events = &book.objects[&uid(&db)];
    let moves: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event.number(),
                &*event.transition.from,
                &*event.transition.to,
            )
        })
        .collect();
    assert_eq!(
        moves,
        [
            (1, "", "Start"),
            (2, "Start", "Running"),
            (3, "Running", "Stopping"),
            (4, "Stopping", "End"),
        ]
    );
    assert_eq!(book.arrivals, 4);
    assert_eq!(events[0].cause_id(), None);
    assert_eq!(events[3].cause_id(), Some(events[2].id()));
    let trace = |event: &TransitionEvent| event.traceparent().expect("a trace")[3..35].to_owned();
    assert_eq!(trace(&events[0]), trace(&events[1]));
    assert_ne!(
        trace(&events[1]),
        trace(&events[2]),
        "the deletion is another generation"
    );
    // Four transitions, the end of one at rest, and the finalizer twice.
    let writes = rig.server.requests_since(mark);
    let writes = writes
        .iter()
        .filter(|it| it.is_write() && it.resource == "databases");
    let own = writes.filter(|it| it.client == okt_tests::OPERATOR);
    assert_eq!(own.count(), 7);
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_only_transitions_after_the_recorded_one_are_delivered_again() {
    let receiver = Receiver::default();
    let rig = with(&receiver).await;
    let db = rig.create_ready("db", Running).await;
    for request in ["a", "b", "c"] {
        rig.visit("db", "Servicing", request).await;
        rig.until_ready("db", Running).await;
        rig.pass(Duration::from_secs(1)).await;
    }
    // The visit ends at once: its first transition is still under way when the second is written.
    assert_eq!(rig.position("db").await.delivered, Some(6));
    let before = receiver.book().arrivals;
    assert_eq!(before, 8);
    rig.kill().await;
    start(&rig, &receiver);
    rig.pass(Duration::from_mins(1)).await;
    assert_eq!(receiver.book().arrivals, before + 2, "the last two again");
    assert_eq!(receiver.numbers(&uid(&db)), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(receiver.book().broken, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn transitions_from_before_the_delivery_are_not_delivered() {
    let rig = Rig::new().await;
    let db = rig.create_ready("db", Running).await;
    assert_eq!(rig.position("db").await.delivered, None);
    rig.kill().await;
    let receiver = Receiver::default();
    start(&rig, &receiver);
    rig.pass(Duration::from_mins(1)).await;
    rig.visit("db", "Servicing", "a").await;
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(receiver.numbers(&uid(&db)), [3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_the_delivery_and_for_a_minute_at_most() {
    // The receiver takes nothing after the first two.
    let receiver = Receiver::failing(|attempt| match attempt {
        1 | 2 => Fault::None,
        _ => Fault::Lost,
    });
    let rig = with(&receiver).await;
    rig.create_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    let begun = Instant::now();
    rig.delete("db").await;
    rig.until_reason("db", "Ready", "TransitionsNotDelivered")
        .await;
    rig.until_gone("db").await;
    let took = begun.elapsed();
    let minute = Duration::from_mins(1);
    assert!(took >= minute && took < 2 * minute, "{took:?}");

    // Once it takes them, the object goes at once.
    let other = rig.create_ready("other", Running).await;
    rig.delete("other").await;
    rig.until_reason("other", "Ready", "TransitionsNotDelivered")
        .await;
    receiver.book().fails = None;
    let begun = Instant::now();
    rig.until_gone("other").await;
    assert_within(begun, Duration::from_secs(30));
    assert_eq!(receiver.numbers(&uid(&other)), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn more_transitions_than_the_history_has_are_dropped_and_a_refused_one_is_passed_over() {
    let receiver = Receiver::failing(|_| Fault::Lost);
    let (rig, monitoring) = (Rig::without_operator().await, okt::Monitoring::new());
    rig.start_with(|operator| operator.deliver(receiver.clone()).monitoring(&monitoring));
    let db = rig.create_ready("db", Running).await;
    rig.pass(Duration::from_secs(5)).await;
    for request in 0..6 {
        rig.visit("db", "Servicing", &*request.to_string()).await;
        rig.until_ready("db", Running).await;
    }
    let pending = r#"okt_deliveries_pending{controller="database"} 10.0"#;
    assert!(monitoring.metrics().contains(pending));
    receiver.book().fails = None;
    rig.pass(Duration::from_mins(6)).await;
    assert_eq!(
        receiver.numbers(&uid(&db)),
        [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    );
    receiver.book().fails = Some(|_| Fault::Refused);
    rig.visit("db", "Servicing", "last").await;
    rig.until_ready("db", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    let text = monitoring.metrics();
    for (result, number) in [("dropped", 4), ("delivered", 10), ("refused", 2)] {
        let line =
            format!(r#"okt_deliveries_total{{controller="database",result="{result}"}} {number}"#);
        assert!(text.contains(&line), "no {line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_never_taken_does_not_hold_up_other_objects() {
    /// Takes nothing of one object.
    struct Picky(Receiver);
    impl Delivery for Picky {
        async fn deliver(&self, event: &TransitionEvent) -> Result<(), Undelivered> {
            match event.object.name.as_deref() {
                Some("bad") => Err(Undelivered::retry("503 Service Unavailable")),
                _ => self.0.deliver(event).await,
            }
        }
    }
    let (rig, receiver) = (Rig::without_operator().await, Receiver::default());
    rig.start_with(|operator| operator.deliver(Picky(receiver.clone())));
    rig.create_ready("bad", Running).await;
    rig.pass(Duration::from_mins(10)).await;
    let good = rig.create_ready("good", Running).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(receiver.numbers(&uid(&good)), [1, 2]);
    // An operator that stops does not wait for it.
    let begun = Instant::now();
    rig.stop().await;
    assert_within(begun, Duration::from_secs(1));
}

/// Runs `objects` through `visits` while the receiver fails at random, and the operator is killed; then deletes them.
async fn storm(objects: usize, visits: usize) {
    // In a hundred attempts one does not arrive, of one the answer is lost, and the receiver is away for six in a row.
    let receiver = Receiver::failing(|attempt| match attempt * 7919 % 100 {
        0 => Fault::Lost,
        1 => Fault::AnswerLost,
        _ if attempt % 500 < 6 => Fault::Lost,
        _ => Fault::None,
    });
    let rig = with(&receiver).await;
    let name = |number: usize| format!("db-{number}");
    let mut uids = Vec::new();
    for number in 0..objects {
        rig.create(&name(number), json!({})).await;
    }
    for number in 0..objects {
        uids.push(uid(&rig.until_ready(&name(number), Running).await));
    }
    for visit in 0..visits {
        let visit = json!({ "visit": { "state": "Servicing", "request": visit.to_string() } });
        for number in 0..objects {
            rig.app.next_time(
                Servicing,
                Reply::Pause(Duration::from_millis(10 * (number as u64 % 50))),
            );
            rig.ask_for(&name(number), visit.clone()).await;
        }
        // Kills come in the middle of transitions and deliveries.
        rig.pass(Duration::from_millis(137)).await;
        rig.kill().await;
        start(&rig, &receiver);
        for number in 0..objects {
            rig.until_ready(&name(number), Running).await;
        }
        rig.pass(Duration::from_secs(10)).await;
    }
    for number in 0..objects {
        rig.delete(&name(number)).await;
    }
    rig.pass(Duration::from_millis(40)).await;
    rig.kill().await;
    start(&rig, &receiver);
    for number in 0..objects {
        rig.until_gone(&name(number)).await;
    }
    rig.stop().await;
    let book = receiver.book();
    assert_eq!(book.broken, [""; 0], "one id, one content");
    let last = 4 + 2 * visits as u64;
    let expected: Vec<u64> = (1..=last).collect();
    drop(book);
    for uid in &uids {
        assert_eq!(
            receiver.numbers(uid),
            expected,
            "every transition, in order"
        );
    }
    let Book {
        attempts, arrivals, ..
    } = *receiver.book();
    println!(
        "{} transitions of {objects} objects, {attempts} attempts, {arrivals} arrivals, {} kills",
        objects as u64 * last,
        visits + 1,
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_each_transition_arrives_in_order_with_one_content() {
    storm(20, 8).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes a minute"]
async fn ten_thousand_transitions_arrive_whatever_fails() {
    storm(100, 48).await;
}
