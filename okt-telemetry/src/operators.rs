//! The operators of a process as they are at this moment: for gauges, probes and people.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use okt_core::reasons;
use parking_lot::Mutex;

/// Returns the name of the controller of a kind, as metrics, health and alerts have it.
pub fn controller(kind: &str) -> String {
    kind.to_lowercase()
}

/// The operators of a process; clones share them. An operator that has ended is forgotten.
#[derive(Clone, Default)]
pub(crate) struct Operators {
    all: Arc<Mutex<Vec<Weak<dyn Inspected>>>>,
    /// The controllers that are to run.
    expected: Arc<Mutex<BTreeSet<String>>>,
}

impl Operators {
    pub(crate) fn add(&self, operator: Weak<dyn Inspected>) {
        let mut all = self.all.lock();
        all.push(operator);
    }

    /// Notes that an operator of this name is to run.
    pub(crate) fn expect(&self, controller: String) {
        let mut expected = self.expected.lock();
        expected.insert(controller);
    }

    /// Returns the controllers that are to run.
    pub(crate) fn expected(&self) -> BTreeSet<String> {
        let expected = self.expected.lock();
        expected.clone()
    }

    /// Returns the operators that run, by the names of their controllers. An operator of several namespaces has a part
    /// for each.
    pub(crate) fn running(&self) -> BTreeMap<String, Vec<Arc<dyn Inspected>>> {
        let mut all = self.all.lock();
        all.retain(|operator| operator.strong_count() > 0);
        let mut running: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for operator in all.iter().filter_map(Weak::upgrade) {
            let parts = running.entry(operator.controller().to_owned());
            parts.or_default().push(operator);
        }
        running
    }
}

/// An operator, or its part in one namespace.
pub trait Inspected: Send + Sync {
    /// Returns the name of the controller.
    fn controller(&self) -> &str;

    /// Returns the state of the queue.
    fn queue(&self) -> QueueState;

    /// Counts the objects that this replica acts on.
    fn tally(&self, tally: &mut Tally);

    /// Returns why the operator is not ready; nothing if it is.
    fn unready(&self) -> Option<String>;

    /// Returns the kinds that the operator watches, each with the time since the API server last answered its watch.
    fn silences(&self) -> BTreeMap<String, Duration>;

    /// Returns how many transitions of the operator are to be delivered; none if it delivers none.
    fn pending(&self) -> Option<usize>;

    /// Returns the part of this replica in its group, if it belongs to one.
    fn replica(&self) -> Option<Replica>;
}

/// The state of a queue.
#[derive(Clone, Copy, Default, Debug)]
pub struct QueueState {
    /// How many objects are due, from the least to the most urgent.
    pub due: [usize; 4],
    /// How many places are taken.
    pub active: usize,
    /// How long all running reconciliations have been running, added up.
    pub unfinished: Duration,
    /// How long the longest of them has been running.
    pub longest: Duration,
}

impl QueueState {
    /// Adds the state of another queue.
    pub(crate) fn add(&mut self, other: Self) {
        for (all, one) in self.due.iter_mut().zip(other.due) {
            *all = all.saturating_add(one);
        }
        self.active = self.active.saturating_add(other.active);
        self.unfinished = self.unfinished.saturating_add(other.unfinished);
        self.longest = self.longest.max(other.longest);
    }
}

/// The part of a replica in its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replica {
    /// The name of the group.
    pub group: String,
    /// On how many ranges it acts.
    pub ranges: usize,
    /// How many ranges there are.
    pub of: usize,
    /// The number of the table that it knows.
    pub epoch: u64,
}

/// How many reasons have a number of their own, beside those of OKT: alerts select these.
pub(crate) const REASONS: usize = 100;

/// The name of the reasons beyond [`REASONS`].
pub(crate) const OTHER: &str = "Other";

/// The name of the groups beyond [`GROUPS`].
const OTHER_GROUPS: &str = "other";

/// The name of a state that the graph does not have.
pub const UNKNOWN: &str = "(unknown)";

/// The name of the state of an object without a record.
pub const NEW: &str = "(new)";

/// Objects, counted.
#[derive(Default)]
pub struct Tally {
    /// By state: the number, and the longest time in the state.
    pub(crate) states: BTreeMap<&'static str, (usize, Duration)>,
    /// Stalled objects, by reason.
    pub stalled: Reasons,
    /// Objects on their way, by reason.
    pub reconciling: Reasons,
    /// Objects that wait before a gate.
    pub waiting: Gates,
    /// Objects in the states of a gate.
    pub inside: Gates,
}

/// How many groups of a limit have a number of their own.
const GROUPS: usize = 50;

/// Objects by a gate and a group of its limit.
#[derive(Default)]
pub struct Gates(pub(crate) BTreeMap<String, BTreeMap<String, usize>>);

impl Gates {
    /// Counts an object; groups beyond 50 of a gate are counted as one.
    pub fn count(&mut self, gate: &str, group: &str) {
        let groups = self.0.entry(gate.to_owned()).or_default();
        let named = groups.keys().filter(|it| *it != OTHER_GROUPS).count();
        let has_number = groups.contains_key(group) || named < GROUPS;
        let group = if has_number { group } else { OTHER_GROUPS };
        let number = groups.entry(group.to_owned()).or_default();
        *number = number.saturating_add(1);
    }
}

/// Returns whether OKT itself writes a reason, whatever the handlers of an author return.
pub(crate) fn is_own(reason: &str) -> bool {
    reasons::ALL.contains(&reason) || reasons::resources::ALL.contains(&reason)
}

/// Objects by a reason.
#[derive(Default)]
pub struct Reasons(pub(crate) BTreeMap<String, usize>);

impl Reasons {
    /// Counts an object.
    pub fn count(&mut self, reason: &str) {
        let foreign = || self.0.keys().filter(|it| !is_own(it)).count();
        let has_number = is_own(reason) || self.0.contains_key(reason) || foreign() < REASONS;
        let reason = if has_number { reason } else { OTHER };
        let number = self.0.entry(reason.to_owned()).or_default();
        *number = number.saturating_add(1);
    }
}

impl Tally {
    /// Notes that there may be objects in this state.
    pub fn may_have(&mut self, state: &'static str) {
        self.states.entry(state).or_default();
    }

    /// Notes that objects may wait before this gate.
    pub fn may_pass(&mut self, gate: &'static str) {
        for gates in [&mut self.waiting, &mut self.inside] {
            gates.0.entry(gate.to_owned()).or_default();
        }
    }

    /// Counts an object.
    pub fn count(&mut self, state: &'static str, time: Duration) {
        let (number, longest) = self.states.entry(state).or_default();
        *number = number.saturating_add(1);
        *longest = time.max(*longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_beyond_fifty_of_a_gate_are_counted_as_one() {
        let mut gates = Gates::default();
        for number in 0..60 {
            gates.count("rollout", &format!("zone-{number:02}"));
        }
        gates.count("rollout", "zone-07");
        let groups = &gates.0["rollout"];
        assert_eq!(
            (groups.len(), groups["other"], groups["zone-07"]),
            (51, 10, 2)
        );
    }

    #[test]
    fn however_many_reasons_an_author_returns_those_of_okt_are_counted() {
        let mut reasons = Reasons::default();
        for number in 0..REASONS * 3 {
            reasons.count(&format!("Author{number}"));
        }
        for own in ["NoRoute", "ResourceNotReady"] {
            assert!(is_own(own));
            reasons.count(own);
            assert_eq!(reasons.0[own], 1);
        }
        assert_eq!(reasons.0[OTHER], REASONS * 2);
        assert_eq!(reasons.0.len(), REASONS + 3);
    }
}
