//! Members of a group, an API server between them, clocks that differ, and faults.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use okt_fuzz::Dice;

use crate::member::Member;
use crate::protocol::{
    Held, Lease, LeaseRequest, MemberState, Now, Purpose, RequestOutcome, SeenLease, Timing,
};
use crate::ranges::{Range, Ranges};
use crate::table::RangeTable;

/// The step of the simulation.
const STEP: Duration = Duration::from_millis(50);

/// A fault that may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Members are killed, stopped and started.
    Deaths,
    /// Processes stand still (SIGSTOP) for up to 45 seconds.
    Pauses,
    /// Members do not reach the API server, for up to 40 seconds.
    Outages,
    /// Requests and answers are lost, or arrive up to 9 seconds late.
    Losses,
    /// Watches show old states, for up to 45 seconds.
    Lags,
    /// Watches break, and begin anew with a list.
    Lists,
    /// Work keeps ranges for some seconds.
    Work,
    /// Somebody deletes leases.
    Deletions,
    /// The API server stops, and goes on with an old state of its store.
    Restores,
}

pub(super) type Faults = [Fault];

pub(super) const NONE: &Faults = &[];
pub(super) const ALL: &Faults = &[
    Fault::Deaths,
    Fault::Pauses,
    Fault::Outages,
    Fault::Losses,
    Fault::Lags,
    Fault::Lists,
    Fault::Work,
    Fault::Deletions,
    Fault::Restores,
];

pub(super) struct World {
    now: Duration,
    leases: BTreeMap<String, Lease>,
    version: u64,
    /// What a backup has: the leases, and the version.
    backup: (BTreeMap<String, Lease>, u64),
    /// How often a backup was restored, and until when nobody reaches the server then.
    restores: u64,
    down: Duration,
    /// The lengths of leases that members are started with, in seconds.
    pub(super) lengths: &'static [u64],
    /// Everything that happened at the server, for watches.
    log: Vec<SeenLease>,
    nodes: Vec<Node>,
    born: u32,
    moves: usize,
    writes: usize,
}

/// A process with a member.
struct Node {
    name: String,
    member: Member,
    limit: usize,
    /// How long its lease is valid.
    length: Duration,
    /// When its caches are filled.
    ready: Duration,
    /// The clock: how fast it runs, in thousandths.
    rate: u32,
    begun: Duration,
    paused: Duration,
    cut: Duration,
    lagging: Duration,
    /// What the watch has shown.
    cursor: usize,
    listed: bool,
    held: Held,
    wake: Duration,
    /// The ranges with work under way.
    busy: Ranges,
    /// Requests on their way to the server, and answers on their way back.
    sent: Vec<(Duration, LeaseRequest, Duration)>,
    answers: Vec<(Duration, Purpose, RequestOutcome)>,
    /// When the client gives up waiting.
    waiting: BTreeMap<Purpose, Duration>,
}

const TABLE: &str = "table";

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: Duration::ZERO,
            leases: BTreeMap::new(),
            version: 0,
            backup: (BTreeMap::new(), 0),
            restores: 0,
            down: Duration::ZERO,
            lengths: &[15],
            log: Vec::new(),
            nodes: Vec::new(),
            born: 0,
            moves: 0,
            writes: 0,
        }
    }

    /// Starts a member.
    pub(super) fn start(&mut self, limit: usize, dice: &mut Dice) {
        self.born += 1;
        let name = format!("member-{}", self.born);
        let length = Duration::from_secs(self.lengths[dice.below(self.lengths.len())]);
        let member = Member::new(name.clone(), limit, Timing::of(length));
        self.nodes.push(Node {
            name,
            member,
            limit,
            length,
            ready: self.now + Duration::from_millis(dice.below(3_000) as u64),
            rate: 900 + u32::try_from(dice.below(201)).expect("a small number"),
            begun: self.now,
            paused: Duration::ZERO,
            cut: self.down,
            lagging: Duration::ZERO,
            cursor: 0,
            listed: false,
            held: Held::NOTHING,
            wake: Duration::ZERO,
            busy: Ranges::NONE,
            sent: Vec::new(),
            answers: Vec::new(),
            waiting: BTreeMap::new(),
        });
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: Duration, faults: &Faults, dice: &mut Dice) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            self.break_something(faults, dice);
            self.serve(faults, dice);
            for index in 0..self.nodes.len() {
                self.step(index, faults, dice);
            }
            self.nodes.retain(|node| !node.member.has_left());
            self.assert_one_holder();
        }
    }

    fn break_something(&mut self, faults: &Faults, dice: &mut Dice) {
        // Each fault about every ten seconds.
        let mut strikes = |is_on: bool| is_on && dice.below(200) == 0;
        let (death, pause, outage, lag, deletion, backup) = (
            strikes(faults.contains(&Fault::Deaths)),
            strikes(faults.contains(&Fault::Pauses)),
            strikes(faults.contains(&Fault::Outages)),
            strikes(faults.contains(&Fault::Lags)),
            strikes(faults.contains(&Fault::Deletions)),
            strikes(faults.contains(&Fault::Restores)),
        );
        if death {
            match dice.below(3) {
                0 if self.nodes.len() > 1 => {
                    let index = dice.below(self.nodes.len());
                    self.nodes.remove(index);
                }
                1 if self.nodes.len() > 1 => {
                    let index = dice.below(self.nodes.len());
                    self.stop(index);
                }
                _ if self.nodes.len() < 6 => {
                    let limit = [1, 2, 64][dice.below(3)];
                    self.start(limit, dice);
                }
                _ => {}
            }
        }
        let Some(index) = (!self.nodes.is_empty()).then(|| dice.below(self.nodes.len())) else {
            return self.start(64, dice);
        };
        self.disturb(index, (pause, outage, lag), dice);
        let node = &mut self.nodes[index];
        if faults.contains(&Fault::Work) && dice.below(40) == 0 {
            // Work of up to some seconds.
            let range = Range::all().nth(dice.below(64)).expect("a range");
            node.busy = node.busy | [range].into_iter().collect();
        }
        if !faults.contains(&Fault::Work) || dice.below(20) == 0 {
            node.busy = Ranges::NONE;
        }
        if deletion && let Some(name) = self.leases.keys().nth(dice.below(self.leases.len().max(1)))
        {
            let name = name.clone();
            self.delete(&name);
        }
        if backup {
            match dice.below(3) {
                0 => self.restore(dice),
                _ => self.back_up(),
            }
        }
    }

    /// Goes on with the state of the backup, after a time in which nobody reached the server.
    pub(super) fn restore(&mut self, dice: &mut Dice) {
        self.restores += 1;
        let version = self.backup.1;
        self.leases.clone_from(&self.backup.0);
        // etcd can be set to go on with higher revisions.
        if dice.below(2) == 0 {
            self.version = version;
        }
        // Longer than anybody trusts a lease.
        let longest = self.lengths.iter().max().expect("a length");
        self.down = self.now + Duration::from_secs(*longest);
        for node in &mut self.nodes {
            node.cut = node.cut.max(self.down);
            node.listed = false;
            node.sent.clear();
            node.answers.clear();
        }
    }

    pub(super) fn back_up(&mut self) {
        self.backup = (self.leases.clone(), self.version);
    }

    /// Returns a version that no other write has, also after a restore.
    fn next_version(&mut self) -> String {
        self.version += 1;
        (self.version * 1_000 + self.restores).to_string()
    }

    /// Pauses a process, cuts it off, or lets its watch lag.
    fn disturb(&mut self, index: usize, (pause, outage, lag): (bool, bool, bool), dice: &mut Dice) {
        let mut until = |most: usize| {
            self.now + Duration::from_millis(100 * (1 + dice.below(10 * most)) as u64)
        };
        let node = &mut self.nodes[index];
        if pause {
            node.paused = until(45);
        }
        if outage {
            node.cut = node.cut.max(until(40));
        }
        if lag {
            node.lagging = until(45);
        }
    }

    /// Ends all faults.
    pub(super) fn heal(&mut self) {
        for node in &mut self.nodes {
            (node.paused, node.cut, node.lagging) = (self.now, self.down, self.now);
        }
    }

    pub(super) fn cut_everybody_off(&mut self, time: Duration) {
        for node in &mut self.nodes {
            node.cut = self.now + time;
        }
    }

    fn holder(&self, dice: &mut Dice) -> usize {
        let holds = |node: &Node| !node.held.open.is_empty();
        let holders: Vec<usize> = (0..self.nodes.len())
            .filter(|index| holds(&self.nodes[*index]))
            .collect();
        holders[dice.below(holders.len())]
    }

    /// Returns whether ranges are to move by the table.
    pub(super) fn is_moving(&self) -> bool {
        let table = self.leases.get(TABLE).and_then(|lease| match lease {
            Lease::Table { table, .. } => table.as_ref(),
            Lease::Member { .. } => None,
        });
        table.is_some_and(|table| !table.ranges(|row| row.next.is_some()).is_empty())
    }

    pub(super) fn kill_the_oldest(&mut self) {
        self.nodes.remove(0);
    }

    pub(super) fn kill_a_holder(&mut self, dice: &mut Dice) {
        let index = self.holder(dice);
        self.nodes.remove(index);
    }

    /// Stops a member; returns how many ranges it holds.
    pub(super) fn stop_a_holder(&mut self, dice: &mut Dice) -> usize {
        let index = self.holder(dice);
        self.stop(index);
        self.nodes[index].held.open.len()
    }

    pub(super) fn stop_the_oldest(&mut self) {
        self.stop(0);
    }

    fn stop(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.member.stop();
        node.wake = self.now;
    }

    pub(super) fn is_running(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node.name == name)
    }

    pub(super) fn running(&self) -> usize {
        self.nodes.len()
    }

    /// Returns how often a range changed hands.
    pub(super) fn moves(&self) -> usize {
        self.moves
    }

    pub(super) fn table_writes(&self) -> usize {
        self.writes
    }

    /// Returns the ranges that no running member may act on.
    pub(super) fn unheld(&self) -> Ranges {
        let held = self.nodes.iter().map(|node| self.believed(node));
        !held.fold(Ranges::NONE, |all, held| all | held)
    }

    pub(super) fn assert_balanced(&self) {
        let counts: Vec<usize> = self.nodes.iter().map(|node| node.held.open.len()).collect();
        let limits = self.nodes.iter().map(|node| node.limit);
        let limit = limits.min().expect("a member").min(counts.len());
        let mut holders: Vec<usize> = counts.into_iter().filter(|count| *count > 0).collect();
        holders.sort_unstable();
        assert_eq!(holders.len(), limit, "{holders:?}");
        assert!(holders[limit - 1] - holders[0] <= 1, "{holders:?}");
    }

    /// Returns the ranges that a running process may act on, as it reads its clock.
    fn believed(&self, node: &Node) -> Ranges {
        let is_running = node.paused <= self.now;
        let is_trusted = self.local(node).most < node.held.until;
        if is_running && is_trusted {
            node.held.open | node.held.draining
        } else {
            Ranges::NONE
        }
    }

    fn assert_one_holder(&self) {
        let mut all = Ranges::NONE;
        for node in &self.nodes {
            let held = self.believed(node);
            assert!(held.is_empty() || node.ready <= self.now, "{self:?}");
            assert!((all & held).is_empty(), "two hold {}: {self:?}", all & held);
            all = all | held;
        }
    }

    fn local(&self, node: &Node) -> Now {
        let passed = self.now.saturating_sub(node.begun) * node.rate / 1000;
        Now {
            least: passed,
            most: passed,
        }
    }

    /// Lets requests arrive at the server.
    fn serve(&mut self, faults: &Faults, dice: &mut Dice) {
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            let arrivals = node.sent.extract_if(.., |(at, _, _)| *at <= self.now);
            let due: Vec<_> = arrivals.collect();
            let cut = node.cut > self.now;
            let name = node.name.clone();
            for (_, request, back) in due {
                if cut {
                    continue;
                }
                let purpose = request.purpose();
                let outcome = self.carry_out(&name, request);
                let is_lost = faults.contains(&Fault::Losses) && dice.below(33) == 0;
                if !is_lost {
                    self.nodes[index]
                        .answers
                        .push((self.now + back, purpose, outcome));
                }
                // The worst moment: the request is carried out, and its sender does not know it yet.
                if dice.below(40) == 0 {
                    let mut strikes = |fault| faults.contains(&fault) && dice.below(2) == 0;
                    let (pause, outage) = (strikes(Fault::Pauses), strikes(Fault::Outages));
                    let lag = strikes(Fault::Lags);
                    self.disturb(index, (pause, outage, lag), dice);
                }
            }
        }
    }

    fn carry_out(&mut self, name: &str, request: LeaseRequest) -> RequestOutcome {
        let joined = format!("{:012}", self.now.as_millis());
        match request {
            LeaseRequest::Join(state) => {
                if self.leases.contains_key(name) {
                    return RequestOutcome::Changed;
                }
                let uid = format!("uid-{}", self.next_version());
                self.put_member(name, uid, joined, state)
            }
            LeaseRequest::Renew { uid, state } => match self.leases.get(name).cloned() {
                None => RequestOutcome::Missing,
                Some(Lease::Member {
                    uid: own, joined, ..
                }) if own == uid => self.put_member(name, uid, joined, state),
                Some(_) => RequestOutcome::Changed,
            },
            LeaseRequest::Leave { uid } => match self.leases.get(name) {
                None => RequestOutcome::Missing,
                Some(Lease::Member { uid: own, .. }) if *own == uid => {
                    self.delete(name);
                    RequestOutcome::Done(None)
                }
                Some(_) => RequestOutcome::Changed,
            },
            LeaseRequest::Delete { name, uid, version } => match self.leases.get(&name) {
                None => RequestOutcome::Missing,
                Some(Lease::Member {
                    uid: own,
                    version: at,
                    ..
                }) if *own == uid && *at == version => {
                    self.delete(&name);
                    RequestOutcome::Done(None)
                }
                Some(_) => RequestOutcome::Changed,
            },
            LeaseRequest::Found => {
                if self.leases.contains_key(TABLE) {
                    return RequestOutcome::Changed;
                }
                let uid = format!("uid-{}", self.next_version());
                let since_1970 = Duration::from_hours(500_000) + self.now;
                self.put_table(uid, RangeTable::new(since_1970))
            }
            LeaseRequest::Write {
                uid,
                version,
                table,
                ..
            } => match self.leases.get(TABLE) {
                None => RequestOutcome::Missing,
                Some(Lease::Table {
                    uid: own,
                    version: at,
                    table: before,
                }) if *own == uid && *at == version => {
                    let before = before
                        .as_ref()
                        .expect("every member writes what others read");
                    assert!(table.version > before.version);
                    let changed = before
                        .rows
                        .iter()
                        .zip(&table.rows)
                        .filter(|(old, new)| old.holder != new.holder)
                        .count();
                    assert_eq!(changed > 0, table.epoch > before.epoch);
                    self.moves += changed;
                    self.writes += 1;
                    self.put_table(uid, table)
                }
                Some(_) => RequestOutcome::Changed,
            },
        }
    }

    fn put_member(
        &mut self,
        name: &str,
        uid: String,
        joined: String,
        state: MemberState,
    ) -> RequestOutcome {
        let (name, version) = (name.to_owned(), self.next_version());
        let length = self.length(&name);
        self.put(Lease::Member {
            name,
            uid,
            version,
            joined,
            reads: true,
            length,
            state,
        })
    }

    fn put_table(&mut self, uid: String, table: RangeTable) -> RequestOutcome {
        let version = self.next_version();
        self.put(Lease::Table {
            uid,
            version,
            table: Some(table),
        })
    }

    /// Returns the length of a member's lease; that of a member that is over does not matter.
    fn length(&self, name: &str) -> Duration {
        let node = self.nodes.iter().find(|node| node.name == name);
        node.map_or(Duration::ZERO, |node| node.length)
    }

    fn put(&mut self, lease: Lease) -> RequestOutcome {
        let name = match &lease {
            Lease::Member { name, .. } => name.clone(),
            Lease::Table { .. } => TABLE.to_owned(),
        };
        self.log.push(SeenLease::Applied(lease.clone()));
        self.leases.insert(name, lease.clone());
        RequestOutcome::Done(Some(lease))
    }

    fn delete(&mut self, name: &str) {
        if let Some(lease) = self.leases.remove(name) {
            self.next_version();
            self.log.push(SeenLease::Deleted(lease));
        }
    }

    /// Lets a process do what it can at this time.
    fn step(&mut self, index: usize, faults: &Faults, dice: &mut Dice) {
        let now = self.now;
        let local = self.local(&self.nodes[index]);
        let end = self.log.len();
        let node = &mut self.nodes[index];
        if node.paused > now {
            return;
        }
        if node.ready <= now {
            node.member.ready();
        }
        let is_reached = node.cut <= now && node.lagging <= now;
        if !node.listed && is_reached {
            node.listed = true;
            node.cursor = end;
            let leases = self.leases.values().cloned().collect();
            node.member.see(SeenLease::Listing, local);
            node.member.see(SeenLease::List(leases), local);
            node.wake = now;
        } else if is_reached {
            for seen in &self.log[node.cursor..end] {
                node.member.see(seen.clone(), local);
                node.wake = now;
            }
            node.cursor = end;
        }
        if faults.contains(&Fault::Lists) && dice.below(40) == 0 {
            node.listed = false;
        }
        let due: Vec<_> = node
            .answers
            .extract_if(.., |(at, _, _)| *at <= now)
            .collect();
        for (_, purpose, outcome) in due {
            // An answer that comes after the client gave up reaches nobody.
            if node.cut <= now && node.waiting.remove(&purpose).is_some() {
                node.member.answer(purpose, outcome, local);
                node.wake = now;
            }
        }
        let overdue: Vec<_> = node
            .waiting
            .extract_if(.., |_, until| *until <= now)
            .collect();
        for (purpose, _) in overdue {
            node.answers.retain(|(_, it, _)| *it != purpose);
            node.member.answer(purpose, RequestOutcome::Unknown, local);
            node.wake = now;
        }
        if node.member.is_over() {
            // As the driver does: the process joins anew, under another name.
            let (limit, rate) = ([1, 2, 64][dice.below(3)], node.rate);
            node.held = Held::NOTHING;
            self.nodes.remove(index);
            self.start(limit, dice);
            let node = self.nodes.pop().map(|node| Node { rate, ..node });
            self.nodes.insert(index, node.expect("it was started"));
            return;
        }
        if node.wake > now {
            return;
        }
        for range in node.member.overdue(local).iter() {
            node.busy = node.busy.without([range].into_iter().collect());
        }
        let busy = node.busy;
        for request in node.member.requests(|| busy, local) {
            let purpose = request.purpose();
            node.waiting.insert(purpose, now + Duration::from_secs(3));
            let mut ways = || {
                if faults.contains(&Fault::Losses) && dice.below(33) == 0 {
                    Duration::from_millis(100 * dice.below(90) as u64)
                } else {
                    Duration::from_millis(dice.below(60) as u64)
                }
            };
            let (there, back) = (ways(), ways());
            if !(faults.contains(&Fault::Losses) && dice.below(33) == 0) {
                node.sent.push((now + there, request, back));
            }
        }
        let held = node.member.held(local);
        if held.lapses > node.held.lapses {
            node.listed = false;
        }
        node.held = held;
        node.wake = now + node.member.wait(local);
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "at {:?}", self.now)?;
        for node in &self.nodes {
            let held = node.held;
            writeln!(
                f,
                "{}: local {:?}, until {:?}, paused {:?}, cut {:?}, lagging {:?}, open {}, draining {}\n  {:?}",
                node.name,
                self.local(node).most,
                held.until,
                node.paused,
                node.cut,
                node.lagging,
                held.open,
                held.draining,
                node.member
            )?;
        }
        Ok(())
    }
}
