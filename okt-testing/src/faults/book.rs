//! This file holds what is to go wrong, and says of each request and each event whether it does.

use std::{sync::Arc, time::Duration};

use super::{
    chaos::{Chaos, Unleashed},
    event::{OnEvent, Twist},
    fault::Fault,
    injected::{Injected, Log, Strike, Tally, lock},
    request::{Mishap, OnRequest},
    target::Delivery,
    what::{Either, What},
};
use crate::record::RequestRecord;

/// All faults of a server.
#[derive(Debug, Default)]
pub(crate) struct Book {
    requests: Vec<Planned<OnRequest>>,
    events: Vec<Planned<OnEvent>>,
    chaos: Vec<Unleashed>,
    /// Of all faults that were not forgotten.
    tallies: Vec<Arc<Tally>>,
    strikes: Log,
}

#[derive(Debug)]
struct Planned<W> {
    fault: Fault<W>,
    tally: Arc<Tally>,
}

/// What goes wrong with a request.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    /// Anything but a delay.
    pub(crate) mishap: Option<OnRequest>,
    /// All of it, in words.
    pub(crate) faults: Vec<String>,
}

/// What goes wrong with an event.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lag: Duration,
    /// Until these end.
    pub(crate) held: Vec<Arc<Tally>>,
    /// Anything but a lag.
    pub(crate) twist: Option<Twist>,
}

impl Book {
    pub(crate) fn plan<W: What>(&mut self, fault: Fault<W>) -> Injected {
        self.forget_ended();
        let tally = Tally::new(&self.strikes);
        self.tallies.push(Arc::clone(&tally));
        match W::sort(fault) {
            Either::Request(fault) => self.requests.push(Planned {
                fault,
                tally: Arc::clone(&tally),
            }),
            Either::Event(fault) => self.events.push(Planned {
                fault,
                tally: Arc::clone(&tally),
            }),
        }
        Injected(tally)
    }

    pub(crate) fn unleash(&mut self, mix: Chaos) -> Injected {
        self.forget_ended();
        let unleashed = Unleashed::new(mix, Tally::new(&self.strikes));
        let tally = Arc::clone(&unleashed.tally);
        self.tallies.push(Arc::clone(&tally));
        self.chaos.push(unleashed);
        Injected(tally)
    }

    /// Ends all of it.
    pub(crate) fn end(&mut self) {
        for tally in &self.tallies {
            tally.end();
        }
        self.forget_ended();
    }

    /// All strikes so far, in order.
    pub(crate) fn strikes(&self) -> Vec<Strike> {
        lock(&self.strikes).clone()
    }

    fn forget_ended(&mut self) {
        self.requests.retain(|planned| !planned.tally.is_ended());
        self.events.retain(|planned| !planned.tally.is_ended());
        self.tallies.retain(|tally| !tally.is_ended());
        self.chaos.retain(|chaos| !chaos.is_over());
    }

    /// Whether any request can go wrong.
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty() || !self.chaos.is_empty()
    }

    pub(crate) fn judge(&self, request: &RequestRecord) -> Verdict {
        let mut verdict = Verdict::default();
        for planned in &self.requests {
            let meets = planned.fault.target.meets_request(request);
            if planned.is_struck(meets, || takes_request(&verdict, &planned.fault.what)) {
                planned.strike(request.to_string());
                verdict.add(&planned.fault.what);
            }
        }
        for chaos in &self.chaos {
            if let Some(what) = chaos.request(request, |what| takes_request(&verdict, what)) {
                verdict.add(&what);
            }
        }
        verdict
    }

    pub(crate) fn fate(&self, event: &Delivery<'_>) -> Fate {
        let mut fate = Fate::default();
        for planned in &self.events {
            let meets = planned.fault.target.meets_event(event);
            if planned.is_struck(meets, || takes_event(&fate, &planned.fault.what)) {
                planned.strike(event.to_string());
                fate.add(&planned.fault.what, &planned.tally);
            }
        }
        for chaos in &self.chaos {
            if let Some(what) = chaos.event(event, |what| takes_event(&fate, what)) {
                fate.add(&what, &chaos.tally);
            }
        }
        fate
    }
}

/// Delays add up; of anything else there is one.
fn takes_request(verdict: &Verdict, what: &OnRequest) -> bool {
    matches!(what.mishap, Mishap::Delayed(_)) || verdict.mishap.is_none()
}

fn takes_event(fate: &Fate, what: &OnEvent) -> bool {
    matches!(what.0, Twist::Late(_) | Twist::Held) || fate.twist.is_none()
}

impl<W: std::fmt::Display> Planned<W> {
    fn is_struck(&self, meets: bool, is_free: impl FnOnce() -> bool) -> bool {
        if !meets || self.tally.is_ended() {
            return false;
        }
        let matched = {
            let mut counts = self.tally.counts();
            counts.matched += 1;
            counts.matched
        };
        self.fault.window.admits(matched, self.tally.struck()) && is_free()
    }

    fn strike(&self, on: String) {
        self.tally.strike(self.fault.what.to_string(), on);
    }
}

impl Verdict {
    fn add(&mut self, what: &OnRequest) {
        self.faults.push(what.to_string());
        match &what.mishap {
            Mishap::Delayed(time) if what.after_commit => self.after += *time,
            Mishap::Delayed(time) => self.before += *time,
            _ => self.mishap = Some(what.clone()),
        }
    }
}

impl Fate {
    fn add(&mut self, what: &OnEvent, tally: &Arc<Tally>) {
        match what.0 {
            Twist::Late(time) => self.lag += time,
            Twist::Held => self.held.push(Arc::clone(tally)),
            twist => self.twist = Some(twist),
        }
    }
}
