//! The transitions that are to be delivered, by object. The history in each status is what a crash leaves of it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use okt_core::backoff::Backoff;
use okt_wire::clock::after;
use okt_wire::limits::HISTORY_LIMIT;
use okt_wire::read::hash;
use okt_wire::status::Transition;
use okt_wire::texts::panic_text;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::delivery::{AnyDelivery, TransitionEvent, Undelivered};
use super::metrics::lifecycle::LifecycleMetrics;

/// How many objects have a transition under way to the receiver at the same time. One that takes longer than
/// [`SLOW`] counts no more.
const CONCURRENT: usize = 16;

/// How many of the objects whose receiver did not answer last time have one under way: they wait for each other, and
/// nobody else for them.
const SILENT: usize = 4;

/// After what time a delivery holds up no other: with those that take as long as they may, there are never more than
/// `CONCURRENT * DELIVERY_LIMIT / SLOW`.
const SLOW: Duration = Duration::from_secs(2);

/// The backoff of an object whose transition was not taken.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(5));

/// After how many errors in a row one transition at a time asks a receiver that seems to be away.
const AWAY_AFTER: u32 = 3;

/// How many objects that are gone keep transitions that are not delivered.
const DELETED_LIMIT: usize = 1_000;

/// How long one transition may take.
const DELIVERY_LIMIT: Duration = Duration::from_mins(1);

/// How long an object that is being deleted waits for the delivery of its transitions.
const DELETION_WAIT: Duration = Duration::from_mins(1);

/// The transitions of an operator's objects that are to be delivered.
pub struct Outbox {
    delivery: Box<dyn AnyDelivery>,
    metrics: Option<Arc<LifecycleMetrics>>,
    state: Mutex<ObjectTransitions>,
    moved: Notify,
}

#[derive(Default)]
struct ObjectTransitions {
    objects: HashMap<String, Mailbox>,
    /// The objects whose next transition may be delivered, each once, with the ids of their mailboxes.
    ready: VecDeque<(String, u64)>,
    /// Those of them whose receiver did not answer last time.
    silent: VecDeque<(String, u64)>,
    /// The objects that wait for the end of a backoff, in the order of their ends.
    waiting: BTreeMap<(Instant, u64), (String, u64)>,
    waited: u64,
    /// The objects that are gone, or another replica's, and have transitions that are not delivered; the oldest first.
    left: VecDeque<String>,
    /// How many mailboxes were made.
    made: u64,
}

impl ObjectTransitions {
    /// Returns a new mailbox, up to whose last transition everything is delivered.
    fn mailbox(&mut self, delivered: u64) -> Mailbox {
        self.made = self.made.wrapping_add(1);
        Mailbox {
            id: self.made,
            delivered,
            last: delivered,
            ..Mailbox::default()
        }
    }

    /// Lets objects go on whose backoff has ended.
    fn end_waits(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= now
        {
            let (uid, id) = first.remove();
            self.ready(uid, id);
        }
    }

    /// Notes that the next transition of an object may be delivered.
    fn ready(&mut self, uid: String, id: u64) {
        let is_silent = self.objects.get(&uid).is_some_and(|it| it.is_silent);
        let queue = if is_silent {
            &mut self.silent
        } else {
            &mut self.ready
        };
        queue.push_back((uid, id));
    }
}

/// The transitions of one object.
#[derive(Default)]
struct Mailbox {
    /// Distinguishes it from an earlier one of the same object, whose deliveries may still be under way.
    id: u64,
    /// The last one that is delivered, or never will be.
    delivered: u64,
    /// The last one that is known here.
    last: u64,
    pending: VecDeque<Arc<TransitionEvent>>,
    /// Whether it is ready, waiting or under way.
    is_queued: bool,
    /// Failures in a row.
    failures: u32,
    /// Whether the receiver did not answer last time.
    is_silent: bool,
    /// Whether the object is gone, or another replica's.
    is_left: bool,
    /// A deletion that waits: until when, and how it is continued.
    held: Option<(Instant, Box<dyn Fn() + Send>)>,
}

impl Mailbox {
    /// Returns how many transitions are not delivered.
    fn undelivered(&self) -> u64 {
        u64::try_from(self.pending.len()).unwrap_or(u64::MAX)
    }

    /// Adds a transition, unless it is known; returns how many had to be dropped.
    fn add(&mut self, event: Arc<TransitionEvent>) -> u64 {
        if event.number() <= self.last {
            return 0;
        }
        let mut dropped = event.number().saturating_sub(self.last.saturating_add(1));
        self.last = event.number();
        self.pending.push_back(event);
        if self.pending.len() > HISTORY_LIMIT
            && let Some(oldest) = self.pending.pop_front()
        {
            self.delivered = self.delivered.max(oldest.number());
            dropped = dropped.saturating_add(1);
        }
        dropped
    }
}

impl Outbox {
    /// Returns the outbox of a receiver.
    pub fn new(delivery: Box<dyn AnyDelivery>, metrics: Option<Arc<LifecycleMetrics>>) -> Self {
        Self {
            delivery,
            metrics,
            state: Mutex::default(),
            moved: Notify::new(),
        }
    }

    /// Notes the history of an object that this replica acts on, before its first reconciliation here and whenever
    /// another replica has moved it: what is not delivered is to be delivered.
    ///
    /// `recorded` is up to where it was delivered. Where that is unknown nothing is: its transitions are older than the
    /// delivery.
    pub(crate) fn see(
        &self,
        uid: &str,
        transition: u64,
        recorded: Option<u64>,
        history: &[Transition],
        event: impl Fn(&Transition) -> TransitionEvent,
    ) {
        let mut state = self.state.lock();
        let from = recorded.unwrap_or(transition);
        let known = state.objects.get(uid);
        if known.is_none_or(|mailbox| transition < mailbox.last) {
            // Nothing is known here, or the object was restored to an earlier transition.
            let mailbox = state.mailbox(from.min(transition));
            state.objects.insert(uid.to_owned(), mailbox);
        }
        let Some(mailbox) = state.objects.get_mut(uid) else {
            return;
        };
        mailbox.is_left = false;
        if mailbox.last >= transition {
            return;
        }
        // Another replica moved it meanwhile.
        let recorded = recorded.unwrap_or_default();
        mailbox.delivered = mailbox.delivered.max(recorded);
        mailbox.last = mailbox.last.max(recorded);
        while mailbox
            .pending
            .front()
            .is_some_and(|it| it.number() <= recorded)
        {
            mailbox.pending.pop_front();
        }
        let missing = history.iter().filter(|it| it.transition > mailbox.last);
        let events: Vec<_> = missing.map(event).collect();
        drop(state);
        for event in events {
            self.push(event);
        }
    }

    /// Adds a transition that was just written. If nothing is known of the object, its next reconciliation adds it.
    pub(crate) fn push(&self, event: TransitionEvent) {
        let event = Arc::new(event);
        let uid = event.uid();
        let mut state = self.state.lock();
        let Some(mailbox) = state.objects.get_mut(uid) else {
            return;
        };
        let dropped = mailbox.add(Arc::clone(&event));
        if !mailbox.is_queued && !mailbox.pending.is_empty() {
            mailbox.is_queued = true;
            let id = mailbox.id;
            state.ready(uid.to_owned(), id);
        }
        drop(state);
        if dropped > 0 {
            tracing::warn!(
                kind = event.object.kind,
                namespace = event.object.namespace,
                name = event.object.name,
                uid,
                dropped,
                "the oldest transitions of an object are never delivered: its history has no more than ten"
            );
            self.count("dropped", dropped);
        }
        self.moved.notify_one();
    }

    /// Returns the last transition of an object that is delivered.
    pub(crate) fn delivered(&self, uid: &str) -> u64 {
        let state = self.state.lock();
        state.objects.get(uid).map_or(0, |it| it.delivered)
    }

    /// Returns until when the deletion of an object waits for the delivery of its transitions; none if it does not.
    /// `wake` is called when they are delivered.
    pub(crate) fn holds(&self, uid: &str, wake: impl Fn() + Send + 'static) -> Option<Instant> {
        let mut state = self.state.lock();
        let mailbox = state.objects.get_mut(uid)?;
        if mailbox.pending.is_empty() {
            return None;
        }
        let until = mailbox
            .held
            .as_ref()
            .map_or_else(|| after(DELETION_WAIT), |held| held.0);
        mailbox.held = Some((until, Box::new(wake)));
        (Instant::now() < until).then_some(until)
    }

    /// Forgets an object that is gone, or another replica's, once its transitions are delivered. Of many objects that are
    /// gone only the last ones are kept.
    pub(crate) fn forget(&self, uid: &str) {
        let mut state = self.state.lock();
        let Some(mailbox) = state.objects.get_mut(uid) else {
            return;
        };
        mailbox.held = None;
        if mailbox.pending.is_empty() {
            state.objects.remove(uid);
            return;
        }
        if !std::mem::replace(&mut mailbox.is_left, true) {
            state.left.push_back(uid.to_owned());
        }
        let mut dropped = 0;
        while state.left.len() > DELETED_LIMIT
            && let Some(oldest) = state.left.pop_front()
        {
            // It may have come back, or all may be delivered.
            if state.objects.get(&oldest).is_some_and(|it| it.is_left)
                && let Some(mailbox) = state.objects.remove(&oldest)
            {
                dropped = mailbox.undelivered().saturating_add(dropped);
            }
        }
        drop(state);
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "transitions of deleted objects are never delivered: there are too many"
            );
            self.count("dropped", dropped);
        }
    }

    /// Forgets these objects, because the history of the API server went back; their next reconciliations note them anew.
    pub(crate) fn rewind(&self, uids: impl Iterator<Item = String>) {
        let mut state = self.state.lock();
        for uid in uids {
            state.objects.remove(&uid);
        }
    }

    /// Returns how many transitions are not delivered.
    pub(crate) fn pending(&self) -> usize {
        let state = self.state.lock();
        let pending = state.objects.values().map(|it| it.pending.len());
        pending.fold(0, usize::saturating_add)
    }

    /// Delivers, until `closing` is cancelled and everything is delivered that the receiver takes.
    pub(crate) async fn run(&self, closing: CancellationToken) {
        let mut sending = FuturesUnordered::new();
        // Those that take long, and those of silent receivers.
        let (mut slow, mut silent) = (FuturesUnordered::new(), FuturesUnordered::new());
        let (mut failures, mut unanswered) = (0_u32, 0_u32);
        loop {
            let is_away = failures >= AWAY_AFTER;
            let gives_up = closing.is_cancelled() && (is_away || unanswered >= AWAY_AFTER);
            let most = match (gives_up, is_away) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => CONCURRENT,
            };
            while sending.len() < most
                && let Some((uid, id, event)) = self.next(|state| &mut state.ready)
            {
                sending.push(soon(self.send(uid, id, event)));
            }
            while silent.len() < SILENT.min(most)
                && let Some((uid, id, event)) = self.next(|state| &mut state.silent)
            {
                silent.push(self.send(uid, id, event));
            }
            if closing.is_cancelled() && sending.is_empty() && slow.is_empty() && silent.is_empty()
            {
                return self.close();
            }
            let has_room = sending.len() < most || silent.len() < SILENT.min(most);
            let sent = tokio::select! {
                Some(sent) = sending.next(), if !sending.is_empty() => match sent {
                    Ok(sent) => Some(sent),
                    Err(late) => {
                        slow.push(late);
                        None
                    }
                },
                Some(sent) = slow.next(), if !slow.is_empty() => Some(sent),
                Some(sent) = silent.next(), if !silent.is_empty() => Some(sent),
                () = self.next_wait(), if has_room && !closing.is_cancelled() => None,
                () = self.moved.notified(), if has_room => None,
                () = closing.cancelled(), if !closing.is_cancelled() => None,
            };
            match sent {
                Some(SentTransition::Taken) => {
                    if is_away {
                        tracing::info!(pending = self.pending(), "transitions are delivered again");
                    }
                    (failures, unanswered) = (0, 0);
                }
                // One receiver of several may be silent: the others go on.
                Some(SentTransition::Unanswered) => {
                    unanswered = unanswered.saturating_add(1);
                    if unanswered == AWAY_AFTER {
                        let pending = self.pending();
                        tracing::warn!(pending, "no receiver of transitions answers");
                    }
                }
                None => {}
                Some(SentTransition::Failed(why)) => {
                    failures = failures.saturating_add(1);
                    if failures == AWAY_AFTER {
                        let pending = self.pending();
                        tracing::warn!(
                            pending,
                            "the receiver of transitions seems to be away: {why}"
                        );
                    } else {
                        tracing::debug!("cannot deliver a transition: {why}");
                    }
                }
            }
        }
    }

    /// Ends: what objects have in their histories is left to the next process.
    fn close(&self) {
        let mut state = self.state.lock();
        let mut lost = 0;
        for mailbox in state.objects.values_mut() {
            // It keeps the operator alive.
            mailbox.held = None;
            if mailbox.is_left {
                lost = mailbox.undelivered().saturating_add(lost);
            }
        }
        drop(state);
        if lost > 0 {
            tracing::warn!(
                lost,
                "stopping: transitions of deleted objects are not delivered"
            );
            self.count("dropped", lost);
        }
    }

    /// Waits until the backoff of an object ends.
    async fn next_wait(&self) {
        let first = self.state.lock().waiting.first_key_value().map(|it| it.0.0);
        match first {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Takes the next transition to deliver, of the objects of one queue.
    fn next(
        &self,
        queue: fn(&mut ObjectTransitions) -> &mut VecDeque<(String, u64)>,
    ) -> Option<(String, u64, Arc<TransitionEvent>)> {
        let mut state = self.state.lock();
        state.end_waits();
        while let Some((uid, id)) = queue(&mut state).pop_front() {
            // The object may be forgotten meanwhile.
            let Some(mailbox) = state.objects.get_mut(&uid).filter(|it| it.id == id) else {
                continue;
            };
            if let Some(event) = mailbox.pending.front() {
                let event = Arc::clone(event);
                return Some((uid, id, event));
            }
            mailbox.is_queued = false;
        }
        None
    }

    /// Delivers a transition, and notes that it is delivered, or is to be delivered later.
    async fn send(&self, uid: String, id: u64, event: Arc<TransitionEvent>) -> SentTransition {
        // Made within the future, so that a panic of the call itself is contained too.
        let delivery = AssertUnwindSafe(async { self.delivery.take(&event).await });
        let taken = match timeout(DELIVERY_LIMIT, delivery.catch_unwind()).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(panic)) => Err(Undelivered::retry(panic_text(&*panic))),
            Err(_) => {
                tracing::debug!(
                    uid,
                    "cannot deliver a transition: no answer within a minute"
                );
                self.count("failed", 1);
                self.retry(uid, id, true);
                return SentTransition::Unanswered;
            }
        };
        match taken {
            Err(why) if !why.is_refused => {
                self.count("failed", 1);
                self.retry(uid, id, false);
                return SentTransition::Failed(why);
            }
            Err(why) => {
                tracing::error!(
                    kind = event.object.kind,
                    namespace = event.object.namespace,
                    name = event.object.name,
                    id = event.id(),
                    "the receiver refuses a transition: {why}"
                );
                self.count("refused", 1);
            }
            Ok(()) => self.count("delivered", 1),
        }
        self.end(uid, id, event.number());
        SentTransition::Taken
    }

    /// Lets an object wait for its backoff.
    fn retry(&self, uid: String, id: u64, is_silent: bool) {
        let mut state = self.state.lock();
        let Some(mailbox) = state.objects.get_mut(&uid).filter(|it| it.id == id) else {
            return;
        };
        mailbox.failures = mailbox.failures.saturating_add(1);
        mailbox.is_silent = is_silent;
        let due = after(BACKOFF.wait(mailbox.failures, hash(&uid)));
        state.waited = state.waited.wrapping_add(1);
        let key = (due, state.waited);
        state.waiting.insert(key, (uid, id));
    }

    /// Notes that a transition is delivered.
    fn end(&self, uid: String, id: u64, number: u64) {
        let mut state = self.state.lock();
        let Some(mailbox) = state.objects.get_mut(&uid).filter(|it| it.id == id) else {
            return;
        };
        mailbox.failures = 0;
        mailbox.is_silent = false;
        mailbox.delivered = mailbox.delivered.max(number);
        // It may have been dropped meanwhile.
        while mailbox
            .pending
            .front()
            .is_some_and(|it| it.number() <= number)
        {
            mailbox.pending.pop_front();
        }
        mailbox.is_queued = !mailbox.pending.is_empty();
        if mailbox.is_queued {
            state.ready(uid, id);
            return;
        }
        let held = mailbox.held.take();
        if mailbox.is_left {
            state.objects.remove(&uid);
        }
        drop(state);
        if let Some((_, wake)) = held {
            wake();
        }
    }

    fn count(&self, result: &'static str, number: u64) {
        if let Some(metrics) = &self.metrics {
            metrics.delivered(result, number);
        }
    }
}

/// How an attempt to deliver a transition ended.
enum SentTransition {
    /// It is delivered, or refused for good.
    Taken,
    Failed(Undelivered),
    /// The receiver did not answer.
    Unanswered,
}

/// Returns the result of a delivery, or after a while the delivery.
async fn soon<'a>(
    send: impl Future<Output = SentTransition> + Send + 'a,
) -> Result<SentTransition, BoxFuture<'a, SentTransition>> {
    let mut send = send.boxed();
    match timeout(SLOW, &mut send).await {
        Ok(sent) => Ok(sent),
        Err(_) => Err(send),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;
    use crate::delivery::Delivery;

    /// A delivery that is never made.
    struct Never;

    impl Delivery for Never {
        async fn deliver(&self, _: &TransitionEvent) -> Result<(), Undelivered> {
            std::future::pending().await
        }
    }

    fn transition(number: u64) -> Transition {
        Transition {
            transition: number,
            from: "A".to_owned(),
            to: "B".to_owned(),
            at: None,
            cause: String::new(),
            changed: String::new(),
            generation: None,
        }
    }

    fn event(uid: &str, number: u64) -> TransitionEvent {
        TransitionEvent {
            object: ObjectReference {
                uid: Some(uid.to_owned()),
                ..ObjectReference::default()
            },
            plural: "lives".to_owned(),
            transition: transition(number),
        }
    }

    impl Outbox {
        fn empty() -> Self {
            Self::new(Box::new(Never), None)
        }

        /// Notes an object whose history has these transitions.
        fn sees(&self, recorded: Option<u64>, history: std::ops::RangeInclusive<u64>) {
            let last = *history.end();
            let history: Vec<_> = history.map(transition).collect();
            self.see("uid", last, recorded, &history, |it| {
                event("uid", it.transition)
            });
        }

        /// Returns the last transition of the object that is delivered, and those that are not.
        fn standing(&self) -> (u64, Vec<u64>) {
            let state = self.state.lock();
            let mailbox = &state.objects["uid"];
            let pending = mailbox.pending.iter().map(|it| it.number());
            (mailbox.delivered, pending.collect())
        }
    }

    #[test]
    fn an_object_that_was_restored_is_delivered_from_its_recorded_transition() {
        let outbox = Outbox::empty();
        outbox.sees(Some(4), 1..=5);
        outbox.push(event("uid", 6));
        assert_eq!(outbox.standing(), (4, vec![5, 6]));
        outbox.sees(Some(2), 1..=3);
        assert_eq!(outbox.standing(), (2, vec![3]));
    }

    #[test]
    fn an_object_that_comes_back_from_another_replica_is_delivered_from_there() {
        let outbox = Outbox::empty();
        outbox.sees(Some(1), 1..=2);
        outbox.forget("uid");
        outbox.sees(Some(5), 1..=6);
        assert_eq!(outbox.standing(), (5, vec![6]));
    }

    #[test]
    fn a_delivery_that_was_under_way_before_the_history_went_back_changes_nothing() {
        let outbox = Outbox::empty();
        outbox.sees(Some(7), 1..=8);
        let (uid, id, taken) = outbox.next(|state| &mut state.ready).expect("one is ready");
        outbox.rewind([uid.clone()].into_iter());
        outbox.sees(Some(1), 1..=2);
        outbox.end(uid.clone(), id, taken.number());
        outbox.retry(uid, id, false);
        assert_eq!(outbox.standing(), (1, vec![2]));
        let ready = || outbox.next(|state| &mut state.ready);
        assert!(ready().is_some());
        assert!(ready().is_none(), "each object is ready once");
    }

    #[test]
    fn a_transition_of_an_object_that_is_not_known_waits_for_its_next_reconciliation() {
        let outbox = Outbox::empty();
        outbox.push(event("uid", 3));
        assert_eq!(outbox.pending(), 0);
        outbox.sees(Some(1), 1..=3);
        assert_eq!(outbox.standing(), (1, vec![2, 3]));
    }

    #[test]
    fn of_many_objects_that_are_gone_the_last_are_kept() {
        let outbox = Outbox::empty();
        for number in 0..DELETED_LIMIT + 5 {
            let uid = number.to_string();
            outbox.see(&uid, 0, Some(0), &[], |_| event(&uid, 0));
            outbox.push(event(&uid, 1));
            outbox.forget(&uid);
        }
        assert_eq!(outbox.pending(), DELETED_LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_outbox_that_closes_waits_for_what_is_under_way_and_for_nothing_else() {
        let outbox = Outbox::empty();
        outbox.sees(Some(1), 1..=2);
        let closing = CancellationToken::new();
        let begun = Instant::now();
        let stop = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            closing.cancel();
        };
        futures::join!(outbox.run(closing.clone()), stop);
        // The delivery that hangs is given up after its limit, and not tried again.
        assert_eq!(begun.elapsed(), DELIVERY_LIMIT);
    }
}
