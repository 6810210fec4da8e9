//! This file streams changes to those who watch.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use http_body::Frame;
use serde_json::json;
use tokio::time::{self, Instant};

use crate::{
    event,
    kind::Kind,
    object,
    path::Query,
    read::{Form, parse_version},
    refusal::Refusal,
    selector::Selector,
    server::Shared,
    store::{Change, Feed, Store},
    stored::Stored,
    write::stored_id,
};

/// How often those who asked for bookmarks get one.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// A running watch.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    lens: Lens,
    /// Lines that are ready to be sent.
    ready: VecDeque<Bytes>,
    feed: Feed,
    /// The change that waits for its time.
    next: Option<Arc<Change>>,
    ends: Option<Instant>,
    bookmark: Option<Instant>,
    over: bool,
}

/// What a watch sees, and how.
struct Lens {
    kind: Arc<Kind>,
    namespace: Option<String>,
    selector: Selector,
    form: Form,
}

impl Watch {
    /// Starts a watch; it misses nothing after the version that it starts from.
    pub(crate) fn start(
        shared: &Arc<Shared>,
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
        if streams_list && query.text("resourceVersionMatch") != "NotOlderThan" {
            return Err(Refusal::new(
                422,
                "Invalid",
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        let version = parse_version(query.text("resourceVersion"))?;
        let synthetic = streams_list || (version == 0 && !query.has("sendInitialEvents"));
        let mut ready = VecDeque::new();
        let mut after = version;
        if synthetic {
            after = store.version();
            for (key, object) in store.list(&id, namespace) {
                if lens.covers(&key.namespace) {
                    let object = event::present(kind, object);
                    if lens.selector.selects(&object) {
                        ready.push_back(lens.line("ADDED", &object, store));
                    }
                }
            }
            if streams_list && query.flag("allowWatchBookmarks") {
                ready.push_back(lens.bookmark(store.version(), true, store));
            }
        } else if version == 0 {
            after = store.version();
        } else if let Err(gone) = store.check_remembered(&id, version) {
            ready.push_back(line("ERROR", gone.body().to_string().as_bytes()));
        }
        let over = !synthetic && !ready.is_empty();
        let now = Instant::now();
        let bookmarks = query.flag("allowWatchBookmarks");
        Ok(Self {
            shared: Arc::clone(shared),
            feed: store.feed(&id, after),
            lens,
            ready,
            next: None,
            ends: query
                .number("timeoutSeconds")
                .map(|seconds| now + Duration::from_secs(seconds.min(86_400))),
            bookmark: bookmarks.then(|| now + BOOKMARKS),
            over,
        })
    }

    /// The body of the answer: one line of JSON for each event.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send {
        stream::unfold(self, |mut watch| async move {
            let line = watch.next_line().await?;
            Some((Ok(Frame::data(line)), watch))
        })
    }

    async fn next_line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            if self.over {
                return None;
            }
            if self.next.is_none() {
                self.next = self.feed.backlog.pop_front();
            }
            let end = time_or_never(self.ends);
            let bookmark = time_or_never(self.bookmark);
            tokio::select! {
                biased;
                () = end => return None,
                change = next_change(self.next.as_ref(), &mut self.feed) => match change {
                    Arrival::Due => {
                        if let Some(change) = self.next.take() {
                            let shared = Arc::clone(&self.shared);
                            let line = self.lens.see(&change, &shared.lock());
                            self.ready.extend(line);
                        }
                    }
                    Arrival::Came(change) => self.next = Some(change),
                    Arrival::Closed => return None,
                },
                () = bookmark => self.place_bookmark(),
            }
        }
    }

    /// A bookmark promises that everything up to its version was sent.
    fn place_bookmark(&mut self) {
        let shared = Arc::clone(&self.shared);
        let store = shared.lock();
        let caught_up =
            self.next.is_none() && self.feed.backlog.is_empty() && self.feed.coming.is_empty();
        if caught_up {
            let line = self.lens.bookmark(store.version(), false, &store);
            self.ready.push_back(line);
        }
        self.bookmark = Some(Instant::now() + BOOKMARKS);
    }
}

enum Arrival {
    /// The change in hand may be shown.
    Due,
    Came(Arc<Change>),
    Closed,
}

async fn next_change(in_hand: Option<&Arc<Change>>, feed: &mut Feed) -> Arrival {
    if let Some(change) = in_hand {
        if change.due > Instant::now() {
            time::sleep_until(change.due).await;
        }
        return Arrival::Due;
    }
    match feed.coming.recv().await {
        Some(change) => Arrival::Came(change),
        None => Arrival::Closed,
    }
}

async fn time_or_never(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Lens {
    fn covers(&self, namespace: &str) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|wanted| wanted == namespace)
    }

    /// The event that a change is to this watch, if it is one.
    fn see(&self, change: &Change, store: &Store) -> Option<Bytes> {
        if !self.covers(&change.key.namespace) {
            return None;
        }
        let new = event::present(&self.kind, &change.object);
        let old = change
            .previous
            .as_ref()
            .map(|old| event::present(&self.kind, old));
        let was = old.as_ref().is_some_and(|old| self.selector.selects(old));
        let is = !change.removed && self.selector.selects(&new);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.line("ADDED", &new, store)),
            (true, true) => Some(self.line("MODIFIED", &new, store)),
            (true, false) if change.removed => Some(self.line("DELETED", &new, store)),
            (true, false) => {
                // What left the selection is shown as it was, under the version of its leaving.
                let mut last = old?.read();
                object::set_version(&mut last, change.version);
                Some(self.line("DELETED", &Stored::new(&last), store))
            }
        }
    }

    fn line(&self, event: &str, object: &Stored, store: &Store) -> Bytes {
        line(event, &self.form.show(&self.kind, object, store))
    }

    fn bookmark(&self, version: u64, ends_list: bool, store: &Store) -> Bytes {
        let mut object = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(),
            "metadata": { "resourceVersion": version.to_string(), "creationTimestamp": null },
        });
        if ends_list {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let shown = match self.form {
            Form::Whole | Form::Metadata => {
                self.form.show(&self.kind, &Stored::new(&object), store)
            }
            Form::Table(_) => {
                let table = json!({
                    "kind": "Table",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": object["metadata"],
                    "columnDefinitions": [],
                    "rows": [],
                });
                Bytes::from(table.to_string())
            }
        };
        line("BOOKMARK", &shown)
    }
}

/// A line of a watch, put together from texts.
fn line(event: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(event.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    Bytes::from(line)
}
