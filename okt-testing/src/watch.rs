//! This file streams changes to those who watch.

mod lens;
mod seen;

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use http_body::Frame;
use tokio::time::{self, Instant};

use self::{
    lens::Lens,
    seen::{Seen, line},
};
use crate::{
    faults::{Delivery, EventKind, Hold, Twist},
    kind::{Kind, KindId},
    path::Query,
    read::{Form, no_version, parse_version},
    refusal::Refusal,
    selector::Selector,
    server::{Shared, cut_off},
    sight::Sight,
    store::{Change, Feed, Store},
    versions::EventRecord,
    write::stored_id,
};

/// How often those who asked for bookmarks get one.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// How long before its end a watch gets one more.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Who watches, and through what.
pub(crate) struct Audience {
    pub(crate) shared: Arc<Shared>,
    pub(crate) sight: Arc<Sight>,
    /// The name of the client.
    pub(crate) client: String,
}

/// A running watch.
pub(crate) struct Watch {
    audience: Audience,
    lens: Lens,
    feed: Feed,
    /// The change that the replica does not see yet.
    next: Option<Arc<Change>>,
    /// Events that were seen and are to be sent, in order.
    inbox: VecDeque<Seen>,
    /// The event that all others wait for.
    pending: Option<Pending>,
    out: VecDeque<Out>,
    ends: Option<Instant>,
    bookmark: Option<Instant>,
    /// How often the watches of the replica had been ended when this one began.
    endings: u64,
    /// Everything up to this version was told; no bookmark is older.
    told: u64,
    /// Whether the kind is gone: no change comes any more.
    closed: bool,
    over: bool,
}

/// An event that something holds up.
struct Pending {
    seen: Seen,
    /// When its lag is over.
    opens: Instant,
    held: Vec<Hold>,
    /// Whether lag and holds are over.
    is_open: bool,
    /// For how long it waits for the next one about its object.
    merges: Option<Instant>,
    twist: Option<Twist>,
}

/// What goes to the client.
enum Out {
    Data(Bytes),
    /// The connection ends.
    Cut,
}

impl Watch {
    /// Starts a watch; it misses nothing after the version that it starts from.
    pub(crate) fn start(
        audience: Audience,
        store: &mut Store,
        kind: &Arc<Kind>,
        namespace: Option<&str>,
        selector: Selector,
        query: &Query,
        form: Form,
    ) -> Result<Self, Refusal> {
        let lens = Lens {
            kind: Arc::clone(kind),
            namespace: namespace.map(str::to_owned),
            selector,
            form,
        };
        let id = stored_id(kind);
        let streams_list = query.flag("sendInitialEvents");
        let text = query.text("resourceVersion");
        // A real server has no better code for it either.
        let version = parse_version(text).map_err(|_| Refusal::new(500, "", no_version(text)))?;
        let has_list = streams_list || (version == 0 && !query.has("sendInitialEvents"));
        // Who names no version gets the newest; who names one gets what the replica has.
        let newest = if text.is_empty() {
            store.version()
        } else {
            audience.sight.version(store)
        };
        let mut after = version;
        let mut inbox = VecDeque::new();
        let mut out = VecDeque::new();
        if has_list {
            after = newest;
            for (key, object) in &store.list_then(&id, newest)? {
                inbox.extend(lens.see_first(key, object, store));
            }
            if streams_list && query.flag("allowWatchBookmarks") {
                inbox.push_back(lens.bookmark(newest, true, store));
            }
        } else if version == 0 {
            after = newest;
        } else if let Err(gone) = check_told(store, &id, version, newest) {
            out.push_back(Out::Data(error(&gone)));
        }
        let now = Instant::now();
        let bookmarks = query.flag("allowWatchBookmarks");
        let ends = query
            .number("timeoutSeconds")
            // To a server this is the same as none.
            .filter(|&seconds| seconds > 0)
            .map(|seconds| now + Duration::from_secs(seconds.min(86_400)));
        Ok(Self {
            endings: audience.sight.endings(),
            audience,
            told: after,
            closed: false,
            over: !out.is_empty(),
            feed: store.feed(&id, after),
            lens,
            next: None,
            inbox,
            pending: None,
            out,
            ends,
            bookmark: next_bookmark(now, ends).filter(|_| bookmarks),
        })
    }

    /// The body of the answer: one line of JSON for each event.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<Frame<Bytes>, io::Error>> + Send {
        stream::unfold(self, |mut watch| async move {
            let data = match watch.next_out().await? {
                Out::Data(data) => Ok(Frame::data(data)),
                Out::Cut => {
                    // Over HTTP what was sent so far goes out while nothing more is ready.
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
                self.judge(seen);
                continue;
            }
            if self.closed && self.pending.is_none() {
                return None;
            }
            if self.next.is_none() {
                self.next = self.feed.backlog.pop_front();
            }
            let sight = Arc::clone(&self.audience.sight);
            let takes_more = match &self.pending {
                Some(pending) => pending.merges.is_some(),
                None => true,
            };
            tokio::select! {
                biased;
                () = time_or_never(self.ends) => return None,
                () = sight.ended(self.endings) => return None,
                () = go_ahead(self.pending.as_ref()) => self.let_go(),
                arrival = next_change(self.next.as_ref(), &mut self.feed, &sight), if takes_more => {
                    match arrival {
                        Arrival::Seen => self.see(),
                        Arrival::Came(change) => self.next = Some(change),
                        Arrival::Closed => self.close(),
                    }
                }
                () = time_or_never(self.bookmark) => self.place_bookmark(),
            }
        }
    }

    /// Takes up the change that the replica has come to see.
    fn see(&mut self) {
        let Some(change) = self.next.take() else {
            return;
        };
        let shared = Arc::clone(&self.audience.shared);
        let seen = self.lens.see(&change, &shared.lock());
        self.inbox.extend(seen);
        self.merge_pending();
    }

    /// Finds out what goes wrong with an event, and sends it where nothing holds it up.
    fn judge(&mut self, seen: Seen) {
        if seen.is_judged {
            return self.send(&seen, None);
        }
        let resource = stored_id(&self.lens.kind);
        let fate = self.audience.shared.book().fate(&Delivery {
            client: &self.audience.client,
            replica: self.audience.sight.name(),
            resource: &resource,
            namespace: &seen.key.namespace,
            name: &seen.key.name,
            kind: seen.kind,
        });
        let opens = Instant::now() + fate.lag;
        let merges = match fate.twist {
            Some(Twist::Merged(within)) if !self.closed => Some(opens + within),
            _ => None,
        };
        let is_open = fate.lag.is_zero() && fate.held.is_empty();
        if is_open && merges.is_none() {
            return self.send(&seen, fate.twist);
        }
        self.pending = Some(Pending {
            seen,
            opens,
            held: fate.held,
            is_open,
            merges,
            twist: fate.twist,
        });
        self.merge_pending();
    }

    /// Puts an event that waits for its object's next one together with it, if that is there and
    /// nothing else holds it up.
    ///
    /// No event gets behind a bookmark, which promises that it was sent.
    fn merge_pending(&mut self) {
        let waits = |pending: &mut Pending| pending.is_open && pending.merges.is_some();
        let Some(pending) = self.pending.take_if(waits) else {
            return;
        };
        let next = (self.inbox.iter())
            .take_while(|seen| seen.kind != EventKind::Bookmark)
            .position(|seen| seen.is_about(&pending.seen));
        match next.and_then(|index| Some((index, self.inbox.remove(index)?))) {
            Some((index, next)) => {
                if let Some(merged) = pending.seen.merge(next) {
                    self.inbox.insert(index, merged);
                }
            }
            None => self.pending = Some(pending),
        }
    }

    /// No change comes any more; what is there is sent.
    fn close(&mut self) {
        self.closed = true;
        if let Some(pending) = &mut self.pending {
            pending.merges = None;
            if pending.is_open {
                self.let_go();
            }
        }
    }

    /// What held the event up is over.
    fn let_go(&mut self) {
        if let Some(pending) = &mut self.pending
            && !pending.is_open
        {
            pending.is_open = true;
            if pending.merges.is_some() {
                return self.merge_pending();
            }
        }
        if let Some(pending) = self.pending.take() {
            self.send(&pending.seen, pending.twist);
        }
    }

    fn send(&mut self, seen: &Seen, twist: Option<Twist>) {
        self.told = self.told.max(seen.version);
        let sent = match twist {
            None | Some(Twist::Late(_) | Twist::Held | Twist::Merged(_) | Twist::Ends) => 1,
            Some(Twist::Doubled) => 2,
            Some(Twist::Dropped | Twist::Breaks | Twist::Expires) => 0,
        };
        for _ in 0..sent {
            self.record(seen);
            self.out.push_back(Out::Data(seen.line()));
        }
        match twist {
            Some(Twist::Ends) => self.over = true,
            Some(Twist::Breaks) => {
                let mut half = seen.line();
                half.truncate(half.len() / 2);
                self.out.extend([Out::Data(half), Out::Cut]);
                self.over = true;
            }
            Some(Twist::Expires) => {
                let gone = Refusal::expired(format!("too old resource version: {}", seen.version));
                self.out.push_back(Out::Data(error(&gone)));
                self.over = true;
            }
            _ => {}
        }
    }

    fn record(&self, seen: &Seen) {
        let Audience {
            shared,
            sight,
            client,
        } = &self.audience;
        if !shared.records() {
            return;
        }
        let resource = stored_id(&self.lens.kind);
        shared.events().push(EventRecord {
            at: Instant::now(),
            client: client.clone(),
            replica: sight.name().to_owned(),
            group: resource.group,
            resource: resource.plural,
            namespace: seen.key.namespace.clone(),
            name: seen.key.name.clone(),
            kind: seen.kind,
            version: seen.version,
        });
    }

    /// A bookmark promises that everything up to its version was sent.
    fn place_bookmark(&mut self) {
        let shared = Arc::clone(&self.audience.shared);
        // Changes come under this lock: none does between the question and the answer.
        let store = shared.lock();
        let caught_up = self.next.is_none()
            && self.feed.backlog.is_empty()
            && self.feed.coming.is_empty()
            && self.inbox.is_empty()
            && self.pending.is_none();
        let version = self.audience.sight.version(&store);
        if caught_up && version >= self.told {
            let bookmark = self.lens.bookmark(version, false, &store);
            self.inbox.push_back(bookmark);
        }
        drop(store);
        self.bookmark = next_bookmark(Instant::now(), self.ends);
    }
}

/// Waits until something changes for an event that is held up: first lag and holds are over, then
/// the time for its object's next one.
async fn go_ahead(pending: Option<&Pending>) {
    let Some(pending) = pending else {
        return std::future::pending().await;
    };
    if pending.is_open {
        return time_or_never(pending.merges).await;
    }
    time::sleep_until(pending.opens).await;
    for hold in &pending.held {
        hold.ended().await;
    }
}

enum Arrival {
    /// The change in hand may be shown.
    Seen,
    Came(Arc<Change>),
    Closed,
}

async fn next_change(in_hand: Option<&Arc<Change>>, feed: &mut Feed, sight: &Sight) -> Arrival {
    if let Some(change) = in_hand {
        sight.see(change).await;
        return Arrival::Seen;
    }
    match feed.coming.recv().await {
        Some(change) => Arrival::Came(change),
        None => Arrival::Closed,
    }
}

/// Each minute, and once more before the end.
fn next_bookmark(now: Instant, ends: Option<Instant>) -> Option<Instant> {
    let next = now + BOOKMARKS;
    let last = ends.and_then(|end| end.checked_sub(LAST_BOOKMARK));
    match last {
        Some(last) if last < next => (last > now).then_some(last),
        Some(_) | None => Some(next),
    }
}

async fn time_or_never(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Whether a watch can be told all that comes after a version; `seen` is what its replica has.
fn check_told(store: &Store, id: &KindId, version: u64, seen: u64) -> Result<(), Refusal> {
    if version >= seen {
        // The replica has forgotten nothing after this version: it has seen nothing after it.
        return store.check_kept(id, version);
    }
    store.check_remembered(id, version)
}

/// The line that tells why a watch is over.
fn error(refusal: &Refusal) -> Bytes {
    line("ERROR", refusal.body().to_string().as_bytes())
}
