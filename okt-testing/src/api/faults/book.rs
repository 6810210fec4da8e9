//! The book of all planned faults: it decides for each request and each event whether a fault strikes.

use std::{sync::Arc, time::Duration};

use super::chaos::{ActiveChaos, Chaos};
use super::event::{EventFault, OnEvent};
use super::failure::{OnRequest, RequestFault};
use super::fault::Fault;
use super::injected::{Due, Hold, Injected, Log, Strike, Tally};
use super::target::Delivery;
use super::what::{Either, What};
use crate::api::record::RequestRecord;

/// All faults of a server.
#[derive(Debug, Default)]
pub(crate) struct Book {
    requests: Vec<Arc<Planned<OnRequest>>>,
    events: Vec<Planned<OnEvent>>,
    chaos: Vec<Arc<ActiveChaos>>,
    /// The tallies of all faults that have not ended.
    tallies: Vec<Arc<Tally>>,
    strikes: Log,
}

#[derive(Debug)]
struct Planned<W> {
    fault: Fault<W>,
    tally: Arc<Tally>,
}

/// The faults that strike a request.
#[derive(Debug, Default)]
pub(crate) struct RequestFaults {
    /// The time during which the request is on its way.
    pub(crate) in_flight: Delay,
    pub(crate) before: Delay,
    pub(crate) after: Delay,
    /// The fault that is not a delay.
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
    pub(crate) what: OnRequest,
    pub(crate) due: Due,
}

/// A snapshot of all faults of requests.
#[derive(Debug)]
pub(crate) struct FaultSnapshot {
    requests: Vec<Arc<Planned<OnRequest>>>,
    chaos: Vec<Arc<ActiveChaos>>,
}

/// The faults that strike an event.
#[derive(Debug, Default)]
pub(crate) struct EventFaults {
    pub(crate) lag: Duration,
    /// The event is held until these end.
    pub(crate) held: Vec<Hold>,
    /// The fault that is neither a lag nor a hold.
    pub(crate) fault: Option<EventFault>,
}

impl Book {
    pub(crate) fn plan<W: What>(&mut self, fault: Fault<W>) -> Injected {
        self.forget_ended();
        let tally = Tally::new(&self.strikes);
        self.tallies.push(Arc::clone(&tally));
        match W::sort(fault) {
            Either::Request(fault) => self.requests.push(Arc::new(Planned {
                fault,
                tally: Arc::clone(&tally),
            })),
            Either::Event(fault) => self.events.push(Planned {
                fault,
                tally: Arc::clone(&tally),
            }),
        }
        Injected(tally)
    }

    pub(crate) fn start_chaos(&mut self, mix: Chaos) -> Injected {
        self.forget_ended();
        let active = ActiveChaos::new(mix, Tally::new(&self.strikes));
        let tally = Arc::clone(&active.tally);
        self.tallies.push(Arc::clone(&tally));
        self.chaos.push(Arc::new(active));
        Injected(tally)
    }

    /// Ends all faults.
    pub(crate) fn end(&mut self) {
        for tally in &self.tallies {
            tally.end();
        }
        self.forget_ended();
    }

    /// Returns all strikes so far, in order.
    pub(crate) fn strikes(&self) -> Vec<Strike> {
        self.strikes.lock().clone()
    }

    fn forget_ended(&mut self) {
        self.requests.retain(|planned| !planned.tally.is_ended());
        self.events.retain(|planned| !planned.tally.is_ended());
        self.tallies.retain(|tally| !tally.is_ended());
        self.chaos.retain(|chaos| !chaos.is_over());
    }

    /// Returns a snapshot of the request faults, if there are any. Its use does not lock the
    /// book, so a user's predicate may use the book.
    pub(crate) fn snapshot(&self) -> Option<FaultSnapshot> {
        (!self.requests.is_empty() || !self.chaos.is_empty()).then(|| FaultSnapshot {
            requests: self.requests.clone(),
            chaos: self.chaos.clone(),
        })
    }

    pub(crate) fn event_faults(&self, event: &Delivery<'_>) -> EventFaults {
        let mut event_faults = EventFaults::default();
        for planned in &self.events {
            let meets = planned.fault.target.meets_event(event);
            if planned.is_struck(meets, || takes_event(&event_faults, &planned.fault.what)) {
                planned.settle(event.to_string()).happens();
                event_faults.add(&planned.fault.what, || planned.tally.hold(None));
            }
        }
        for chaos in &self.chaos {
            if let Some((what, due)) = chaos.event(event, |what| takes_event(&event_faults, what)) {
                due.happens();
                event_faults.add(&what, || chaos.hold());
            }
        }
        event_faults
    }
}

impl FaultSnapshot {
    pub(crate) fn request_faults(&self, request: &RequestRecord) -> RequestFaults {
        let mut faults = RequestFaults::default();
        for planned in &self.requests {
            let meets = planned.fault.target.meets_request(request);
            if planned.is_struck(meets, || takes_request(&faults, &planned.fault.what)) {
                let due = planned.settle(request.to_string());
                faults.add(planned.fault.what.clone(), due);
            }
        }
        for chaos in &self.chaos {
            let takes = |what: &OnRequest| takes_request(&faults, what);
            if let Some((what, due)) = chaos.request(request, takes) {
                faults.add(what, due);
            }
        }
        faults
    }
}

/// Returns whether a fault can be added: delays add up, of other faults only one strikes.
fn takes_request(faults: &RequestFaults, what: &OnRequest) -> bool {
    matches!(
        what.fault,
        RequestFault::Delayed(_) | RequestFault::InFlight(_)
    ) || (faults.early.is_none() && faults.late.is_none())
}

fn takes_event(event_faults: &EventFaults, what: &OnEvent) -> bool {
    matches!(what.0, EventFault::Late(_) | EventFault::Held) || event_faults.fault.is_none()
}

impl<W: std::fmt::Display> Planned<W> {
    fn is_struck(&self, meets: bool, is_free: impl FnOnce() -> bool) -> bool {
        if !meets || self.tally.is_ended() {
            return false;
        }
        // Under one lock, so that concurrent requests do not exceed the limit of strikes.
        let mut counts = self.tally.counts();
        counts.matched += 1;
        let is_struck = self.fault.window.admits(counts.matched, counts.settled) && is_free();
        counts.settled += u64::from(is_struck);
        is_struck
    }

    fn settle(&self, on: String) -> Due {
        self.tally.settle(self.fault.what.to_string(), on)
    }
}

impl RequestFaults {
    fn add(&mut self, what: OnRequest, due: Due) {
        match what.fault {
            RequestFault::Delayed(time) | RequestFault::InFlight(time) if what.after_commit => {
                self.after.add(time, due);
            }
            RequestFault::Delayed(time) => self.before.add(time, due),
            RequestFault::InFlight(time) => self.in_flight.add(time, due),
            RequestFault::Cut(_) => self.late = Some(TerminalFault { what, due }),
            _ if what.after_commit => self.late = Some(TerminalFault { what, due }),
            _ => self.early = Some(TerminalFault { what, due }),
        }
    }
}

impl Delay {
    fn add(&mut self, time: Duration, due: Due) {
        self.time = self.time.saturating_add(time);
        self.dues.push(due);
    }
}

impl EventFaults {
    fn add(&mut self, what: &OnEvent, hold: impl FnOnce() -> Hold) {
        match what.0 {
            EventFault::Late(time) => self.lag = self.lag.saturating_add(time),
            EventFault::Held => self.held.push(hold()),
            fault => self.fault = Some(fault),
        }
    }
}
