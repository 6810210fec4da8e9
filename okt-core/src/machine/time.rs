//! A moment on a clock that never goes back.

use core::time::Duration;

/// A moment on a clock that never goes back: the time since an origin that the shell chooses once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(Duration);

impl Time {
    /// Returns the moment this long after the origin.
    pub const fn after_origin(time: Duration) -> Self {
        Self(time)
    }

    /// Returns the moment after a wait; the last one there is, if the wait is too long.
    #[must_use]
    pub const fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }

    /// Returns the moment this long before; the origin, if that is nearer.
    #[must_use]
    pub const fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time))
    }

    /// Returns the time from `now` until this moment; zero if it has passed.
    pub const fn left(self, now: Self) -> Duration {
        self.0.saturating_sub(now.0)
    }

    /// Returns the time from this moment until `now`; zero if it lies ahead.
    pub const fn elapsed(self, now: Self) -> Duration {
        now.left(self)
    }
}
