//! The input of a decision: the object, the findings of this reconciliation and the memory, as ids and counters.

use std::time::Duration;

use kube::Resource;
use okt_core::reconcile::{Asked, Facts, OwnedFacts, PassFacts, WorkFacts, WriteFacts};
use okt_core::{Lifecycle, StateId};

use super::observe::Findings;
use super::round::Reconciliation;
use super::stored::position_of;
use crate::author::application::{Application, StateOf};
use crate::wire::object::has_lifecycle;
use crate::wire::status::Position;

impl<A: Application> Reconciliation<'_, A> {
    /// Returns the facts of this moment.
    pub(super) fn facts(&self) -> Facts<'_> {
        let (round, stored) = (&self.round, &self.round.stored);
        let meta = round.object.meta();
        Facts {
            asked: Asked {
                finalizer: stored.asked.finalizer && !self.memory.writes.released,
                ..stored.asked
            },
            sight: (round.findings.as_ref()).map_or_else(Default::default, Findings::facts),
            work: self.work(),
            pass: self.pass(),
            owned: OwnedFacts {
                kinds: !self.shared.cluster.watches.owned.is_empty(),
                // It counts only if nothing is recorded.
                any: stored.recorded.at().is_none() && self.shared.cluster.owns_anything(meta),
                standing: (round.is_applied).then(|| self.memory.owned.standing()),
                last: self.memory.owned.last(stored.transition()),
                cleared: round.cleared,
                due: self.memory.owned.due(),
            },
            operator: self.shared.operator(self.uid()),
            writes: WriteFacts {
                written: round.written,
                draft: round.draft.as_ref().map(|(draft, news, _)| (*draft, *news)),
                ..self.memory.facts_of_writes(meta)
            },
            time: stored.times(
                &self.shared.clock,
                self.observe_after(),
                self.shared.backoff,
                round.seed,
            ),
        }
    }

    fn work(&self) -> WorkFacts {
        let known = self.round.stored.work(&self.memory.work);
        WorkFacts {
            waits: known.waits.or(self.round.waits),
            ..known
        }
    }

    fn pass(&self) -> PassFacts {
        let (runs, seen) = (&self.memory.pass, &self.memory.seen);
        let is_alone = !has_lifecycle::<A::Resource>();
        let version = &self.round.object.meta().resource_version;
        PassFacts {
            ran: self.round.run.as_ref().map(|(_, ran)| *ran),
            last: runs.last,
            backoff: runs.wait(self.round.stored.asked.generation),
            due: runs.due(),
            named: self.round.is_named
                || (is_alone && (runs.is_unreported || self.round.stored.is_pause_news)),
            changed: !seen.reported || seen.version != *version,
        }
    }

    /// Returns how long until the application is observed again although nothing happened.
    fn observe_after(&self) -> Duration {
        let usual = self
            .state()
            .map(|it| self.shared.application.observe_every(it));
        self.memory.sight.observe_after(usual.unwrap_or_default())
    }

    /// Returns the state on record, if this graph has it.
    pub(super) fn state(&self) -> Option<StateOf<A>> {
        let record = self.round.stored.recorded.at()?;
        StateOf::<A>::from_id(record.state)
    }

    /// Returns the id of the state on record.
    pub(super) fn state_id(&self) -> StateId {
        self.state().map_or(StateId::UNKNOWN, Lifecycle::id)
    }

    pub(super) fn position(&self) -> Option<&Position<StateOf<A>>> {
        position_of::<A>(&self.round.object)
    }

    pub(super) fn uid(&self) -> &str {
        self.round.object.meta().uid.as_deref().unwrap_or_default()
    }
}
