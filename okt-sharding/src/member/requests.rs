//! What a member requests, and when: its lease, the table, and the leases of silent members.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Member, Missed, Own, Peer, SentRequest};
use crate::plan::{PlannedGroup, give, plan};
use crate::protocol::{LeaseRequest, MemberState, Now, Purpose};
use crate::ranges::{Range, Ranges};
use crate::table::{Name, RangeTable};

/// The delay per rank before a member deletes a silent one, and before it writes a plan: one member writes.
const DELETE_RANK: Duration = Duration::from_millis(300);
const PLAN_RANK: Duration = Duration::from_millis(500);

/// The largest rank that counts.
const RANKS: usize = 5;

/// How often a member looks whether something that is under way is done.
pub(crate) const POLL: Duration = Duration::from_millis(50);

impl Member {
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
        now.least.saturating_sub(peer.changed) >= self.expiry(peer.length)
    }

    /// Returns how long a member with a lease of this length is silent before it is dead.
    pub(super) fn expiry(&self, length: Duration) -> Duration {
        self.timing.expiry.max(length)
    }

    /// Returns whether the own trust was unbroken for long enough to judge others (C2): for how long these were silent.
    fn may_judge(&self, silence: Duration, now: Now) -> bool {
        self.is_trusted(now)
            && self
                .trusted_since
                .is_some_and(|since| now.least.saturating_sub(since) >= silence)
    }

    /// Returns the requests to send now. `busy` are the ranges with work or requests under way.
    ///
    /// Call [`held`](Self::held) before the next call: ranges that drained are closed in one call, and given away in a
    /// later one, so that nothing begins in between.
    pub(crate) fn requests(
        &mut self,
        busy: impl FnOnce() -> Ranges,
        now: Now,
    ) -> Vec<LeaseRequest> {
        if matches!(self.own, Own::Left | Own::Lost) || self.listed.is_none() {
            return Vec::new();
        }
        self.note_lapse(now);
        self.miss_long_enough(now);
        self.note_members(now);
        let candidates = [
            (Purpose::Own, self.for_own(now)),
            (Purpose::Table, self.for_table(busy, now)),
            (Purpose::Other, self.for_other(now)),
        ];
        let wanted = candidates
            .into_iter()
            .filter_map(|(purpose, request)| Some((purpose, request?)));
        let mut requests = Vec::new();
        for (purpose, request) in wanted {
            if self.sent.get(&purpose).is_some_and(|sent| sent.waits) {
                continue;
            }
            self.sent.insert(
                purpose,
                SentRequest {
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
    fn for_own(&self, now: Now) -> Option<LeaseRequest> {
        if !self.may_send(Purpose::Own, now) {
            return None;
        }
        match &self.own {
            Own::None if self.state.stopping => None,
            // A lease that is made without an answer is nobody's: it must not get ranges.
            Own::None => Some(LeaseRequest::Join(MemberState {
                ready: false,
                ..self.state.clone()
            })),
            Own::Joined { uid, state, .. } => {
                let is_leaving = state.stopping && !self.may_still_hold();
                if is_leaving {
                    return Some(LeaseRequest::Leave { uid: uid.clone() });
                }
                let last = self.sent.get(&Purpose::Own).map(|sent| sent.at.least);
                let is_due =
                    last.is_none_or(|last| now.least.saturating_sub(last) >= self.timing.renew);
                let failed = self.sent.get(&Purpose::Own).is_some_and(|sent| sent.failed);
                (is_due || failed || *state != self.state).then(|| LeaseRequest::Renew {
                    uid: uid.clone(),
                    state: self.state.clone(),
                })
            }
            Own::Left | Own::Lost => None,
        }
    }

    /// Returns whether this member holds a range, or its holder may give it one.
    fn may_still_hold(&self) -> bool {
        let may_give = |holder: &Name| !self.gone.contains(holder);
        self.rows().is_some_and(|table| {
            table.rows.iter().any(|row| {
                let comes = row.next.as_ref() == Some(&self.name);
                row.holder.as_ref() == Some(&self.name)
                    || (comes && row.holder.as_ref().is_some_and(may_give))
            })
        })
    }

    /// Founds the table, gives ranges away, and plans.
    fn for_table(&mut self, busy: impl FnOnce() -> Ranges, now: Now) -> Option<LeaseRequest> {
        if !matches!(self.own, Own::Joined { .. }) || !self.may_send(Purpose::Table, now) {
            return None;
        }
        let Some(seen) = &self.table else {
            let waits = PLAN_RANK.saturating_mul(self.rank(now));
            return (!self.state.stopping && self.has_waited(waits, now))
                .then_some(LeaseRequest::Found);
        };
        let (uid, version) = (seen.uid.clone(), seen.version.clone());
        let table = seen.table.clone()?;
        let given = self.given_away(&table, busy, now);
        let planned = match given.after(&table) {
            Some(given) => given,
            None => self.plan(&table, now)?,
        };
        self.planned = None;
        let holder_names = planned.rows.iter().filter_map(|row| row.holder.clone());
        let holders: BTreeSet<Name> = holder_names.collect();
        Some(LeaseRequest::Write {
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
    fn given_away(
        &mut self,
        table: &RangeTable,
        busy: impl FnOnce() -> Ranges,
        now: Now,
    ) -> RangeTable {
        let held = table.held_by(&self.name);
        let all_go = matches!(&self.own, Own::Joined { state, .. } if state.stopping);
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
        let names = self
            .eligible(now)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let eligible: Vec<&str> = names
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
            &PlannedGroup {
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
        if self.state.stopping {
            return Ranges::NONE;
        }
        let overdue = |range: &Range| {
            let number = u8::try_from(range.index()).unwrap_or_default();
            let since = self.draining.get(&number);
            since.is_some_and(|since| now.least.saturating_sub(*since) >= self.timing.hand_over)
        };
        Range::all().filter(overdue).collect()
    }

    /// Returns the table with free ranges given to members, and with ranges marked to move.
    fn plan(&mut self, table: &RangeTable, now: Now) -> Option<RangeTable> {
        if !self.is_trusted(now) || self.state.stopping || !self.may_hand_out(table, now) {
            self.planned = None;
            return None;
        }
        let eligible = self.eligible(now);
        let group = PlannedGroup {
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
    fn may_hand_out(&self, table: &RangeTable, now: Now) -> bool {
        let Some(seen) = &self.table else {
            return false;
        };
        if !table.fresh {
            return true;
        }
        let is_old = now.least.saturating_sub(seen.since) >= self.longest();
        is_old
            && self.missed.is_empty()
            && self
                .peers
                .values()
                .all(|peer| peer.state.table.as_ref() == Some(&seen.uid))
    }

    /// Deletes the lease of a silent member.
    fn for_other(&self, now: Now) -> Option<LeaseRequest> {
        if !self.may_send(Purpose::Other, now) {
            return None;
        }
        let waits = DELETE_RANK.saturating_mul(self.rank(now));
        let (name, peer) = self.peers.iter().find(|(_, peer)| {
            let expiry = self.expiry(peer.length);
            let silence = now.least.saturating_sub(peer.changed);
            silence >= expiry.saturating_add(waits) && self.may_judge(expiry, now)
        })?;
        Some(LeaseRequest::Delete {
            name: name.clone(),
            uid: peer.uid.clone(),
            version: peer.version.clone(),
        })
    }

    /// Notes members whose lease is gone for so long that nobody trusts it any more (C10).
    fn miss_long_enough(&mut self, now: Now) {
        let is_over = |missed: &Missed| {
            let expiry = self.expiry(missed.length);
            now.least.saturating_sub(missed.since) >= expiry && self.may_judge(expiry, now)
        };
        let over = self.missed.iter().filter(|(_, missed)| is_over(missed));
        for name in over.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.missed.remove(&name);
            self.gone.insert(name);
        }
    }

    /// Returns how long nothing changes by time alone.
    pub(crate) fn wait(&self, now: Now) -> Duration {
        let Own::Joined { state, .. } = &self.own else {
            return POLL;
        };
        let is_busy = *state != self.state
            || !self.state.ready
            || self.state.stopping
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
            .map(|peer| left(peer.changed, self.expiry(peer.length)));
        let fresh = self
            .table
            .as_ref()
            .map(|table| left(table.since, self.longest()));
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
