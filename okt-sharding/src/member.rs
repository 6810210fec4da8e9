//! One member of a group of replicas, as a state machine without I/O: its inputs are what it sees and what was answered; it
//! returns what to request and which ranges it may act on.
//!
//! The protocol is the one of docs/replicas.md; C1 to C16 are its clauses.

mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::protocol::{
    Held, Holders, Lease, LeaseRequest, MemberState, Now, Purpose, RequestOutcome, SeenLease,
    Timing,
};
use super::ranges::Ranges;
use super::table::{Name, RangeTable};

/// A member.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    name: Name,
    timing: Timing,
    /// The state that its lease should show.
    state: MemberState,
    own: Own,
    /// When the last renewal that succeeded was sent.
    renewed: Option<Now>,
    /// Since when the trust is unbroken (C2).
    trusted_since: Option<Duration>,
    lapses: u64,
    peers: BTreeMap<Name, Peer>,
    table: Option<SeenTable>,
    /// The highest version of a table that was seen, and the resource version of its lease (C5).
    newest: (u64, Option<u64>),
    listing: Listing,
    /// The lapses of trust when the last list was requested (C2).
    listed: Option<u64>,
    /// Members that may act although their lease is gone.
    missed: BTreeMap<Name, Missed>,
    /// Members that do not act any more, for certain.
    gone: BTreeSet<Name>,
    /// When the eligible members changed last, and which they were.
    settled: (Duration, Vec<Name>, usize),
    /// Since when a plan waits for its rank.
    planned: Option<Duration>,
    /// Since when ranges drain.
    draining: BTreeMap<u8, Duration>,
    /// The ranges that were given away, as of this version of the table (C6).
    closed: (Ranges, u64),
    sent: BTreeMap<Purpose, SentRequest>,
}

/// The own lease.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Own {
    None,
    Joined {
        uid: String,
        joined: String,
        /// The resource version in the last answer.
        version: String,
        /// The state in the lease, as far as an answer confirmed it.
        state: MemberState,
    },
    Left,
    /// The lease is gone: the member is over (C3).
    Lost,
}

#[derive(Clone, Debug)]
struct Peer {
    uid: String,
    version: String,
    joined: String,
    reads: bool,
    /// How long its lease is valid.
    length: Duration,
    state: MemberState,
    /// When its lease changed last, as seen here (C7).
    changed: Duration,
}

impl Peer {
    /// Returns whether it may get ranges, by its lease.
    fn is_ready(&self) -> bool {
        self.state.ready && !self.state.stopping && self.reads
    }
}

/// A member whose lease is gone.
#[derive(Clone, Copy, Debug)]
struct Missed {
    since: Duration,
    /// How long the lease was valid.
    length: Duration,
}

#[derive(Clone, Debug)]
struct SeenTable {
    uid: String,
    version: String,
    table: Option<RangeTable>,
    /// When this table was seen first.
    since: Duration,
}

/// What was known when the list that is under way was requested.
#[derive(Clone, Default, Debug)]
struct Listing {
    lapses: u64,
    newest: u64,
    /// The members whose lease was gone.
    over: BTreeSet<Name>,
}

impl Listing {
    /// Returns whether the time of this lease was over when the list was requested: a backup was restored (C5).
    fn is_over(&self, lease: &Lease) -> bool {
        match lease {
            Lease::Member { name, .. } => self.over.contains(name),
            Lease::Table { table, .. } => table
                .as_ref()
                .is_some_and(|table| table.version < self.newest),
        }
    }
}

/// A request that waits for its answer, or was answered.
#[derive(Clone, Debug)]
struct SentRequest {
    at: Now,
    request: LeaseRequest,
    waits: bool,
    failed: bool,
}

impl Member {
    /// Creates a member that has not joined yet. The name must never be used again (C3).
    pub(crate) fn new(name: Name, limit: usize, timing: Timing) -> Self {
        Self {
            name,
            timing,
            state: MemberState {
                limit,
                ..MemberState::default()
            },
            own: Own::None,
            renewed: None,
            trusted_since: None,
            lapses: 0,
            peers: BTreeMap::new(),
            table: None,
            newest: (0, None),
            listing: Listing::default(),
            listed: None,
            missed: BTreeMap::new(),
            gone: BTreeSet::new(),
            settled: (Duration::ZERO, Vec::new(), 0),
            planned: None,
            draining: BTreeMap::new(),
            closed: (Ranges::NONE, 0),
            sent: BTreeMap::new(),
        }
    }

    /// Notes that the caches are filled.
    pub(crate) fn ready(&mut self) {
        self.state.ready = true;
    }

    /// Returns whether another member may get ranges.
    pub(crate) fn has_ready_peer(&self) -> bool {
        self.peers.values().any(Peer::is_ready)
    }

    /// Gives everything away from now on.
    pub(crate) fn stop(&mut self) {
        self.state.stopping = true;
    }

    /// Returns whether everything is to be given away.
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.stopping
    }

    /// Returns whether the member has left, or was over before.
    pub(crate) fn has_left(&self) -> bool {
        self.own == Own::Left || (self.state.stopping && self.own == Own::None)
    }

    /// Returns whether the lease is lost, or was never got: what this member held belongs to others, and another one must
    /// join under another name.
    pub(crate) fn is_over(&self) -> bool {
        self.own == Own::Lost
    }

    /// Returns the table that counts.
    fn rows(&self) -> Option<&RangeTable> {
        self.table.as_ref()?.table.as_ref()
    }

    /// Notes that the trust has ended, once.
    fn note_lapse(&mut self, now: Now) {
        if !self.is_renewed(now) && self.trusted_since.take().is_some() {
            self.lapses = self.lapses.saturating_add(1);
        }
    }

    /// Returns whether the member may act: its lease is renewed, and it has listed all leases since the last lapse.
    fn is_trusted(&self, now: Now) -> bool {
        self.is_renewed(now) && self.listed == Some(self.lapses)
    }

    fn is_renewed(&self, now: Now) -> bool {
        self.until().is_some_and(|until| now.most < until)
    }

    /// Returns when the lease is renewed no more.
    fn until(&self) -> Option<Duration> {
        let renewed = self.renewed?;
        matches!(self.own, Own::Joined { .. })
            .then(|| renewed.most.saturating_add(self.timing.trust))
    }

    /// Returns what the member may act on, as long as [`Held::until`] has not come.
    pub(crate) fn held(&self, now: Now) -> Held {
        let nothing = Held {
            wanted: self.wanted(),
            lapses: self.lapses,
            ..Held::NOTHING
        };
        let (Some(table), Some(until)) = (self.rows(), self.until()) else {
            return nothing;
        };
        let own = table.held_by(&self.name);
        let held = if self.is_trusted(now) {
            own.without(self.closed.0)
        } else {
            Ranges::NONE
        };
        let stays = table.ranges(|row| row.next.is_none());
        let open = if self.state.stopping {
            Ranges::NONE
        } else {
            held & stays
        };
        Held {
            open,
            draining: held.without(open),
            own,
            epoch: table.epoch,
            until,
            ..nothing
        }
    }

    /// Returns who holds ranges.
    pub(crate) fn holders(&self) -> Holders {
        let rows = self.rows().map_or(&[][..], |table| &table.rows);
        let all = rows.iter().map(|row| row.holder.clone());
        Holders {
            own: self.name.clone(),
            all: all.collect::<Option<_>>().filter(|_| !rows.is_empty()),
            epoch: self.rows().map_or(0, |table| table.epoch),
        }
    }

    fn wanted(&self) -> Ranges {
        match self.rows() {
            _ if self.limit() == 1 => Ranges::ALL,
            Some(table) => table.held_by(&self.name) | table.coming_to(&self.name),
            None => Ranges::NONE,
        }
    }

    /// Returns the smallest limit of all members.
    fn limit(&self) -> usize {
        let peers = self.peers.values().map(|peer| peer.state.limit);
        peers.fold(self.state.limit, usize::min)
    }

    /// Takes what was seen.
    pub(crate) fn see(&mut self, seen: SeenLease, now: Now) {
        match seen {
            SeenLease::Listing => {
                self.note_lapse(now);
                self.listing = Listing {
                    lapses: self.lapses,
                    newest: self.newest.0,
                    over: self
                        .gone
                        .iter()
                        .chain(self.missed.keys())
                        .cloned()
                        .collect(),
                };
                return;
            }
            SeenLease::List(leases) => {
                let is_listed = |name: &Name| {
                    leases
                        .iter()
                        .any(|lease| matches!(lease, Lease::Member { name: it, .. } if it == name))
                };
                let away: Vec<Name> = self
                    .peers
                    .keys()
                    .filter(|name| !is_listed(name))
                    .cloned()
                    .collect();
                for name in away {
                    self.miss(&name, now);
                }
                let has_table = leases
                    .iter()
                    .any(|lease| matches!(lease, Lease::Table { .. }));
                if !has_table {
                    self.table = None;
                }
                self.listed = Some(self.listing.lapses);
                for lease in leases {
                    if self.listing.is_over(&lease) {
                        self.lose();
                    }
                    self.note(lease, now);
                }
            }
            SeenLease::Applied(lease) => self.note(lease, now),
            SeenLease::Deleted(Lease::Member { name, uid, .. }) => {
                let is_own = matches!(&self.own, Own::Joined { uid: own, .. } if *own == uid);
                if is_own {
                    self.lose();
                }
                self.miss(&name, now);
            }
            SeenLease::Deleted(Lease::Table { uid, .. }) => {
                self.table.take_if(|table| table.uid == uid);
            }
        }
        self.note_members(now);
    }

    /// Notes a member whose lease is gone: it may act until its trust ends, unless this member deleted the lease (C10).
    fn miss(&mut self, name: &Name, now: Now) {
        if let Some(peer) = self.peers.remove(name)
            && !self.gone.contains(name)
        {
            let (since, length) = (now.least, peer.length);
            self.missed
                .entry(name.clone())
                .or_insert(Missed { since, length });
        }
    }

    fn note(&mut self, lease: Lease, now: Now) {
        match lease {
            Lease::Member { name, .. } if name == self.name => {}
            Lease::Member {
                name,
                uid,
                version,
                joined,
                reads,
                length,
                state,
            } => {
                // A late event of a lease that this member deleted.
                if self.gone.contains(&name) {
                    return;
                }
                let known = self.peers.get(&name);
                let is_news =
                    known.is_none_or(|known| known.version != version || known.uid != uid);
                let changed = match known {
                    Some(known) if !is_news => known.changed,
                    Some(_) | None => now.least,
                };
                self.peers.insert(
                    name,
                    Peer {
                        uid,
                        version,
                        joined,
                        reads,
                        length,
                        state,
                        changed,
                    },
                );
            }
            Lease::Table {
                uid,
                version,
                table,
            } => {
                let (newest, newest_at) = self.newest;
                let number = table.as_ref().map_or(newest, |table| table.version);
                let at = version.parse().ok();
                if number < newest {
                    // It is old news, unless it was written later (C5).
                    if newest_at.is_some() && at > newest_at {
                        self.lose();
                    }
                    return;
                }
                if number > self.closed.1 {
                    self.closed = (Ranges::NONE, 0);
                }
                self.newest = (number, at);
                let since = match &self.table {
                    Some(known) if known.uid == uid => known.since,
                    Some(_) | None => now.least,
                };
                self.state.table = Some(uid.clone());
                self.table = Some(SeenTable {
                    uid,
                    version,
                    table,
                    since,
                });
            }
        }
    }

    /// Returns the length of the longest lease in the group.
    fn longest(&self) -> Duration {
        let peers = self.peers.values().map(|peer| peer.length);
        let missed = self.missed.values().map(|missed| missed.length);
        peers.chain(missed).fold(self.timing.expiry, Duration::max)
    }

    /// Notes the members that rows name without a lease, and when the eligible members change.
    fn note_members(&mut self, now: Now) {
        if self.listed.is_none() {
            return;
        }
        let named: Vec<Name> = self
            .rows()
            .into_iter()
            .flat_map(|table| table.members().into_iter().cloned().collect::<Vec<_>>())
            .collect();
        for name in &named {
            let is_known =
                *name == self.name || self.peers.contains_key(name) || self.gone.contains(name);
            if !is_known {
                let (since, length) = (now.least, self.longest());
                self.missed
                    .entry(name.clone())
                    .or_insert(Missed { since, length });
            }
        }
        // Of a table that was just made nobody knows whom an earlier one named (C11).
        let is_new = self.rows().is_none_or(|table| table.fresh);
        self.missed.retain(|name, _| is_new || named.contains(name));
        self.gone
            .retain(|name| named.contains(name) || self.peers.contains_key(name));
        let eligible = self.eligible(now).into_iter().map(str::to_owned).collect();
        let limit = self.limit();
        if self.settled.1 != eligible || self.settled.2 != limit {
            self.settled = (now.least, eligible, limit);
        }
    }

    /// Returns the members that may get ranges, in the order in which they joined.
    fn eligible(&self, now: Now) -> Vec<&str> {
        let mut eligible: Vec<(&str, &str)> = Vec::new();
        for (name, peer) in &self.peers {
            let trust = Timing::of(self.expiry(peer.length)).trust;
            let is_silent = now.least.saturating_sub(peer.changed) >= trust;
            if peer.is_ready() && !is_silent {
                eligible.push((&peer.joined, name));
            }
        }
        if let Own::Joined { joined, state, .. } = &self.own
            && state.ready
            && !self.state.stopping
        {
            eligible.push((joined, &self.name));
        }
        eligible.sort_unstable();
        eligible.into_iter().map(|(_, name)| name).collect()
    }

    /// Takes the answer to a request.
    pub(crate) fn answer(&mut self, purpose: Purpose, outcome: RequestOutcome, now: Now) {
        let Some(sent) = self.sent.get_mut(&purpose) else {
            return;
        };
        sent.waits = false;
        sent.failed = !matches!(outcome, RequestOutcome::Done(_));
        let sent = sent.clone();
        match (sent.request, outcome) {
            (
                LeaseRequest::Join(state),
                RequestOutcome::Done(Some(Lease::Member {
                    uid,
                    joined,
                    version,
                    ..
                })),
            ) => {
                self.own = Own::Joined {
                    uid,
                    joined,
                    version,
                    state,
                };
                self.trust(sent.at, now);
            }
            // The lease may have been made, and even deleted again: the name is not used again (C3).
            (LeaseRequest::Join(_), _) => self.lose(),
            (
                LeaseRequest::Renew { state: new, .. },
                RequestOutcome::Done(Some(Lease::Member { version: at, .. })),
            ) => {
                if let Own::Joined { state, version, .. } = &mut self.own {
                    let number = |version: &str| version.parse::<u64>().ok();
                    // A backup was restored (C5).
                    if number(&at) < number(version) {
                        return self.lose();
                    }
                    (*state, *version) = (new, at);
                    self.trust(sent.at, now);
                }
            }
            (LeaseRequest::Renew { .. }, RequestOutcome::Missing | RequestOutcome::Changed)
            | (
                LeaseRequest::Leave { .. },
                RequestOutcome::Done(_) | RequestOutcome::Missing | RequestOutcome::Changed,
            ) => {
                self.lose();
            }
            (LeaseRequest::Delete { name, .. }, RequestOutcome::Done(_)) => {
                self.gone.insert(name.clone());
                self.peers.remove(&name);
                self.missed.remove(&name);
            }
            (
                LeaseRequest::Found | LeaseRequest::Write { .. },
                RequestOutcome::Done(Some(lease)),
            ) => {
                self.note(lease, now);
            }
            _ => {}
        }
        self.note_members(now);
    }

    /// The lease is gone: the member has left, or is over.
    fn lose(&mut self) {
        self.own = if self.state.stopping {
            Own::Left
        } else {
            Own::Lost
        };
    }

    /// Trusts the lease, from when the renewal was sent.
    fn trust(&mut self, sent: Now, now: Now) {
        self.note_lapse(now);
        if self.renewed.is_none_or(|renewed| renewed.most < sent.most) {
            self.renewed = Some(sent);
        }
        self.trusted_since.get_or_insert(now.least);
    }
}
