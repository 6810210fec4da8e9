//! The memory of owned resources: their last status, the state for which it was determined, and when they are due.

use core::time::Duration;

use super::draft::ResourceStatus;
use super::facts::ResourceFacts;
use super::findings::Findings;
use super::results::{ApplyResult, ClearResult};
use super::time::Time;
use crate::graph::StateId;

/// How long a deletion, or the delivery of the last transitions, may take before the conditions report it: most are over
/// at once.
const LINGER: Duration = Duration::from_secs(1);

/// How long until a deletion is checked again, in case its event is lost.
const CLEARING: Duration = Duration::from_secs(30);

/// The memory of an object's resources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ResourceMemory {
    /// The last known status.
    pub(super) status: ResourceStatus,
    /// The transition into the state for which this process determined that status, if any.
    pub(super) found: Option<u64>,
    /// The edge for a change that leads to where an outdated one may change.
    pub(super) outdated: Option<StateId>,
    /// A hash of the declared ones that change in some states only, once it is known.
    pub(super) content: Option<u64>,
    /// The transition into the recorded state.
    pub(super) transition: u64,
    /// When the resources are due again.
    pub(super) due: Option<Time>,
    /// Until when a slow deletion is not reported.
    pub(super) patience: Option<Time>,
    /// Until when a slow delivery of the last transitions is not reported.
    pub(super) delivery_patience: Option<Time>,
}

impl ResourceMemory {
    /// Returns whether there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            status,
            outdated,
            content: _,
            found: _,
            transition: _,
            due,
            // These count only with a due time.
            patience: _,
            delivery_patience: _,
        } = self;
        *status == ResourceStatus::AsDeclared && due.is_none() && outdated.is_none()
    }

    pub(super) fn facts(&self, kinds: bool, findings: &Findings, now: Time) -> ResourceFacts {
        ResourceFacts {
            kinds,
            status: findings.is_applied.then_some(self.status),
            last: (self.found == Some(findings.object.transition())).then_some(self.status),
            cleared: findings.cleared,
            due: self.due.map(|due| due.left(now)),
        }
    }

    /// Returns the edge that an outdated one raises, and the hash of those that change in some states only.
    pub(super) fn changes(&self, findings: &Findings) -> (Option<StateId>, Option<u64>) {
        if self.found == Some(findings.object.transition()) {
            (self.outdated, self.content)
        } else {
            (None, None)
        }
    }

    /// Notes that the object is in the state that this transition led to, and forgets the status of any other state.
    pub(super) fn enter(&mut self, transition: u64) {
        self.transition = transition;
        if self.found.is_some_and(|found| found != transition) {
            self.found = None;
            (self.outdated, self.content) = (None, None);
            self.status = ResourceStatus::AsDeclared;
        }
    }

    fn note(&mut self, status: ResourceStatus, due: Option<Time>) {
        self.found = Some(self.transition);
        (self.status, self.due) = (status, due);
    }

    /// Takes the result of applying the resources.
    pub(super) fn applied(&mut self, result: ApplyResult, now: Time) {
        if let ApplyResult::Applied {
            status,
            due,
            outdated,
            content,
        } = result
        {
            self.note(status, due.map(|due| now.after(due)));
            (self.outdated, self.content) = (outdated, content);
        }
    }

    /// Takes the result of deleting the resources. Returns whether the conditions are to report what is left.
    pub(super) fn cleared(&mut self, result: ClearResult, now: Time) -> bool {
        match result {
            ClearResult::Cleared | ClearResult::Waits => false,
            ClearResult::Failed { permanent, due } => {
                let due = due.map(|due| now.after(due));
                self.note(ResourceStatus::Failed { permanent }, due);
                true
            }
            ClearResult::Deleted => {
                self.patience = Some(now.after(LINGER));
                self.note(ResourceStatus::AsDeclared, self.patience);
                false
            }
            ClearResult::Awaited if self.patience.is_some_and(|until| now < until) => {
                self.due = self.patience;
                false
            }
            ClearResult::Awaited => {
                self.note(ResourceStatus::Awaited, Some(now.after(CLEARING)));
                true
            }
            ClearResult::Undelivered { patience } => {
                let until = *self.delivery_patience.get_or_insert(now.after(LINGER));
                if now < until {
                    self.due = Some(until);
                    return false;
                }
                let failed = ResourceStatus::Failed { permanent: false };
                self.note(failed, Some(now.after(patience)));
                true
            }
        }
    }
}
