//! Watches that go on through every failure, and how long each has heard nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use http::Request;
use kube::Client;
use kube::client::Body;
use kube::runtime::watcher::{Error, Event, Result};
use okt_core::backoff::Backoff;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api_timeout::{Contact, Limits, is_watch, limit_answers, limited, retry_after};

/// The backoff of a watch that fails. client-go lists again after half a minute at most; an operator has a watch for each
/// kind, namespace and replica.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));

/// A watch that ends sooner is short.
const SHORT: Duration = Duration::from_secs(10);

/// The page size of a list, in objects.
pub const PAGE: u32 = 500;

/// How long a watch must work before its failures are forgotten.
const STEADY: Duration = Duration::from_secs(30);

/// After how much silence of a watch an operator is not ready: what it knows is old, whatever it does about it.
pub const TOO_SILENT: Duration = Duration::from_mins(5);

/// When each watch of a process has heard of the API server; clones share it. A watch that has ended is forgotten.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<Mutex<Vec<Entry>>>);

/// A watched kind, and when its watch has heard of the API server.
type Entry = (String, Weak<Contact>);

/// How an operator reaches the API server.
#[derive(Clone)]
pub struct Connection {
    /// For the requests of each transition, which [`answer`](crate::api_timeout::answer) limits.
    pub direct: Client,
    /// For everything else: all its answers come in time.
    pub client: Client,
    /// When its watches have heard of the API server.
    pub watched: Watched,
}

impl Connection {
    /// Limits how long the answers to this client may take.
    pub fn new(client: &Client) -> Self {
        Self {
            direct: client.clone(),
            client: limit_answers(client.clone()),
            watched: Watched::default(),
        }
    }

    /// Returns a client for a watch of this kind: its answers come in time, and are noted.
    pub fn for_watch(&self, kind: &str) -> Client {
        let contact = Contact::new(true);
        self.watched
            .client(&self.direct, kind, Limits::USUAL, contact)
    }
}

impl Watched {
    /// Returns a client for a watch of this kind.
    pub fn client(&self, client: &Client, kind: &str, limits: Limits, contact: Contact) -> Client {
        let contact = Arc::new(contact);
        let mut all = self.0.lock();
        all.retain(|(_, contact)| contact.strong_count() > 0);
        all.push((kind.to_owned(), Arc::downgrade(&contact)));
        paced(limited(client.clone(), limits, Some(contact)))
    }

    /// Returns the kinds that are watched, with the longest silence of their watches.
    pub fn silences(&self) -> BTreeMap<String, Duration> {
        let all = self.0.lock();
        let silence = |(kind, contact): &Entry| Some((kind.clone(), contact.upgrade()?.silence()));
        longest(all.iter().filter_map(silence))
    }
}

/// Returns the longest of the silences of each kind.
pub fn longest(silences: impl Iterator<Item = (String, Duration)>) -> BTreeMap<String, Duration> {
    let mut longest: BTreeMap<String, Duration> = BTreeMap::new();
    for (kind, silence) in silences {
        let known = longest.entry(kind).or_default();
        *known = silence.max(*known);
    }
    longest
}

/// Changes the objects of an event.
///
/// # Errors
///
/// If an object cannot be changed.
pub fn change_objects<T, U, E>(
    event: Event<T>,
    change: impl FnOnce(T) -> std::result::Result<U, E>,
) -> std::result::Result<Event<U>, E> {
    Ok(match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(change(object)?),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(change(object)?),
        Event::Delete(object) => Event::Delete(change(object)?),
    })
}

/// Returns a client that does not begin watch after watch where each ends at once: kube takes a connection that is cut
/// for the end of the watch, and begins the next one without a wait (kube 5.0, `Client::request_events`).
fn paced(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let pace = Arc::new(Mutex::new(Pace::new()));
    let service = tower::service_fn(move |request: Request<Body>| {
        let turn = is_watch(request.uri()).then(|| pace.lock().turn());
        let client = client.clone();
        async move {
            if let Some(turn) = turn {
                sleep_until(turn).await;
            }
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

/// When the watches of a client begin.
struct Pace {
    pub seed: u64,
    last: Option<Instant>,
    /// How many watches in a row were short.
    short: u32,
}

impl Pace {
    fn new() -> Self {
        Self {
            seed: seed(),
            last: None,
            short: 0,
        }
    }

    /// Returns when the next watch may begin.
    fn turn(&mut self) -> Instant {
        let now = Instant::now();
        let Some(last) = self.last else {
            self.last = Some(now);
            return now;
        };
        if now.saturating_duration_since(last) < SHORT {
            self.short = self.short.saturating_add(1);
        } else {
            self.short = 0;
        }
        let wait = match self.short {
            0 => Duration::ZERO,
            short => BACKOFF.wait(short, self.seed),
        };
        let turn = last.checked_add(wait).map_or(now, |turn| turn.max(now));
        self.last = Some(turn);
        turn
    }
}

/// Returns the events of a watch that waits after each failure: longer and longer until a list has succeeded, and at
/// least as long as the API server asks.
///
/// kube's own backoff begins anew with each list that begins.
pub fn retried<T: Send + 'static>(
    events: impl Stream<Item = Result<Event<T>>> + Send + 'static,
) -> impl Stream<Item = Result<Event<T>>> + Send + 'static {
    retried_within(events, BACKOFF, Duration::MAX)
}

/// Does the same with another backoff; `most` is the longest wait that the API server may ask for.
pub fn retried_within<T: Send + 'static>(
    events: impl Stream<Item = Result<Event<T>>> + Send + 'static,
    backoff: Backoff,
    most: Duration,
) -> impl Stream<Item = Result<Event<T>>> + Send + 'static {
    let retries = Retries {
        backoff,
        most,
        seed: seed(),
        failures: 0,
        last: Instant::now(),
        is_working: false,
    };
    let begun = (Box::pin(events), retries, Duration::ZERO);
    stream::unfold(begun, |(mut events, mut retries, wait)| async move {
        if !wait.is_zero() {
            sleep(wait).await;
        }
        let event = events.next().await?;
        let wait = retries.wait_after(&event);
        Some((event, (events, retries, wait)))
    })
}

/// Returns a number of its own for each watch, so that those that fail together do not retry together.
fn seed() -> u64 {
    static WATCHES: AtomicU64 = AtomicU64::new(0);
    let number = WATCHES.fetch_add(1, Ordering::Relaxed);
    u64::from(std::process::id()).wrapping_add(number << 32)
}

/// The failures of a watch.
struct Retries {
    backoff: Backoff,
    /// The longest wait that the API server may ask for.
    most: Duration,
    seed: u64,
    failures: u32,
    /// When the attempt after the last failure began.
    last: Instant,
    /// Whether a list has succeeded since the last failure, or a change came.
    is_working: bool,
}

impl Retries {
    /// Returns how long to wait after an event.
    fn wait_after<T>(&mut self, event: &Result<Event<T>>) -> Duration {
        let error = match event {
            Ok(Event::Init | Event::InitApply(_)) => return Duration::ZERO,
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => {
                self.is_working = true;
                return Duration::ZERO;
            }
            Err(error) => error,
        };
        // Where lists succeed and every watch fails, each failure would cost a list. A watch that breaks had begun.
        let has_begun = matches!(error, Error::WatchFailed(_) | Error::WatchError(_));
        let has_worked = std::mem::take(&mut self.is_working) || has_begun;
        if has_worked && self.last.elapsed() >= STEADY {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let wait = self.backoff.wait(self.failures, self.seed);
        let asked = retry_after_of(error).unwrap_or_default();
        let wait = wait.max(asked.min(self.most));
        self.last = crate::clock::after(wait);
        wait
    }
}

/// Returns how long the API server asks to wait.
fn retry_after_of(error: &Error) -> Option<Duration> {
    match error {
        Error::InitialListFailed(error)
        | Error::WatchStartFailed(error)
        | Error::WatchFailed(error) => retry_after(error),
        Error::WatchError(status) => retry_after(&kube::Error::Api(status.clone())),
        Error::NoResourceVersion => None,
    }
}
