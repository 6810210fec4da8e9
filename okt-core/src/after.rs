//! The record after a decision.

use crate::decide::decide;
use crate::decision::{By, Ending, Go, Run, StayReason, Verdict, Why};
use crate::facts::{ActionResult, LifecycleFacts, Named, Task};
use crate::gate::{GateKind, Gates};
use crate::graph::{Graph, Mark, StateId};
use crate::record::{
    ActionRecord, DesiredRecord, Phase, Record, Recorded, VisitOutcome, VisitRecord, WaitRecord,
    is_visit,
};
use crate::request::{RequestOutcome, RequestRecord};

impl Recorded {
    /// Returns the record after a decision.
    ///
    /// It equals `self` if there is nothing to write.
    #[must_use]
    pub fn after(&self, graph: &Graph<'_>, facts: &LifecycleFacts<'_>, decision: &Verdict) -> Self {
        match (self, decision) {
            (Self::Nothing, Verdict::Go(go)) => Self::At(first(graph, facts, *go)),
            (Self::Nothing, _) => Self::Nothing,
            (Self::At(record), _) => Self::At(record.after(graph, facts, decision)),
        }
    }
}

fn first(graph: &Graph<'_>, facts: &LifecycleFacts<'_>, go: Go) -> Record {
    let mut record = Record {
        state: StateId::UNKNOWN,
        left: StateId::UNKNOWN,
        transition: 0,
        jumps: 0,
        jumped: false,
        rounds: 0,
        deleting: facts.deleting,
        desired: DesiredRecord {
            state: facts.target(graph),
            transition: 0,
            reached: false,
        },
        visit: facts.visit.map(|visit| VisitRecord {
            state: visit.state,
            transition: 0,
            outcome: VisitOutcome::NotReplayed,
        }),
        request: None,
        revision: facts.revision,
        changed: facts.revision,
        action: None,
        waiting: None,
        returned: 0,
    };
    record.go(graph, facts, go);
    record.desired.reached = record.is_where_desired(graph, facts);
    record
}

impl Record {
    fn after(&self, graph: &Graph<'_>, facts: &LifecycleFacts<'_>, decision: &Verdict) -> Self {
        let mut next = *self;
        next.visit = self.visit_after(graph, facts, decision);
        next.request = self.request_after(graph, facts, decision);
        next.waiting = self.waiting_after(graph, facts, decision);
        if facts.has_unused_place && !matches!(decision, Verdict::Go(_)) {
            // The write gives the object another version, so that nothing moves by that place any more.
            next.returned = next.returned.saturating_add(1);
        }
        next.desired = DesiredRecord {
            state: facts.target(graph),
            transition: self.desired_since(graph, facts),
            reached: false,
        };
        // Having stayed put is no reason to write; the next transition takes it into account.
        if self.is_new_start(graph, facts) {
            next.rounds = 0;
        }
        next.deleting = facts.deleting;
        match decision {
            Verdict::Go(go) => {
                next.rounds = if self.begins(*go) {
                    0
                } else {
                    self.rounds_now(graph, facts)
                };
                next.go(graph, facts, *go);
            }
            Verdict::Run(run) => next.run(facts, *run),
            Verdict::Retry { counted } => {
                if let Some(action) = &mut next.action
                    && *counted
                {
                    action.attempt = facts.attempt.saturating_add(1);
                }
            }
            Verdict::End(ending) => {
                let action = next.action.get_or_insert(ActionRecord::begun(facts));
                action.phase = match ending {
                    Ending::Well => Phase::Done,
                    Ending::Failed | Ending::Refused(_) => Phase::Failed,
                };
                action.generation = facts.started_under;
            }
            Verdict::Stay(_) | Verdict::Release => {}
        }
        next.desired.reached = next.is_where_desired(graph, facts);
        next
    }

    fn go(&mut self, graph: &Graph<'_>, facts: &LifecycleFacts<'_>, go: Go) {
        let takes_change = go.why == Why::OnChange && graph.taken(self.state, go.to).revision;
        self.left = self.state;
        self.state = go.to;
        self.transition = self.transition.saturating_add(1);
        self.rounds = self.rounds.saturating_add(1);
        self.jumped = go.by == By::Jump;
        self.jumps = self.jumps.saturating_add(u64::from(self.jumped));
        self.revision = facts.revision;
        if matches!(go.by, By::Entry | By::Reentry) || takes_change {
            self.changed = facts.revision;
        }
        self.action = (!self.is_idle(graph)).then(|| ActionRecord::begun(facts));
    }

    fn run(&mut self, facts: &LifecycleFacts<'_>, run: Run) {
        let new_revision = facts.revision != self.revision;
        let begun = ActionRecord::begun(facts);
        let action = self.action.get_or_insert(begun);
        if new_revision {
            // A new revision is new work with its own id. `leaving` stays: work that began before the deletion must not
            // count as begun during it, or it would be retried for ever.
            *action = ActionRecord {
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

    fn is_where_desired(&self, graph: &Graph<'_>, facts: &LifecycleFacts<'_>) -> bool {
        facts.known_target(graph) == Some(self.state)
            && graph.get(self.state).is_some()
            && !self.in_flight(graph)
            && !self.failed(graph)
    }

    fn visit_after(
        &self,
        graph: &Graph<'_>,
        facts: &LifecycleFacts<'_>,
        decision: &Verdict,
    ) -> Option<VisitRecord> {
        let Some(visit) = facts.visit else {
            return self.visit.map(|mut recorded| {
                if recorded.outcome == VisitOutcome::Pending {
                    recorded.outcome = VisitOutcome::Overtaken;
                }
                recorded
            });
        };
        let earlier = self.visit.filter(|_| !visit.fresh);
        let mut recorded = earlier.unwrap_or(VisitRecord {
            state: visit.state,
            transition: self.transition,
            outcome: VisitOutcome::Pending,
        });
        recorded.state = visit.state;
        if recorded.outcome != VisitOutcome::Pending || facts.deleting {
            return Some(recorded);
        }
        let target = visit.state.known().filter(|to| is_visit(graph, *to));
        let Some(target) = target else {
            recorded.outcome = VisitOutcome::Refused;
            return Some(recorded);
        };
        let at_rest = graph
            .get(self.state)
            .is_some_and(|state| state.is(Mark::Rest));
        let stays = matches!(
            decision,
            Verdict::Stay(StayReason::Settled | StayReason::Failed) | Verdict::End(_)
        );
        if self.state == target
            && self.transition > recorded.transition
            && self.ended_well_in(graph, facts, decision)
        {
            recorded.outcome = VisitOutcome::Reached;
        } else if at_rest && stays && graph.hop(self.state, target).is_none() {
            recorded.outcome = VisitOutcome::Refused;
        }
        Some(recorded)
    }

    /// Returns the gate before which the object waits: the first shut one of the move that it would make otherwise.
    fn waiting_after(
        &self,
        graph: &Graph<'_>,
        facts: &LifecycleFacts<'_>,
        decision: &Verdict,
    ) -> Option<WaitRecord> {
        // The handler that named the state is called again once the gate is open; until then its answer counts as `Wait`.
        let is_asked_again =
            matches!(facts.task, Task::Waiting | Task::Due) && self.in_flight(graph);
        let answered = self
            .waiting
            .filter(|it| it.why == Why::Handler && is_asked_again);
        if matches!(decision, Verdict::Go(_)) {
            return None;
        }
        if facts.shut.is_empty() {
            return answered;
        }
        let open = LifecycleFacts {
            shut: Gates::NONE,
            ..*facts
        };
        let Verdict::Go(go) = decide(graph, &Recorded::At(*self), &open) else {
            return answered;
        };
        let gate = self.first_shut(graph, facts, (go.to, go.why))?;
        let kind = graph.gates.get(gate.index()).map(|gate| gate.kind);
        // Until the plan is known again, after a restart, the recorded one stands.
        let plan = || {
            let is_same = |it: &WaitRecord| (it.gate, it.to) == (gate, go.to);
            let before = self.waiting.filter(is_same).and_then(|it| it.plan);
            self.plan(graph, facts, (go.to, go.why)).or(before)
        };
        let is_approval = kind == Some(GateKind::Approval);
        Some(WaitRecord {
            gate,
            to: go.to,
            why: go.why,
            plan: is_approval.then(plan).flatten(),
        })
    }

    /// Returns the record of the request: a new one with the move that begins it, and its outcome with the write that ends
    /// it.
    fn request_after(
        &self,
        graph: &Graph<'_>,
        facts: &LifecycleFacts<'_>,
        decision: &Verdict,
    ) -> Option<RequestRecord> {
        match (decision, facts.request) {
            (Verdict::Go(go), Some(begun)) if self.begins(*go) => Some(RequestRecord {
                state: Named::Known(begun.state),
                token: begun.token,
                transition: self.transition,
                outcome: RequestOutcome::Running,
            }),
            _ => self.request.map(|request| RequestRecord {
                outcome: match request.outcome {
                    RequestOutcome::Running => self.outcome_of(request, graph, facts, decision),
                    outcome => outcome,
                },
                ..request
            }),
        }
    }

    /// Returns what becomes of the request that the object serves.
    fn outcome_of(
        &self,
        request: RequestRecord,
        graph: &Graph<'_>,
        facts: &LifecycleFacts<'_>,
        decision: &Verdict,
    ) -> RequestOutcome {
        let Some(state) = request.served_by(graph) else {
            return RequestOutcome::Refused;
        };
        if self.state != state {
            let rests = matches!(
                decision,
                Verdict::Stay(StayReason::Settled | StayReason::Failed) | Verdict::End(_)
            );
            return match (facts.deleting, rests) {
                (true, _) => RequestOutcome::Overtaken,
                // The object rests where nothing leads on, or where it holds.
                (false, true) => RequestOutcome::Failed,
                (false, false) => RequestOutcome::Running,
            };
        }
        if self.ended_well_in(graph, facts, decision) {
            return RequestOutcome::Reached;
        }
        match decision {
            Verdict::Go(go) if go.why == Why::OnAbort => RequestOutcome::Aborted,
            Verdict::Go(_) | Verdict::Release if facts.deleting => RequestOutcome::Overtaken,
            Verdict::Go(_) | Verdict::Release | Verdict::End(_) => RequestOutcome::Failed,
            Verdict::Stay(_) | Verdict::Run(_) | Verdict::Retry { .. } => RequestOutcome::Running,
        }
    }

    /// Returns whether this reconciliation takes the result of an action that did not fail and named no trigger.
    fn ended_well_in(
        &self,
        graph: &Graph<'_>,
        facts: &LifecycleFacts<'_>,
        decision: &Verdict,
    ) -> bool {
        let Task::Ended(result) = facts.task else {
            return false;
        };
        let consumed = matches!(
            decision,
            Verdict::Go(_) | Verdict::End(Ending::Well) | Verdict::Release
        );
        let state = graph.get(self.state);
        let named_trigger = |to: StateId| {
            state.is_some_and(|state| {
                state.trigger_to(to).is_some() && !state.children.contains(&to)
            })
        };
        consumed
            && match result {
                ActionResult::Stay | ActionResult::Next => true,
                ActionResult::To(to) => !named_trigger(to),
                ActionResult::Wait(_) | ActionResult::Failed { .. } => false,
            }
    }
}

impl ActionRecord {
    fn begun(facts: &LifecycleFacts<'_>) -> Self {
        Self {
            run: 1,
            attempt: 1,
            phase: Phase::Pending,
            generation: facts.generation,
            leaving: facts.deleting,
        }
    }
}
