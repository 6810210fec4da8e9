//! The memory of an object's resources between reconciliations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use okt_reach::Failure;
use tokio::time::Instant;

use super::apply::{Accepted, AllowedWrites, Applying};
use super::attempts::{Attempts, LastAttempt, Pace};
use super::declared::Resources;
use super::names::Key;
use super::report::{ApplyReport, OwnedStatus};
use super::site::Site;

/// How long an application is asked what to keep of an object that is being deleted.
const ASKED: Duration = Duration::from_mins(10);

/// The memory of an object's resources between reconciliations; all of it may be lost at any time.
#[derive(Debug, Default)]
pub struct OwnedMemory {
    /// The last known status of the resources, as text.
    pub(crate) status: OwnedStatus,
    /// The attempts to learn which resources are declared, if the last one failed.
    declaring: Option<LastAttempt>,
    attempts: Attempts,
    accepted: Accepted,
    /// What the object's status should record; none before the first apply.
    pub to_record: Option<Vec<String>>,
    /// The attempts on recorded objects that the cache does not show, by their entries.
    lookups: Attempts<String>,
    /// Recorded objects that stay although they are not declared, and when they were looked up.
    stays: BTreeMap<String, Instant>,
    /// The uids of resources that were deleted.
    deleted: BTreeSet<String>,
    /// Rollouts that wait for Pods of an earlier revision, each with the new revision, and since when.
    behind: BTreeMap<Key, (String, Instant)>,
}

impl OwnedMemory {
    /// Returns whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            // It means nothing without what the machine remembers of it.
            status: _,
            declaring,
            attempts,
            accepted,
            to_record: _,
            lookups,
            // The next request to the API server shows whether they are gone.
            deleted: _,
            behind,
            stays,
        } = self;
        declaring.is_none()
            && attempts.is_empty()
            && accepted.is_empty()
            && lookups.is_empty()
            && behind.is_empty()
            && stays.is_empty()
    }

    /// Returns whether the application did not return which resources it declares.
    pub(crate) fn is_silent(&self) -> bool {
        self.declaring.is_some()
    }

    /// Returns whether the application has not returned for so long which resources it declares that a deletion goes on by
    /// what is on record: what it needs to return them may be gone for ever.
    pub(crate) fn goes_by_record(&self) -> bool {
        self.declaring
            .as_ref()
            .is_some_and(|attempt| attempt.age() >= ASKED)
    }

    /// Returns whether the backoff after [`failed`](Self::failed) is running; unrelated events do not shorten it.
    pub(crate) fn waits(&self, pace: &Pace) -> bool {
        self.declaring
            .as_ref()
            .is_some_and(|attempt| attempt.wait(pace).is_some())
    }

    /// Notes that it is not known which resources are declared; returns how long until they are asked for again.
    pub(crate) fn failed(&mut self, failure: Failure, pace: &Pace) -> Duration {
        let attempt = LastAttempt::after(self.declaring.as_ref(), pace, Some(failure.clone()));
        // A deletion goes on then.
        let left = ASKED.saturating_sub(attempt.age());
        let wait = attempt.backoff(pace);
        let wait = if left.is_zero() { wait } else { wait.min(left) };
        self.declaring = Some(attempt);
        self.note(OwnedStatus::Failed(failure));
        wait
    }

    /// Notes that the declared resources are known.
    pub(crate) fn declared(&mut self) {
        self.declaring = None;
    }

    /// Applies the declared resources.
    ///
    /// Boxed, as [`clear`](Self::clear), so that everything in it is compiled here, and not once more for each
    /// application.
    pub fn apply<'a>(
        &'a mut self,
        site: Site<'a>,
        pace: Pace,
        leave: AllowedWrites,
        declared: &'a Resources,
    ) -> BoxFuture<'a, ApplyReport> {
        async move {
            let report = self.applying(site, pace).apply(declared, leave).await;
            self.to_record = Some(report.to_record.iter().cloned().collect());
            report
        }
        .boxed()
    }

    /// Deletes the resources that Kubernetes does not delete with their owner, except kept ones.
    pub(crate) fn clear<'a>(
        &'a mut self,
        site: Site<'a>,
        pace: Pace,
        kept: &'a Resources,
    ) -> BoxFuture<'a, ApplyReport> {
        self.applying(site, pace).clear(kept).boxed()
    }

    fn applying<'a>(&'a mut self, site: Site<'a>, pace: Pace) -> Applying<'a> {
        Applying {
            attempts: &mut self.attempts,
            accepted: &mut self.accepted,
            inventory: site.inventory(),
            site,
            lookups: &mut self.lookups,
            deleted: &mut self.deleted,
            stays: &mut self.stays,
            behind: &mut self.behind,
            pace,
            report: ApplyReport::default(),
            has_seen_owner: false,
        }
    }

    /// Notes the status of the resources, and logs a failure when it is new.
    pub(crate) fn note(&mut self, status: OwnedStatus) {
        if let OwnedStatus::Failed(failure) = &status
            && self.status != status
        {
            tracing::warn!("{failure}");
        }
        self.status = status;
    }
}
