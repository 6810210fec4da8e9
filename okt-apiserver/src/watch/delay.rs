//! Determines the faults of events, and delays or merges the events accordingly.

use std::time::Duration;

use tokio::time::Instant;

use super::Watch;
use super::pending::Pending;
use super::seen::SeenChange;
use crate::convert::stored_id;
use crate::faults::{Delivery, EventFaults, EventKind, FaultKind};

impl Watch {
    /// Determines the faults of an event, and sends it unless they delay it.
    pub(super) fn schedule(&mut self, seen: SeenChange) {
        if seen.is_decided {
            return self.send(&seen, None);
        }
        let snapshot = self.audience.shared.book().snapshot();
        let Some(snapshot) = snapshot else {
            return self.send(&seen, None);
        };
        let resource = stored_id(&self.selection.kind);
        let EventFaults { lag, held, fault } = snapshot.of_event(&Delivery {
            client: &self.audience.client,
            replica: self.audience.replica_view.name(),
            resource: &resource,
            namespace: &seen.key.namespace,
            name: &seen.key.name,
            kind: seen.kind,
        });
        // An event that waited behind another one has waited already.
        let opens = later(seen.came, lag);
        let merges = match fault {
            Some((FaultKind::MergeEvents, within)) if !self.closed => Some(later(opens, within)),
            _ => None,
        };
        let fault = fault.map(|(fault, _)| fault);
        let is_open = lag.is_zero() && held.is_empty();
        if is_open && merges.is_none() {
            return self.send(&seen, fault);
        }
        self.pending = Some(Pending {
            seen,
            opens,
            held,
            is_open,
            merges,
            fault,
        });
        self.merge_pending();
    }

    /// Merges the pending event with the next event of its object, if that has arrived and nothing else delays the
    /// pending one.
    ///
    /// No event is moved behind a bookmark, because a bookmark guarantees that all earlier events were sent.
    pub(super) fn merge_pending(&mut self) {
        let waits = |pending: &mut Pending| pending.is_open && pending.wants_next();
        let Some(pending) = self.pending.take_if(waits) else {
            return;
        };
        let next = self
            .inbox
            .iter()
            .take_while(|seen| seen.kind != EventKind::Bookmark)
            .position(|seen| seen.is_about(&pending.seen));
        match next.and_then(|index| Some((index, self.inbox.remove(index)?))) {
            Some((index, next)) => {
                if let Some(merged) = pending.seen.merge(next) {
                    self.inbox.insert(index, merged);
                }
            }
            None => self.pending = Some(pending),
        }
    }

    /// Marks the watch as closed, because no more changes come; sends an event that waited only for a merge.
    pub(super) fn close(&mut self) {
        self.closed = true;
        if let Some(pending) = &mut self.pending {
            pending.merges = None;
            if pending.is_open {
                self.let_go();
            }
        }
    }

    /// Sends the pending event after its delay, or starts to wait for the event to merge with.
    pub(super) fn let_go(&mut self) {
        if let Some(pending) = &mut self.pending
            && !pending.is_open
        {
            pending.is_open = true;
            if pending.wants_next() {
                return self.merge_pending();
            }
        }
        if let Some(pending) = self.pending.take() {
            self.send(&pending.seen, pending.fault);
        }
    }
}

/// Adds a time to a moment; a time that is too long for the clock counts as 30 days.
fn later(moment: Instant, time: Duration) -> Instant {
    const MONTH: Duration = Duration::from_hours(24 * 30);
    moment.checked_add(time).unwrap_or_else(|| moment + MONTH)
}
