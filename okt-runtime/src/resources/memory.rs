//! What is remembered of what an object owns, from turn to turn.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_core::reconcile::Standing;
use tokio::time::Instant;

use super::apply::{Accepted, ApplyReport, Applying, Leave, OwnedStatus};
use super::declared::Resources;
use super::efforts::{Efforts, Pace};
use super::site::Site;
use crate::clock::after;
use crate::failure::Failure;
use crate::wire::object::LifecycleObject;

/// What is remembered of an object's resources from turn to turn; all of it may be lost at any time.
#[derive(Debug, Default)]
pub(crate) struct OwnedMemory {
    /// How they stood at last.
    pub(crate) settlement: OwnedStatus,
    /// The transition into the state by which they stand so, if this process has found it.
    found: Option<u64>,
    /// The transition into the state on record.
    transition: u64,
    pub(crate) efforts: Efforts,
    accepted: Accepted,
    /// What the status is to record of them; none where nobody has looked.
    pub(crate) to_record: Option<Vec<String>>,
    /// Since when what is recorded is neither declared nor there.
    absent: BTreeMap<String, Instant>,
    /// When they are to be looked at again.
    pub(crate) due: Option<Instant>,
    /// Until when it is not reported that a deletion takes its time.
    pub(crate) patience: Option<Instant>,
}

impl OwnedMemory {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            settlement,
            found: _,
            transition: _,
            efforts,
            accepted,
            to_record: _,
            absent,
            due,
            // Nothing without a due time.
            patience: _,
        } = self;
        *settlement == OwnedStatus::AsDeclared
            && efforts.is_empty()
            && accepted.is_empty()
            && absent.is_empty()
            && due.is_none()
    }

    /// How they stood at last, if this process has found it in the state that this transition led to.
    pub(crate) fn last(&self, transition: u64) -> Option<Standing> {
        (self.found == Some(transition)).then(|| self.standing())
    }

    /// How they stood at last.
    pub(crate) fn standing(&self) -> Standing {
        match &self.settlement {
            OwnedStatus::AsDeclared => Standing::AsDeclared,
            OwnedStatus::Awaited(_) => Standing::Awaited,
            OwnedStatus::Failed(failure) => Standing::Failed {
                permanent: failure.is_permanent(),
            },
        }
    }

    /// The object is in the state that this transition led to: what was found by another one is not known of it.
    pub(crate) fn enter(&mut self, transition: u64) {
        self.transition = transition;
        if self.found.is_some_and(|found| found != transition) {
            self.found = None;
            self.settlement = OwnedStatus::AsDeclared;
        }
    }

    /// Whether the application did not say what is declared when it was asked last.
    pub(crate) fn is_silent(&self) -> bool {
        self.efforts.has_failed(&None)
    }

    /// How long until they are to be looked at again, although nothing happens.
    pub(crate) fn due(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Whether all of them wait; unrelated events do not bring that forward.
    pub(crate) fn waits(&self, pace: &Pace) -> bool {
        self.efforts.wait(&None, pace).is_some()
    }

    /// The application could not say, or Kubernetes did not do it.
    pub(crate) fn failed(&mut self, failure: Failure, pace: &Pace) {
        let wait = (self.efforts).made(None, pace, Some(failure.clone()));
        self.due = Some(after(wait));
        self.tell(OwnedStatus::Failed(failure));
    }

    /// Brings the cluster to what is declared.
    pub(crate) async fn apply<K: LifecycleObject>(
        &mut self,
        site: Site<'_, K>,
        pace: Pace,
        leave: Leave,
        declared: &Resources,
    ) -> ApplyReport {
        let applying = Applying {
            site,
            efforts: &mut self.efforts,
            accepted: &mut self.accepted,
            absent: &mut self.absent,
            leave,
            pace,
            applied: 0,
        };
        let report = applying.apply_all(declared).await;
        self.to_record = Some(report.to_record.iter().cloned().collect());
        report
    }

    pub(crate) fn tell(&mut self, settlement: OwnedStatus) {
        if let OwnedStatus::Failed(failure) = &settlement
            && self.settlement != settlement
        {
            tracing::warn!("{failure}");
        }
        self.found = Some(self.transition);
        self.settlement = settlement;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_in_one_state_is_not_known_of_another() {
        let mut memory = OwnedMemory::default();
        memory.enter(1);
        assert_eq!(memory.last(1), None, "nobody has looked");
        memory.tell(OwnedStatus::Awaited("a map".to_owned()));
        assert_eq!(memory.last(1), Some(Standing::Awaited));
        assert_eq!(
            memory.last(2),
            None,
            "another operator has moved the object"
        );
        memory.enter(2);
        assert_eq!((memory.last(2), memory.is_empty()), (None, true));
    }
}
