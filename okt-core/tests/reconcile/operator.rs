//! This file defines a process of the operator, and the findings of its reconciliation.

use okt_core::facts::Observed;
use okt_core::reconcile::{Draft, News, Ran, Standing, Waits};

use crate::event::StepAnswer;
use crate::memory::{Memory, WorkId};
use crate::object::Object;

/// A process of the operator.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; few combinations are excluded"
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct OperatorFacts {
    /// The number of the process, from 0.
    pub(crate) number: u8,
    pub(crate) leads: bool,
    pub(crate) draining: bool,
    /// The object as the cache has it.
    pub(crate) cache: Object,
    pub(crate) memory: Memory,
    /// The reconciliation under way.
    pub(crate) round: Option<Round>,
    /// The object waits for its reconciliation.
    pub(crate) queued: bool,
    /// The last reconciliation asked for another one after a time.
    pub(crate) has_timer: bool,
    /// An operator that shuts down waits for the object, according to the last reconciliation.
    pub(crate) is_under_way: bool,
    /// The newest work that this process has recorded. For a rule: it is not part of the facts.
    pub(crate) newest_work: WorkId,
    /// The work and the attempt that this process started last. For a rule.
    pub(crate) begun_last: (WorkId, u32),
    /// The work whose result this process has, or has recorded. For a rule.
    pub(crate) ended_last: Option<WorkId>,
    /// This process knows that it has removed the finalizer. For a rule.
    pub(crate) has_let_go: bool,
}

/// The findings of one reconciliation. None of them outlives it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Round {
    /// The object at hand: from the cache, then from the answers to writes.
    pub(crate) object: Object,
    pub(crate) effects: u8,
    pub(crate) observed: Option<Observed>,
    pub(crate) is_observation_spent: bool,
    /// Work has changed since the observation. For a rule: it is not part of the facts.
    pub(crate) has_acted: bool,
    pub(crate) run: Option<Run>,
    pub(crate) standing: Option<Standing>,
    pub(crate) cleared: Option<bool>,
    pub(crate) draft: Option<(Draft, News)>,
    /// The draft that was written last.
    pub(crate) written: Option<Draft>,
    /// The obstacle that the start of the work met.
    pub(crate) waits: Option<Waits>,
    pub(crate) is_named: bool,
}

/// A run of the pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Run {
    pub(crate) ran: Ran,
    /// The step that did not simply succeed, and its answer.
    pub(crate) unusual: Option<(u8, StepAnswer)>,
}

impl OperatorFacts {
    /// Starts a process: it knows only the object of its first list.
    pub(crate) fn started(number: u8, object: Object) -> Self {
        Self {
            number,
            leads: true,
            draining: false,
            cache: object,
            memory: Memory::default(),
            round: None,
            queued: true,
            has_timer: false,
            is_under_way: false,
            newest_work: WorkId::default(),
            begun_last: (WorkId::default(), 0),
            ended_last: None,
            has_let_go: false,
        }
    }

    /// Returns whether the operator takes a decision next.
    pub(crate) fn is_active(&self) -> bool {
        self.queued || self.round.is_some()
    }

    /// Returns the reconciliation that is under way, or the one that would begin now.
    pub(crate) fn round(&self) -> Round {
        self.round.unwrap_or(Round {
            object: self.cache,
            effects: 0,
            observed: None,
            is_observation_spent: false,
            has_acted: false,
            run: None,
            standing: None,
            cleared: None,
            draft: None,
            written: None,
            waits: None,
            is_named: self.memory.is_named,
        })
    }
}
