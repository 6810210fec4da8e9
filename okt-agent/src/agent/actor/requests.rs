//! The requests to the actor: a verdict of the rules, and its consequences.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::super::attempt::Course;
use super::super::command::{ActorRequest, Answered, Command};
use super::super::memory::{MemoryChange, Note, Remembered, fingerprint};
use super::super::rules::{self, RuleInput, RuleVerdict};
use super::Actor;
use crate::wire::{
    Acknowledgement, ActionId, ActionReport, ActionRequest, Code, Fence, Phase, Problem,
};
use crate::work::{NOTES_LIMIT, NotRemembered, Work};

impl<W: Work> Actor<W> {
    /// Handles a request.
    pub(super) async fn handle_request(&mut self, request: ActorRequest) {
        match request {
            ActorRequest::Command { command, reply } => {
                let blind = self.board.borrow().blind();
                let answer = match blind {
                    Some(problem) => Err(problem),
                    None => self.handle_command(command).await,
                };
                // The client may have given up; it then retries.
                let _ = reply.send(answer);
            }
            ActorRequest::Remember {
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

    async fn handle_command(&mut self, command: Command) -> Answered {
        match command {
            Command::Ask {
                id,
                request,
                traceparent,
                permit,
            } => {
                let answer = self.ask(id, *request, traceparent).await;
                drop(permit);
                answer
            }
            Command::Cancel { id, epoch } => self.cancel(&id, epoch).await,
            Command::Acknowledge {
                id,
                acknowledgement,
            } => self.acknowledge(&id, acknowledgement).await,
        }
    }

    async fn ask(
        &mut self,
        id: ActionId,
        request: ActionRequest,
        traceparent: Option<String>,
    ) -> Answered {
        let (stopping, seen) = {
            let board = self.board.borrow();
            (board.stopping, board.sighting.seen.clone())
        };
        let input = RuleInput {
            memory: &self.memory,
            offers: &self.offers,
            object: self.settings.object.as_ref(),
            graph: self.settings.graph.as_deref(),
            stopping,
            seen: &seen,
        };
        match rules::asked(input, &id, &request)? {
            RuleVerdict::Report => {
                let change = self.raise(request.fence.epoch);
                self.record_if(change).await?;
                self.report(&id, false)
            }
            RuleVerdict::Withdrawn => {
                let mut action = begun(id.clone(), request, 1);
                action.report.phase = Phase::Cancelled;
                action.report.reason = Some("Withdrawn".to_owned());
                action.report.message = String::from("it was cancelled before it was asked for");
                action.report.ended_at = Some(action.report.started_at);
                action.input.clear();
                let change = self.memory.taken(action, Timestamp::now());
                self.record(change).await.map_err(cannot_record)?;
                self.report(&id, false)
            }
            RuleVerdict::Begin { attempt } => {
                let action = begun(id.clone(), request, attempt);
                let change = self.memory.taken(action, Timestamp::now());
                self.record(change).await.map_err(cannot_record)?;
                // Take the action from the memory instead of a second copy, because its input may be large.
                if let Some(action) = self.memory.action(&id).cloned() {
                    let state = &action.report.state;
                    tracing::info!(%id, state, attempt, traceparent, "begins");
                    self.begin(&action, Course::Perform, traceparent);
                }
                self.report(&id, true)
            }
        }
    }

    async fn cancel(&mut self, id: &ActionId, epoch: u64) -> Answered {
        match rules::cancelled(&self.memory, id, epoch)? {
            rules::Cancelled::Report => {
                let change = self.raise(epoch);
                self.record_if(change).await?;
                self.report(id, false)
            }
            rules::Cancelled::Remember => {
                if !self.memory.is_withdrawn(id) {
                    let change = MemoryChange {
                        withdrawn: vec![id.clone()],
                        ..MemoryChange::default()
                    };
                    // Nothing begins while this cannot be recorded.
                    self.record_or_apply(id, change).await;
                }
                Err(rules::no_such_action(id))
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
                // The running work may be what has filled the disk, so cancel it anyway.
                self.record_or_apply(id, change).await;
                if let Some(under_way) = &self.under_way {
                    under_way.cancellation.cancel();
                }
                self.report(id, true)
            }
        }
    }

    /// Records a change. If that fails, the change still counts until the agent crashes; the client then retries.
    async fn record_or_apply(&mut self, id: &ActionId, change: MemoryChange) {
        if let Err(why) = self.record(change.clone()).await {
            tracing::warn!(%id, why, "cancelled without a record");
            self.memory.apply(change);
            self.publish(|_| {});
        }
    }

    async fn acknowledge(&mut self, id: &ActionId, acknowledgement: Acknowledgement) -> Answered {
        let mut change = self.raise(acknowledgement.epoch);
        match rules::acknowledged(&self.memory, id, acknowledgement)? {
            rules::Acknowledged::Report => {}
            rules::Acknowledged::Take => {
                change.action = self.memory.action(id).map(|action| {
                    let mut action = Remembered::clone(action);
                    action.report.acknowledged = true;
                    action
                });
            }
        }
        self.record_if(change).await?;
        self.report(id, false)
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
        let size = |key: &str, value: &Value| key.len() + value.to_string().len();
        let others = notes.iter().filter(|(other, _)| **other != key);
        let length: usize = others.map(|(key, value)| size(key, value)).sum();
        if length + size(&key, &value) > NOTES_LIMIT {
            return Err(NotRemembered::TooMuch(key));
        }
        let note = Note {
            id,
            key: key.clone(),
            value,
        };
        let change = MemoryChange {
            note: Some(note),
            ..MemoryChange::default()
        };
        self.record(change).await.or_else(|why| refuse(key, why))
    }

    /// Returns a change that stores an operator's epoch, if it is a new one.
    fn raise(&self, epoch: u64) -> MemoryChange {
        let fence = (epoch > self.memory.fence.epoch).then_some(Fence {
            epoch,
            ..self.memory.fence
        });
        MemoryChange {
            fence,
            ..MemoryChange::default()
        }
    }

    fn report(&self, id: &ActionId, begun: bool) -> Answered {
        let report = self.board.borrow().report(id)?;
        Ok((begun, report))
    }
}

/// Returns an attempt as it is recorded.
pub(in super::super) fn begun(id: ActionId, request: ActionRequest, attempt: u32) -> Remembered {
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
        notes: BTreeMap::new(),
    }
}

/// Returns the refusal of a request that cannot be recorded.
pub(super) fn cannot_record(why: String) -> Problem {
    Problem::new(Code::CannotRecord, why)
}
