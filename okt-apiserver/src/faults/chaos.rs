//! [`Chaos`]: faults at random, reproducible by a seed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::fault::{Fault, named};
use super::injected::{Due, Struck, Tally};
use super::occasion::Occasion;
use super::rule::{FaultKind, Limits, Rule};
use super::seed::Seed;
use crate::record::Verb;

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
/// use okt_apiserver::{ApiServer, Chaos, Fault};
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
    entries: Vec<ChaosEntry>,
    /// The limits that all faults share.
    limits: Limits,
    at_most: Option<u64>,
    lasting: Option<Duration>,
}

/// A fault and its rate.
#[derive(Clone, Debug)]
struct ChaosEntry {
    rate: f64,
    rule: Arc<Rule>,
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
            entries: Vec::new(),
            limits: Limits::default(),
            at_most: None,
            lasting: None,
        }
    }

    /// Adds a fault that strikes this share of its matches (e.g. 0.05 for one in twenty).
    ///
    /// At most one fault of a chaos strikes each request and each event.
    ///
    /// # Panics
    /// If the rate is not between 0 and 1, all rates for requests or for events come to more than 1, or the fault says
    /// nothing (see [`ApiServer::inject`](crate::ApiServer::inject)).
    #[track_caller]
    pub fn with<On>(mut self, rate: f64, fault: Fault<On>) -> Self {
        if let Err(why) = fault.rule.check() {
            panic!("{why}");
        }
        let rule = Arc::new(fault.rule);
        self.entries.push(ChaosEntry { rate, rule });
        self.check_rates();
        self
    }

    #[track_caller]
    fn check_rates(&self) {
        for ChaosEntry { rate, .. } in &self.entries {
            assert!(
                (0.0..=1.0).contains(rate),
                "the rate of a fault is between 0 and 1 (e.g. 0.05 for one in twenty), not {rate}"
            );
        }
        let sum = |is_of: fn(FaultKind) -> bool| -> f64 {
            let entries = self.entries.iter();
            let entries = entries.filter(|entry| is_of(entry.rule.fault));
            entries.map(|entry| entry.rate).sum()
        };
        for (what, sum) in [
            ("requests", sum(FaultKind::is_of_requests)),
            ("events", sum(FaultKind::is_of_events)),
        ] {
            // Sums of decimal fractions have rounding errors.
            assert!(
                sum <= 1.000_001,
                "the rates of faults for {what} come to {sum}, which is more than 1"
            );
        }
    }

    /// Multiplies each rate by a factor.
    ///
    /// # Panics
    /// If a rate or a sum of rates becomes more than 1, or negative.
    #[track_caller]
    pub fn times_as_often(mut self, factor: f64) -> Self {
        for entry in &mut self.entries {
            entry.rate *= factor;
        }
        self.check_rates();
        self
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed.number()
    }

    /// Limits all faults to what these limits allow.
    pub(crate) fn within(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Strikes this resource only; see [`Fault::resource`].
    ///
    /// # Panics
    /// If it is no plural (e.g. `Database`).
    #[track_caller]
    pub fn resource(mut self, resource: &str) -> Self {
        self.limits.resources.push(named(resource));
        self
    }

    /// Strikes in this namespace only; see [`Fault::namespace`].
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.limits.namespaces.push(namespace.to_owned());
        self
    }

    /// Strikes this client only, and not the client that plays the user; see [`Fault::client`].
    pub fn client(mut self, client: &str) -> Self {
        self.limits.clients.push(client.to_owned());
        self
    }

    /// Strikes only requests to and events from this replica; see [`Fault::replica`].
    pub fn replica(mut self, replica: &str) -> Self {
        self.limits.replicas.push(replica.to_owned());
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

/// A running chaos.
#[derive(Debug)]
pub(super) struct ActiveChaos {
    mix: Chaos,
    until: Option<Instant>,
    tally: Arc<Tally>,
    memory: Mutex<ChaosMemory>,
}

#[derive(Debug, Default)]
struct ChaosMemory {
    /// The number of occasions of each subject so far.
    occasions: BTreeMap<String, u64>,
    /// The numbers of matches and strikes of each fault of the mix.
    counts: BTreeMap<usize, (u64, u64)>,
}

impl ActiveChaos {
    pub(super) fn new(mix: Chaos, tally: Arc<Tally>) -> Self {
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

    /// Returns what strikes, if anything does. `is_free` returns whether a fault can be combined with those that strike
    /// anyway.
    pub(super) fn strike(
        &self,
        on: Occasion<'_>,
        is_free: impl Fn(&Rule) -> bool,
    ) -> Option<Struck> {
        // The faults of the mix decide about bookmarks.
        if self.is_over() || !self.mix.limits.meet(on, true) {
            return None;
        }
        self.tally.counts().matched += 1;
        let (rule, size) = self.pick(on, is_free)?;
        let given = rule.time.unwrap_or_default();
        let time = match rule.fault {
            FaultKind::Delay | FaultKind::DeliverLate | FaultKind::Lag => given.mul_f64(size),
            _ => given,
        };
        let due = self.settle(rule.describe(time), on.to_string())?;
        let hold = self.tally.hold(self.until);
        Some(Struck {
            rule,
            time,
            due,
            hold,
        })
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

    /// Returns the fault that is drawn, and the fraction of its time.
    fn pick(&self, on: Occasion<'_>, is_free: impl Fn(&Rule) -> bool) -> Option<(Arc<Rule>, f64)> {
        let mut memory = self.memory.lock();
        let subject = on.subject();
        let occasion = memory.occasions.entry(subject.clone()).or_default();
        *occasion += 1;
        let draw = draw(self.mix.seed.number(), &subject, *occasion);
        let mut end = 0.0;
        for (index, ChaosEntry { rate, rule }) in self.mix.entries.iter().enumerate() {
            if !rule.fault.is_of(on) {
                continue;
            }
            let begin = end;
            end += rate;
            if !rule.meets(on) || !is_free(rule) {
                continue;
            }
            let (matched, struck) = memory.counts.entry(index).or_default();
            *matched += 1;
            if (begin..end).contains(&draw.lot) && rule.admits(*matched, *struck) {
                *struck += 1;
                return Some((Arc::clone(rule), draw.size));
            }
        }
        None
    }
}

/// Two numbers in `0.0..1.0`.
struct Draw {
    /// Selects the fault that strikes, if any.
    lot: f64,
    /// The fraction of the fault's delay or lag.
    size: f64,
}

/// Draws for the occasion of this number of a subject.
///
/// There is no sequence: whether a fault strikes the third write of an object does not depend on other objects. The digest
/// is SHA-256, so a seed gives the same numbers with each version of this crate's dependencies.
fn draw(seed: u64, subject: &str, number: u64) -> Draw {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(number.to_le_bytes());
    hash.update(subject.as_bytes());
    let digest = hash.finalize();
    Draw {
        lot: fraction(&digest[..4]),
        size: fraction(&digest[4..8]),
    }
}

fn fraction(bytes: &[u8]) -> f64 {
    let number = bytes
        .iter()
        .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    f64::from(number) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn a_seed_always_draws_the_same_lots() {
        let drawn: Vec<_> = (0..4)
            .map(|number| draw(7, "somebody", number).lot)
            .collect();
        let first: Vec<_> = drawn
            .iter()
            .map(|lot| format!("{:.0}", (lot * 1000.0).floor()))
            .collect();
        assert_eq!(first, ["19", "604", "688", "419"]);
    }

    #[test]
    fn lots_are_evenly_distributed() {
        let below = |limit: f64| {
            let drawn = (0..10_000).map(|number| draw(1, "somebody", number).lot);
            drawn.filter(|lot| *lot < limit).count()
        };
        assert!((400..600).contains(&below(0.05)), "{}", below(0.05));
        assert!((4_800..5_200).contains(&below(0.5)), "{}", below(0.5));
    }
}
