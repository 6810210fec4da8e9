//! Starts watches and determines their first version.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::events::next_bookmark;
use super::seen::{SeenChange, error};
use super::{Audience, Out, Watch};
use crate::calls::WebhookCalls;
use crate::convert::stored_id;
use crate::kind::KindId;
use crate::path::Query;
use crate::read::{Selection, no_version, parse_version};
use crate::refusal::Refusal;
use crate::store::Store;

impl Watch {
    /// Starts a watch that sends every change after its start version.
    pub(crate) fn start(
        audience: Audience,
        store: &mut Store,
        calls: &WebhookCalls,
        selection: Selection,
        query: &Query,
    ) -> Result<Self, Refusal> {
        let id = stored_id(&selection.kind);
        let streams_list = query.flag("sendInitialEvents");
        let text = query.text("resourceVersion");
        // A real server has no better code for this error either.
        let version = parse_version(text).map_err(|_| Refusal::new(500, "", no_version(text)))?;
        let has_list = streams_list || (version == 0 && !query.has("sendInitialEvents"));
        // Without a version, the watch starts at the newest; with one, at the version of the replica.
        let newest = if text.is_empty() {
            store.version()
        } else {
            audience.replica_view.version(store)
        };
        let mut after = version;
        let mut inbox = VecDeque::new();
        let mut out = VecDeque::new();
        if has_list {
            after = newest;
            inbox = first_events(store, calls, &selection, newest)?;
            if streams_list && query.flag("allowWatchBookmarks") {
                inbox.push_back(selection.bookmark(newest, true, store));
            }
        } else if version == 0 {
            after = newest;
        } else if let Err(gone) = check_sent(store, &id, version, newest) {
            out.push_back(Out::Data(error(&gone)));
        }
        let now = Instant::now();
        let bookmarks = query.flag("allowWatchBookmarks");
        let ends = query
            .number("timeoutSeconds")
            // As on a server, 0 means no timeout.
            .filter(|&seconds| seconds > 0)
            .map(|seconds| now + Duration::from_secs(seconds.min(86_400)));
        Ok(Self {
            endings: audience.replica_view.endings(),
            audience,
            after,
            sent: after,
            closed: false,
            over: !out.is_empty(),
            feed: store.feed(&id, after),
            selection,
            next: None,
            inbox,
            pending: None,
            out,
            begun: Instant::now(),
            ends,
            bookmark: next_bookmark(now, ends).filter(|_| bookmarks),
        })
    }
}

/// Returns the events of all objects as they were at a version.
fn first_events(
    store: &Store,
    calls: &WebhookCalls,
    selection: &Selection,
    version: u64,
) -> Result<VecDeque<SeenChange>, Refusal> {
    let mut events = VecDeque::new();
    let mut failure = None;
    for (key, object) in &store.list_then(&stored_id(&selection.kind), version)? {
        match selection.see_first(key, object, calls, store) {
            Ok(seen) => events.extend(seen),
            // The calls for all others are noted before the watch is given up.
            Err(refusal) => failure = failure.or(Some(refusal)),
        }
    }
    failure.map_or(Ok(events), Err)
}

/// Checks that all changes after a version are still known; `seen` is the version of the replica.
fn check_sent(store: &Store, id: &KindId, version: u64, seen: u64) -> Result<(), Refusal> {
    if version >= seen {
        // The replica has seen no change after this version, so it has forgotten none.
        return store.check_kept(id, version);
    }
    store.check_remembered(id, version)
}
