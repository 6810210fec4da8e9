//! Schedules the bookmarks of a watch.

use std::time::Duration;

use tokio::time::Instant;

/// The interval of bookmarks, if the client asks for them.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// The time between the last bookmark and the end of a watch.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Returns the time of the next bookmark: each minute, and once more before the end.
pub(super) fn next_bookmark(now: Instant, ends: Option<Instant>) -> Option<Instant> {
    let next = now + BOOKMARKS;
    let last = ends.and_then(|end| end.checked_sub(LAST_BOOKMARK));
    match last {
        Some(last) if last < next => (last > now).then_some(last),
        Some(_) | None => Some(next),
    }
}
