//! The board: the state that every request may read at any time without waiting for the actor that writes it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::memory::{AgentMemory, Remembered};
use super::output::KeptOutput;
use super::rules::no_such_action;
use crate::wire::{ActionId, ActionReport, Code, Problem, Progress, Seen, Sighting};

/// The number of attempts whose output is kept.
const OUTPUTS: usize = 8;

/// The state that every request may read.
#[derive(Debug)]
pub(super) struct Board {
    /// The memory, as it is on disk.
    pub(super) memory: AgentMemory,
    /// The last observation of the application.
    pub(super) sighting: Sighting,
    /// When that observation began.
    pub(super) observed: Option<Instant>,
    /// A counter that grows when an action ends. An observation that began before the end is dropped.
    pub(super) observations: u64,
    /// The last attempts, the newest last.
    live: VecDeque<Arc<Live>>,
    /// Whether the agent is stopping.
    pub(super) stopping: bool,
    /// Why nothing can be recorded.
    pub(super) trouble: Option<Trouble>,
}

/// Why nothing can be recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// The journal cannot be read, so no action is known.
    Damaged(String),
    /// The last write failed. The memory is valid.
    Failing(String),
}

/// The progress and output of an attempt.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: ActionId,
    pub(super) attempt: u32,
    progress: Mutex<Option<Progress>>,
    output: Mutex<KeptOutput>,
}

impl Board {
    /// Creates the board of an agent that starts with this memory.
    pub(super) fn new(memory: AgentMemory, trouble: Option<Trouble>) -> Self {
        Self {
            memory,
            sighting: Sighting::of(Seen::Unobserved),
            observed: None,
            observations: 0,
            live: VecDeque::new(),
            stopping: false,
            trouble,
        }
    }

    /// Adds the progress and output of a new attempt.
    pub(super) fn begin(&mut self, live: Arc<Live>) {
        self.live.retain(|old| old.id != live.id);
        self.live.push_back(live);
        if self.live.len() > OUTPUTS {
            self.live.pop_front();
        }
    }

    /// Drops the observation, because it does not show what the ended action has done.
    pub(super) fn unobserve(&mut self) {
        self.sighting = Sighting::of(Seen::Unobserved);
        self.observed = None;
        self.observations += 1;
    }

    /// Returns the last observation with its age.
    pub(super) fn seen(&self) -> Sighting {
        let mut sighting = self.sighting.clone();
        let age = self.observed.map(|observed| observed.elapsed().as_millis());
        sighting.age_ms = age.map(|age| u64::try_from(age).unwrap_or(u64::MAX));
        sighting
    }

    /// Returns the progress and output of this action's last attempt.
    pub(super) fn live(&self, id: &ActionId) -> Option<&Arc<Live>> {
        self.live.iter().find(|live| live.id == *id)
    }

    /// Returns the memory.
    ///
    /// # Errors
    ///
    /// The journal is damaged, so no action is known.
    pub(super) fn known(&self) -> Result<&AgentMemory, Problem> {
        self.blind().map_or(Ok(&self.memory), Err)
    }

    /// Returns an action.
    ///
    /// # Errors
    ///
    /// It is not known.
    pub(super) fn action(&self, id: &ActionId) -> Result<&Remembered, Problem> {
        let action = self.known()?.action(id);
        action.map(Arc::as_ref).ok_or_else(|| no_such_action(id))
    }

    /// Returns the current report about the action of this id.
    ///
    /// # Errors
    ///
    /// It is not known.
    pub(super) fn report(&self, id: &ActionId) -> Result<ActionReport, Problem> {
        self.action(id).map(|action| self.report_of(action))
    }

    /// Returns the current report about an action.
    pub(super) fn report_of(&self, action: &Remembered) -> ActionReport {
        let mut report = action.report.clone();
        if !report.phase.is_final()
            && let Some(live) = self.live(&report.id)
        {
            report.progress = live.progress();
            report.output_bytes = live.output().total();
        }
        report
    }

    /// Returns why the agent takes no action, if it takes none.
    pub(super) fn unready(&self) -> Option<Problem> {
        if self.stopping {
            return Some(Problem::new(Code::Stopping, "the agent is being stopped"));
        }
        self.trouble.as_ref().map(|trouble| match trouble {
            Trouble::Damaged(why) | Trouble::Failing(why) => Problem::new(Code::CannotRecord, why),
        })
    }

    /// Returns why no action is known, if the journal is damaged.
    pub(super) fn blind(&self) -> Option<Problem> {
        match &self.trouble {
            Some(Trouble::Damaged(why)) => Some(Problem::new(Code::CannotRecord, why)),
            Some(Trouble::Failing(_)) | None => None,
        }
    }
}

impl Live {
    /// Creates an empty progress and an output that keeps `limit` bytes of each end.
    pub(super) fn new(id: ActionId, attempt: u32, limit: usize) -> Self {
        Self {
            id,
            attempt,
            progress: Mutex::new(None),
            output: Mutex::new(KeptOutput::new(limit)),
        }
    }

    /// Sets the progress.
    pub(super) fn set_progress(&self, progress: Progress) {
        *self.progress.lock() = Some(progress);
    }

    /// Returns the last progress.
    pub(super) fn progress(&self) -> Option<Progress> {
        self.progress.lock().clone()
    }

    /// Returns the output.
    pub(super) fn output(&self) -> MutexGuard<'_, KeptOutput> {
        self.output.lock()
    }
}
