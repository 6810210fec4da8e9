//! [`OnEvent`]: the faults of watch events.

use std::fmt;
use std::time::Duration;

use super::{fault::Fault, target::EventKind};

/// The fault of an event of a watch, or of the watch at that event.
///
/// # Example
/// ```
/// use futures::{StreamExt, TryStreamExt};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::{Patch, PatchParams, PostParams, WatchParams}};
/// use okt_testing::{ApiServer, EventKind, Fault};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), kube::Error> {
/// let server = ApiServer::new();
/// let lost = server.inject(Fault::drop_event().name("a").event(EventKind::Modified).nth(2));
///
/// let maps: Api<ConfigMap> = Api::default_namespaced(server.client_named("operator"));
/// let mut events = maps.watch(&WatchParams::default(), "0").await?.boxed();
/// let map = serde_json::from_value(json!({ "metadata": { "name": "a" } }));
/// maps.create(&PostParams::default(), &map.expect("a map")).await?;
/// for x in ["1", "2", "3"] {
///     let patch = Patch::Merge(json!({ "data": { "x": x } }));
///     maps.patch("a", &PatchParams::default(), &patch).await?;
/// }
/// for _ in 0..3 {
///     events.try_next().await?;
/// }
///
/// let sent: Vec<_> = server.events().iter().map(|event| event.kind).collect();
/// assert_eq!(sent, [EventKind::Added, EventKind::Modified, EventKind::Modified]);
/// assert_eq!(lost.strikes()[0].to_string(), "MODIFIED configmaps default/a of operator: a dropped event");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OnEvent(pub(crate) EventFault);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventFault {
    /// The event comes this much later.
    Late(Duration),
    /// The event comes when the fault ends.
    Held,
    Dropped,
    Doubled,
    /// The event waits this long for the object's next event, and both become one.
    Merged(Duration),
    /// The event is the last one of the watch.
    Ends,
    /// The connection breaks in the middle of the event.
    Breaks,
    /// The watch gets a 410 instead of the event.
    Expires,
}

impl Fault<OnEvent> {
    /// Delays the event and all that follow in the same watch, on tokio's clock.
    ///
    /// In a [`Chaos`](crate::Chaos) the lag is between zero and this time.
    pub fn lag(time: Duration) -> Self {
        Self::of(OnEvent(EventFault::Late(time)))
    }

    /// Holds back the event and all that follow in the same watch, until the fault is
    /// [ended](crate::Injected::end).
    pub fn hold_events() -> Self {
        Self::of(OnEvent(EventFault::Held))
    }

    /// Drops the event: it is never sent.
    ///
    /// A healthy server never drops the last change of an object; to come to rest afterwards, a
    /// client needs a new list ([`Fault::expire_stream`]). Merged events, which every client can
    /// meet, are [`Fault::merge_events`].
    pub fn drop_event() -> Self {
        Self::of(OnEvent(EventFault::Dropped))
    }

    /// Sends the event twice.
    pub fn repeat_event() -> Self {
        Self::of(OnEvent(EventFault::Doubled))
    }

    /// Holds back the event and all that follow in the same watch until the next event of the same
    /// object, and sends both as one, as after a disconnect and a list.
    ///
    /// If none comes within this time, on tokio's clock, the event is sent as it is.
    pub fn merge_events(within: Duration) -> Self {
        Self::of(OnEvent(EventFault::Merged(within)))
    }

    /// Ends the watch after the event, as a server does when the watch times out.
    pub fn end_stream() -> Self {
        Self::of(OnEvent(EventFault::Ends))
    }

    /// Breaks the connection in the middle of the event.
    pub fn break_stream() -> Self {
        Self::of(OnEvent(EventFault::Breaks))
    }

    /// Sends an `ERROR` event with 410 instead of the event and ends the watch: the client relists.
    ///
    /// For the start of a watch see [`Fault::gone`].
    pub fn expire_stream() -> Self {
        Self::of(OnEvent(EventFault::Expires))
    }

    /// Drops all bookmarks, except the one that ends a streamed list.
    pub fn withhold_bookmarks() -> Self {
        Self::drop_event().event(EventKind::Bookmark)
    }

    /// Strikes events of this kind only; without this call it strikes all but bookmarks.
    pub fn event(mut self, kind: EventKind) -> Self {
        self.target.events.push(kind);
        self
    }
}

impl OnEvent {
    /// Returns the same fault with this fraction of its lag.
    pub(crate) fn scaled(&self, fraction: f64) -> Self {
        Self(match self.0 {
            EventFault::Late(time) => EventFault::Late(time.mul_f64(fraction)),
            other => other,
        })
    }
}

impl fmt::Display for OnEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            EventFault::Late(time) => write!(f, "a lag of {time:?}"),
            EventFault::Held => f.write_str("an event held back"),
            EventFault::Dropped => f.write_str("a dropped event"),
            EventFault::Doubled => f.write_str("a doubled event"),
            EventFault::Merged(_) => f.write_str("an event merged with the next"),
            EventFault::Ends => f.write_str("the end of the watch"),
            EventFault::Breaks => f.write_str("a broken watch"),
            EventFault::Expires => f.write_str("410 within the watch"),
        }
    }
}
