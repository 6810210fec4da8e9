//! The gate that every reconciliation asks: may this replica act on the object now?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use okt_wire::watch::Watched;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::protocol::Held;
pub use super::protocol::Holders;
use super::ranges::{Range, Ranges};
use super::time::Stopwatch;

/// What a replica may do with an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing: another replica acts on it, or none does.
    Closed,
    /// It records the results of work that runs, and begins nothing: the object goes to another replica.
    Draining,
    /// Everything.
    Open,
}

/// Which objects this replica may act on; clones share it.
#[derive(Clone)]
pub enum Gate {
    /// All: there is no other replica.
    Always,
    /// All while this is true. A closed channel counts as false, because it cannot report a loss.
    Leader(watch::Receiver<bool>),
    /// Those of the ranges that a member holds.
    Member(Arc<MembershipHandle>),
}

/// The standing of a member, as the operators of its process see it.
pub struct MembershipHandle {
    /// The name of the group.
    group: String,
    pub(crate) held: watch::Receiver<Held>,
    pub(crate) stopwatch: Stopwatch,
    /// Who holds ranges, as this member knows.
    holders: Mutex<Holders>,
    /// The namespace of the leases.
    namespace: String,
    /// The watch of the leases.
    pub(crate) watched: Watched,
    parties: Mutex<Vec<Weak<dyn GateMember>>>,
}

/// An operator, as a member sees it.
pub trait GateMember: Send + Sync {
    /// Returns the name of the CRD of its objects.
    fn kind(&self) -> &'static str;

    /// Returns the ranges with objects that are being reconciled, or whose work runs.
    fn busy(&self) -> Ranges;

    /// Returns whether its caches are filled.
    fn is_warm(&self) -> bool;

    /// Drops the work of all objects in these ranges, and everything that is remembered of them.
    fn abandon(&self, ranges: Ranges);
}

/// The part of a replica in its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The name of the group.
    pub group: String,
    /// The ranges on which it acts.
    pub ranges: Ranges,
    /// The number of the table that it knows.
    pub epoch: u64,
}

/// A change of what a replica may act on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The ranges that it may act on from now on.
    pub opened: Ranges,
    /// The ranges that belong to other replicas from now on.
    pub lost: Ranges,
}

impl MembershipHandle {
    pub(crate) fn new(
        (group, namespace): (String, String),
        held: watch::Receiver<Held>,
        stopwatch: Stopwatch,
    ) -> Arc<Self> {
        Arc::new(Self {
            group,
            held,
            stopwatch,
            holders: Mutex::default(),
            namespace,
            watched: Watched::default(),
            parties: Mutex::default(),
        })
    }

    /// Notes who holds ranges.
    pub(crate) fn note_holders(&self, holders: Holders) {
        *self.holders.lock() = holders;
    }

    /// Returns what is held, if it is trusted now.
    fn trusted(&self) -> Option<Held> {
        let held = *self.held.borrow();
        (self.stopwatch.now().most < held.until).then_some(held)
    }

    /// Returns the operators that run.
    fn running(&self) -> Vec<Arc<dyn GateMember>> {
        let mut parties = self.parties.lock();
        parties.retain(|party| party.strong_count() > 0);
        parties.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the ranges that some operator is busy with.
    pub(crate) fn busy(&self) -> Ranges {
        let parties = self.running();
        parties
            .iter()
            .fold(Ranges::NONE, |all, party| all | party.busy())
    }

    /// Returns the names of the CRDs of the operators that run, sorted.
    pub(crate) fn kinds(&self) -> BTreeSet<&'static str> {
        self.running().iter().map(|party| party.kind()).collect()
    }

    /// Returns whether operators run, and all their caches are filled.
    pub(crate) fn is_warm(&self) -> bool {
        let parties = self.running();
        !parties.is_empty() && parties.iter().all(|party| party.is_warm())
    }

    /// Drops the work of all objects in these ranges.
    pub(crate) fn abandon(&self, ranges: Ranges) {
        if !ranges.is_empty() {
            self.running()
                .iter()
                .for_each(|party| party.abandon(ranges));
        }
    }
}

impl Gate {
    /// Returns what this replica may do with an object.
    pub fn access(&self, uid: &str) -> Access {
        let opens = |is_open: bool| {
            if is_open {
                Access::Open
            } else {
                Access::Closed
            }
        };
        match self {
            Self::Always => Access::Open,
            Self::Leader(leads) => opens(leads.has_changed().is_ok() && *leads.borrow()),
            Self::Member(standing) => {
                let range = Range::of(uid);
                match standing.trusted() {
                    Some(held) if held.draining.contains(range) => Access::Draining,
                    held => opens(held.is_some_and(|held| held.open.contains(range))),
                }
            }
        }
    }

    /// Returns whether this replica may act on any object.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Always | Self::Leader(_) => self.access("") == Access::Open,
            Self::Member(standing) => {
                let held = standing.trusted();
                held.is_some_and(|held| !(held.open | held.draining).is_empty())
            }
        }
    }

    /// Returns whether other replicas act on objects too, or did so before.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Member(_))
    }

    /// Returns who holds ranges; none without a group.
    pub fn holders(&self) -> Option<Holders> {
        match self {
            Self::Always | Self::Leader(_) => None,
            Self::Member(standing) => Some(standing.holders.lock().clone()),
        }
    }

    /// Returns the name of the group and the namespace of its leases; none without a group.
    pub fn group(&self) -> Option<(&str, &str)> {
        match self {
            Self::Always | Self::Leader(_) => None,
            Self::Member(standing) => Some((&standing.group, &standing.namespace)),
        }
    }

    /// Returns the epoch for requests to agents; none without a member.
    pub fn epoch(&self) -> Option<u64> {
        match self {
            Self::Always | Self::Leader(_) => None,
            Self::Member(standing) => Some(standing.held.borrow().epoch),
        }
    }

    /// Returns the part of this replica in its group; none without a group.
    pub fn share(&self) -> Option<Share> {
        let Self::Member(standing) = self else {
            return None;
        };
        let held = standing.trusted();
        Some(Share {
            group: standing.group.clone(),
            ranges: held.map_or(Ranges::NONE, |held| held.open | held.draining),
            epoch: standing.held.borrow().epoch,
        })
    }

    /// Returns the watch of the leases that name what this replica holds, with its silence; nothing if there are none.
    pub fn silences(&self) -> BTreeMap<String, Duration> {
        match self {
            Self::Always | Self::Leader(_) => BTreeMap::new(),
            Self::Member(standing) => standing.watched.silences(),
        }
    }

    /// Adds an operator to the member.
    pub fn join(&self, party: &Arc<impl GateMember + 'static>) {
        if let Self::Member(standing) = self {
            let party: Arc<dyn GateMember> = Arc::clone(party) as _;
            standing.parties.lock().push(Arc::downgrade(&party));
        }
    }

    /// Returns which objects this replica caches.
    pub fn wanted(&self) -> Wanted {
        Wanted(match self {
            Self::Always | Self::Leader(_) => None,
            Self::Member(standing) => Some(standing.held.clone()),
        })
    }

    /// Returns a stream of the changes from now on.
    pub fn changes(&self) -> BoxStream<'static, Change> {
        match self {
            Self::Always => stream::pending().boxed(),
            Self::Leader(leads) => {
                let all = |leads: &bool| Held {
                    open: if *leads { Ranges::ALL } else { Ranges::NONE },
                    own: Ranges::ALL,
                    wanted: Ranges::ALL,
                    ..Held::NOTHING
                };
                changes(leads.clone(), all).boxed()
            }
            Self::Member(standing) => changes(standing.held.clone(), |held| *held).boxed(),
        }
    }
}

/// The ranges whose objects a replica caches.
pub struct Wanted(Option<watch::Receiver<Held>>);

impl Wanted {
    /// Returns the ranges.
    pub fn now(&mut self) -> Ranges {
        let held = self.0.as_mut();
        held.map_or(Ranges::ALL, |held| held.borrow_and_update().wanted)
    }

    /// Waits until the ranges may have changed.
    pub async fn changed(&mut self) {
        if let Some(held) = &mut self.0
            && held.changed().await.is_ok()
        {
            return;
        }
        // They do not change any more.
        std::future::pending::<()>().await;
    }
}

/// Returns a stream of the changes of what is held.
fn changes<T: Send + Sync + 'static>(
    receiver: watch::Receiver<T>,
    held: impl Fn(&T) -> Held + Copy + Send + 'static,
) -> impl Stream<Item = Change> + Send {
    let first = held(&receiver.borrow());
    stream::unfold(
        (receiver, first),
        move |(mut receiver, mut before)| async move {
            loop {
                if receiver.changed().await.is_err() {
                    // The sender is gone: nothing changes any more.
                    std::future::pending::<()>().await;
                }
                let now = held(&receiver.borrow_and_update());
                let is_renewed = now.lapses != before.lapses;
                let open_before = if is_renewed {
                    Ranges::NONE
                } else {
                    before.open
                };
                let change = Change {
                    opened: now.open.without(open_before),
                    lost: before.own.without(now.own),
                };
                before = now;
                if !(change.opened | change.lost).is_empty() {
                    return Some((change, (receiver, before)));
                }
            }
        },
    )
}
