//! Provides the time: the wall-clock time at which the API started, advanced by tokio's clock.
//!
//! With paused tokio time, the server's timestamps therefore advance with the test.

use std::time::Duration;

use jiff::{Timestamp, Unit};
use tokio::time::Instant;

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    wall: Timestamp,
    started: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            wall: Timestamp::now(),
            started: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let passed: Duration = self.started.elapsed();
        self.wall.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Returns the time in the format of Kubernetes, in whole seconds.
    pub(crate) fn text(&self) -> String {
        let now = self.now();
        let seconds = Timestamp::from_second(now.as_second()).or_else(|_| now.round(Unit::Second));
        seconds.unwrap_or(now).to_string()
    }
}
