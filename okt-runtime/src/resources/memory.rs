//! The memory of an object's resources between reconciliations.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_core::reconcile::Standing;
use tokio::time::Instant;

use super::apply::{Accepted, Applying, Leave};
use super::attempts::{Attempts, LastAttempt, Pace};
use super::declared::Resources;
use super::report::{ApplyReport, OwnedStatus};
use super::site::Site;
use crate::clock::after;
use crate::failure::Failure;
use crate::wire::object::LifecycleObject;

/// The memory of an object's resources between reconciliations; all of it may be lost at any time.
#[derive(Debug, Default)]
pub(crate) struct OwnedMemory {
    /// The last known status of the resources.
    pub(crate) status: OwnedStatus,
    /// The transition into the state for which this process determined that status, if any.
    found: Option<u64>,
    /// The transition into the recorded state.
    transition: u64,
    /// The attempts to learn which resources are declared, if the last one failed.
    declaring: Option<LastAttempt>,
    attempts: Attempts,
    accepted: Accepted,
    /// The marks that the object's status should record; none before the first apply.
    pub(crate) to_record: Option<Vec<String>>,
    /// Recorded marks of objects that are neither declared nor present, and since when.
    absent: BTreeMap<String, Instant>,
    /// When the resources are due again.
    pub(crate) due: Option<Instant>,
    /// Until when a slow deletion is not reported.
    pub(crate) patience: Option<Instant>,
    /// Until when a slow delivery of the last transitions is not reported.
    pub(crate) delivery_patience: Option<Instant>,
}

impl OwnedMemory {
    /// Returns whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            status,
            found: _,
            transition: _,
            declaring,
            attempts,
            accepted,
            to_record: _,
            absent,
            due,
            // These count only with a due time.
            patience: _,
            delivery_patience: _,
        } = self;
        *status == OwnedStatus::AsDeclared
            && declaring.is_none()
            && attempts.is_empty()
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
        match &self.status {
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
            self.status = OwnedStatus::AsDeclared;
        }
    }

    /// Returns whether the application did not say which resources it declares.
    pub(crate) fn is_silent(&self) -> bool {
        self.declaring.is_some()
    }

    /// Returns how long until the resources are due again without an event.
    pub(crate) fn due(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Returns whether the backoff after [`failed`](Self::failed) is running; unrelated events do not shorten it.
    pub(crate) fn waits(&self, pace: &Pace) -> bool {
        (self.declaring.as_ref()).is_some_and(|attempt| attempt.wait(pace).is_some())
    }

    /// Notes that it is not known which resources are declared, and when to ask again.
    pub(crate) fn failed(&mut self, failure: Failure, pace: &Pace) {
        let attempt = LastAttempt::after(self.declaring.as_ref(), pace, Some(failure.clone()));
        self.due = Some(after(attempt.backoff(pace)));
        self.declaring = Some(attempt);
        self.note(OwnedStatus::Failed(failure));
    }

    /// Notes that the declared resources are known.
    pub(crate) fn declared(&mut self) {
        self.declaring = None;
    }

    /// Applies the declared resources.
    pub(crate) async fn apply<K: LifecycleObject>(
        &mut self,
        site: Site<'_, K>,
        pace: Pace,
        leave: Leave,
        declared: &Resources,
    ) -> ApplyReport {
        let report = self.applying(site, pace).apply(declared, leave).await;
        self.to_record = Some(report.to_record.iter().cloned().collect());
        report
    }

    /// Deletes the resources that Kubernetes does not delete with their owner, except kept ones.
    pub(crate) async fn clear<K: LifecycleObject>(
        &mut self,
        site: Site<'_, K>,
        pace: Pace,
        kept: &Resources,
    ) -> ApplyReport {
        self.applying(site, pace).clear(kept).await
    }

    fn applying<'a, K>(&'a mut self, site: Site<'a, K>, pace: Pace) -> Applying<'a, K> {
        Applying {
            site,
            attempts: &mut self.attempts,
            accepted: &mut self.accepted,
            absent: &mut self.absent,
            pace,
            report: ApplyReport::default(),
        }
    }

    /// Notes the status of the resources, and logs a failure when it is new.
    pub(crate) fn note(&mut self, status: OwnedStatus) {
        if let OwnedStatus::Failed(failure) = &status
            && self.status != status
        {
            tracing::warn!("{failure}");
        }
        self.found = Some(self.transition);
        self.status = status;
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
        memory.note(OwnedStatus::Awaited("a map".to_owned()));
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
