//! What a test kit sees of the attempts of an operator, what it has happen to them, and faults that it plants to see whether they are found.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// An attempt that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The id of the action.
    pub id: String,
    /// The number of the attempt, from 1.
    pub number: u32,
    /// The wire name of the state.
    pub state: &'static str,
    /// Whether the work may have been begun before by an operator that is gone.
    pub resumed: bool,
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The handler runs, and its answer is taken.
    Runs,
    /// The handler never runs, and no answer ever comes.
    Lost,
    /// The handler runs to its end, and its answer never comes.
    Unanswered,
    /// The handler runs twice, and the second answer is taken.
    Twice,
}

/// A bug that is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A status is written whatever the object has become meanwhile.
    NoResourceVersion,
    /// Work begins before its position is written.
    ActsFirst,
    /// Deadlines are counted from when this process first saw the state.
    TimersInMemory,
}

type OnAttempt = dyn Fn(&Attempt) -> Fate + Send + Sync;

/// A way into an operator for tests; by default nobody uses it.
#[derive(Clone, Default)]
pub struct Backdoor {
    attempts: Option<Arc<OnAttempt>>,
    flaw: Option<Flaw>,
    seen: Arc<Mutex<HashMap<(String, u64), Instant>>>,
}

impl fmt::Debug for Backdoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backdoor")
            .field("flaw", &self.flaw)
            .finish_non_exhaustive()
    }
}

impl Backdoor {
    /// Asks what becomes of each attempt, as it begins.
    #[must_use]
    pub fn attempts(mut self, fate: impl Fn(&Attempt) -> Fate + Send + Sync + 'static) -> Self {
        self.attempts = Some(Arc::new(fate));
        self
    }

    /// Plants a bug.
    #[must_use]
    pub fn flaw(mut self, flaw: Flaw) -> Self {
        self.flaw = Some(flaw);
        self
    }

    pub(crate) fn fate(&self, attempt: impl FnOnce() -> Attempt) -> Fate {
        let attempts = self.attempts.as_ref();
        attempts.map_or(Fate::Runs, |fate| fate(&attempt()))
    }

    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// How long an object has been in a state, as far as this process knows.
    pub(crate) fn since_seen(&self, uid: &str, transition: u64) -> Duration {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let first = seen.entry((uid.to_owned(), transition));
        first.or_insert_with(Instant::now).elapsed()
    }
}
