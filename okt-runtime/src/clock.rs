//! What time it is, by the wall or by tokio's clock.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// How far ahead the latest time is that a timer may be set to: 30 years, as tokio has it.
const FAR: Duration = Duration::from_hours(30 * 365 * 24);

/// Returns the time after a wait, on tokio's clock.
///
/// A wait that an author chose may be as long as a [`Duration`] gets, and adding that to a time panics: it is cut to
/// 30 years.
pub(crate) fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait.min(FAR)).unwrap_or(now)
}

/// A clock; status holds wall time, timers are tokio's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// The wall clock.
    Wall,
    /// Tokio's clock, set to the wall clock once: it stands still where tokio's does.
    Tokio { set_to: Timestamp, at: Instant },
}

impl Clock {
    /// Set once per process, so that an operator started later does not fall back behind what an earlier one wrote.
    pub(crate) fn tokio() -> Self {
        static SET: OnceLock<(Timestamp, Instant)> = OnceLock::new();
        let (set_to, at) = *SET.get_or_init(|| (Timestamp::now(), Instant::now()));
        Self::Tokio { set_to, at }
    }

    /// Now, to the millisecond.
    pub(crate) fn now(self) -> Timestamp {
        let now = match self {
            Self::Wall => Timestamp::now(),
            Self::Tokio { set_to, at } => set_to.saturating_add(at.elapsed()).unwrap_or(set_to),
        };
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// The time since a moment; none at all where it lies ahead.
    pub(crate) fn since(self, then: Timestamp) -> Duration {
        self.now()
            .duration_since(then)
            .try_into()
            .unwrap_or(Duration::ZERO)
    }
}
