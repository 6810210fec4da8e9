//! The transitions that are to be delivered, by object. The history in each status is what a crash leaves of it.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use okt_core::backoff::Backoff;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::delivery::{AnyDelivery, TransitionEvent, Undelivered};
use super::metrics::lifecycle::LifecycleMetrics;
use crate::clock::after;
use crate::texts::panic_text;
use crate::wire::limits::HISTORY_LIMIT;
use crate::wire::status::Transition;

/// How many objects have a transition under way to the receiver at the same time.
const CONCURRENT: usize = 16;

/// The backoff while the receiver takes nothing.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(5));

/// How long an object that is being deleted waits for the delivery of its transitions.
const HOLD: Duration = Duration::from_mins(1);

/// The transitions of an operator's objects that are to be delivered.
pub(crate) struct Outbox {
    delivery: Box<dyn AnyDelivery>,
    metrics: Option<Arc<LifecycleMetrics>>,
    state: Mutex<State>,
    moved: Notify,
}

#[derive(Default)]
struct State {
    objects: HashMap<String, Mailbox>,
    /// The objects whose next transition may be delivered, each once.
    ready: VecDeque<String>,
}

/// The transitions of one object.
#[derive(Default)]
struct Mailbox {
    /// The last one that is delivered, or never will be.
    delivered: u64,
    /// The last one that is known here.
    last: u64,
    pending: VecDeque<Arc<TransitionEvent>>,
    /// Whether it is ready or under way.
    is_queued: bool,
    /// Whether the object is gone, or another replica's.
    is_left: bool,
    /// A deletion that waits: until when, and how it is continued.
    held: Option<(Instant, Box<dyn Fn() + Send>)>,
}

impl Mailbox {
    /// Adds a transition, unless it is known; returns how many had to be dropped.
    fn add(&mut self, event: TransitionEvent) -> u64 {
        if event.number() <= self.last {
            return 0;
        }
        let mut dropped = (event.number()).saturating_sub(self.last.saturating_add(1));
        self.last = event.number();
        self.pending.push_back(Arc::new(event));
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
    pub(crate) fn new(
        delivery: Box<dyn AnyDelivery>,
        metrics: Option<Arc<LifecycleMetrics>>,
    ) -> Self {
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
        let mut state = self.state();
        let from = match state.objects.get_mut(uid) {
            Some(mailbox) => {
                mailbox.is_left = false;
                if mailbox.last >= transition {
                    return;
                }
                recorded.unwrap_or_default()
            }
            None => recorded.unwrap_or(transition),
        };
        let mailbox = state.objects.entry(uid.to_owned()).or_default();
        mailbox.delivered = mailbox.delivered.max(from);
        mailbox.last = mailbox.last.max(from);
        let missing = (history.iter()).filter(|it| it.transition > mailbox.last);
        let events: Vec<_> = missing.map(event).collect();
        drop(state);
        for event in events {
            self.push(event);
        }
    }

    /// Adds a transition that was just written.
    pub(crate) fn push(&self, event: TransitionEvent) {
        let uid = event.uid().to_owned();
        let mut state = self.state();
        let mailbox = state.objects.entry(uid.clone()).or_default();
        let dropped = mailbox.add(event);
        if !mailbox.is_queued && !mailbox.pending.is_empty() {
            mailbox.is_queued = true;
            state.ready.push_back(uid.clone());
        }
        drop(state);
        if dropped > 0 {
            tracing::warn!(
                uid,
                dropped,
                "transitions are never delivered: the object made too many while the receiver did not take them"
            );
            self.count("dropped", dropped);
        }
        self.moved.notify_one();
    }

    /// Returns the last transition of an object that is delivered.
    pub(crate) fn delivered(&self, uid: &str) -> u64 {
        let state = self.state();
        state.objects.get(uid).map_or(0, |it| it.delivered)
    }

    /// Returns until when the deletion of an object waits for the delivery of its transitions; none if it does not.
    /// `wake` is called when they are delivered.
    pub(crate) fn holds(&self, uid: &str, wake: impl Fn() + Send + 'static) -> Option<Instant> {
        let mut state = self.state();
        let mailbox = state.objects.get_mut(uid)?;
        if mailbox.pending.is_empty() {
            return None;
        }
        let until = mailbox
            .held
            .as_ref()
            .map_or_else(|| after(HOLD), |held| held.0);
        mailbox.held = Some((until, Box::new(wake)));
        (Instant::now() < until).then_some(until)
    }

    /// Forgets an object that is gone, or another replica's, once its transitions are delivered.
    pub(crate) fn forget(&self, uid: &str) {
        let mut state = self.state();
        if let Some(mailbox) = state.objects.get_mut(uid) {
            mailbox.is_left = true;
            mailbox.held = None;
            if mailbox.pending.is_empty() {
                state.objects.remove(uid);
            }
        }
    }

    /// Forgets all objects, because the history of the API server went back; their next reconciliations note them anew.
    pub(crate) fn rewind(&self) {
        *self.state() = State::default();
    }

    /// Returns how many transitions are not delivered.
    pub(crate) fn pending(&self) -> usize {
        let state = self.state();
        let pending = state.objects.values().map(|it| it.pending.len());
        pending.fold(0, usize::saturating_add)
    }

    /// Delivers, until `closing` is cancelled and everything is delivered or the receiver takes nothing.
    pub(crate) async fn run(&self, closing: CancellationToken) {
        let mut sending = FuturesUnordered::new();
        let mut failures = 0_u32;
        let mut pause: Option<Instant> = None;
        loop {
            // While the receiver takes nothing, one transition at a time asks it.
            let most = if failures == 0 { CONCURRENT } else { 1 };
            while pause.is_none()
                && sending.len() < most
                && let Some((uid, event)) = self.next()
            {
                sending.push(self.send(uid, event));
            }
            if closing.is_cancelled() && sending.is_empty() {
                return;
            }
            let paused = async {
                match pause {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(taken) = sending.next(), if !sending.is_empty() => match taken {
                    Ok(()) => {
                        if failures > 0 {
                            tracing::info!(pending = self.pending(), "transitions are delivered again");
                        }
                        (failures, pause) = (0, None);
                    }
                    Err(why) => {
                        if failures == 0 {
                            let pending = self.pending();
                            tracing::warn!(pending, "cannot deliver transitions: {why}");
                        }
                        if pause.is_none() {
                            failures = failures.saturating_add(1);
                            pause = Some(after(BACKOFF.wait(failures, std::process::id().into())));
                        }
                    }
                },
                () = paused => pause = None,
                () = self.moved.notified(), if pause.is_none() => {}
                () = closing.cancelled(), if !closing.is_cancelled() => {}
            }
        }
    }

    /// Takes the next transition to deliver.
    fn next(&self) -> Option<(String, Arc<TransitionEvent>)> {
        let mut state = self.state();
        let uid = state.ready.pop_front()?;
        let event = state.objects.get(&uid)?.pending.front()?;
        let event = Arc::clone(event);
        Some((uid, event))
    }

    /// Delivers a transition, and notes that it is delivered.
    ///
    /// # Errors
    ///
    /// If it is to be delivered later.
    async fn send(&self, uid: String, event: Arc<TransitionEvent>) -> Result<(), Undelivered> {
        let delivery = AssertUnwindSafe(self.delivery.take(&event));
        let taken = match delivery.catch_unwind().await {
            Ok(taken) => taken,
            Err(panic) => Err(Undelivered::retry(panic_text(&*panic))),
        };
        match taken {
            Err(why) if !why.is_refused => {
                self.count("failed", 1);
                let mut state = self.state();
                state.ready.push_front(uid);
                return Err(why);
            }
            Err(why) => {
                tracing::error!(id = event.id(), "the receiver refuses a transition: {why}");
                self.count("refused", 1);
            }
            Ok(()) => self.count("delivered", 1),
        }
        self.end(uid, event.number());
        Ok(())
    }

    /// Notes that a transition is delivered.
    fn end(&self, uid: String, number: u64) {
        let mut state = self.state();
        let Some(mailbox) = state.objects.get_mut(&uid) else {
            return;
        };
        mailbox.delivered = mailbox.delivered.max(number);
        // It may have been dropped meanwhile.
        while (mailbox.pending.front()).is_some_and(|it| it.number() <= number) {
            mailbox.pending.pop_front();
        }
        mailbox.is_queued = !mailbox.pending.is_empty();
        if mailbox.is_queued {
            state.ready.push_back(uid);
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
