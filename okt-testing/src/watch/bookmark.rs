//! This file says when a watch has its bookmarks.

use std::time::Duration;

use tokio::time::Instant;

/// How often those who asked for bookmarks get one.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// How long before its end a watch gets one more.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Each minute, and once more before the end.
pub(super) fn next_bookmark(now: Instant, ends: Option<Instant>) -> Option<Instant> {
    let next = now + BOOKMARKS;
    let last = ends.and_then(|end| end.checked_sub(LAST_BOOKMARK));
    match last {
        Some(last) if last < next => (last > now).then_some(last),
        Some(_) | None => Some(next),
    }
}
