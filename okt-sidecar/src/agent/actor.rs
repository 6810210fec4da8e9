//! The actor: the only one who changes what is remembered, one step after the other.
//!
//! A step is a verdict of the rules, a line of the journal, and then what follows from it.
//! What everybody may read stands on the [`Board`], so nobody waits for the actor but who asks for a change.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::attempt::{Attempt, Course, Ending, Speech};
use super::board::{Board, Live, Trouble};
use super::journal::Journal;
use super::memory::{Change, Memory, Note, Remembered, fingerprint};
use super::metrics::Metrics;
use super::output::cut;
use super::rules::{self, Standing};
use super::settings::Settings;
use crate::wire::{
    Acknowledgement, ActionId, ActionReport, ActionRequest, Code, Fence, Phase, Problem, Progress,
    TEXT_LIMIT,
};
use crate::work::{NOTES_LIMIT, NotRemembered, Offer, Order, Work};

/// The first wait after a write that failed; each further one is twice as long, up to [`HEAL_LIMIT`].
const HEAL_FIRST: Duration = Duration::from_secs(1);

/// The longest wait between two tries to write.
const HEAL_LIMIT: Duration = Duration::from_secs(30);

/// The longest name of a state that a result carries, in bytes.
const WORD_LIMIT: usize = 128;

/// What came of a request: an answer, and whether the request itself has begun something.
pub(super) type Reply = oneshot::Sender<Result<(bool, ActionReport), Problem>>;

/// What is asked of the actor.
#[derive(Debug)]
pub(super) enum Command {
    Ask {
        id: ActionId,
        request: Box<ActionRequest>,
        reply: Reply,
    },
    Cancel {
        id: ActionId,
        epoch: u64,
        reply: Reply,
    },
    Acknowledge {
        id: ActionId,
        acknowledgement: Acknowledgement,
        reply: Reply,
    },
    Remember {
        id: ActionId,
        attempt: u32,
        key: String,
        value: Value,
        reply: oneshot::Sender<Result<(), NotRemembered>>,
    },
}

/// The only one who changes what is remembered.
pub(super) struct Actor<W> {
    pub(super) work: Arc<W>,
    pub(super) settings: Arc<Settings>,
    pub(super) offers: Vec<Offer>,
    pub(super) journal: Arc<Mutex<Journal>>,
    pub(super) memory: Memory,
    pub(super) board: watch::Sender<Board>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// For what the work says.
    pub(super) own: mpsc::Sender<Command>,
    pub(super) stop: CancellationToken,
    pub(super) under_way: Option<UnderWay>,
    /// The end of the last attempt, as long as it is not on disk.
    pub(super) unrecorded: Option<Change>,
    pub(super) heal: Option<Heal>,
}

/// The attempt that is under way.
pub(super) struct UnderWay {
    id: ActionId,
    live: Arc<Live>,
    course: Course,
    cancellation: CancellationToken,
    /// It was told to end because the agent is being stopped.
    interrupted: bool,
    begun: Instant,
    ending: AbortOnDropHandle<Ending>,
}

/// When it is tried again to write.
#[derive(Clone, Copy)]
pub(super) struct Heal {
    at: Instant,
    wait: Duration,
}

/// How far a stop is.
#[derive(Clone, Copy)]
enum Stop {
    No,
    /// What runs may end until then.
    Finishing(Instant),
    /// What runs was told to end, and is given up then.
    Ending(Instant),
}

impl<W: Work> Actor<W> {
    /// Lives until it is told to stop and nothing runs any more.
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
                Some(command) = self.commands.recv() => self.obey(command).await,
                () = self.stop.cancelled(), if until.is_none() => {
                    tracing::info!("stopping");
                    self.board.send_modify(|board| board.stopping = true);
                    stop = Stop::Finishing(Instant::now() + self.settings.stop_limit);
                }
                () = at(until) => match stop {
                    Stop::No => {}
                    Stop::Finishing(_) => {
                        self.interrupt();
                        // Time to be told, to be dropped, and to have its leftovers ended.
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

    /// Makes the journal ready, and goes on with what an agent that is gone has left.
    async fn take_up(&mut self) {
        if self.board.borrow().blind().is_some() {
            return;
        }
        let course = self.memory.under_way().cloned().map(|action| {
            let mut action = Remembered::clone(&action);
            let repeatable = self.offers.iter().any(|offer| {
                // What is not offered any more cannot be done again either.
                offer.state == action.report.state && offer.repeatable
            });
            let course = if repeatable && !action.report.cancelling {
                action.report.resumed = true;
                Course::Resume
            } else {
                Course::CleanUp
            };
            self.memory.apply(Change {
                action: Some(action.clone()),
                ..Change::default()
            });
            (action, course)
        });
        self.heal().await;
        self.publish(|_| {});
        if let Some((action, course)) = course {
            tracing::info!(id = %action.report.id, ?course, "an agent that is gone has left an attempt");
            self.begin(&action, course);
        }
    }

    async fn obey(&mut self, command: Command) {
        let blind = self.board.borrow().blind();
        match command {
            Command::Ask { id, request, reply } => {
                let answer = match blind {
                    Some(problem) => Err(problem),
                    None => self.ask(id, *request).await,
                };
                // Who asked may have given up, and asks again.
                let _ = reply.send(answer);
            }
            Command::Cancel { id, epoch, reply } => {
                let answer = match blind {
                    Some(problem) => Err(problem),
                    None => self.cancel(&id, epoch).await,
                };
                let _ = reply.send(answer);
            }
            Command::Acknowledge {
                id,
                acknowledgement,
                reply,
            } => {
                let answer = match blind {
                    Some(problem) => Err(problem),
                    None => self.acknowledge(&id, acknowledgement).await,
                };
                let _ = reply.send(answer);
            }
            Command::Remember {
                id,
                attempt,
                key,
                value,
                reply,
            } => {
                let _ = reply.send(self.remember(id, attempt, key, value).await);
            }
        }
    }

    async fn ask(
        &mut self,
        id: ActionId,
        request: ActionRequest,
    ) -> Result<(bool, ActionReport), Problem> {
        let (stopping, seen) = {
            let board = self.board.borrow();
            (board.stopping, board.sighting.seen.clone())
        };
        let standing = Standing {
            memory: &self.memory,
            offers: &self.offers,
            graph: self.settings.graph.as_deref(),
            stopping,
            seen: &seen,
        };
        match rules::asked(standing, &id, &request) {
            rules::Asked::Refuse(problem) => Err(problem),
            rules::Asked::Tell => {
                let change = self.raise(request.fence.epoch);
                self.record_if(change).await?;
                self.tell(&id, false)
            }
            rules::Asked::Begin { attempt } => {
                let action = begun(id.clone(), request, attempt);
                let change = Change {
                    owner: Some(action.owner.clone()),
                    fence: Some(action.fence),
                    forgotten: self.memory.forgettable(&action.owner, action.fence),
                    action: Some(action.clone()),
                    note: None,
                };
                self.record(change).await.map_err(cannot_record)?;
                tracing::info!(%id, state = action.report.state, attempt, "begins");
                self.begin(&action, Course::Perform);
                self.tell(&id, true)
            }
        }
    }

    async fn cancel(&mut self, id: &ActionId, epoch: u64) -> Result<(bool, ActionReport), Problem> {
        match rules::cancelled(&self.memory, id, epoch) {
            rules::Cancelled::Refuse(problem) => Err(problem),
            rules::Cancelled::Tell => {
                let change = self.raise(epoch);
                self.record_if(change).await?;
                self.tell(id, false)
            }
            rules::Cancelled::End => {
                let mut change = self.raise(epoch);
                if let Some(action) = self.memory.action(id)
                    && !action.report.cancelling
                {
                    let mut action = Remembered::clone(action);
                    action.report.cancelling = true;
                    change.action = Some(action);
                }
                if let Err(why) = self.record(change.clone()).await {
                    // What runs may be what has filled the disk: it is ended all the same. An agent that crashes
                    // now would not know of it, and whoever asked asks again.
                    tracing::warn!(%id, why, "cancelled without a record");
                    self.memory.apply(change);
                    self.publish(|_| {});
                }
                if let Some(under_way) = &self.under_way {
                    under_way.cancellation.cancel();
                }
                self.tell(id, true)
            }
        }
    }

    async fn acknowledge(
        &mut self,
        id: &ActionId,
        acknowledgement: Acknowledgement,
    ) -> Result<(bool, ActionReport), Problem> {
        let mut change = self.raise(acknowledgement.epoch);
        match rules::acknowledged(&self.memory, id, acknowledgement) {
            rules::Acknowledged::Refuse(problem) => return Err(problem),
            rules::Acknowledged::Tell => {}
            rules::Acknowledged::Take => {
                change.action = self.memory.action(id).map(|action| {
                    let mut action = Remembered::clone(action);
                    action.report.acknowledged = true;
                    action
                });
            }
        }
        self.record_if(change).await?;
        self.tell(id, false)
    }

    async fn remember(
        &mut self,
        id: ActionId,
        attempt: u32,
        key: String,
        value: Value,
    ) -> Result<(), NotRemembered> {
        let refuse = |key, why: String| Err(NotRemembered::NotRecorded { key, why });
        let notes = match self.memory.under_way() {
            Some(action) if action.report.id == id && action.report.attempt == attempt => {
                &action.notes
            }
            Some(_) | None => return refuse(key, "the attempt has ended".to_owned()),
        };
        let others = notes.iter().filter(|(other, _)| **other != key);
        let length: usize = (others.map(|(key, value)| key.len() + value.to_string().len())).sum();
        if length + key.len() + value.to_string().len() > NOTES_LIMIT {
            return Err(NotRemembered::TooMuch(key));
        }
        let note = Note {
            id,
            key: key.clone(),
            value,
        };
        let change = Change {
            note: Some(note),
            ..Change::default()
        };
        self.record(change).await.or_else(|why| refuse(key, why))
    }

    /// Begins an attempt that is on disk.
    fn begin(&mut self, action: &Remembered, course: Course) {
        let report = &action.report;
        let live = Arc::new(Live::new(
            report.id.clone(),
            report.attempt,
            self.settings.output_limit,
        ));
        self.publish(|board| board.begin(Arc::clone(&live)));
        let cancellation = CancellationToken::new();
        let attempt = Attempt {
            work: Arc::clone(&self.work),
            order: Order {
                id: report.id.clone(),
                state: report.state.clone(),
                owner: action.owner.clone(),
                attempt: report.attempt,
                resumed: report.resumed,
                input: action.input.clone(),
                notes: action.notes.clone(),
            },
            course,
            speech: Arc::new(Speech {
                live: Arc::clone(&live),
                board: self.board.subscribe(),
                commands: self.own.clone(),
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

    /// Tells what runs to end because the agent is being stopped.
    fn interrupt(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            under_way.interrupted = true;
            under_way.cancellation.cancel();
        }
    }

    /// Records the end of what was under way.
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
                report.event = done.event.map(|event| cut(event, WORD_LIMIT));
                report.message = cut(done.message, TEXT_LIMIT);
                (Phase::Succeeded, None)
            }
            Ending::Returned(Err(fault)) if report.cancelling => (Phase::Cancelled, Some(fault)),
            Ending::Panicked(_) | Ending::Dropped if report.cancelling => (Phase::Cancelled, None),
            // Neither done nor failed: what stands in the journal makes the next agent go on with it, or call it
            // unknown.
            _ if under_way.interrupted => return,
            Ending::Returned(Err(fault)) => (Phase::Failed, Some(fault)),
            Ending::Panicked(text) => {
                let fault = crate::Fault::retry("Panicked", format!("the work panicked: {text}"));
                (Phase::Failed, Some(fault))
            }
            Ending::Dropped => {
                let why = "an agent that is gone began it, and it is not repeatable";
                (
                    Phase::Unknown,
                    Some(crate::Fault::retry("Interrupted", why)),
                )
            }
        };
        if let Some(fault) = fault {
            report.reason = Some(cut(fault.reason, WORD_LIMIT));
            report.message = cut(fault.message, TEXT_LIMIT);
            report.permanent = fault.permanent && phase == Phase::Failed;
        }
        report.phase = phase;
        report.progress = under_way.live.progress();
        report.output_bytes = under_way.live.output().total();
        report.ended_at = Some(Timestamp::now());
        action.input = serde_json::Map::new();
        action.notes.clear();
        tracing::info!(id = %under_way.id, ?phase, reason = ?action.report.reason, "ended");
        let offered = under_way.course == Course::Perform || phase != Phase::Unknown;
        let state = offered.then_some(action.report.state.as_str());
        (self.metrics).ended(state.unwrap_or("other"), phase, under_way.begun.elapsed());
        self.unrecorded = Some(Change {
            action: Some(action),
            ..Change::default()
        });
        self.record_end().await;
    }

    /// Records the end of the last attempt, before anybody is told of it.
    async fn record_end(&mut self) {
        let Some(change) = self.unrecorded.take() else {
            return;
        };
        if let Err(why) = self.record(change.clone()).await {
            if let Some(action) = &change.action
                && let Some(live) = self.board.borrow().live(&action.report.id)
            {
                live.say(Progress {
                    percent: None,
                    message: cut(
                        format!("it has ended, which cannot be recorded: {why}"),
                        TEXT_LIMIT,
                    ),
                });
            }
            self.unrecorded = Some(change);
        }
    }

    /// Tries again to write what could not be written.
    async fn heal(&mut self) {
        if self.unrecorded.is_some() {
            self.record_end().await;
            return;
        }
        let memory = self.memory.clone();
        let written = (self.on_disk(move |journal| {
            if journal.is_suspect() {
                journal.rewrite(&memory)
            } else {
                Ok(())
            }
        }))
        .await;
        self.note_trouble(written.as_ref().err());
    }

    /// Records a change, if it is one.
    async fn record_if(&mut self, change: Change) -> Result<(), Problem> {
        if change == Change::default() {
            return Ok(());
        }
        self.record(change).await.map_err(cannot_record)
    }

    /// Brings a change to the disk, and then into memory and onto the board.
    async fn record(&mut self, change: Change) -> Result<(), String> {
        let memory = self.memory.clone();
        let line = change.clone();
        let written = self
            .on_disk(move |journal| journal.add(&memory, &line))
            .await;
        if written.is_ok() {
            // The board learns of an end and that nothing is seen any more in one step.
            let ended = change.action.as_ref().is_some_and(|action| {
                let before = self.memory.action(&action.report.id);
                action.report.phase.is_final()
                    && before.is_some_and(|before| !before.report.phase.is_final())
            });
            self.memory.apply(change);
            self.publish(|board| {
                if ended {
                    board.unobserve();
                }
            });
        }
        self.note_trouble(written.as_ref().err());
        written
    }

    /// Does something with the journal, on a thread that may wait for the disk.
    async fn on_disk(
        &mut self,
        write: impl FnOnce(&mut Journal) -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), String> {
        let journal = Arc::clone(&self.journal);
        let written = tokio::task::spawn_blocking(move || {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            (write(&mut journal), journal.length())
        });
        match written.await {
            Ok((written, length)) => {
                self.metrics.wrote(length, written.is_ok());
                written.map_err(|error| format!("the journal cannot be written: {error}"))
            }
            Err(error) => Err(format!("the journal cannot be written: {error}")),
        }
    }

    /// Says whether the journal can be written, and plans the next try where it cannot.
    fn note_trouble(&mut self, why: Option<&String>) {
        match why {
            None => self.heal = None,
            Some(why) => {
                tracing::warn!(why, "not ready");
                let wait = (self.heal).map_or(HEAL_FIRST, |heal| (heal.wait * 2).min(HEAL_LIMIT));
                let at = Instant::now() + wait;
                self.heal = Some(Heal { at, wait });
            }
        }
        let trouble = why.cloned().map(Trouble::Failing);
        self.board.send_if_modified(|board| {
            let news = board.trouble != trouble;
            board.trouble = trouble;
            news
        });
    }

    /// A change that takes the term of an operator, if that is a new one.
    fn raise(&self, epoch: u64) -> Change {
        let fence = (epoch > self.memory.fence.epoch).then_some(Fence {
            epoch,
            ..self.memory.fence
        });
        Change {
            fence,
            ..Change::default()
        }
    }

    fn publish(&self, further: impl FnOnce(&mut Board)) {
        self.board.send_modify(|board| {
            board.memory = self.memory.clone();
            further(board);
        });
    }

    fn tell(&self, id: &ActionId, begun: bool) -> Result<(bool, ActionReport), Problem> {
        let board = self.board.borrow();
        let action = (board.memory.action(id)).ok_or_else(|| rules::no_such_action(id))?;
        Ok((begun, board.report(action)))
    }
}

/// An attempt as it is recorded.
fn begun(id: ActionId, request: ActionRequest, attempt: u32) -> Remembered {
    Remembered {
        fingerprint: fingerprint(&request.input),
        report: ActionReport {
            id,
            state: request.state,
            phase: Phase::Running,
            attempt,
            resumed: false,
            cancelling: false,
            acknowledged: false,
            event: None,
            reason: None,
            message: String::new(),
            permanent: false,
            progress: None,
            started_at: Timestamp::now(),
            ended_at: None,
            output_bytes: 0,
        },
        owner: request.owner,
        fence: request.fence,
        input: request.input,
        notes: std::collections::BTreeMap::new(),
    }
}

fn cannot_record(why: String) -> Problem {
    Problem::new(Code::CannotRecord, why)
}

/// How the attempt under way ends; never, where there is none.
async fn ending(under_way: Option<&mut UnderWay>) -> Ending {
    match under_way {
        None => std::future::pending().await,
        Some(under_way) => (&mut under_way.ending).await.unwrap_or_else(|error| {
            // What holds the attempt does not panic; if it does, the attempt has ended by that.
            Ending::Panicked(super::attempt::panic_text(error).unwrap_or_default())
        }),
    }
}

fn at(instant: Option<Instant>) -> impl Future<Output = ()> {
    async move {
        match instant {
            None => std::future::pending().await,
            Some(instant) => sleep_until(instant).await,
        }
    }
}
