//! Streams changes to watches.

mod delay;
mod events;
mod pending;
mod seen;
mod start;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use http_body::Frame;
use tokio::time::Instant;

use self::events::next_bookmark;
use self::pending::{Pending, go_ahead, time_or_never};
use self::seen::{SeenChange, error};
use crate::body::cut_off;
use crate::convert::stored_id;
use crate::faults::FaultKind;
use crate::read::Selection;
use crate::refusal::Refusal;
use crate::replica_view::ReplicaView;
use crate::state::Shared;
use crate::store::{Feed, StoreChange};
use crate::versions::EventRecord;

/// The client of a watch, and the view through which it watches.
pub(crate) struct Audience {
    pub(crate) shared: Arc<Shared>,
    pub(crate) replica_view: Arc<ReplicaView>,
    /// The name of the client.
    pub(crate) client: String,
}

/// A running watch.
pub(crate) struct Watch {
    audience: Audience,
    selection: Selection,
    feed: Feed,
    /// The next change, which the replica does not see yet.
    next: Option<Arc<StoreChange>>,
    /// Events that the replica saw and that are to be sent, in order.
    inbox: VecDeque<SeenChange>,
    /// The event that blocks all others.
    pending: Option<Pending>,
    out: VecDeque<Out>,
    begun: Instant,
    ends: Option<Instant>,
    bookmark: Option<Instant>,
    /// The number of times that the watches of the replica had been ended before this one started.
    endings: u64,
    /// Changes up to this version are not sent; a watch may start from a future version.
    after: u64,
    /// All changes up to this version were sent; no bookmark is older.
    sent: u64,
    /// Whether the kind was removed, so that no more changes come.
    closed: bool,
    over: bool,
}

/// A part of the answer.
enum Out {
    Data(Bytes),
    /// The connection breaks.
    Cut,
}

impl Watch {
    /// Returns the body of the answer: one line of JSON for each event.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<Frame<Bytes>, io::Error>> + Send {
        stream::unfold(self, |mut watch| async move {
            let data = match watch.next_out().await? {
                Out::Data(data) => Ok(Frame::data(data)),
                Out::Cut => {
                    // The HTTP server flushes the data sent so far only while nothing more is ready.
                    tokio::task::yield_now().await;
                    Err(cut_off())
                }
            };
            Some((data, watch))
        })
    }

    async fn next_out(&mut self) -> Option<Out> {
        loop {
            if let Some(out) = self.out.pop_front() {
                return Some(out);
            }
            if self.over {
                return None;
            }
            if self.pending.is_none()
                && let Some(seen) = self.inbox.pop_front()
            {
                self.schedule(seen);
                continue;
            }
            if self.closed && self.pending.is_none() {
                return None;
            }
            if self.next.is_none() {
                self.next = self.feed.backlog.pop_front();
            }
            let replica_view = Arc::clone(&self.audience.replica_view);
            let takes_more = self.pending.as_ref().is_none_or(Pending::wants_next);
            tokio::select! {
                biased;
                () = time_or_never(self.ends) => return None,
                () = replica_view.ended(self.endings) => return None,
                () = go_ahead(self.pending.as_ref()) => self.let_go(),
                arrival = next_change(self.next.as_ref(), &mut self.feed, &replica_view), if takes_more => {
                    match arrival {
                        Arrival::Seen => self.see().await,
                        Arrival::Came(change) => self.next = Some(change),
                        Arrival::Closed => self.close(),
                    }
                }
                () = time_or_never(self.bookmark) => self.place_bookmark(),
            }
        }
    }

    /// Processes the change that the replica now sees.
    async fn see(&mut self) {
        let Some(change) = self.next.take().filter(|it| it.version > self.after) else {
            return;
        };
        let shared = Arc::clone(&self.audience.shared);
        let selection = &self.selection;
        let seen = shared.with_webhooks(|calls| selection.see(&change, calls, &shared.lock()));
        match seen.await {
            Ok(seen) => {
                // While another event was pending, this one was on its way already.
                let came = change.made.max(self.begun);
                self.inbox
                    .extend(seen.into_iter().map(|seen| SeenChange { came, ..seen }));
                self.merge_pending();
            }
            Err(refusal) => {
                self.out.push_back(Out::Data(error(&refusal)));
                self.over = true;
            }
        }
    }

    fn send(&mut self, seen: &SeenChange, fault: Option<FaultKind>) {
        self.sent = self.sent.max(seen.version);
        let times = match fault {
            Some(FaultKind::RepeatEvent) => 2,
            Some(
                FaultKind::DropEvent
                | FaultKind::WithholdBookmarks
                | FaultKind::BreakStream
                | FaultKind::ExpireStream,
            ) => 0,
            _ => 1,
        };
        for _ in 0..times {
            self.record(seen);
            self.out.push_back(Out::Data(seen.line()));
        }
        match fault {
            Some(FaultKind::EndStream) => self.over = true,
            Some(FaultKind::BreakStream) => {
                let mut half = seen.line();
                half.truncate(half.len() / 2);
                self.out.extend([Out::Data(half), Out::Cut]);
                self.over = true;
            }
            Some(FaultKind::ExpireStream) => {
                let gone = Refusal::expired(format!("too old resource version: {}", seen.version));
                self.out.push_back(Out::Data(error(&gone)));
                self.over = true;
            }
            _ => {}
        }
    }

    fn record(&self, seen: &SeenChange) {
        let Audience {
            shared,
            replica_view,
            client,
        } = &self.audience;
        if !shared.records() {
            return;
        }
        let resource = stored_id(&self.selection.kind);
        shared.events().push(EventRecord {
            at: Instant::now(),
            client: client.clone(),
            replica: replica_view.name().to_owned(),
            group: resource.group,
            resource: resource.plural,
            namespace: seen.key.namespace.clone(),
            name: seen.key.name.clone(),
            kind: seen.kind,
            version: seen.version,
        });
    }

    /// Queues a bookmark, unless an event up to its version is still unsent.
    fn place_bookmark(&mut self) {
        let shared = Arc::clone(&self.audience.shared);
        // Changes are committed under this lock, so none comes between the check and the bookmark.
        let store = shared.lock();
        let caught_up = self.next.is_none()
            && self.feed.backlog.is_empty()
            && self.feed.coming.is_empty()
            && self.inbox.is_empty()
            && self.pending.is_none();
        let version = self.audience.replica_view.version(&store);
        if caught_up && version >= self.sent {
            let bookmark = self.selection.bookmark(version, false, &store);
            self.inbox.push_back(bookmark);
        }
        drop(store);
        self.bookmark = next_bookmark(Instant::now(), self.ends);
    }
}

enum Arrival {
    /// The replica sees the next change.
    Seen,
    Came(Arc<StoreChange>),
    Closed,
}

async fn next_change(
    in_hand: Option<&Arc<StoreChange>>,
    feed: &mut Feed,
    replica_view: &ReplicaView,
) -> Arrival {
    if let Some(change) = in_hand {
        replica_view.see(change).await;
        return Arrival::Seen;
    }
    match feed.coming.recv().await {
        Some(change) => Arrival::Came(change),
        None => Arrival::Closed,
    }
}
