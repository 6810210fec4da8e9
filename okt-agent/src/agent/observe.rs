//! The observation of the application, at the agent's own interval.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::attempt::panic_text;
use super::board::Board;
use super::metrics::Metrics;
use super::settings::AgentSettings;
use crate::wire::{Seen, Sighting, cut};
use crate::work::Work;

/// The limit for the events of one observation.
const EVENTS: usize = 16;

/// Observes repeatedly, and at once after an action has ended.
pub(super) async fn observe_on<W: Work>(
    work: Arc<W>,
    board: watch::Sender<Board>,
    settings: Arc<AgentSettings>,
    metrics: Arc<Metrics>,
) {
    let mut news = board.subscribe();
    loop {
        let begun = BegunObservation {
            observations: board.borrow().observations,
            instant: Instant::now(),
            timestamp: Timestamp::now(),
        };
        let observing = Arc::clone(&work);
        let mut observe =
            AbortOnDropHandle::new(tokio::spawn(async move { observing.observe().await }));
        tokio::select! {
            joined = &mut observe => {
                let sighting = joined.unwrap_or_else(|error| {
                    let why = panic_text(error).unwrap_or_default();
                    Sighting::unreachable(format!("the observation panicked: {why}"))
                });
                begun.publish(&board, &metrics, sighting);
            }
            () = sleep(settings.observe_timeout) => {
                let why = format!("no answer within {:?}", settings.observe_timeout);
                begun.publish(&board, &metrics, Sighting::unreachable(why));
                end(observe).await;
            }
            () = ended(&mut news, begun.observations) => {
                // The observation may have begun before the end, so its result is useless.
                let ending = end(observe);
                tokio::pin!(ending);
                if timeout(settings.observe_timeout, &mut ending).await.is_err() {
                    let why = "the observation before does not end";
                    let now = BegunObservation { observations: board.borrow().observations, ..begun };
                    now.publish(&board, &metrics, Sighting::unreachable(why));
                    ending.await;
                }
                continue;
            }
        }
        tokio::select! {
            () = sleep(settings.observe_every) => {}
            () = ended(&mut news, begun.observations) => {}
        }
    }
}

/// When an observation began.
#[derive(Clone, Copy)]
struct BegunObservation {
    observations: u64,
    instant: Instant,
    timestamp: Timestamp,
}

impl BegunObservation {
    /// Publishes the observation, unless an action has ended since it began.
    fn publish(self, board: &watch::Sender<Board>, metrics: &Metrics, mut sighting: Sighting) {
        sighting.observed_at = Some(self.timestamp);
        sighting.age_ms = None;
        sighting.events.truncate(EVENTS);
        if let Seen::Unreachable { why } = &mut sighting.seen {
            *why = cut(std::mem::take(why));
        }
        metrics.observed(&sighting.seen);
        board.send_if_modified(|board| {
            let current = board.observations == self.observations;
            if current {
                board.sighting = sighting;
                board.observed = Some(self.instant);
            }
            current
        });
    }
}

/// Aborts an observation, and waits until it has ended: one that blocks its thread continues, and two must not overlap.
async fn end(observe: AbortOnDropHandle<Sighting>) {
    observe.abort();
    let _ = observe.await;
}

/// Returns when an action has ended.
async fn ended(news: &mut watch::Receiver<Board>, observations: u64) {
    let next = news.wait_for(|board| board.observations != observations);
    if next.await.is_err() {
        // The board is gone, and the agent with it.
        std::future::pending::<()>().await;
    }
}
