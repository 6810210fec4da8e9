//! Events that wait for a request are sent with the next one: no event waits for others to come.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::select;
use tokio::sync::{self, oneshot};

use crate::delivery::Undelivered;

/// The most events of a request: a receiver may refuse more than a megabyte, and events have up to some kilobytes.
const AT_ONCE: usize = 100;

/// The outcome of one event.
type Delivered = Result<(), Undelivered>;

/// An event in JSON that waits for a request, and who waits for its outcome.
struct WaitingEvent {
    event: String,
    outcome: oneshot::Sender<Delivered>,
}

/// The events that wait. One request is under way at a time; whoever waits for the turn sends what waits then.
#[derive(Default)]
pub(super) struct Batches {
    waiting: Mutex<VecDeque<WaitingEvent>>,
    turn: sync::Mutex<()>,
    /// Whether the receiver has said that it takes no batches.
    is_unsupported: AtomicBool,
}

/// What a receiver says to some events in one request.
pub(super) enum BatchAnswer {
    /// It has them all.
    Taken,
    /// It takes none of them: each may be tried alone.
    Refused(String),
    /// It takes no batches at all.
    Unsupported,
    /// A later request may succeed.
    Retry(String),
}

impl Batches {
    pub(super) fn are_unsupported(&self) -> bool {
        self.is_unsupported.load(Ordering::Relaxed)
    }

    /// Sends an event, perhaps with others, by `send`, which gets a JSON array. None if the receiver takes no batches.
    pub(super) async fn deliver<'a>(
        &self,
        event: String,
        send: impl Fn(String) -> BoxFuture<'a, BatchAnswer> + Sync,
    ) -> Option<Delivered> {
        let (outcome, mut told) = oneshot::channel();
        self.waiting
            .lock()
            .push_back(WaitingEvent { event, outcome });
        let _turn = select! {
            biased;
            delivered = &mut told => return Some(delivered.unwrap_or_else(|_| cancelled())),
            turn = self.turn.lock() => turn,
        };
        loop {
            match told.try_recv() {
                Ok(delivered) => return Some(delivered),
                Err(oneshot::error::TryRecvError::Closed) => return Some(cancelled()),
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            if self.are_unsupported() {
                return None;
            }
            self.send_next(&send).await;
        }
    }

    async fn send_next<'a>(&self, send: &(impl Fn(String) -> BoxFuture<'a, BatchAnswer> + Sync)) {
        let (events, outcomes): (Vec<_>, Vec<_>) = {
            let mut waiting = self.waiting.lock();
            let length = waiting.len().min(AT_ONCE);
            let next = waiting.drain(..length);
            // Nobody waits for what an operator has given up; it is delivered later, if at all.
            let next = next.filter(|it| !it.outcome.is_closed());
            next.map(|it| (it.event, it.outcome)).unzip()
        };
        if events.is_empty() {
            return;
        }
        let alone = events.len() == 1;
        match send(format!("[{}]", events.join(","))).await {
            BatchAnswer::Taken => tell(outcomes, || Ok(())),
            BatchAnswer::Retry(why) => tell(outcomes, || Err(Undelivered::retry(&*why))),
            BatchAnswer::Refused(why) if alone => {
                tell(outcomes, || Err(Undelivered::refused(&*why)));
            }
            BatchAnswer::Refused(_) => {
                // One of them is refused; the others must not go with it.
                for (event, outcome) in events.into_iter().zip(outcomes) {
                    let delivered = match send(format!("[{event}]")).await {
                        BatchAnswer::Taken => Ok(()),
                        BatchAnswer::Refused(why) => Err(Undelivered::refused(why)),
                        BatchAnswer::Retry(why) => Err(Undelivered::retry(why)),
                        BatchAnswer::Unsupported => Err(unsupported()),
                    };
                    // Who waited may have been cancelled.
                    _ = outcome.send(delivered);
                }
            }
            BatchAnswer::Unsupported => {
                self.is_unsupported.store(true, Ordering::Relaxed);
                tell(outcomes, || Err(unsupported()));
            }
        }
    }
}

fn tell(outcomes: Vec<oneshot::Sender<Delivered>>, delivered: impl Fn() -> Delivered) {
    for outcome in outcomes {
        // Who waited may have been cancelled.
        _ = outcome.send(delivered());
    }
}

/// The outcome if whoever sent the event was cancelled meanwhile.
fn cancelled() -> Delivered {
    Err(Undelivered::retry("the request was cancelled"))
}

fn unsupported() -> Undelivered {
    Undelivered::retry("the receiver takes no batches; events are sent one by one from now on")
}
