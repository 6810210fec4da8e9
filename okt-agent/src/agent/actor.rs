//! The actor: the only one that changes the memory, one step after the other.
//!
//! A step is a verdict of the rules, a line in the journal, and then its consequences.
//! Readers use the [`Board`], so only requests for a change wait for the actor.

mod record;
pub(super) mod requests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Map;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::attempt::{AttemptInput, AttemptReports, Course, Ending, panic_text};
use super::board::{Board, Live};
use super::command::ActorRequest;
use super::journal::Journal;
use super::memory::{AgentMemory, MemoryChange, Remembered};
use super::metrics::Metrics;
use super::settings::AgentSettings;
use crate::wire::{ActionId, Phase, Progress, cut, cut_to};
use crate::work::{Fault, Offer, Order, Work};

/// The limit for the name of a state and the reason in a result, in bytes.
const WORD_LIMIT: usize = 128;

/// The only one that changes the memory.
pub(super) struct Actor<W> {
    pub(super) work: Arc<W>,
    pub(super) settings: Arc<AgentSettings>,
    pub(super) offers: Vec<Offer>,
    pub(super) journal: Arc<Mutex<Journal>>,
    pub(super) memory: AgentMemory,
    pub(super) board: watch::Sender<Board>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) requests: mpsc::Receiver<ActorRequest>,
    /// A sender for the notes of the work.
    pub(super) own: mpsc::Sender<ActorRequest>,
    pub(super) stop: CancellationToken,
    pub(super) under_way: Option<UnderWay>,
    /// The end of the last attempt, until it is on disk.
    pub(super) unrecorded: Option<MemoryChange>,
    pub(super) heal: Option<Heal>,
}

/// The running attempt.
pub(super) struct UnderWay {
    id: ActionId,
    live: Arc<Live>,
    course: Course,
    cancellation: CancellationToken,
    /// Whether it was cancelled because the agent is stopping.
    interrupted: bool,
    begun: Instant,
    ending: AbortOnDropHandle<Ending>,
}

/// The next retry of a write.
#[derive(Clone, Copy)]
pub(super) struct Heal {
    at: Instant,
    wait: Duration,
}

/// The progress of a stop.
#[derive(Clone, Copy)]
enum Stop {
    No,
    /// Running work may end until then.
    Finishing(Instant),
    /// Running work is cancelled, and is given up then.
    Ending(Instant),
}

impl<W: Work> Actor<W> {
    /// Runs until it is stopped and nothing runs any more.
    pub(super) async fn run(mut self) {
        self.take_up().await;
        let mut stop = Stop::No;
        loop {
            let done = self.under_way.is_none() && self.unrecorded.is_none();
            let until = match stop {
                Stop::No => None,
                Stop::Finishing(_) | Stop::Ending(_) if done => return,
                Stop::Finishing(until) | Stop::Ending(until) => Some(until),
            };
            tokio::select! {
                ending = ending(self.under_way.as_mut()) => self.ended(ending).await,
                () = at(self.heal.map(|heal| heal.at)) => self.heal().await,
                Some(request) = self.requests.recv() => self.handle_request(request).await,
                () = self.stop.cancelled(), if until.is_none() => {
                    tracing::info!("stopping");
                    self.board.send_modify(|board| board.stopping = true);
                    stop = Stop::Finishing(Instant::now() + self.settings.stop_limit);
                }
                () = at(until) => match stop {
                    Stop::No => {}
                    Stop::Finishing(_) => {
                        self.interrupt();
                        // The time to cancel the work, drop it, and clean up its leftovers.
                        let limit = self.settings.cancel_limit + Duration::from_secs(5);
                        stop = Stop::Ending(Instant::now() + limit);
                    }
                    Stop::Ending(_) => {
                        tracing::warn!("stopped before the action under way was");
                        return;
                    }
                },
            }
        }
    }

    /// Makes the journal writable, and continues with what an earlier agent has left.
    async fn take_up(&mut self) {
        if self.board.borrow().blind().is_some() {
            return;
        }
        let course = self.memory.under_way().cloned().map(|action| {
            let mut action = Remembered::clone(&action);
            let repeatable = self.offers.iter().any(|offer| {
                // Work that is no longer offered cannot be repeated either.
                offer.state == action.report.state && offer.repeatable
            });
            let course = if repeatable && !action.report.cancelling {
                action.report.resumed = true;
                Course::Resume
            } else {
                Course::CleanUp
            };
            self.memory.apply(MemoryChange::of(action.clone()));
            (action, course)
        });
        self.heal().await;
        self.publish(|_| {});
        if let Some((action, course)) = course {
            tracing::info!(id = %action.report.id, ?course, "an agent that is gone has left an attempt");
            self.begin(&action, course, None);
        }
    }

    /// Begins an attempt that is on disk.
    fn begin(&mut self, action: &Remembered, course: Course, traceparent: Option<String>) {
        let report = &action.report;
        let limit = self.settings.output_limit;
        let live = Arc::new(Live::new(report.id.clone(), report.attempt, limit));
        self.publish(|board| board.begin(Arc::clone(&live)));
        let cancellation = CancellationToken::new();
        let attempt = AttemptInput {
            work: Arc::clone(&self.work),
            order: Order {
                id: report.id.clone(),
                state: report.state.clone(),
                owner: action.owner.clone(),
                attempt: report.attempt,
                resumed: report.resumed,
                traceparent,
                input: action.input.clone(),
                notes: action.notes.clone(),
            },
            course,
            reports: Arc::new(AttemptReports {
                live: Arc::clone(&live),
                board: self.board.subscribe(),
                requests: self.own.clone(),
            }),
            cancellation: cancellation.clone(),
            cancel_limit: self.settings.cancel_limit,
        };
        self.metrics.running(true);
        self.under_way = Some(UnderWay {
            id: report.id.clone(),
            live,
            course,
            cancellation,
            interrupted: false,
            begun: Instant::now(),
            ending: AbortOnDropHandle::new(tokio::spawn(attempt.run())),
        });
    }

    /// Cancels the running attempt because the agent is stopping.
    fn interrupt(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            under_way.interrupted = true;
            under_way.cancellation.cancel();
        }
    }

    /// Records the end of the running attempt.
    async fn ended(&mut self, ending: Ending) {
        self.metrics.running(false);
        let Some(under_way) = self.under_way.take() else {
            return;
        };
        let Some(action) = self.memory.action(&under_way.id) else {
            return;
        };
        let mut action = Remembered::clone(action);
        let report = &mut action.report;
        let (phase, fault) = match ending {
            Ending::Returned(Ok(done)) => {
                report.event = done.event.map(|event| cut_to(event, WORD_LIMIT));
                report.message = cut(done.message);
                (Phase::Succeeded, None)
            }
            Ending::Returned(Err(fault)) if report.cancelling => (Phase::Cancelled, Some(fault)),
            Ending::Panicked(_) | Ending::Dropped if report.cancelling => (Phase::Cancelled, None),
            // Neither done nor failed: by the journal the next agent resumes it, or reports `Unknown`.
            _ if under_way.interrupted => return,
            Ending::Returned(Err(fault)) => (Phase::Failed, Some(fault)),
            Ending::Panicked(text) => {
                let fault = Fault::retry("Panicked", format!("the work panicked: {text}"));
                (Phase::Failed, Some(fault))
            }
            Ending::Dropped => {
                let why = "an agent that is gone began it, and it is not repeatable";
                (Phase::Unknown, Some(Fault::retry("Interrupted", why)))
            }
        };
        if let Some(fault) = fault {
            report.reason = Some(cut_to(fault.reason, WORD_LIMIT));
            report.message = cut(fault.message);
            report.permanent = fault.permanent && phase == Phase::Failed;
        }
        report.phase = phase;
        report.progress = under_way.live.progress();
        report.output_bytes = under_way.live.output().total();
        report.ended_at = Some(Timestamp::now());
        action.input = Map::new();
        action.notes.clear();
        let offered = under_way.course == Course::Perform || phase != Phase::Unknown;
        let state = offered.then_some(action.report.state.as_str());
        let took = under_way.begun.elapsed();
        self.metrics.ended(state.unwrap_or("other"), phase, took);
        self.unrecorded = Some(MemoryChange::of(action));
        self.record_end().await;
    }

    /// Records the end of the last attempt before it is published.
    async fn record_end(&mut self) {
        let Some(change) = self.unrecorded.take() else {
            return;
        };
        let report = change.action.as_ref().map(|action| &action.report);
        match self.record(change.clone()).await {
            // An end is published only after it is on disk, so a crash cannot make the next agent begin the attempt
            // again.
            Ok(()) => {
                if let Some(report) = report {
                    let (phase, reason) = (report.phase, &report.reason);
                    tracing::info!(id = %report.id, ?phase, ?reason, "ended");
                }
            }
            Err(why) => {
                if let Some(report) = report
                    && let Some(live) = self.board.borrow().live(&report.id)
                {
                    let message = format!("it has ended, which cannot be recorded: {why}");
                    live.set_progress(Progress {
                        percent: None,
                        message: cut(message),
                    });
                }
                self.unrecorded = Some(change);
            }
        }
    }
}

/// Returns how the running attempt ends; without one it never returns.
async fn ending(under_way: Option<&mut UnderWay>) -> Ending {
    match under_way {
        None => std::future::pending().await,
        Some(under_way) => (&mut under_way.ending).await.unwrap_or_else(|error| {
            // If the task that holds the attempt panics, the attempt has ended.
            Ending::Panicked(panic_text(error).unwrap_or_default())
        }),
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        None => std::future::pending().await,
        Some(instant) => sleep_until(instant).await,
    }
}
