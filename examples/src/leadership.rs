//! This module elects the leader among several replicas and reports to an operator whether it leads.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long to wait after a failed request before the next one.
const RETRY: Duration = Duration::from_secs(1);

/// The lease that the replicas of one operator compete for, and this replica's name.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The name of the lease, the same for all replicas.
    pub lease: String,
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of this replica, for people who look up the leader (e.g. the name of the pod).
    pub replica: String,
    /// How long a lease is valid after a renewal, in seconds; at least 3.
    ///
    /// It is renewed after a third of this time, no longer trusted after two thirds, and free for others after all of
    /// it.
    /// Kubernetes controllers use 15.
    pub seconds: u64,
}

/// The part of a replica in the leader election.
///
/// # Guarantees
///
/// [`is_leader`](Self::is_leader) is true only while the last observed lease names this replica and was renewed within
/// two thirds of its length.
/// It turns false on its own when no news of the lease arrives, a third of its length before another replica may take
/// it: the clocks of the replicas may differ by less than that.
///
/// # Why not the channel of the lease manager
///
/// [`LeaseManager::watch`] of kube-lease-manager 0.13 provides a channel, too.
/// That channel stays true until a request *succeeds* that finds another holder: through an outage of any length, even
/// when another replica has long taken the lease.
/// So here the manager takes and renews the lease, and the lease itself, with the time, decides who leads.
/// This module also works around two properties of that manager:
///
/// - It may renew a lease that has expired while another replica is about to clear it, because neither request names a
///   version. Here a term never continues after its end: the next one has its own identity.
/// - It sleeps until the time at which the lease it last read would expire, so it takes a released lease no sooner.
///   Here a released lease wakes it.
///
/// # Limits
///
/// A lost lease cannot call back a request that is under way, and a process that was stopped (SIGSTOP, a paused virtual
/// machine) continues for a moment as if it still led.
/// Its writes then name the version that it knew, so the API server refuses them once the next leader has written the
/// object; work that began before keeps its id, by which it takes effect only once.
///
/// # Assumptions
///
/// The service account may `get`, `list`, `watch`, `create` and `patch` leases in the namespace.
pub struct Leadership {
    is_leader: watch::Receiver<bool>,
    given_up: oneshot::Sender<()>,
    kept: JoinHandle<()>,
}

impl Leadership {
    /// Competes for the lease from now on, until [`give_up`](Self::give_up).
    ///
    /// It never fails: it retries while the API server does not answer.
    pub fn seek(client: Client, seat: Seat) -> Self {
        let (leads, is_leader) = watch::channel(false);
        let (given_up, told) = oneshot::channel();
        let kept = tokio::spawn(keep(client, seat, leads, told));
        Self {
            is_leader,
            given_up,
            kept,
        }
    }

    /// Returns whether this replica leads, for [`Operator::leader_election`](okt::Operator::leader_election).
    pub fn is_leader(&self) -> watch::Receiver<bool> {
        self.is_leader.clone()
    }

    /// Stops leading and releases the lease, so that another replica takes it at once.
    ///
    /// Call it when the operator has ended: until then the lease is renewed.
    pub async fn give_up(self) {
        // The task ends when the sender is gone.
        drop(self.given_up);
        if let Err(error) = self.kept.await {
            tracing::error!("the lease was not given back: {error}");
        }
    }
}

async fn keep(
    client: Client,
    seat: Seat,
    leads: watch::Sender<bool>,
    mut told: oneshot::Receiver<()>,
) {
    loop {
        let term = tokio::select! {
            biased;
            _ = &mut told => return,
            term = Term::begin(&client, &seat, &leads) => term,
        };
        let over = tokio::select! {
            biased;
            _ = &mut told => None,
            over = term.run() => Some(over),
        };
        let led = leads.send_replace(false);
        match over {
            Some(over) if led => tracing::warn!("does not lead any more: {over}"),
            Some(over) => tracing::debug!("reads the lease again: {over}"),
            None => return term.release().await,
        }
    }
}

/// A term: from the first read of the lease until it is lost or has to be read again.
struct Term<'a> {
    seat: &'a Seat,
    leads: &'a watch::Sender<bool>,
    leases: Api<Lease>,
    identity: String,
    manager: LeaseManager,
}

/// The lease as a term knows it.
struct Known {
    /// When the term ends unless the lease is renewed by then.
    until: Instant,
    /// When the lease of another replica expires.
    taken_until: Option<Timestamp>,
}

impl<'a> Term<'a> {
    async fn begin(client: &Client, seat: &'a Seat, leads: &'a watch::Sender<bool>) -> Self {
        let number = RandomState::new().build_hasher().finish();
        let identity = format!("{}_{number:016x}", seat.replica);
        let manager = loop {
            let builder = LeaseManagerBuilder::new(client.clone(), &seat.lease)
                .with_namespace(&seat.namespace)
                .with_identity(&identity)
                // One field manager per identity, so that the API server detects that two replicas want the lease.
                .with_field_manager(format!("lease-{number:016x}"))
                .with_duration(seat.seconds.max(3))
                .with_grace((2 * seat.seconds.max(3)).div_ceil(3));
            match timeout(seat.length(), builder.build()).await {
                Ok(Ok(manager)) => break manager,
                Ok(Err(error)) => tracing::warn!("cannot read the lease: {error}"),
                Err(_) => tracing::warn!("cannot read the lease: no answer"),
            }
            sleep(RETRY).await;
        };
        Self {
            seat,
            leads,
            leases: Api::namespaced(client.clone(), &seat.namespace),
            identity,
            manager,
        }
    }

    /// Takes the lease when it is free and leads while it is renewed; returns why the term ended.
    async fn run(&self) -> &'static str {
        let leases = watch_object(self.leases.clone(), &self.seat.lease);
        let mut leases = pin!(leases.default_backoff());
        let mut renewing = pin!(renew(&self.manager));
        let mut known = Known {
            until: Instant::now() + 2 * self.seat.length(),
            taken_until: None,
        };
        loop {
            let lease = tokio::select! {
                // The time comes first: a late event, after this process was stopped for a while, changes nothing.
                biased;
                () = sleep_until(known.until) => return "it was not renewed in time",
                lease = leases.next() => lease,
                never = &mut renewing => match never {},
            };
            match lease {
                Some(Ok(Some(lease))) => {
                    if let Some(over) = self.heed(&mut known, &lease.spec.unwrap_or_default()) {
                        return over;
                    }
                }
                Some(Ok(None)) => return "it was deleted",
                Some(Err(error)) => tracing::debug!("cannot watch the lease: {error}"),
                None => return "its watch has ended",
            }
        }
    }

    /// Processes the current lease; returns why the term is over, if the lease ends it.
    fn heed(&self, known: &mut Known, lease: &LeaseSpec) -> Option<&'static str> {
        let now = Timestamp::now();
        let holder = lease.holder_identity.as_deref();
        if holder == Some(&self.identity) {
            let left = expiry(lease)?.duration_since(now);
            let trusted = left - SignedDuration::try_from(self.seat.third()).ok()?;
            let until = Instant::now() + Duration::try_from(trusted).unwrap_or_default();
            // A delayed renewal of an older term names an earlier time and must not shorten this one.
            let led = *self.leads.borrow();
            known.until = if led { known.until.max(until) } else { until };
            if trusted.is_positive() && !self.leads.send_replace(true) {
                tracing::info!(identity = self.identity, "leads");
            }
            return None;
        }
        if *self.leads.borrow() {
            return Some("another replica has the lease");
        }
        known.until = Instant::now() + 2 * self.seat.length();
        if holder.is_some() {
            known.taken_until = expiry(lease);
        } else if known.taken_until.take().is_some_and(|taken| now < taken) {
            return Some("it was given back");
        }
        None
    }

    /// Releases the lease, if this replica holds it.
    async fn release(&self) {
        match timeout(self.seat.third(), self.manager.release()).await {
            Ok(Ok(())) => tracing::info!("the lease is given back"),
            Ok(Err(error)) => tracing::warn!("cannot give the lease back: {error}"),
            Err(_) => tracing::warn!("cannot give the lease back: no answer"),
        }
    }
}

impl Seat {
    fn length(&self) -> Duration {
        Duration::from_secs(self.seconds.max(3))
    }

    fn third(&self) -> Duration {
        self.length() / 3
    }
}

/// Takes and renews the lease forever; whether that works shows in the lease.
async fn renew(manager: &LeaseManager) -> Infallible {
    loop {
        if let Err(error) = manager.changed().await {
            tracing::warn!("cannot renew the lease: {error}");
            sleep(RETRY).await;
        }
    }
}

/// Returns when others may take the lease.
fn expiry(lease: &LeaseSpec) -> Option<Timestamp> {
    let renewed = lease.renew_time.as_ref()?.0;
    let seconds = lease.lease_duration_seconds?;
    renewed
        .checked_add(SignedDuration::from_secs(seconds.into()))
        .ok()
}
