//! Hooks for a test kit: it sees the attempts of an operator and may spoil them.

use std::fmt;
use std::sync::Arc;

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
    /// Whether another operator process may have begun the work before.
    pub resumed: bool,
    /// Whether the handler has answered `Wait` in this attempt, and is called again.
    pub continues: bool,
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptFault {
    /// The handler runs, and its answer is taken.
    Runs,
    /// The handler never runs, and no answer ever comes.
    Lost,
    /// The handler runs to its end, and its answer never comes.
    Unanswered,
    /// The handler runs twice, and the second answer is taken.
    Twice,
}

type OnAttempt = dyn Fn(&Attempt) -> AttemptFault + Send + Sync;

/// Hooks into an operator for tests; by default there are none.
#[derive(Clone, Default)]
pub struct TestHooks {
    attempts: Option<Arc<OnAttempt>>,
}

impl fmt::Debug for TestHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestHooks").finish_non_exhaustive()
    }
}

impl TestHooks {
    /// Sets the function that decides what becomes of each attempt when it begins.
    #[must_use]
    pub fn attempts(
        mut self,
        fault: impl Fn(&Attempt) -> AttemptFault + Send + Sync + 'static,
    ) -> Self {
        self.attempts = Some(Arc::new(fault));
        self
    }

    pub(crate) fn fault(&self, attempt: impl FnOnce() -> Attempt) -> AttemptFault {
        let attempts = self.attempts.as_ref();
        attempts.map_or(AttemptFault::Runs, |fault| fault(&attempt()))
    }
}
