//! This module keeps one replica of several in the lead, and makes the gate of an operator from it.

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

/// How long after a request that failed the next one is tried.
const RETRY: Duration = Duration::from_secs(1);

/// What the replicas of one operator compete for.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The name of the lease, the same for all replicas.
    pub lease: String,
    /// Its namespace.
    pub namespace: String,
    /// What this replica is called, for people who ask who leads (the name of the pod).
    pub replica: String,
    /// How long a lease is good for after it was renewed, in seconds; at least 3.
    ///
    /// It is renewed after a third of this, no longer trusted after two thirds, and free for others after all of it.
    /// 15 is what controllers of Kubernetes use.
    pub seconds: u64,
}

/// The part of a replica in the election of a leader.
///
/// # Guarantees
///
/// The gate is true only while the lease, as last seen, names this replica and was renewed within two thirds of
/// its length.
/// It turns false by itself when nothing is heard of the lease any more, a third of its length before another
/// replica may take it: the clocks of the replicas may differ by less than that.
///
/// # Why not the channel of the lease manager
///
/// [`LeaseManager::watch`] of kube-lease-manager 0.13 has one too.
/// It says true until a request *succeeds* that finds another holder: through an outage of any length, while the
/// lease has long gone to somebody else.
/// So here the manager takes and renews the lease, and what the lease itself says, with the time, is the gate.
/// Two more things are done about that manager:
///
/// - It may renew a lease that has expired while another replica is about to clear it, because neither request names
///   a version. Here a term that is over is over: the next one has an identity of its own.
/// - It sleeps until the time at which the lease it last read would expire, so that a lease which was given back is
///   taken no sooner. Here a lease that is given back wakes it.
///
/// # What remains
///
/// No gate can call back a request that is under way, and a process that was stopped (SIGSTOP, a paused virtual
/// machine) goes on for a moment as if nothing had happened.
/// What it writes then names the version that it knew, so the API server refuses it once the next leader has touched
/// the object; work that was begun before keeps its id, by which it has no effect twice.
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
    /// Competes for the seat from now on, until it is given up.
    ///
    /// An API server that does not answer is asked again: this never fails.
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

    /// Whether this replica leads, for [`Operator::leader_election`](okt_runtime::Operator::leader_election).
    pub fn is_leader(&self) -> watch::Receiver<bool> {
        self.is_leader.clone()
    }

    /// Leads no longer, and gives the lease back so that another replica takes it at once.
    ///
    /// Call it when the operator has ended: until then the lease is renewed.
    pub async fn give_up(self) {
        // The task ends when nobody can tell it anything any more.
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
            Some(over) if led => tracing::warn!("leads no longer: {over}"),
            Some(over) => tracing::debug!("looks at the lease anew: {over}"),
            None => return term.release().await,
        }
    }
}

/// From a first look at the lease until it is lost, or there is a reason to look anew.
struct Term<'a> {
    seat: &'a Seat,
    leads: &'a watch::Sender<bool>,
    leases: Api<Lease>,
    identity: String,
    manager: LeaseManager,
}

/// What a term knows of the lease.
struct Known {
    /// When the term ends unless the lease is renewed by then.
    until: Instant,
    /// When somebody else's lease expires.
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
                // One field manager for each identity: that is how the API server sees that two want the same.
                .with_field_manager(format!("lease-{number:016x}"))
                .with_duration(seat.seconds.max(3))
                .with_grace((2 * seat.seconds.max(3)).div_ceil(3));
            match timeout(seat.length(), builder.build()).await {
                Ok(Ok(manager)) => break manager,
                Ok(Err(error)) => tracing::warn!("cannot look at the lease: {error}"),
                Err(_) => tracing::warn!("cannot look at the lease: no answer"),
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

    /// Takes the lease when it is free, and leads while it is renewed; says why that is over.
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
                // Time first: what comes late, after this process was stopped for a while, changes nothing.
                biased;
                () = sleep_until(known.until) => return "nothing was heard of it in time",
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

    /// What the lease says now; why the term is over, if that ends it.
    fn heed(&self, known: &mut Known, lease: &LeaseSpec) -> Option<&'static str> {
        let now = Timestamp::now();
        let holder = lease.holder_identity.as_deref();
        if holder == Some(&self.identity) {
            let left = expiry(lease)?.duration_since(now);
            let trusted = left - SignedDuration::try_from(self.seat.third()).ok()?;
            let until = Instant::now() + Duration::try_from(trusted).unwrap_or_default();
            // A renewal of an older term that was long on its way says an older time, and means nothing.
            let led = *self.leads.borrow();
            known.until = if led { known.until.max(until) } else { until };
            if trusted.is_positive() && !self.leads.send_replace(true) {
                tracing::info!(identity = self.identity, "leads");
            }
            return None;
        }
        if *self.leads.borrow() {
            return Some("somebody else has the lease");
        }
        known.until = Instant::now() + 2 * self.seat.length();
        if holder.is_some() {
            known.taken_until = expiry(lease);
        } else if known.taken_until.take().is_some_and(|taken| now < taken) {
            return Some("it was given back");
        }
        None
    }

    /// Gives the lease back, if this replica has it.
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

/// Takes and renews the lease for ever; whether that works is seen from the lease.
async fn renew(manager: &LeaseManager) -> Infallible {
    loop {
        if let Err(error) = manager.changed().await {
            tracing::warn!("cannot renew the lease: {error}");
            sleep(RETRY).await;
        }
    }
}

/// When others may take the lease.
fn expiry(lease: &LeaseSpec) -> Option<Timestamp> {
    let renewed = lease.renew_time.as_ref()?.0;
    let seconds = lease.lease_duration_seconds?;
    renewed
        .checked_add(SignedDuration::from_secs(seconds.into()))
        .ok()
}
