//! One member of a group of replicas, as a state machine without I/O: it is told what it sees and what was answered, and
//! says what to request and which ranges it may act on.
//!
//! The protocol is the one of docs/replicas.md; C1 to C16 are its clauses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::plan::{Group, give, plan};
use super::ranges::Ranges;
use super::table::{Name, Table};

/// The times of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    /// How long a member trusts its lease, from when the last renewal that succeeded was sent (C4).
    pub(crate) trust: Duration,
    /// How long a member is silent before others delete its lease.
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

/// What the lease of a member says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Said {
    /// Its caches are filled: it may get ranges (C13).
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
        said: Said,
    },
    /// The table.
    Table {
        uid: String,
        version: String,
        /// None if this release cannot read it.
        table: Option<Table>,
    },
}

/// Something that a member sees.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// All leases of the group, from a list that is not older than what was seen before.
    List(Vec<Lease>),
    Applied(Lease),
    Deleted(Lease),
}

/// A request to the API server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Create the own lease.
    Join(Said),
    /// Renew the own lease, if it still has this uid (C8).
    Renew { uid: String, said: Said },
    /// Create the table.
    Found,
    /// Replace the table, if it still has this version.
    Write {
        uid: String,
        version: String,
        table: Table,
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

impl Request {
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
pub(crate) enum Outcome {
    /// It was carried out; the lease as it is now, unless it was deleted.
    Done(Option<Lease>),
    /// It was refused, and not carried out: no such lease (404).
    Missing,
    /// It was refused, and not carried out: the lease is another one by now (409).
    Changed,
    /// It may have been carried out, or it was refused for another reason.
    Unknown,
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

/// The delay per rank before a member deletes a silent one, and before it writes a plan: one member writes.
const DELETE_RANK: Duration = Duration::from_millis(300);
const PLAN_RANK: Duration = Duration::from_millis(500);

/// The largest rank that counts.
const RANKS: usize = 5;

/// How often a member looks whether something that is under way is done.
pub(crate) const POLL: Duration = Duration::from_millis(50);

/// A member.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    name: Name,
    timing: Timing,
    /// What its lease should say.
    says: Said,
    own: Own,
    /// When the last renewal that succeeded was sent.
    renewed: Option<Now>,
    /// Since when the trust is unbroken (C2).
    trusted_since: Option<Duration>,
    lapses: u64,
    peers: BTreeMap<Name, Peer>,
    table: Option<SeenTable>,
    /// The highest version of a table that was seen (C5).
    newest: u64,
    listed: bool,
    /// Members that rows name, and whose lease is gone: since when.
    missed: BTreeMap<Name, Duration>,
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
    sent: BTreeMap<Purpose, Sent>,
}

/// The own lease.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Own {
    None,
    Joined {
        uid: String,
        joined: String,
        /// What the lease says, as far as that was answered.
        said: Said,
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
    said: Said,
    /// When its lease changed last, as seen here (C7).
    changed: Duration,
}

#[derive(Clone, Debug)]
struct SeenTable {
    uid: String,
    version: String,
    table: Option<Table>,
    /// When this table was seen first.
    since: Duration,
}

/// A request that waits for its answer, or was answered.
#[derive(Clone, Debug)]
struct Sent {
    at: Now,
    request: Request,
    waits: bool,
    failed: bool,
}

impl Member {
    /// Creates a member that has not joined yet. The name must never be used again (C3).
    pub(crate) fn new(name: Name, limit: usize, timing: Timing) -> Self {
        Self {
            name,
            timing,
            says: Said {
                limit,
                ..Said::default()
            },
            own: Own::None,
            renewed: None,
            trusted_since: None,
            lapses: 0,
            peers: BTreeMap::new(),
            table: None,
            newest: 0,
            listed: false,
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
        self.says.ready = true;
    }

    /// Gives everything away from now on.
    pub(crate) fn stop(&mut self) {
        self.says.stopping = true;
    }

    /// Returns whether everything is to be given away.
    pub(crate) fn is_stopping(&self) -> bool {
        self.says.stopping
    }

    /// Returns whether the member has left, or was over before.
    pub(crate) fn has_left(&self) -> bool {
        self.own == Own::Left || (self.says.stopping && self.own == Own::None)
    }

    /// Returns whether the lease is lost: what this member held belongs to others, and it must join anew.
    pub(crate) fn is_over(&self) -> bool {
        self.own == Own::Lost
    }

    /// Returns the table that counts.
    fn rows(&self) -> Option<&Table> {
        self.table.as_ref()?.table.as_ref()
    }

    /// Notes that the trust has ended, once.
    fn note_lapse(&mut self, now: Now) {
        if !self.is_trusted(now) && self.trusted_since.take().is_some() {
            self.lapses = self.lapses.saturating_add(1);
        }
    }

    fn is_trusted(&self, now: Now) -> bool {
        self.until().is_some_and(|until| now.most < until)
    }

    /// Returns when the trust ends.
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
        let held = if now.most < until {
            own.without(self.closed.0)
        } else {
            Ranges::NONE
        };
        let stays = table.ranges(|row| row.next.is_none());
        let open = if self.says.stopping {
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

    fn wanted(&self) -> Ranges {
        match self.rows() {
            _ if self.limit() == 1 => Ranges::ALL,
            Some(table) => table.held_by(&self.name) | table.coming_to(&self.name),
            None => Ranges::NONE,
        }
    }

    /// Returns the smallest limit of all members.
    fn limit(&self) -> usize {
        let peers = self.peers.values().map(|peer| peer.said.limit);
        peers.fold(self.says.limit, usize::min)
    }

    /// Takes what was seen.
    pub(crate) fn see(&mut self, seen: Seen, now: Now) {
        match seen {
            Seen::List(leases) => {
                let is_listed = |name: &Name| {
                    leases
                        .iter()
                        .any(|lease| matches!(lease, Lease::Member { name: it, .. } if it == name))
                };
                let away: Vec<Name> =
                    (self.peers.keys().filter(|name| !is_listed(name)).cloned()).collect();
                for name in away {
                    self.miss(&name, now);
                }
                let has_table = leases
                    .iter()
                    .any(|lease| matches!(lease, Lease::Table { .. }));
                if !has_table {
                    self.table = None;
                }
                self.listed = true;
                for lease in leases {
                    self.note(lease, now);
                }
            }
            Seen::Applied(lease) => self.note(lease, now),
            Seen::Deleted(Lease::Member { name, uid, .. }) => {
                let is_own = matches!(&self.own, Own::Joined { uid: own, .. } if *own == uid);
                if is_own {
                    self.lose();
                }
                self.miss(&name, now);
            }
            Seen::Deleted(Lease::Table { uid, .. }) => {
                self.table.take_if(|table| table.uid == uid);
            }
        }
        self.note_members(now);
    }

    /// Notes a member whose lease is gone: it may act until its trust ends, unless this member deleted the lease (C10).
    fn miss(&mut self, name: &Name, now: Now) {
        if self.peers.remove(name).is_some() && !self.gone.contains(name) {
            self.missed.entry(name.clone()).or_insert(now.least);
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
                said,
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
                        said,
                        changed,
                    },
                );
            }
            Lease::Table {
                uid,
                version,
                table,
            } => {
                let number = table.as_ref().map_or(self.newest, |table| table.version);
                if number < self.newest {
                    return;
                }
                if number > self.closed.1 {
                    self.closed = (Ranges::NONE, 0);
                }
                self.newest = number;
                let since = match &self.table {
                    Some(known) if known.uid == uid => known.since,
                    Some(_) | None => now.least,
                };
                self.says.table = Some(uid.clone());
                self.table = Some(SeenTable {
                    uid,
                    version,
                    table,
                    since,
                });
            }
        }
    }

    /// Notes the members that rows name without a lease, and when the eligible members change.
    fn note_members(&mut self, now: Now) {
        if !self.listed {
            return;
        }
        let named: Vec<Name> = (self.rows().into_iter())
            .flat_map(|table| table.members().into_iter().cloned().collect::<Vec<_>>())
            .collect();
        for name in &named {
            let is_known =
                *name == self.name || self.peers.contains_key(name) || self.gone.contains(name);
            if !is_known {
                self.missed.entry(name.clone()).or_insert(now.least);
            }
        }
        self.missed.retain(|name, _| named.contains(name));
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
            let is_silent = now.least.saturating_sub(peer.changed) >= self.timing.trust;
            if peer.said.ready && !peer.said.stopping && peer.reads && !is_silent {
                eligible.push((&peer.joined, name));
            }
        }
        if let Own::Joined { joined, said, .. } = &self.own
            && said.ready
            && !self.says.stopping
        {
            eligible.push((joined, &self.name));
        }
        eligible.sort_unstable();
        eligible.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns how many members come before this one in an order: all but those that are silent.
    fn rank(&self, now: Now) -> u32 {
        let Own::Joined { joined, .. } = &self.own else {
            return u32::MAX;
        };
        let before = self.peers.iter().filter(|(name, peer)| {
            !self.is_silent(peer, now) && (&peer.joined, *name) < (joined, &self.name)
        });
        u32::try_from(before.count().min(RANKS)).unwrap_or_default()
    }

    fn is_silent(&self, peer: &Peer, now: Now) -> bool {
        now.least.saturating_sub(peer.changed) >= self.timing.expiry
    }

    /// Returns whether the own trust was unbroken for long enough to judge others (C2).
    fn may_judge(&self, now: Now) -> bool {
        self.is_trusted(now)
            && self
                .trusted_since
                .is_some_and(|since| now.least.saturating_sub(since) >= self.timing.expiry)
    }

    /// Returns the requests to send now. `busy` are the ranges with work or requests under way.
    ///
    /// Call [`held`](Self::held) before the next call: ranges that drained are closed in one call, and given away in a
    /// later one, so that nothing begins in between.
    pub(crate) fn requests(&mut self, busy: impl FnOnce() -> Ranges, now: Now) -> Vec<Request> {
        if matches!(self.own, Own::Left | Own::Lost) || !self.listed {
            return Vec::new();
        }
        self.note_lapse(now);
        self.miss_long_enough(now);
        self.note_members(now);
        let wanted = [
            (Purpose::Own, self.for_own(now)),
            (Purpose::Table, self.for_table(busy, now)),
            (Purpose::Other, self.for_other(now)),
        ];
        let wanted = wanted
            .into_iter()
            .filter_map(|(purpose, request)| Some((purpose, request?)));
        let mut requests = Vec::new();
        for (purpose, request) in wanted {
            if self.sent.get(&purpose).is_some_and(|sent| sent.waits) {
                continue;
            }
            self.sent.insert(
                purpose,
                Sent {
                    at: now,
                    request: request.clone(),
                    waits: true,
                    failed: false,
                },
            );
            requests.push(request);
        }
        requests
    }

    /// Returns whether a request for this purpose may be sent: none is under way, and the last one did not just fail.
    fn may_send(&self, purpose: Purpose, now: Now) -> bool {
        self.sent.get(&purpose).is_none_or(|sent| {
            let passed = now.least.saturating_sub(sent.at.least);
            !sent.waits && (!sent.failed || passed >= self.timing.retry)
        })
    }

    /// Joins, renews, leaves.
    fn for_own(&self, now: Now) -> Option<Request> {
        if !self.may_send(Purpose::Own, now) {
            return None;
        }
        match &self.own {
            Own::None if self.says.stopping => None,
            Own::None => Some(Request::Join(self.says.clone())),
            Own::Joined { uid, said, .. } => {
                let is_leaving = said.stopping && self.table_names_nothing_of_this();
                if is_leaving {
                    return Some(Request::Leave { uid: uid.clone() });
                }
                let last = self.sent.get(&Purpose::Own).map(|sent| sent.at.least);
                let is_due =
                    last.is_none_or(|last| now.least.saturating_sub(last) >= self.timing.renew);
                let failed = self.sent.get(&Purpose::Own).is_some_and(|sent| sent.failed);
                (is_due || failed || *said != self.says).then(|| Request::Renew {
                    uid: uid.clone(),
                    said: self.says.clone(),
                })
            }
            Own::Left | Own::Lost => None,
        }
    }

    fn table_names_nothing_of_this(&self) -> bool {
        let names = |table: &Table| table.members().contains(&&self.name);
        match &self.table {
            Some(seen) => !seen.table.as_ref().is_some_and(names),
            None => true,
        }
    }

    /// Founds the table, gives ranges away, and plans.
    fn for_table(&mut self, busy: impl FnOnce() -> Ranges, now: Now) -> Option<Request> {
        if !matches!(self.own, Own::Joined { .. }) || !self.may_send(Purpose::Table, now) {
            return None;
        }
        let Some(seen) = &self.table else {
            let waits = PLAN_RANK.saturating_mul(self.rank(now));
            return (!self.says.stopping && self.has_waited(waits, now)).then_some(Request::Found);
        };
        let (uid, version) = (seen.uid.clone(), seen.version.clone());
        let table = seen.table.clone()?;
        let given = self.given_away(&table, busy, now);
        let planned = match given.after(&table) {
            Some(given) => Some(given),
            None => self.plan(&table, now),
        };
        let planned = planned?;
        self.planned = None;
        let holders = planned.rows.iter().filter_map(|row| row.holder.clone());
        let holders: BTreeSet<Name> = holders.collect();
        Some(Request::Write {
            uid,
            version,
            table: planned,
            holders: holders.into_iter().collect(),
        })
    }

    /// Returns whether something was wanted for long enough; notes since when it is wanted.
    fn has_waited(&mut self, time: Duration, now: Now) -> bool {
        let since = *self.planned.get_or_insert(now.least);
        now.least.saturating_sub(since) >= time
    }

    /// Closes the ranges that are at rest and go to another member; returns the table with those given away that were
    /// closed before.
    fn given_away(&mut self, table: &Table, busy: impl FnOnce() -> Ranges, now: Now) -> Table {
        let held = table.held_by(&self.name);
        let all_go = matches!(&self.own, Own::Joined { said, .. } if said.stopping);
        let goes = if all_go {
            held
        } else {
            held & table.ranges(|row| row.next.is_some())
        };
        self.draining
            .retain(|range, _| goes.iter().any(|it| it.index() == usize::from(*range)));
        for range in goes.iter() {
            let number = u8::try_from(range.index()).unwrap_or_default();
            self.draining.entry(number).or_insert(now.least);
        }
        let mut given = table.clone();
        if goes.is_empty() {
            return given;
        }
        let busy = busy();
        let closed = self.closed.0 & goes;
        let at_rest = goes.without(busy);
        self.closed = (self.closed.0 | at_rest, table.version);
        let ready = closed.without(busy);
        let eligible = self
            .eligible(now)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let eligible: Vec<&str> = eligible
            .iter()
            .map(String::as_str)
            .filter(|name| *name != self.name)
            .collect();
        if eligible.is_empty() {
            // Nobody is left: the ranges are free at once for the next one that joins.
            for range in ready.iter() {
                given.row_mut(range).holder = None;
            }
            return given;
        }
        give(
            &mut given,
            ready,
            &Group {
                eligible,
                limit: self.limit(),
            },
        );
        given
    }

    /// Returns the ranges whose work kept them for too long: it has to be dropped (C14).
    ///
    /// A member that stops waits: its operators have a limit of their own.
    pub(crate) fn overdue(&self, now: Now) -> Ranges {
        if self.says.stopping {
            return Ranges::NONE;
        }
        let overdue = |range: &super::ranges::Range| {
            let number = u8::try_from(range.index()).unwrap_or_default();
            let since = self.draining.get(&number);
            since.is_some_and(|since| now.least.saturating_sub(*since) >= self.timing.hand_over)
        };
        super::ranges::Range::all().filter(overdue).collect()
    }

    /// Returns the table with free ranges given to members, and with ranges marked to move.
    fn plan(&mut self, table: &Table, now: Now) -> Option<Table> {
        if !self.is_trusted(now) || self.says.stopping || !self.may_hand_out(table, now) {
            self.planned = None;
            return None;
        }
        let eligible = self.eligible(now);
        let group = Group {
            eligible,
            limit: self.limit(),
        };
        let is_settled = now.least.saturating_sub(self.settled.0) >= self.timing.settle;
        let planned = plan(table, &group, |name| self.gone.contains(name), is_settled).after(table);
        if planned.is_none() {
            self.planned = None;
            return None;
        }
        let waits = PLAN_RANK.saturating_mul(self.rank(now));
        self.has_waited(waits, now).then_some(planned).flatten()
    }

    /// Returns whether ranges of this table may be given to members: at once, but for a table that was just made (C11).
    fn may_hand_out(&self, table: &Table, now: Now) -> bool {
        let Some(seen) = &self.table else {
            return false;
        };
        if !table.fresh {
            return true;
        }
        let is_old = now.least.saturating_sub(seen.since) >= self.timing.expiry;
        is_old
            && self
                .peers
                .values()
                .all(|peer| peer.said.table.as_ref() == Some(&seen.uid))
    }

    /// Deletes the lease of a silent member.
    fn for_other(&self, now: Now) -> Option<Request> {
        if !self.may_judge(now) || !self.may_send(Purpose::Other, now) {
            return None;
        }
        let waits = DELETE_RANK.saturating_mul(self.rank(now));
        let (name, peer) = self.peers.iter().find(|(_, peer)| {
            now.least.saturating_sub(peer.changed) >= self.timing.expiry.saturating_add(waits)
        })?;
        Some(Request::Delete {
            name: name.clone(),
            uid: peer.uid.clone(),
            version: peer.version.clone(),
        })
    }

    /// Notes members whose lease is gone for so long that nobody trusts it any more (C10).
    fn miss_long_enough(&mut self, now: Now) {
        if !self.may_judge(now) {
            return;
        }
        let expiry = self.timing.expiry;
        let over = self
            .missed
            .extract_if(.., |_, since| now.least.saturating_sub(*since) >= expiry);
        self.gone.extend(over.map(|(name, _)| name));
    }

    /// Takes the answer to a request.
    pub(crate) fn answer(&mut self, purpose: Purpose, outcome: Outcome, now: Now) {
        let Some(sent) = self.sent.get_mut(&purpose) else {
            return;
        };
        sent.waits = false;
        sent.failed = !matches!(outcome, Outcome::Done(_));
        let sent = sent.clone();
        match (sent.request, outcome) {
            (Request::Join(said), Outcome::Done(Some(Lease::Member { uid, joined, .. }))) => {
                self.own = Own::Joined { uid, joined, said };
                self.trust(sent.at, now);
            }
            // The name is taken, perhaps by this member, whose first request was carried out without an answer.
            (Request::Join(_), Outcome::Changed) => self.lose(),
            (Request::Renew { said: new, .. }, Outcome::Done(_)) => {
                if let Own::Joined { said, .. } = &mut self.own {
                    *said = new;
                    self.trust(sent.at, now);
                }
            }
            (Request::Renew { .. }, Outcome::Missing | Outcome::Changed)
            | (Request::Leave { .. }, Outcome::Done(_) | Outcome::Missing | Outcome::Changed) => {
                self.lose();
            }
            (Request::Delete { name, .. }, Outcome::Done(_)) => {
                self.gone.insert(name.clone());
                self.peers.remove(&name);
                self.missed.remove(&name);
            }
            (Request::Found | Request::Write { .. }, Outcome::Done(Some(lease))) => {
                self.note(lease, now);
            }
            _ => {}
        }
        self.note_members(now);
    }

    /// The lease is gone: the member has left, or is over.
    fn lose(&mut self) {
        self.own = if self.says.stopping {
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

    /// Returns how long nothing changes by time alone.
    pub(crate) fn wait(&self, now: Now) -> Duration {
        let Own::Joined { said, .. } = &self.own else {
            return POLL;
        };
        let is_busy = *said != self.says
            || !self.says.ready
            || self.says.stopping
            || self.table.is_none()
            || self.planned.is_some()
            || !self.draining.is_empty()
            || !self.missed.is_empty()
            || self.sent.values().any(|sent| sent.failed);
        if is_busy {
            return POLL;
        }
        let left =
            |since: Duration, time: Duration| since.saturating_add(time).saturating_sub(now.least);
        let renewal = self
            .sent
            .get(&Purpose::Own)
            .map(|sent| left(sent.at.least, self.timing.renew));
        let silent = self
            .peers
            .values()
            .map(|peer| left(peer.changed, self.timing.expiry));
        let fresh = self
            .table
            .as_ref()
            .map(|table| left(table.since, self.timing.expiry));
        let settled = left(self.settled.0, self.timing.settle);
        let trust = self.until().map(|until| until.saturating_sub(now.most));
        let waits = renewal
            .into_iter()
            .chain(silent)
            .chain(fresh)
            .chain(trust)
            .chain([settled]);
        // What is due already waits for something else.
        waits
            .filter(|wait| !wait.is_zero())
            .min()
            .unwrap_or_default()
            .max(POLL)
    }
}
