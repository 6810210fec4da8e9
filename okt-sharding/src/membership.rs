//! The membership of this process in a group of replicas: the protocol of `member`, on leases of the API server.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU16;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Stored;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher;
use kube::{Api, Client};
use okt_core::backoff::Backoff;
use okt_wire::api_timeout::{Contact, Limits, answer};
use okt_wire::keys::GROUP_LABEL;
use okt_wire::texts::{LastError, api_message};
use okt_wire::watch::retried_within;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::gate::{Gate, MembershipHandle};
use super::lease::{self, table_name};
use super::member::Member;
use super::protocol::{Held, Lease, LeaseRequest, Purpose, RequestOutcome, SeenLease, Timing};
use super::ranges::RANGES;
use super::table::{Name, RangeTable};
use super::time::Stopwatch;

/// The default length of a lease: that of other controllers.
const LEASE: Duration = Duration::from_secs(15);

/// How long a member waits for the CRDs and the caches of its operators before it counts as ready, if no other member is.
const WARM_LIMIT: Duration = Duration::from_secs(10);

/// How long a process that ends waits for its last requests.
const FAREWELL: Duration = Duration::from_secs(5);

/// How many replicas act at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shards {
    /// One: the leader. The others stand by with filled caches.
    #[default]
    One,
    /// At most this many.
    AtMost(NonZeroU16),
    /// All.
    Auto,
}

impl Shards {
    fn limit(self) -> usize {
        match self {
            Self::One => 1,
            Self::AtMost(limit) => limit.get().into(),
            Self::Auto => usize::MAX,
        }
    }
}

/// As the option `--shards` has it.
impl fmt::Display for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One => f.write_str("1"),
            Self::AtMost(limit) => limit.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// A group of replicas that share the objects of an operator, and this process's part in it.
#[derive(Clone, Debug)]
pub struct Group {
    name: String,
    namespace: String,
    replica: String,
    shards: Shards,
    lease: Duration,
    is_virtual: bool,
}

impl Group {
    /// Creates the settings of a group with one leader; its leases are in this namespace.
    ///
    /// The name is the same for all replicas of an operator, and another one for each operator in the namespace. It has
    /// at most 40 bytes, of lower-case letters, digits and `-`.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        let host = std::env::var("HOSTNAME")
            .ok()
            .filter(|name| !name.is_empty());
        Self {
            name: name.into(),
            namespace: namespace.into(),
            replica: host.unwrap_or_else(|| format!("process-{}", std::process::id())),
            shards: Shards::One,
            lease: LEASE,
            is_virtual: false,
        }
    }

    /// Sets the name of this replica, for people who look up the leader; the host name (that of the pod) by default.
    #[must_use]
    pub fn replica(mut self, name: impl Into<String>) -> Self {
        self.replica = name.into();
        self
    }

    /// Sets how many replicas act at the same time; one by default. The smallest setting of all replicas counts.
    #[must_use]
    pub fn shards(mut self, shards: Shards) -> Self {
        self.shards = shards;
        self
    }

    /// Sets how long the lease of a replica is valid, at least 3 s; 15 s by default. All replicas need the same.
    ///
    /// A replica renews its lease after 4/15 of this time, trusts it for 10/15, and the others take over after all of
    /// it. With more than 16 replicas use 40 s.
    #[must_use]
    pub fn lease(mut self, length: Duration) -> Self {
        self.lease = length.max(Duration::from_secs(3));
        self
    }

    /// Takes the time from tokio's clock, so that tests can pause and advance it.
    #[must_use]
    pub fn virtual_time(mut self) -> Self {
        self.is_virtual = true;
        self
    }
}

/// The membership of this process in a [`Group`].
///
/// # Guarantees
///
/// - At most one replica acts on an object at a time, as long as the rates of the replicas' clocks differ by less than
///   half. Their clocks may show any time.
/// - A replica that stops hands over at once; one that dies is replaced when its lease was not renewed for its length.
///
/// A process that stands still (SIGSTOP, a paused virtual machine) may finish the step that it was in when it stopped.
/// Its write then names an old version, which the API server refuses once the next replica has written the object; an
/// agent refuses its old epoch; and work that began before keeps its id.
///
/// ```no_run
/// # use okt::{Application, Group, Membership, Operator};
/// # async fn run<A: Application>(application: A) -> Result<(), Box<dyn std::error::Error>> {
/// let client = kube::Client::try_default().await?;
/// let membership = Membership::join(client.clone(), Group::new("databases", "databases-system"));
/// let ended = Operator::new(client, application)
///     .replicas(&membership)
///     .run(async { tokio::signal::ctrl_c().await.unwrap_or_default() })
///     .await;
/// // Only now: no other replica may begin while work runs here.
/// membership.leave().await;
/// # Ok(ended?)
/// # }
/// ```
///
/// The service account may `list`, `watch`, `create`, `patch` and `delete` leases in the namespace.
#[must_use = "operators act on nothing once it is dropped"]
pub struct Membership {
    standing: Arc<MembershipHandle>,
    stopping: CancellationToken,
    kept: JoinHandle<()>,
}

impl Membership {
    /// Joins the group, until [`leave`](Self::leave). Keep the result for as long as operators run: without it they act
    /// on nothing.
    ///
    /// It never fails: it retries while the API server does not answer.
    pub fn join(client: Client, group: Group) -> Self {
        let (held_in, held) = watch::channel(Held::NOTHING);
        let standing = MembershipHandle::new(
            (group.name.clone(), group.namespace.clone()),
            held,
            Stopwatch::start(group.is_virtual),
        );
        let stopping = CancellationToken::new();
        let process = GroupProcess {
            leases: Api::namespaced(client.clone(), &group.namespace),
            client,
            timing: Timing::of(group.lease),
            group,
            held: held_in,
            standing: Arc::clone(&standing),
            stopping: stopping.clone(),
        };
        Self {
            standing,
            stopping,
            kept: tokio::spawn(process.keep()),
        }
    }

    /// Gives away what this replica holds, as soon as no work of it runs: call it when the process is asked to stop.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Stops, and waits until everything is given away, for at most five seconds.
    ///
    /// Call it when the operators have ended: until then the lease is renewed.
    pub async fn leave(mut self) {
        self.stop();
        if timeout(FAREWELL, &mut self.kept).await.is_err() {
            tracing::warn!(
                "ended without giving everything away: the other replicas take over when the lease expires"
            );
        }
    }

    /// Returns the gate for the operators of this process.
    #[doc(hidden)]
    pub fn gate(&self) -> Gate {
        Gate::Member(Arc::clone(&self.standing))
    }
}

impl Drop for Membership {
    /// Ends as a crash does: the other replicas take over when the lease expires.
    fn drop(&mut self) {
        if !self.stopping.is_cancelled() {
            tracing::warn!(
                "the membership was dropped: soon the operators of this process act on nothing; keep it until they have \
                 ended"
            );
        }
        self.kept.abort();
    }
}

/// This process in a group: one member after the other.
struct GroupProcess {
    client: Client,
    leases: Api<Stored>,
    group: Group,
    timing: Timing,
    held: watch::Sender<Held>,
    standing: Arc<MembershipHandle>,
    stopping: CancellationToken,
}

/// A lease that was there when this process began.
struct Earlier {
    name: Name,
    uid: String,
    /// Whether it belongs to an earlier process of this replica.
    is_own: bool,
    /// When it was written, by the clock of the API server.
    written: Option<Timestamp>,
}

/// What was wrong last, so that it is logged once.
#[derive(Default)]
struct Troubles {
    of_watch: LastError,
    of_writes: Option<String>,
}

impl GroupProcess {
    async fn keep(self) {
        let begun = Instant::now();
        let mut troubles = Troubles::default();
        let mut is_first = true;
        while !self.stopping.is_cancelled() {
            let is_first = std::mem::take(&mut is_first);
            self.live(begun, is_first, &mut troubles).await;
            // What the member held belongs to others.
            self.publish(Held::NOTHING);
            tokio::select! {
                () = sleep(self.timing.retry) => {}
                () = self.stopping.cancelled() => {}
            }
        }
    }

    /// Lives as one member, until it has left or its lease is lost.
    async fn live(&self, begun: Instant, is_first: bool, troubles: &mut Troubles) {
        // The keys of `RandomState` come from the system's source of randomness.
        let number = RandomState::new().build_hasher().finish();
        let name = format!("{}-{number:016x}", self.group.name);
        let mut member = Member::new(name.clone(), self.group.shards.limit(), self.timing);
        let mut replicas = BTreeMap::from([(name.clone(), self.group.replica.clone())]);
        let mut answers = FuturesUnordered::new();
        let mut earlier = is_first.then(Vec::new);
        let mut clearing = OptionFuture::from(None);
        let mut has_joined = false;
        let mut leases = pin!(self.watch().fuse());
        let (mut list, mut lapses) = (Vec::new(), 0);
        loop {
            if self.stopping.is_cancelled() {
                member.stop();
            }
            let is_late = begun.elapsed() >= WARM_LIMIT && !member.has_ready_peer();
            if self.standing.is_warm() || is_late {
                member.ready();
            }
            let now = self.standing.stopwatch.now();
            self.standing.abandon(member.overdue(now));
            for request in member.requests(|| self.standing.busy(), now) {
                answers.push(self.send(&name, request, &replicas));
            }
            let held = member.held(now);
            if held.lapses > lapses {
                lapses = held.lapses;
                leases.set(self.watch().fuse());
            }
            self.standing.note_holders(member.holders());
            self.publish(held);
            if member.has_left() || member.is_over() {
                if member.is_over() && has_joined {
                    tracing::warn!(
                        lease = name,
                        "the lease of this replica is lost; it joins again under a new name"
                    );
                }
                return;
            }
            tokio::select! {
                Some(event) = leases.next() => match event {
                    Ok(event) => {
                        troubles.of_watch.end();
                        if let Some(left) = self.left_behind(&name, &event, &mut earlier) {
                            clearing = Some(clear(self.leases.clone(), left).boxed()).into();
                        }
                        if let Some(seen) = self.seen(event, &mut list, &mut replicas) {
                            member.see(seen, self.standing.stopwatch.now());
                        }
                    }
                    Err(error) => {
                        let errors = &mut troubles.of_watch;
                        errors.warn("cannot watch the leases of the replicas", &self.group.name, &error);
                    }
                },
                Some(answer) = answers.next() => {
                    let LeaseAnswer { purpose, outcome, trouble } = answer;
                    if let Some(why) = trouble.as_ref().filter(|_| trouble != troubles.of_writes) {
                        tracing::warn!(group = self.group.name, "cannot write the leases of the replicas: {why}");
                    }
                    troubles.of_writes = trouble;
                    has_joined |= purpose == Purpose::Own && matches!(outcome, RequestOutcome::Done(_));
                    if purpose != Purpose::Own && outcome == RequestOutcome::Changed {
                        // The lease is newer than the watch has shown: it may be stuck.
                        leases.set(self.watch().fuse());
                    }
                    member.answer(purpose, outcome, self.standing.stopwatch.now());
                }
                Some(()) = &mut clearing => clearing = None.into(),
                () = sleep(member.wait(now)) => {}
                () = self.stopping.cancelled(), if !member.is_stopping() => {}
            }
        }
    }

    /// Publishes what is held to the operators, and logs what changed.
    fn publish(&self, new: Held) {
        self.held.send_if_modified(|held| {
            let begins = held.open.is_empty() && !new.open.is_empty();
            if new.lapses > held.lapses {
                tracing::warn!("acts on nothing: the lease was not renewed in time");
            } else if held.own != new.own && new.own.is_empty() {
                tracing::info!("acts on nothing: other replicas act on the objects");
            } else if held.own != new.own || begins {
                let (ranges, epoch) = (new.own, new.epoch);
                tracing::info!(%ranges, epoch, "acts on {} of {RANGES} ranges", ranges.len());
            }
            std::mem::replace(held, new) != new
        });
    }

    fn watch(
        &self,
    ) -> impl futures::Stream<Item = watcher::Result<watcher::Event<Stored>>> + use<> {
        let config =
            watcher::Config::default().labels(&format!("{GROUP_LABEL}={}", self.group.name));
        let Timing { answer, expiry, .. } = self.timing;
        // A replica sees its own renewals: a watch that is silent for so long is broken.
        let limits = Limits {
            begin: answer,
            rest: answer,
            silence: expiry,
        };
        // Where leases are refused, this replica acts on nothing.
        let (watched, contact) = (&self.standing.watched, Contact::new(false));
        let client = watched.client(&self.client, "Lease", limits, contact);
        let leases = Api::namespaced(client, &self.group.namespace);
        // Who watches leases cannot wait for long.
        let backoff = Backoff::new(self.timing.retry, expiry);
        retried_within(watcher(leases, config), backoff, backoff.longest())
    }

    /// Collects the leases of the first list; returns those that processes left behind, when that list is complete: those
    /// of this replica, and those that were written long before the newest one, by the clock of the API server.
    ///
    /// A process that ends within the length of a lease deletes none of another, so that each would leave one. Deleting
    /// them is safe whoever they belong to: who may still act by such a lease is waited for (C10).
    fn left_behind(
        &self,
        own: &str,
        event: &watcher::Event<Stored>,
        earlier: &mut Option<Vec<Earlier>>,
    ) -> Option<Vec<Earlier>> {
        match event {
            watcher::Event::InitApply(stored) => {
                let (lease, replica) = lease::read(&self.group.name, stored)?;
                if let Lease::Member { name, uid, .. } = lease
                    && name != own
                {
                    earlier.as_mut()?.push(Earlier {
                        name,
                        uid,
                        is_own: replica == self.group.replica,
                        written: lease::written_at(stored),
                    });
                }
                None
            }
            watcher::Event::InitDone => {
                let mut left = earlier.take()?;
                let newest = left.iter().filter_map(|it| it.written).max();
                let long = self.timing.expiry.saturating_mul(2);
                let since = newest.and_then(|newest| newest.checked_sub(long).ok());
                left.retain(|it| it.is_own || (it.written.is_some() && it.written < since));
                (!left.is_empty()).then_some(left)
            }
            watcher::Event::Init | watcher::Event::Apply(_) | watcher::Event::Delete(_) => None,
        }
    }

    /// Converts an event of the watch; collects lists.
    fn seen(
        &self,
        event: watcher::Event<Stored>,
        list: &mut Vec<Lease>,
        replicas: &mut BTreeMap<Name, String>,
    ) -> Option<SeenLease> {
        let mut read = |stored: &Stored| {
            let (lease, replica) = lease::read(&self.group.name, stored)?;
            if let Lease::Member { name, .. } = &lease {
                replicas.insert(name.clone(), replica);
            }
            Some(lease)
        };
        match event {
            watcher::Event::Init => {
                list.clear();
                Some(SeenLease::Listing)
            }
            watcher::Event::InitApply(stored) => {
                list.extend(read(&stored));
                None
            }
            watcher::Event::InitDone => Some(SeenLease::List(std::mem::take(list))),
            watcher::Event::Apply(stored) => read(&stored).map(SeenLease::Applied),
            watcher::Event::Delete(stored) => read(&stored).map(SeenLease::Deleted),
        }
    }

    /// Sends a request; returns its answer.
    fn send(
        &self,
        own: &str,
        request: LeaseRequest,
        replicas: &BTreeMap<Name, String>,
    ) -> impl Future<Output = LeaseAnswer> + use<> {
        let (leases, group) = (self.leases.clone(), self.group.name.clone());
        let (own, replica, length) = (own.to_owned(), self.group.replica.clone(), self.group.lease);
        let kinds = self.standing.kinds();
        let limit = self.timing.answer;
        let purpose = request.purpose();
        let creates = matches!(request, LeaseRequest::Join(_) | LeaseRequest::Found);
        let names: Vec<String> = match &request {
            LeaseRequest::Write { holders, .. } => {
                let names = holders
                    .iter()
                    .map(|name| replicas.get(name).unwrap_or(name));
                names.cloned().collect()
            }
            _ => Vec::new(),
        };
        let sent = async move {
            let create = PostParams::default();
            let patch = PatchParams::default();
            match request {
                LeaseRequest::Join(state) => {
                    let lease = lease::member(&group, &own, &replica, length, &state, &kinds);
                    let lease = decoded(lease)?;
                    leases.create(&create, &lease).await.map(Some)
                }
                LeaseRequest::Renew { uid, state } => {
                    let renewal = Patch::Merge(lease::renewal(&uid, &state, &kinds));
                    leases.patch(&own, &patch, &renewal).await.map(Some)
                }
                LeaseRequest::Found => {
                    let table = RangeTable::new(since_1970());
                    let lease = decoded(lease::table(&group, &table, &kinds))?;
                    leases.create(&create, &lease).await.map(Some)
                }
                LeaseRequest::Write {
                    uid,
                    version,
                    table,
                    ..
                } => {
                    let table = table.at(since_1970());
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    let written = lease::written(&uid, &version, &table, &names, &kinds);
                    let written = Patch::Merge(written);
                    leases
                        .patch(&table_name(&group), &patch, &written)
                        .await
                        .map(Some)
                }
                LeaseRequest::Delete { name, uid, version } => {
                    delete(&leases, &name, uid, Some(version)).await
                }
                LeaseRequest::Leave { uid } => delete(&leases, &own, uid, None).await,
            }
        };
        let group = self.group.name.clone();
        async move {
            let (outcome, trouble) = match timeout(limit, sent).await {
                Ok(Ok(stored)) => {
                    let lease = stored.and_then(|stored| lease::read(&group, &stored));
                    (RequestOutcome::Done(lease.map(|(lease, _)| lease)), None)
                }
                // Without its namespace nothing can be created.
                Ok(Err(kube::Error::Api(status))) if status.code == 404 && !creates => {
                    (RequestOutcome::Missing, None)
                }
                // A patch that names another uid than the lease has is 422 (kube-apiserver 1.36.1); a lease that cannot
                // be created is refused by a policy, or for its name, and that is logged.
                Ok(Err(kube::Error::Api(status)))
                    if status.code == 409 || (status.code == 422 && !creates) =>
                {
                    (RequestOutcome::Changed, None)
                }
                Ok(Err(error)) => (RequestOutcome::Unknown, Some(api_message(&error))),
                Err(_) => (RequestOutcome::Unknown, Some("no answer".to_owned())),
            };
            LeaseAnswer {
                purpose,
                outcome,
                trouble,
            }
        }
    }
}

/// The answer to a request.
struct LeaseAnswer {
    purpose: Purpose,
    outcome: RequestOutcome,
    /// Why nothing certain is known.
    trouble: Option<String>,
}

fn since_1970() -> Duration {
    let time = Timestamp::now().duration_since(Timestamp::UNIX_EPOCH);
    time.try_into().unwrap_or_default()
}

async fn delete(
    leases: &Api<Stored>,
    name: &str,
    uid: String,
    resource_version: Option<String>,
) -> kube::Result<Option<Stored>> {
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: Some(uid),
        resource_version,
    });
    leases.delete(name, &params).await.map(|_| None)
}

/// Deletes leases, by their names and uids; what fails is deleted later, as that of any silent replica.
async fn clear(leases: Api<Stored>, left: Vec<Earlier>) {
    for Earlier { name, uid, .. } in left {
        if let Err(error) = answer(delete(&leases, &name, uid, None)).await {
            tracing::debug!(lease = name, "not deleted: {}", api_message(&error));
        }
    }
}

fn decoded(lease: serde_json::Value) -> kube::Result<Stored> {
    serde_json::from_value(lease).map_err(kube::Error::SerdeError)
}
