//! The memory of an object's resources between reconciliations.

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

/// The memory of an object's resources between reconciliations; all of it may be lost at any time.
#[derive(Debug, Default)]
pub(crate) struct OwnedMemory {
    /// The last known status of the resources.
    pub(crate) settlement: OwnedStatus,
    /// The transition into the state for which this process determined that status, if any.
    found: Option<u64>,
    /// The transition into the recorded state.
    transition: u64,
    pub(crate) efforts: Efforts,
    accepted: Accepted,
    /// The marks that the object's status should record; none before the first apply.
    pub(crate) to_record: Option<Vec<String>>,
    /// Recorded marks of objects that are neither declared nor present, and since when.
    absent: BTreeMap<String, Instant>,
    /// When the resources are due again.
    pub(crate) due: Option<Instant>,
    /// Until when a slow deletion is not reported.
    pub(crate) patience: Option<Instant>,
}

impl OwnedMemory {
    /// Returns whether there is nothing to remember.
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
            // Counts only with a due time.
            patience: _,
        } = self;
        *settlement == OwnedStatus::AsDeclared
            && efforts.is_empty()
            && accepted.is_empty()
            && absent.is_empty()
            && due.is_none()
    }

    /// Returns the last known standing, if this process determined it in the state that this transition led to.
    pub(crate) fn last(&self, transition: u64) -> Option<Standing> {
        (self.found == Some(transition)).then(|| self.standing())
    }

    /// Returns the last known standing.
    pub(crate) fn standing(&self) -> Standing {
        match &self.settlement {
            OwnedStatus::AsDeclared => Standing::AsDeclared,
            OwnedStatus::Awaited(_) => Standing::Awaited,
            OwnedStatus::Failed(failure) => Standing::Failed {
                permanent: failure.is_permanent(),
            },
        }
    }

    /// Notes that the object is in the state that this transition led to, and forgets the standing of any other state.
    pub(crate) fn enter(&mut self, transition: u64) {
        self.transition = transition;
        if self.found.is_some_and(|found| found != transition) {
            self.found = None;
            self.settlement = OwnedStatus::AsDeclared;
        }
    }

    /// Returns whether the last attempt for all resources failed, for example because the handler returned an error.
    pub(crate) fn is_silent(&self) -> bool {
        self.efforts.has_failed(&None)
    }

    /// Returns how long until the resources are due again without an event.
    pub(crate) fn due(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Returns whether a backoff for all resources is running; unrelated events do not shorten it.
    pub(crate) fn waits(&self, pace: &Pace) -> bool {
        self.efforts.wait(&None, pace).is_some()
    }

    /// Notes that the handler or Kubernetes failed, and when to retry.
    pub(crate) fn failed(&mut self, failure: Failure, pace: &Pace) {
        let wait = (self.efforts).made(None, pace, Some(failure.clone()));
        self.due = Some(after(wait));
        self.tell(OwnedStatus::Failed(failure));
    }

    /// Applies the declared resources.
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
    fn a_standing_found_in_one_state_does_not_count_in_another() {
        let mut memory = OwnedMemory::default();
        memory.enter(1);
        assert_eq!(memory.last(1), None, "nothing was observed yet");
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
