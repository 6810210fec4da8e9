//! The book of all planned faults: it decides for each request and each event whether a fault strikes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::chaos::{ActiveChaos, Chaos};
use super::injected::{Due, Hold, Injected, Log, Strike, Struck, Tally};
use super::occasion::{Delivery, Occasion};
use super::rule::{FaultKind, Rule};
use crate::record::RequestRecord;

/// All faults of a server.
#[derive(Debug, Default)]
pub(crate) struct Book {
    planned: Vec<Arc<Planned>>,
    chaos: Vec<Arc<ActiveChaos>>,
    /// The number of the last fault.
    number: u64,
    /// The tallies of all faults that a test may still ask for, by their numbers.
    tallies: BTreeMap<u64, Arc<Tally>>,
    strikes: Log,
}

#[derive(Debug)]
struct Planned {
    rule: Arc<Rule>,
    tally: Arc<Tally>,
}

impl Book {
    /// Plans a fault; the rule is checked.
    pub(crate) fn plan(&mut self, rule: Rule) -> Injected {
        let tally = self.keep(rule.describe(rule.time.unwrap_or_default()));
        self.planned.push(Arc::new(Planned {
            rule: Arc::new(rule),
            tally: Arc::clone(&tally),
        }));
        Injected(tally)
    }

    pub(crate) fn start_chaos(&mut self, mix: Chaos) -> Injected {
        let tally = self.keep(format!("the chaos of seed {}", mix.seed()));
        let active = ActiveChaos::new(mix, Arc::clone(&tally));
        self.chaos.push(Arc::new(active));
        Injected(tally)
    }

    fn keep(&mut self, fault: String) -> Arc<Tally> {
        self.planned.retain(|planned| !planned.tally.is_ended());
        self.chaos.retain(|chaos| !chaos.is_over());
        self.tallies.retain(|_, tally| !tally.is_forgotten());
        self.number += 1;
        let number = self.number;
        let tally = Tally::new(number, fault, &self.strikes);
        self.tallies.insert(number, Arc::clone(&tally));
        tally
    }

    /// Ends all faults and forgets them.
    pub(crate) fn end(&mut self) {
        self.tallies.values().for_each(|tally| tally.end());
        self.tallies.clear();
        self.planned.clear();
        self.chaos.clear();
    }

    /// Ends a fault, forgets it, and returns what it did.
    pub(crate) fn end_one(&mut self, number: u64) -> Option<Value> {
        let tally = self.tallies.remove(&number)?;
        tally.end();
        Some(tally.show())
    }

    /// Shows a fault to tests in other languages.
    pub(crate) fn show(&self, number: u64) -> Option<Value> {
        self.tallies.get(&number).map(|tally| tally.show())
    }

    /// Shows all faults to tests in other languages.
    pub(crate) fn show_all(&self) -> Value {
        let shown = self.tallies.values().map(|tally| tally.show());
        json!({ "items": shown.collect::<Vec<_>>() })
    }

    /// Returns all strikes so far, in order.
    pub(crate) fn strikes(&self) -> Vec<Strike> {
        self.strikes.lock().clone()
    }

    /// Returns a snapshot of the faults, if there are any. Its use does not lock the book, so a user's predicate may use
    /// the book.
    pub(crate) fn snapshot(&self) -> Option<FaultSnapshot> {
        (!self.planned.is_empty() || !self.chaos.is_empty()).then(|| FaultSnapshot {
            planned: self.planned.clone(),
            chaos: self.chaos.clone(),
        })
    }
}

/// A snapshot of all faults.
#[derive(Debug)]
pub(crate) struct FaultSnapshot {
    planned: Vec<Arc<Planned>>,
    chaos: Vec<Arc<ActiveChaos>>,
}

impl FaultSnapshot {
    /// Returns what strikes: delays add up, of other faults only one strikes.
    fn strike(&self, on: Occasion<'_>) -> Vec<Struck> {
        fn is_free(struck: &[Struck], rule: &Rule) -> bool {
            rule.fault.adds_up() || struck.iter().all(|other| other.rule.fault.adds_up())
        }
        let mut struck = Vec::new();
        for planned in &self.planned {
            struck.extend(planned.strike(on, |rule| is_free(&struck, rule)));
        }
        for chaos in &self.chaos {
            struck.extend(chaos.strike(on, |rule| is_free(&struck, rule)));
        }
        struck
    }

    pub(crate) fn of_request(&self, request: &RequestRecord) -> RequestFaults {
        let mut faults = RequestFaults::default();
        for struck in self.strike(Occasion::Request(request)) {
            faults.add(struck);
        }
        faults
    }

    pub(crate) fn of_event(&self, event: &Delivery<'_>) -> EventFaults {
        let mut faults = EventFaults::default();
        for struck in self.strike(Occasion::Event(event)) {
            struck.due.happens();
            match struck.rule.fault {
                FaultKind::Lag => faults.lag = faults.lag.saturating_add(struck.time),
                FaultKind::HoldEvents | FaultKind::Partition => faults.held.push(struck.hold),
                fault => faults.fault = Some((fault, struck.time)),
            }
        }
        faults
    }
}

impl Planned {
    fn strike(&self, on: Occasion<'_>, is_free: impl FnOnce(&Rule) -> bool) -> Option<Struck> {
        if self.tally.is_ended() || !self.rule.meets(on) {
            return None;
        }
        {
            // Under one lock, so that concurrent requests do not exceed the limit of strikes.
            let mut counts = self.tally.counts();
            counts.matched += 1;
            let is_struck = self.rule.admits(counts.matched, counts.settled);
            if !is_struck || !is_free(&self.rule) {
                return None;
            }
            counts.settled += 1;
        }
        let time = self.rule.time.unwrap_or_default();
        Some(Struck {
            rule: Arc::clone(&self.rule),
            time,
            due: self.tally.settle(self.rule.describe(time), on.to_string()),
            hold: self.tally.hold(None),
        })
    }
}

/// The faults that strike a request.
#[derive(Debug, Default)]
pub(crate) struct RequestFaults {
    /// The time during which the request is on its way.
    pub(crate) in_flight: Delay,
    pub(crate) before: Delay,
    pub(crate) after: Delay,
    /// The fault that replaces carrying out the request.
    pub(crate) early: Option<TerminalFault>,
    /// The fault of the response.
    pub(crate) late: Option<TerminalFault>,
}

/// A delay, and the strikes that cause it.
#[derive(Debug, Default)]
pub(crate) struct Delay {
    pub(crate) time: Duration,
    pub(crate) dues: Vec<Due>,
}

/// The fault of a request or its response.
#[derive(Debug)]
pub(crate) struct TerminalFault {
    pub(crate) rule: Arc<Rule>,
    pub(crate) due: Due,
}

impl RequestFaults {
    fn add(&mut self, struck: Struck) {
        let Struck {
            rule, time, due, ..
        } = struck;
        let delay = match rule.fault {
            FaultKind::Delay | FaultKind::DeliverLate if rule.after_commit => &mut self.after,
            FaultKind::Delay => &mut self.before,
            FaultKind::DeliverLate => &mut self.in_flight,
            fault => {
                let is_late = rule.after_commit || fault == FaultKind::CutBody;
                // Nothing comes through a partition.
                let is_cut = |it: &TerminalFault| it.rule.fault == FaultKind::Partition;
                if self.early.as_ref().is_some_and(is_cut) {
                    return;
                }
                let terminal = Some(TerminalFault { rule, due });
                if is_late {
                    self.late = terminal;
                } else {
                    self.early = terminal;
                }
                return;
            }
        };
        delay.time = delay.time.saturating_add(time);
        delay.dues.push(due);
    }
}

/// The faults that strike an event.
#[derive(Debug, Default)]
pub(crate) struct EventFaults {
    pub(crate) lag: Duration,
    /// The event is held until these end.
    pub(crate) held: Vec<Hold>,
    /// The fault that is neither a lag nor a hold, and its time.
    pub(crate) fault: Option<(FaultKind, Duration)>,
}
