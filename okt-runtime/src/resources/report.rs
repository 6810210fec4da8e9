//! The result of one run of applying or deleting the resources of an object.

use std::collections::BTreeSet;
use std::time::Duration;

use okt_core::conditions;
use okt_core::machine::ResourceStatus;
use okt_core::pass::Operations;
use okt_reach::Failure;
use okt_telemetry::event::Event;

use super::site::listed;

/// The status of the resources of an object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum OwnedStatus {
    /// All resources are as declared, and ready if the declaration requires it.
    #[default]
    AsDeclared,
    /// A resource is not ready yet, or not gone yet: which one, and why.
    Awaited(String),
    /// A request or a declaration failed.
    Failed(Failure),
}

impl OwnedStatus {
    /// Returns the status without its texts, for a decision.
    pub(crate) fn numbers(&self) -> ResourceStatus {
        match self {
            Self::AsDeclared => ResourceStatus::AsDeclared,
            Self::Awaited(_) => ResourceStatus::Awaited,
            Self::Failed(failure) => ResourceStatus::Failed {
                permanent: failure.is_permanent(),
            },
        }
    }

    /// Converts the status for the conditions.
    pub(crate) fn words(&self) -> conditions::OwnedWords<'_> {
        match self {
            Self::AsDeclared => conditions::OwnedWords::AsDeclared,
            Self::Awaited(what) => conditions::OwnedWords::Awaited(what),
            Self::Failed(failure) => conditions::OwnedWords::Failed {
                reason: failure.reason(),
                message: failure.message(),
                permanent: failure.is_permanent(),
            },
        }
    }
}

/// The findings of one run, each with the index of its declaration, or none for the objects that have to go.
#[derive(Default)]
pub struct ApplyReport {
    /// What failed.
    pub failures: Vec<(Option<usize>, Failure)>,
    /// What is not ready yet or not gone yet, and why.
    pub(crate) awaited: Vec<(Option<usize>, String)>,
    /// How long until the resources are due again.
    pub(crate) due: Option<Duration>,
    /// The declarations of outdated objects, which may change in other states only.
    pub(crate) outdated: Vec<usize>,
    /// The declarations whose object exists, ready or not.
    pub(crate) made: BTreeSet<usize>,
    /// The declarations that work on the way out of an object waits for.
    pub(super) needed: BTreeSet<usize>,
    /// What others did to declared objects, and OKT has repaired.
    pub(crate) repairs: Vec<Event>,
    /// Counts of the requests made.
    pub(crate) operations: Operations,
    /// What the object's status should record.
    pub(crate) to_record: BTreeSet<String>,
}

impl ApplyReport {
    /// Returns the status of all resources together: the first failure, or all that is awaited.
    pub(crate) fn status(&self) -> OwnedStatus {
        match (self.failures.first(), self.awaited.is_empty()) {
            (Some((_, failure)), _) => OwnedStatus::Failed(failure.clone()),
            (None, true) => OwnedStatus::AsDeclared,
            (None, false) => {
                let awaited: Vec<&str> = self.awaited.iter().map(|(_, what)| &**what).collect();
                OwnedStatus::Awaited(listed(&awaited))
            }
        }
    }

    /// Returns whether an object is outdated, and may change in other states only.
    pub fn has_outdated(&self) -> bool {
        !self.outdated.is_empty()
    }

    /// Leaves out what work on the way out does not wait for.
    pub(super) fn keep_needed(&mut self) {
        let is_needed = |index: &Option<usize>| index.is_some_and(|it| self.needed.contains(&it));
        self.failures.retain(|(index, _)| is_needed(index));
        self.awaited.retain(|(index, _)| is_needed(index));
    }

    pub(super) fn due_in(&mut self, wait: Duration) {
        self.due = Some(self.due.map_or(wait, |due| due.min(wait)));
    }

    /// Notes a failure and when to retry.
    pub(super) fn retries(&mut self, index: Option<usize>, failure: Failure, wait: Duration) {
        self.failures.push((index, failure));
        self.due_in(wait);
    }
}
