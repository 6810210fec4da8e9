//! [`Chaos`]: faults at random, reproducible by a seed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::draw::draw;
use super::event::OnEvent;
use super::failure::OnRequest;
use super::fault::Fault;
use super::injected::{Due, Hold, Tally};
use super::seed::Seed;
use super::target::{Delivery, EventKind, FaultTarget, Resource};
use super::what::{Either, What};
use crate::api::record::{RequestRecord, Verb};

/// Faults at random, each at its own rate.
///
/// # Determinism
/// Whether a fault strikes a request is a function of the seed, the client, the request (verb,
/// path, name), and the number of such requests before it. For an event it is a function of the
/// seed, the client, the object, and the number of its events before it for that client.
/// It depends on nothing else, so that after a small change of the code under test most of a run
/// stays the same.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, api::ListParams};
/// use okt_testing::{ApiServer, Chaos, Fault};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let server = ApiServer::new();
/// let mix = Chaos::none(7)
///     .with(0.2, Fault::unavailable())
///     .with(0.1, Fault::timeout().on_writes().after_commit())
///     .at_most(3);
/// let chaos = server.misbehave(mix);
///
/// let maps: Api<ConfigMap> = Api::all(server.client());
/// for _ in 0..100 {
///     let _ = maps.list(&ListParams::default()).await;
/// }
/// assert_eq!(chaos.struck(), 3);
/// # }
/// ```
#[must_use = "a chaos does nothing until `misbehave` starts it"]
#[derive(Clone, Debug)]
pub struct Chaos {
    seed: Seed,
    requests: Vec<ChaosEntry<OnRequest>>,
    events: Vec<ChaosEntry<OnEvent>>,
    /// The limits that all faults share.
    target: FaultTarget,
    at_most: Option<u64>,
    lasting: Option<Duration>,
}

/// A fault and its rate.
#[derive(Clone, Debug)]
struct ChaosEntry<W> {
    rate: f64,
    fault: Fault<W>,
}

impl Chaos {
    /// Returns a mix of all faults that clients of a healthy cluster may meet.
    ///
    /// | requests | |
    /// |---|---|
    /// | 3 % of updates, patches, applies and deletions | 409 |
    /// | 2 % | 429 after a second |
    /// | 1 % each | 500, 503 |
    /// | 1 % of writes each | a timeout before the commit, and after it |
    /// | 1 % each | a connection that breaks before the commit, after it, in the response body |
    /// | 10 % | up to 300 ms late |
    ///
    /// | events | |
    /// |---|---|
    /// | 10 % | up to 2 s late |
    /// | 5 % | merged with the object's next one, if it comes within a second |
    /// | 2 % | sent twice |
    /// | 1 % each | the watch ends, breaks, expires (410) |
    ///
    /// The mix has no requests that are never answered and no events that are never sent: no kube
    /// client recovers from those by itself.
    pub fn seeded(seed: impl Into<Seed>) -> Self {
        let conflicts = [Verb::Update, Verb::Patch, Verb::Apply, Verb::Delete]
            .into_iter()
            .fold(Fault::conflict(), Fault::on);
        Self::none(seed)
            .with(0.03, conflicts)
            .with(0.02, Fault::too_many_requests(Duration::from_secs(1)))
            .with(0.01, Fault::internal_error())
            .with(0.01, Fault::unavailable())
            .with(0.01, Fault::timeout().on_writes())
            .with(0.01, Fault::timeout().on_writes().after_commit())
            .with(0.01, Fault::break_connection())
            .with(0.01, Fault::break_connection().after_commit())
            .with(0.01, Fault::cut_body(20))
            .with(0.10, Fault::delay(Duration::from_millis(300)))
            .with(0.10, Fault::lag(Duration::from_secs(2)))
            .with(0.05, Fault::merge_events(Duration::from_secs(1)))
            .with(0.02, Fault::repeat_event())
            .with(0.01, Fault::end_stream())
            .with(0.01, Fault::break_stream())
            .with(0.01, Fault::expire_stream())
    }

    /// Returns an empty mix; add faults with [`with`](Self::with).
    pub fn none(seed: impl Into<Seed>) -> Self {
        Self {
            seed: seed.into(),
            requests: Vec::new(),
            events: Vec::new(),
            target: FaultTarget::default(),
            at_most: None,
            lasting: None,
        }
    }

    /// Adds a fault that strikes this share of its matches (e.g. 0.05 for one in twenty).
    ///
    /// At most one fault of a chaos strikes each request and each event.
    ///
    /// # Panics
    /// If the rate is not between 0 and 1, or all rates for requests or for events come to more
    /// than 1.
    #[track_caller]
    pub fn with<W: What>(mut self, rate: f64, fault: Fault<W>) -> Self {
        assert!(
            (0.0..=1.0).contains(&rate),
            "the rate of a fault is between 0 and 1 (e.g. 0.05 for one in twenty), not {rate}"
        );
        match W::sort(fault) {
            Either::Request(fault) => self.requests.push(ChaosEntry { rate, fault }),
            Either::Event(fault) => self.events.push(ChaosEntry { rate, fault }),
        }
        for (what, sum) in [
            ("requests", sum(&self.requests)),
            ("events", sum(&self.events)),
        ] {
            // Sums of decimal fractions have rounding errors.
            assert!(
                sum <= 1.000_001,
                "the rates of faults for {what} come to {sum}, which is more than 1"
            );
        }
        self
    }

    /// Multiplies each rate by a factor.
    ///
    /// # Panics
    /// If a rate or a sum of rates becomes more than 1, or negative.
    #[track_caller]
    pub fn times_as_often(self, factor: f64) -> Self {
        let mut mix = Self {
            requests: Vec::new(),
            events: Vec::new(),
            ..self.clone()
        };
        for entry in self.requests {
            mix = mix.with(entry.rate * factor, entry.fault);
        }
        for entry in self.events {
            mix = mix.with(entry.rate * factor, entry.fault);
        }
        mix
    }

    /// Strikes this resource only; see [`Fault::resource`].
    ///
    /// # Panics
    /// If it is no plural (e.g. `Database`).
    #[track_caller]
    pub fn resource(mut self, resource: &str) -> Self {
        self.target.resources.push(Resource::parse(resource));
        self
    }

    /// Strikes in this namespace only; see [`Fault::namespace`].
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.target.namespaces.push(namespace.to_owned());
        self
    }

    /// Strikes this client only, and not the client that plays the user; see [`Fault::client`].
    pub fn client(mut self, client: &str) -> Self {
        self.target.clients.push(client.to_owned());
        self
    }

    /// Strikes only requests to and events from this replica; see [`Fault::replica`].
    pub fn replica(mut self, replica: &str) -> Self {
        self.target.replicas.push(replica.to_owned());
        self
    }

    /// Ends the chaos after this number of strikes; events that it held back are then sent.
    pub fn at_most(mut self, strikes: u64) -> Self {
        self.at_most = Some(strikes);
        self
    }

    /// Ends the chaos after this time, on tokio's clock; events that it held back are then sent.
    pub fn lasting(mut self, time: Duration) -> Self {
        self.lasting = Some(time);
        self
    }
}

fn sum<W>(entries: &[ChaosEntry<W>]) -> f64 {
    entries.iter().map(|entry| entry.rate).sum()
}

/// A running chaos.
#[derive(Debug)]
pub(super) struct ActiveChaos {
    mix: Chaos,
    until: Option<Instant>,
    pub(super) tally: Arc<Tally>,
    memory: Mutex<ChaosMemory>,
}

#[derive(Debug, Default)]
struct ChaosMemory {
    /// The number of occurrences of each request or event so far.
    occasions: BTreeMap<String, u64>,
    /// The numbers of matches and strikes of each fault of the mix.
    counts: BTreeMap<(Side, usize), (u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Requests,
    Events,
}

impl ActiveChaos {
    pub(super) fn new(mut mix: Chaos, tally: Arc<Tally>) -> Self {
        // The chaos admits all kinds of events; the limits of its faults select among them.
        mix.target.events = vec![
            EventKind::Added,
            EventKind::Modified,
            EventKind::Deleted,
            EventKind::Bookmark,
        ];
        Self {
            until: mix.lasting.map(|time| Instant::now() + time),
            mix,
            tally,
            memory: Mutex::default(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.tally.is_ended() || self.until.is_some_and(|until| until <= Instant::now())
    }

    /// Returns the hold for an event that this chaos holds back.
    pub(super) fn hold(&self) -> Hold {
        self.tally.hold(self.until)
    }

    /// Settles a strike; returns `None` once all strikes are used up.
    fn settle(&self, fault: String, on: String) -> Option<Due> {
        let settled = {
            let mut counts = self.tally.counts();
            let most = self.mix.at_most;
            if most.is_some_and(|most| counts.settled >= most) {
                return None;
            }
            counts.settled += 1;
            counts.settled
        };
        if self.mix.at_most == Some(settled) {
            self.tally.end();
        }
        Some(self.tally.settle(fault, on))
    }

    /// Returns the fault that strikes a request, if any.
    ///
    /// `takes` returns whether a fault can be combined with those that strike anyway.
    pub(super) fn request(
        &self,
        request: &RequestRecord,
        takes: impl Fn(&OnRequest) -> bool,
    ) -> Option<(OnRequest, Due)> {
        if self.is_over() || !self.mix.target.meets_request(request) {
            return None;
        }
        self.tally.counts().matched += 1;
        let who = format!(
            "{} {} {} {}",
            request.client,
            request.verb,
            request.path,
            request.name.as_deref().unwrap_or_default()
        );
        let meets =
            |fault: &Fault<OnRequest>| fault.target.meets_request(request) && takes(&fault.what);
        let (drawn, size) = self.pick(Side::Requests, &self.mix.requests, &who, meets)?;
        let what = drawn.scaled(size);
        let due = self.settle(what.to_string(), request.to_string())?;
        Some((what, due))
    }

    /// Returns the fault that strikes an event, if any.
    ///
    /// `takes` returns whether a fault can be combined with those that strike anyway.
    pub(super) fn event(
        &self,
        event: &Delivery<'_>,
        takes: impl Fn(&OnEvent) -> bool,
    ) -> Option<(OnEvent, Due)> {
        if self.is_over() || !self.mix.target.meets_event(event) {
            return None;
        }
        self.tally.counts().matched += 1;
        let bookmark = if event.kind == EventKind::Bookmark {
            " bookmark"
        } else {
            ""
        };
        let who = format!(
            "{} {}.{} {}/{}{bookmark}",
            event.client, event.resource.plural, event.resource.group, event.namespace, event.name
        );
        let meets = |fault: &Fault<OnEvent>| fault.target.meets_event(event) && takes(&fault.what);
        let (drawn, size) = self.pick(Side::Events, &self.mix.events, &who, meets)?;
        let what = drawn.scaled(size);
        let due = self.settle(what.to_string(), event.to_string())?;
        Some((what, due))
    }

    fn pick<'m, W>(
        &self,
        side: Side,
        entries: &'m [ChaosEntry<W>],
        who: &str,
        meets: impl Fn(&Fault<W>) -> bool,
    ) -> Option<(&'m W, f64)> {
        let mut memory = self.memory.lock();
        let occasion = memory.occasions.entry(who.to_owned()).or_default();
        *occasion += 1;
        let draw = draw(self.mix.seed.number(), who, *occasion);
        let mut end = 0.0;
        for (index, entry) in entries.iter().enumerate() {
            let begin = end;
            end += entry.rate;
            if !meets(&entry.fault) {
                continue;
            }
            let (matched, struck) = memory.counts.entry((side, index)).or_default();
            *matched += 1;
            if (begin..end).contains(&draw.lot) && entry.fault.window.admits(*matched, *struck) {
                *struck += 1;
                return Some((&entry.fault.what, draw.size));
            }
        }
        None
    }
}
