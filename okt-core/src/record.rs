//! What is persisted of an object's life, as numbers, and how a decision changes it.

use crate::decide::{By, Decision, Ending, Go, Run, Stand, Why};
use crate::facts::{Facts, Named, Said, Task};
use crate::graph::{Graph, Mark, StateId};

/// What the status of an object says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    /// Nothing: the object is new, or its status was lost.
    Nothing,
    /// A position.
    At(Record),
}

impl Recorded {
    /// The record, if there is one.
    pub fn at(&self) -> Option<&Record> {
        match self {
            Self::Nothing => None,
            Self::At(record) => Some(record),
        }
    }
}

/// The position of an object and what led there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The state; [`StateId::UNKNOWN`] where the stored name is none of the graph.
    pub state: StateId,
    /// The state before, [`StateId::UNKNOWN`] if there was none.
    pub left: StateId,
    /// How many transitions the object has made.
    pub transition: u64,
    /// How many of them were jumps.
    pub jumps: u64,
    /// Transitions since the wish was new, the deletion began or the object stayed put.
    pub rounds: u32,
    /// Whether a write has already shown the deletion.
    pub deleting: bool,
    /// The wish to be kept in a state.
    pub wish: WishRecord,
    /// The last wish to go through a state once.
    pub visit: Option<VisitRecord>,
    /// The revision at the arrival, or the one the last run since took.
    pub revision: u64,
    /// The revision at the last `on_change` edge, else at the first state or re-entry.
    pub changed: u64,
    /// The work of the state; none in an idle one.
    pub action: Option<Action>,
}

/// A wish as it was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WishRecord {
    /// The wished state.
    pub state: Named,
    /// The object's transition when the wish was first recorded.
    pub transition: u64,
    /// Whether the object is there with its work ended well.
    pub reached: bool,
}

/// A visit as it was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VisitRecord {
    /// The state to go through.
    pub state: Named,
    /// The object's transition when the visit was first recorded.
    pub transition: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is still to be made.
    Pending,
    /// Its state was gone through, and the work there ended well.
    Reached,
    /// There is no way to it from where the object rests, or no such visit.
    Refused,
    /// A newer one took its place, or it was taken out of the spec.
    Overtaken,
    /// It was found in the spec when nothing was recorded: it may have been made before.
    NotReplayed,
}

/// The work of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Action {
    /// Which run within the transition, from 1; a new revision makes a new one, with an id of its own.
    pub run: u32,
    /// The attempt under way, from 1; only counted ones are recorded.
    pub attempt: u32,
    /// How far it is.
    pub phase: Phase,
    /// The generation of the object that the last attempt acted upon.
    pub generation: i64,
    /// Whether it was begun while the object was being deleted.
    pub leaving: bool,
}

/// How far an action is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// In flight: to be started, running, or to be tried again.
    Pending,
    /// Ended well.
    Done,
    /// Failed for good.
    Failed,
}

impl Record {
    /// Whether the action of this state is in flight.
    pub fn in_flight(&self, graph: &Graph<'_>) -> bool {
        // Status written by somebody else may lack the action: its work was never seen to end.
        !self.is_idle(graph)
            && self
                .action
                .is_none_or(|action| action.phase == Phase::Pending)
    }

    /// Whether the action of this state failed for good.
    pub fn failed(&self, graph: &Graph<'_>) -> bool {
        !self.is_idle(graph)
            && self
                .action
                .is_some_and(|action| action.phase == Phase::Failed)
    }

    fn is_idle(&self, graph: &Graph<'_>) -> bool {
        graph
            .get(self.state)
            .is_some_and(|state| state.is(Mark::Idle))
    }

    /// Whether the wish, as the spec has it now, counts as made after the arrival in this state.
    pub fn wished_here(&self, graph: &Graph<'_>, facts: &Facts<'_>) -> bool {
        self.wish_made(graph, facts) == self.transition
    }

    /// The transition number under which the wish is recorded.
    ///
    /// A new one gets the present number, even when it is recorded by the write of the next transition.
    /// A changed revision makes it new again.
    /// In a leaf a wish for a leaf needs a request of its own to be new.
    pub(crate) fn wish_made(&self, graph: &Graph<'_>, facts: &Facts<'_>) -> u64 {
        let leaf_to_leaf = || {
            is_leaf(graph, self.state) && facts.wanted(graph).is_some_and(|to| is_leaf(graph, to))
        };
        if facts.wish.fresh {
            if leaf_to_leaf() && !facts.wish.requested {
                self.transition.saturating_sub(1)
            } else {
                self.transition
            }
        } else if facts.revision != self.revision && !leaf_to_leaf() {
            self.transition
        } else {
            self.wish.transition
        }
    }

    /// The visit that is still to be made, with the transition number under which it is recorded.
    // Every decision asks; the call would cost as much as the answer.
    #[inline]
    pub fn open_visit(&self, graph: &Graph<'_>, facts: &Facts<'_>) -> Option<(StateId, u64)> {
        let visit = facts.visit?;
        let to = visit.state.known().filter(|to| is_visit(graph, *to))?;
        if visit.fresh {
            return Some((to, self.transition));
        }
        self.visit
            .filter(|recorded| recorded.outcome == Outcome::Pending)
            .map(|recorded| (to, recorded.transition))
    }

    /// Transitions that count towards going round, seen from now.
    pub fn rounds_now(&self, graph: &Graph<'_>, facts: &Facts<'_>) -> u32 {
        let stayed_put = facts.in_state > facts.backoff.longest().saturating_mul(2);
        if stayed_put || self.is_new_start(graph, facts) {
            0
        } else {
            self.rounds
        }
    }

    /// Whether the user has just asked for something, so that what went before does not count.
    fn is_new_start(&self, graph: &Graph<'_>, facts: &Facts<'_>) -> bool {
        facts.wish.fresh
            || facts.visit.is_some_and(|visit| visit.fresh)
            || (facts.revision != self.revision && self.wished_here(graph, facts))
            || (facts.deleting && !self.deleting)
    }
}

fn is_leaf(graph: &Graph<'_>, id: StateId) -> bool {
    graph.get(id).is_some_and(|state| state.is(Mark::Leaf))
}

fn is_visit(graph: &Graph<'_>, id: StateId) -> bool {
    graph.get(id).is_some_and(|state| state.is(Mark::Visit))
}

impl Recorded {
    /// What is to be recorded once the decision was taken.
    ///
    /// Equal to `self` where there is nothing to write.
    #[must_use]
    pub fn after(&self, graph: &Graph<'_>, facts: &Facts<'_>, decision: &Decision) -> Self {
        match (self, decision) {
            (Self::Nothing, Decision::Go(go)) => Self::At(first(graph, facts, *go)),
            (Self::Nothing, _) => Self::Nothing,
            // A newer operator's object is not touched.
            (Self::At(record), Decision::Stand(Stand::HandsOff)) => Self::At(*record),
            (Self::At(record), _) => Self::At(record.after(graph, facts, decision)),
        }
    }
}

fn first(graph: &Graph<'_>, facts: &Facts<'_>, go: Go) -> Record {
    let mut record = Record {
        state: StateId::UNKNOWN,
        left: StateId::UNKNOWN,
        transition: 0,
        jumps: 0,
        rounds: 0,
        deleting: facts.deleting,
        wish: WishRecord {
            state: facts.wished(graph),
            transition: 0,
            reached: false,
        },
        visit: facts.visit.map(|visit| VisitRecord {
            state: visit.state,
            transition: 0,
            outcome: Outcome::NotReplayed,
        }),
        revision: facts.revision,
        changed: facts.revision,
        action: None,
    };
    record.go(graph, facts, go);
    record.wish.reached = record.is_where_wished(graph, facts);
    record
}

impl Record {
    fn after(&self, graph: &Graph<'_>, facts: &Facts<'_>, decision: &Decision) -> Self {
        let mut next = *self;
        next.visit = self.visit_after(graph, facts, decision);
        next.wish = WishRecord {
            state: facts.wished(graph),
            transition: self.wish_made(graph, facts),
            reached: false,
        };
        // Having stayed put is no reason to write; the next transition counts from there.
        if self.is_new_start(graph, facts) {
            next.rounds = 0;
        }
        next.deleting = facts.deleting;
        match decision {
            Decision::Go(go) => {
                next.rounds = self.rounds_now(graph, facts);
                next.go(graph, facts, *go);
            }
            Decision::Run(run) => next.run(facts, *run),
            Decision::Retry { counted } => {
                if let Some(action) = &mut next.action
                    && *counted
                {
                    action.attempt = facts.attempt.saturating_add(1);
                }
            }
            Decision::End(ending) => {
                let action = next.action.get_or_insert(Action::begun(facts));
                action.phase = match ending {
                    Ending::Well => Phase::Done,
                    Ending::Failed | Ending::Refused(_) => Phase::Failed,
                };
                action.generation = facts.started_under;
            }
            Decision::Stand(_) | Decision::Release { .. } => {}
        }
        next.wish.reached = next.is_where_wished(graph, facts);
        next
    }

    fn go(&mut self, graph: &Graph<'_>, facts: &Facts<'_>, go: Go) {
        self.left = self.state;
        self.state = go.to;
        self.transition = self.transition.saturating_add(1);
        self.rounds = self.rounds.saturating_add(1);
        if go.by == By::Jump {
            self.jumps = self.jumps.saturating_add(1);
        }
        self.revision = facts.revision;
        if matches!(go.by, By::Entry | By::Reentry) || go.why == Why::OnChange {
            self.changed = facts.revision;
        }
        self.action = (!self.is_idle(graph)).then(|| Action::begun(facts));
    }

    fn run(&mut self, facts: &Facts<'_>, run: Run) {
        let new_revision = facts.revision != self.revision;
        let begun = Action::begun(facts);
        let action = self.action.get_or_insert(begun);
        if new_revision {
            // Another revision is another piece of work, under an id of its own; but what a deletion found
            // in flight stays so, or it would be tried again for ever.
            *action = Action {
                run: action.run.saturating_add(1),
                leaving: action.leaving,
                ..begun
            };
            self.revision = facts.revision;
        } else if run == Run::Amended {
            action.phase = Phase::Pending;
            action.generation = facts.generation;
        }
    }

    fn is_where_wished(&self, graph: &Graph<'_>, facts: &Facts<'_>) -> bool {
        facts.wanted(graph) == Some(self.state)
            && graph.get(self.state).is_some()
            && !self.in_flight(graph)
            && !self.failed(graph)
    }

    fn visit_after(
        &self,
        graph: &Graph<'_>,
        facts: &Facts<'_>,
        decision: &Decision,
    ) -> Option<VisitRecord> {
        let Some(visit) = facts.visit else {
            return self.visit.map(|mut recorded| {
                if recorded.outcome == Outcome::Pending {
                    recorded.outcome = Outcome::Overtaken;
                }
                recorded
            });
        };
        let recorded = self.visit.filter(|_| !visit.fresh);
        let mut recorded = recorded.unwrap_or(VisitRecord {
            state: visit.state,
            transition: self.transition,
            outcome: Outcome::Pending,
        });
        recorded.state = visit.state;
        if recorded.outcome != Outcome::Pending || facts.deleting {
            return Some(recorded);
        }
        let target = visit.state.known().filter(|to| is_visit(graph, *to));
        let Some(target) = target else {
            recorded.outcome = Outcome::Refused;
            return Some(recorded);
        };
        let at_rest = graph
            .get(self.state)
            .is_some_and(|state| state.is(Mark::Rest));
        let stays = matches!(
            decision,
            Decision::Stand(Stand::Settled | Stand::Failed) | Decision::End(_)
        );
        if self.state == target
            && self.transition > recorded.transition
            && self.ended_well_in(graph, facts, decision)
        {
            recorded.outcome = Outcome::Reached;
        } else if at_rest && stays && graph.hop(self.state, target).is_none() {
            recorded.outcome = Outcome::Refused;
        }
        Some(recorded)
    }

    /// Whether this turn takes the result of an action that did not fail and named no trigger.
    fn ended_well_in(&self, graph: &Graph<'_>, facts: &Facts<'_>, decision: &Decision) -> bool {
        let Task::Ended(said) = facts.task else {
            return false;
        };
        let consumed = matches!(
            decision,
            Decision::Go(_) | Decision::End(Ending::Well) | Decision::Release { .. }
        );
        let state = graph.get(self.state);
        let named_trigger = |to: StateId| {
            state.is_some_and(|state| {
                state.trigger_to(to).is_some() && !state.children.contains(&to)
            })
        };
        consumed
            && match said {
                Said::Stay | Said::Next => true,
                Said::To(to) => !named_trigger(to),
                Said::Wait | Said::Failed { .. } => false,
            }
    }
}

impl Action {
    fn begun(facts: &Facts<'_>) -> Self {
        Self {
            run: 1,
            attempt: 1,
            phase: Phase::Pending,
            generation: facts.generation,
            leaving: facts.deleting,
        }
    }
}
