//! The findings of one reconciliation; none of them outlives it.

use alloc::vec::Vec;
use core::time::Duration;

use super::draft::{Draft, WorkChange};
use super::facts::{PassResult, StatusDiff, Waits};
use super::object::Object;
use super::results::WriteError;
use super::time::Time;
use crate::facts::Observed;
use crate::gate::Gates;
use crate::graph::StateId;

/// The findings of one reconciliation; none of them outlives it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a finding of its own; few combinations are excluded"
)]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Findings {
    /// A reconciliation is under way.
    pub(super) is_begun: bool,
    /// The object at hand: as it was read, then from the answers to writes.
    pub(super) object: Object,
    /// When it was read.
    pub(super) read_at: Time,
    /// The number of effects so far.
    pub(super) effects: u8,
    /// The result of the last effect is not reported yet.
    pub(super) is_pending: bool,
    /// A reconcile request named the object.
    pub(super) is_named: bool,
    /// The CRD or the leadership has changed since it began: what was found may be outdated.
    pub(super) is_reopened: bool,
    /// The observation.
    pub(super) observed: Option<Observed>,
    /// The states that the observation named as events.
    pub(super) events: Vec<StateId>,
    /// Nothing can be observed: time alone is no reason to observe again.
    pub(super) is_unobservable: bool,
    /// A write has acted upon the observation.
    pub(super) is_observation_spent: bool,
    /// When the application was called, the work had ended.
    pub(super) had_ended: bool,
    /// The run of the pass.
    pub(super) pass: Option<PassResult>,
    /// The owned resources were applied.
    pub(super) is_applied: bool,
    /// Whether nothing is left that Kubernetes does not delete with the object.
    pub(super) cleared: Option<bool>,
    /// The last draft, and how it differs from the stored status.
    pub(super) draft: Option<(Draft, StatusDiff)>,
    /// The draft that was written last.
    pub(super) written: Option<Draft>,
    /// Others left something in the status that is to be removed now.
    pub(super) leftovers: bool,
    /// The request that the API server has.
    pub(super) confirmed: Option<u64>,
    /// The limits that were asked for a place for this version of the object.
    pub(super) asked_limits: Gates,
    /// The limits in which a move of this version of the object was to be registered.
    pub(super) forced_limits: Gates,
    /// What the start of work waits for.
    pub(super) waits: Option<Waits>,
    /// A write has failed.
    pub(super) failed: Option<WriteError>,
}

impl Findings {
    pub(super) fn of(object: &Object, now: Time) -> Self {
        Self {
            is_begun: true,
            object: *object,
            read_at: now,
            ..Self::default()
        }
    }

    /// Returns how often the application is observed if nothing happens.
    pub(super) fn observe_every(&self) -> Duration {
        if self.is_unobservable {
            Duration::MAX
        } else {
            self.object.observe_every
        }
    }

    /// Replaces the object by the answer of the API server.
    pub(super) fn became(&mut self, object: &Object, now: Time) {
        (self.object, self.read_at) = (*object, now);
        self.draft = None;
        (self.asked_limits, self.forced_limits) = (Gates::NONE, Gates::NONE);
    }

    /// Forgets the observation: it may be older than what has happened since.
    pub(super) fn forget_observation(&mut self) {
        (self.observed, self.is_observation_spent) = (None, false);
        self.events.clear();
    }

    /// Notes that a draft has taken effect. An observation that it acts upon serves one decision; findings about the
    /// cluster serve one state.
    pub(super) fn consume(&mut self, draft: &Draft, is_written: bool) {
        self.draft = None;
        self.written = is_written.then_some(*draft);
        if draft.work != WorkChange::Keep {
            self.observed.get_or_insert(Observed::Unobserved);
            self.is_observation_spent = true;
        }
        if draft.is_move() {
            (self.is_applied, self.cleared) = (false, None);
        }
    }
}
