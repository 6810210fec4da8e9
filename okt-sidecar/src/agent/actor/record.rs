//! What the actor brings to the disk, and what it does where that fails.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::super::board::{Board, Trouble};
use super::super::journal::Journal;
use super::super::memory::Change;
use super::Actor;
use crate::wire::Problem;
use crate::work::Work;

/// The first wait after a write that failed; each further one is twice as long, up to [`HEAL_LIMIT`].
const HEAL_FIRST: Duration = Duration::from_secs(1);

/// The longest wait between two tries to write.
const HEAL_LIMIT: Duration = Duration::from_secs(30);

/// When it is tried again to write.
#[derive(Clone, Copy)]
pub(in super::super) struct Heal {
    pub(super) at: Instant,
    wait: Duration,
}

impl<W: Work> Actor<W> {
    /// Tries again to write what could not be written.
    pub(super) async fn heal(&mut self) {
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
    pub(super) async fn record_if(&mut self, change: Change) -> Result<(), Problem> {
        if change == Change::default() {
            return Ok(());
        }
        self.record(change)
            .await
            .map_err(super::requests::cannot_record)
    }

    /// Brings a change to the disk, and then into memory and onto the board.
    pub(super) async fn record(&mut self, change: Change) -> Result<(), String> {
        let memory = self.memory.clone();
        let change = Arc::new(change);
        let line = Arc::clone(&change);
        let written = self
            .on_disk(move |journal| journal.add(&memory, &line))
            .await;
        if written.is_ok() {
            let change = Arc::unwrap_or_clone(change);
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
            // An end that is still to be recorded is tried again, whoever has found the journal well.
            None => {
                let (at, wait) = (Instant::now() + HEAL_FIRST, HEAL_FIRST);
                self.heal = self.unrecorded.is_some().then_some(Heal { at, wait });
            }
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

    /// Shows what is remembered now to everybody.
    pub(super) fn publish(&self, further: impl FnOnce(&mut Board)) {
        self.board.send_modify(|board| {
            board.memory = self.memory.clone();
            further(board);
        });
    }
}
