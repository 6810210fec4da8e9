//! What is remembered of what an object owns, from turn to turn.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_core::reconcile::Standing;
use tokio::time::Instant;

use super::declared::Resources;
use super::efforts::{Efforts, Pace};
use super::settle::{Accepted, Leave, Settled, Settlement, Settling};
use super::site::Site;
use crate::clock::after;
use crate::failure::Failure;
use crate::wire::object::LifecycleObject;

/// What is remembered of an object's resources from turn to turn; all of it may be lost at any time.
#[derive(Debug, Default)]
pub(crate) struct Tended {
    /// How they stood at last.
    pub(crate) settlement: Settlement,
    /// This process has looked how they stand.
    looked_at: bool,
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

impl Tended {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            settlement,
            looked_at: _,
            efforts,
            accepted,
            to_record: _,
            absent,
            due,
            // Nothing without a due time.
            patience: _,
        } = self;
        *settlement == Settlement::AsDeclared
            && efforts.is_empty()
            && accepted.is_empty()
            && absent.is_empty()
            && due.is_none()
    }

    /// How they stood at last, if this process has found it.
    pub(crate) fn last(&self) -> Option<Standing> {
        self.looked_at.then(|| self.standing())
    }

    /// How they stood at last.
    pub(crate) fn standing(&self) -> Standing {
        match &self.settlement {
            Settlement::AsDeclared => Standing::AsDeclared,
            Settlement::Awaited(_) => Standing::Awaited,
            Settlement::Failed(failure) => Standing::Failed {
                permanent: failure.is_permanent(),
            },
        }
    }

    /// The object is in another state: how they stand by that is not known.
    pub(crate) fn forget_standing(&mut self) {
        self.looked_at = false;
        self.settlement = Settlement::AsDeclared;
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
        self.tell(Settlement::Failed(failure));
    }

    /// Brings the cluster to what is declared.
    pub(crate) async fn settle<K: LifecycleObject>(
        &mut self,
        site: Site<'_, K>,
        pace: Pace,
        leave: Leave,
        declared: &Resources,
    ) -> Settled {
        let settling = Settling {
            site,
            efforts: &mut self.efforts,
            accepted: &mut self.accepted,
            absent: &mut self.absent,
            leave,
            pace,
            applied: 0,
        };
        let settled = settling.settle(declared).await;
        self.to_record = Some(settled.to_record.iter().cloned().collect());
        settled
    }

    pub(crate) fn tell(&mut self, settlement: Settlement) {
        if let Settlement::Failed(failure) = &settlement
            && self.settlement != settlement
        {
            tracing::warn!("{failure}");
        }
        self.looked_at = true;
        self.settlement = settlement;
    }
}
