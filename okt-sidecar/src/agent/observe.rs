//! Looking where the application is, on the agent's own time.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::attempt::panic_text;
use super::board::Board;
use super::metrics::Metrics;
use super::output::cut;
use super::settings::Settings;
use crate::wire::{Seen, Sighting, TEXT_LIMIT};
use crate::work::Work;

/// How many events of a sighting are told.
const EVENTS: usize = 16;

/// Looks again and again, and at once after an action has ended.
pub(super) async fn observe_on<W: Work>(
    work: Arc<W>,
    board: watch::Sender<Board>,
    settings: Arc<Settings>,
    metrics: Arc<Metrics>,
) {
    let mut news = board.subscribe();
    loop {
        let begun = Begun {
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
                    Sighting::unreachable(format!("the look panicked: {why}"))
                });
                begun.tell(&board, &metrics, sighting);
            }
            () = sleep(settings.observe_timeout) => {
                let why = format!("no answer within {:?}", settings.observe_timeout);
                begun.tell(&board, &metrics, Sighting::unreachable(why));
                end(observe).await;
            }
            () = ended(&mut news, begun.observations) => {
                // It may have been asked before the end, so its answer is of no use.
                let ending = end(observe);
                tokio::pin!(ending);
                if timeout(settings.observe_timeout, &mut ending).await.is_err() {
                    let why = "the look before does not end";
                    let now = Begun { observations: board.borrow().observations, ..begun };
                    now.tell(&board, &metrics, Sighting::unreachable(why));
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

/// When a look was begun.
#[derive(Clone, Copy)]
struct Begun {
    observations: u64,
    instant: Instant,
    timestamp: Timestamp,
}

impl Begun {
    /// Tells what was seen, unless an action has ended since the look was begun.
    fn tell(self, board: &watch::Sender<Board>, metrics: &Metrics, mut sighting: Sighting) {
        sighting.observed_at = Some(self.timestamp);
        sighting.age_ms = None;
        sighting.events.truncate(EVENTS);
        if let Seen::Unreachable { why } = &mut sighting.seen {
            *why = cut(std::mem::take(why), TEXT_LIMIT);
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

/// Ends a look; one that blocks its thread goes on until it does not, and there must not be two of them.
async fn end(observe: AbortOnDropHandle<Sighting>) {
    observe.abort();
    let _ = observe.await;
}

/// Returns when an action has ended.
async fn ended(news: &mut watch::Receiver<Board>, observations: u64) {
    if news
        .wait_for(|board| board.observations != observations)
        .await
        .is_err()
    {
        // The board is gone, and with it whoever would be told.
        std::future::pending::<()>().await;
    }
}
