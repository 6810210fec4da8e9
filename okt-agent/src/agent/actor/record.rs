//! How the actor writes changes to disk, and what it does if that fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::board::{Board, Trouble};
use super::super::journal::Journal;
use super::super::memory::MemoryChange;
use super::{Actor, Heal};
use crate::wire::Problem;
use crate::work::Work;

/// The wait after the first failed write. Each further wait is twice as long, up to [`HEAL_LIMIT`].
const HEAL_FIRST: Duration = Duration::from_secs(1);

/// The longest wait between two retries of a write.
const HEAL_LIMIT: Duration = Duration::from_secs(30);

impl<W: Work> Actor<W> {
    /// Retries the failed write.
    pub(super) async fn heal(&mut self) {
        if self.unrecorded.is_some() {
            self.record_end().await;
            return;
        }
        let memory = self.memory.clone();
        let rewrite = move |journal: &mut Journal| {
            if journal.is_suspect() {
                journal.rewrite(&memory)
            } else {
                Ok(())
            }
        };
        let written = self.on_disk(rewrite).await;
        self.note_trouble(written.as_ref().err());
    }

    /// Records a change, unless it is empty.
    pub(super) async fn record_if(&mut self, change: MemoryChange) -> Result<(), Problem> {
        if change == MemoryChange::default() {
            return Ok(());
        }
        self.record(change)
            .await
            .map_err(super::requests::cannot_record)
    }

    /// Writes a change to disk, then applies it to the memory and the board.
    pub(super) async fn record(&mut self, change: MemoryChange) -> Result<(), String> {
        let memory = self.memory.clone();
        let change = Arc::new(change);
        let line = Arc::clone(&change);
        let written = self
            .on_disk(move |journal| journal.add(&memory, &line))
            .await;
        if written.is_ok() {
            let change = Arc::unwrap_or_clone(change);
            // The board shows the end and drops the observation in one step.
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

    /// Runs a closure on the journal, on a thread that may block.
    async fn on_disk(
        &mut self,
        write: impl FnOnce(&mut Journal) -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), String> {
        let journal = Arc::clone(&self.journal);
        let written = tokio::task::spawn_blocking(move || {
            let mut journal = journal.lock();
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

    /// Publishes whether the journal is writable, and plans a retry if it is not.
    fn note_trouble(&mut self, why: Option<&String>) {
        match why {
            // If an end still has to be recorded, plan its retry even though this write succeeded.
            None => {
                let (at, wait) = (Instant::now() + HEAL_FIRST, HEAL_FIRST);
                self.heal = self.unrecorded.is_some().then_some(Heal { at, wait });
            }
            Some(why) => {
                tracing::warn!(why, "not ready");
                let longer = |heal: Heal| (heal.wait * 2).min(HEAL_LIMIT);
                let wait = self.heal.map_or(HEAL_FIRST, longer);
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

    /// Publishes the present memory.
    pub(super) fn publish(&self, further: impl FnOnce(&mut Board)) {
        self.board.send_modify(|board| {
            board.memory = self.memory.clone();
            further(board);
        });
    }
}
