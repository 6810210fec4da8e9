//! The board: what everybody may read at any time, without waiting for the actor that writes it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::memory::{Memory, Remembered};
use super::output::Output;
use crate::wire::{ActionId, ActionReport, Code, Problem, Progress, Seen, Sighting};

/// How many attempts' output is kept.
const OUTPUTS: usize = 8;

/// What everybody may read.
#[derive(Debug)]
pub(super) struct Board {
    /// What is remembered, and on disk.
    pub(super) memory: Memory,
    /// Where the application was last seen.
    pub(super) sighting: Sighting,
    /// When that look was begun.
    pub(super) observed: Option<Instant>,
    /// Grows when an action ends: a look that was begun before must not be believed after.
    pub(super) observations: u64,
    /// The last attempts, the newest last.
    live: VecDeque<Arc<Live>>,
    /// The agent is being stopped.
    pub(super) stopping: bool,
    /// Why nothing can be recorded.
    pub(super) trouble: Option<Trouble>,
}

/// Why nothing can be recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// The journal was not to be read: nothing is known of any action.
    Damaged(String),
    /// The last write failed; what is remembered is known.
    Failing(String),
}

/// What an attempt says while it is under way.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: ActionId,
    pub(super) attempt: u32,
    progress: Mutex<Option<Progress>>,
    output: Mutex<Output>,
}

impl Board {
    /// Of an agent that starts with this memory.
    pub(super) fn new(memory: Memory, trouble: Option<Trouble>) -> Self {
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

    /// Keeps what an attempt says from now on.
    pub(super) fn begin(&mut self, live: Arc<Live>) {
        self.live.retain(|old| old.id != live.id);
        self.live.push_back(live);
        if self.live.len() > OUTPUTS {
            self.live.pop_front();
        }
    }

    /// What was seen before does not say what an action has done.
    pub(super) fn unobserve(&mut self) {
        self.sighting = Sighting::of(Seen::Unobserved);
        self.observed = None;
        self.observations += 1;
    }

    /// Where the application was last seen, and how long ago.
    pub(super) fn seen(&self) -> Sighting {
        let mut sighting = self.sighting.clone();
        sighting.age_ms = (self.observed)
            .map(|observed| u64::try_from(observed.elapsed().as_millis()).unwrap_or(u64::MAX));
        sighting
    }

    /// What an attempt of this action says.
    pub(super) fn live(&self, id: &ActionId) -> Option<&Arc<Live>> {
        self.live.iter().find(|live| live.id == *id)
    }

    /// How an action goes at this moment.
    pub(super) fn report(&self, action: &Remembered) -> ActionReport {
        let mut report = action.report.clone();
        if !report.phase.is_final()
            && let Some(live) = self.live(&report.id)
        {
            report.progress = live.progress();
            report.output_bytes = live.output().total();
        }
        report
    }

    /// Why no action can be taken, if so.
    pub(super) fn unready(&self) -> Option<Problem> {
        if self.stopping {
            return Some(Problem::new(Code::Stopping, "the agent is being stopped"));
        }
        (self.trouble.as_ref()).map(|trouble| Problem::new(Code::CannotRecord, trouble.text()))
    }

    /// That nothing is known of any action, if so.
    pub(super) fn blind(&self) -> Option<Problem> {
        match &self.trouble {
            Some(Trouble::Damaged(why)) => Some(Problem::new(Code::CannotRecord, why)),
            Some(Trouble::Failing(_)) | None => None,
        }
    }
}

impl Trouble {
    fn text(&self) -> &str {
        match self {
            Self::Damaged(why) | Self::Failing(why) => why,
        }
    }
}

impl Live {
    /// Of an attempt that has said nothing; of its output `limit` bytes of each end are kept.
    pub(super) fn new(id: ActionId, attempt: u32, limit: usize) -> Self {
        Self {
            id,
            attempt,
            progress: Mutex::new(None),
            output: Mutex::new(Output::new(limit)),
        }
    }

    /// Says how far the attempt is.
    pub(super) fn say(&self, progress: Progress) {
        *lock(&self.progress) = Some(progress);
    }

    /// How far it says it is.
    pub(super) fn progress(&self) -> Option<Progress> {
        lock(&self.progress).clone()
    }

    /// What it prints.
    pub(super) fn output(&self) -> MutexGuard<'_, Output> {
        lock(&self.output)
    }
}

/// What is kept here is whole after each statement, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
