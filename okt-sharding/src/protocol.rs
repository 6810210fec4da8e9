//! The words of the protocol: what a member sees, requests and is answered, and what it holds.

use std::collections::BTreeSet;
use std::time::Duration;

use super::ranges::Ranges;
use super::table::{Name, RangeTable};

/// The times of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    /// How long a member trusts its lease, from when the last renewal that succeeded was sent (C4).
    pub(crate) trust: Duration,
    /// How long a member is silent before others delete its lease, unless its own is longer.
    pub(crate) expiry: Duration,
    pub(crate) renew: Duration,
    pub(crate) retry: Duration,
    /// How long to wait for an answer.
    pub(crate) answer: Duration,
    /// How long the members must stay the same before ranges move.
    pub(crate) settle: Duration,
    /// How long work may keep a range that another member waits for (C14).
    pub(crate) hand_over: Duration,
}

impl Timing {
    /// Returns the times for leases of this length.
    ///
    /// Between the end of the trust and the expiry lies a third of the length: rates of clocks may differ by half, and
    /// the requests that are under way have ended.
    pub(crate) fn of(lease: Duration) -> Self {
        let part = |of_fifteen: u32| {
            lease
                .saturating_mul(of_fifteen)
                .checked_div(15)
                .unwrap_or_default()
        };
        Self {
            trust: part(10),
            expiry: lease,
            renew: part(4),
            retry: part(1),
            answer: part(3),
            settle: part(5),
            hand_over: Duration::from_secs(10),
        }
    }
}

/// The time of a member, since it began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Now {
    /// By the clock that runs slowest: how long others were silent.
    pub(crate) least: Duration,
    /// By the clock that runs fastest: how long the member trusts its own lease. A machine that sleeps stops some
    /// clocks, and not others.
    pub(crate) most: Duration,
}

/// The state of a member, as its lease has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct MemberState {
    /// Its CRDs fit and its caches are filled: it may get ranges (C13).
    pub(crate) ready: bool,
    /// It gives everything away (C15).
    pub(crate) stopping: bool,
    /// The largest number of members that it wants to hold ranges.
    pub(crate) limit: usize,
    /// The uid of the table that it follows.
    pub(crate) table: Option<String>,
}

/// A lease, as it is seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lease {
    /// That of a member.
    Member {
        name: Name,
        uid: String,
        /// The resource version.
        version: String,
        /// The order in which members joined.
        joined: String,
        /// Whether the member reads the table's format.
        reads: bool,
        /// How long the lease is valid.
        length: Duration,
        state: MemberState,
    },
    /// The table.
    Table {
        uid: String,
        version: String,
        /// None if this release cannot read it.
        table: Option<RangeTable>,
    },
}

/// Something that a member sees.
#[derive(Clone, Debug)]
pub(crate) enum SeenLease {
    /// A list is requested.
    Listing,
    /// All leases of the group, from a list that is not older than what was seen before it was requested.
    List(Vec<Lease>),
    Applied(Lease),
    Deleted(Lease),
}

/// A request to the API server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LeaseRequest {
    /// Create the own lease.
    Join(MemberState),
    /// Renew the own lease, if it still has this uid (C8).
    Renew { uid: String, state: MemberState },
    /// Create the table.
    Found,
    /// Replace the table, if it still has this version.
    Write {
        uid: String,
        version: String,
        table: RangeTable,
        /// For people: who holds ranges.
        holders: Vec<Name>,
    },
    /// Delete the lease of a member that was silent, if it still has this version (C1).
    Delete {
        name: Name,
        uid: String,
        version: String,
    },
    /// Delete the own lease: nothing is held any more.
    Leave { uid: String },
}

impl LeaseRequest {
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Join(_) | Self::Renew { .. } | Self::Leave { .. } => Purpose::Own,
            Self::Found | Self::Write { .. } => Purpose::Table,
            Self::Delete { .. } => Purpose::Other,
        }
    }
}

/// What a request was for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Purpose {
    /// The own lease.
    Own,
    /// The table.
    Table,
    /// The lease of another member.
    Other,
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RequestOutcome {
    /// It was carried out; the lease as it is now, unless it was deleted.
    Done(Option<Lease>),
    /// It was refused, and not carried out: no such lease (404).
    Missing,
    /// It was refused, and not carried out: the lease is another one by now (409).
    Changed,
    /// It may have been carried out, or it was refused for another reason.
    Unknown,
}

/// The runs of replicas that hold ranges.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Holders {
    /// The run of this process.
    pub own: String,
    /// All runs; none while a range has no holder.
    pub all: Option<BTreeSet<String>>,
    /// Grows whenever a range changes hands.
    pub epoch: u64,
}

/// What a member may act on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// The ranges whose objects it may act on.
    pub(crate) open: Ranges,
    /// The ranges of which it records results only: it gives them away.
    pub(crate) draining: Ranges,
    /// The ranges that are its own, whether or not it may act on them now.
    pub(crate) own: Ranges,
    /// The ranges whose objects it caches: those it holds, those it gets next, and all where there is one leader.
    pub(crate) wanted: Ranges,
    /// The epoch for requests to agents.
    pub(crate) epoch: u64,
    /// Until when this is trusted, by [`Now::most`].
    pub(crate) until: Duration,
    /// How often the trust has ended.
    pub(crate) lapses: u64,
}

impl Held {
    /// Nothing is held.
    pub(crate) const NOTHING: Self = Self {
        open: Ranges::NONE,
        draining: Ranges::NONE,
        own: Ranges::NONE,
        wanted: Ranges::NONE,
        epoch: 0,
        until: Duration::ZERO,
        lapses: 0,
    };
}
