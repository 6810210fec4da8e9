//! Decides the next step of an object: one pure, total function from record and facts to a decision.

use core::time::Duration;

pub use crate::decision::{By, Ending, Go, Run, StayReason, Verdict, Why};
use crate::facts::{ActionResult, LifecycleFacts, Observed, Task};
use crate::graph::{Cause, Graph, Mark, State, StateId, Trigger};
use crate::record::{Phase, Record, Recorded};

/// Decides the next step of an object.
///
/// # Guarantees
///
/// - Total: any graph, record and facts give a decision; nothing panics.
/// - Only declared edges, except for the entry, re-entry and jump of [`By`].
/// - The same input gives the same decision.
/// - No allocation.
///
/// A reconciliation that takes the result of an action ([`Task::Ended`]) ignores the observation, because the
/// observation began before the action ended.
pub fn decide(graph: &Graph<'_>, recorded: &Recorded, facts: &LifecycleFacts<'_>) -> Verdict {
    // Built once and then only replaced: copying a decision would cost more than making it.
    let mut decision = match recorded {
        Recorded::Nothing => begin(graph, facts),
        Recorded::At(record) => match graph.get(record.state) {
            None => reorient(graph, record, facts),
            Some(state) => {
                let situation = Situation {
                    graph,
                    state,
                    record,
                    facts,
                };
                situation.decide()
            }
        },
    };
    if let Verdict::Go(go) = decision
        && let Recorded::At(record) = recorded
        && !record.begins(go)
        && let Some(left) = loop_guard(graph, record, facts)
    {
        decision = Verdict::Stay(StayReason::LoopGuard(left));
    }
    // The result of an action is taken when the pause is over.
    if facts.is_paused() && !matches!(decision, Verdict::Stay(_)) {
        decision = Verdict::Stay(StayReason::Paused);
    }
    decision
}

const fn go(to: StateId, by: By, why: Why) -> Verdict {
    Verdict::Go(Go { to, by, why })
}

/// Decides for an object without a record: it is new, or adopted where it was observed.
fn begin(graph: &Graph<'_>, facts: &LifecycleFacts<'_>) -> Verdict {
    if facts.deleting {
        return match facts.observed {
            // The status was lost: the application is taken from its observed state to a leaf.
            Observed::In(state) if graph.get(state).is_some() => go(state, By::Jump, Why::Adopted),
            Observed::Unreachable { .. } if facts.owned => Verdict::Stay(StayReason::Unsure),
            Observed::In(_)
            | Observed::Absent
            | Observed::Unobserved
            | Observed::Unforeseen
            | Observed::Unreachable { .. }
            | Observed::Failed { .. } => Verdict::Release,
        };
    }
    let Some(entry) = graph.entry() else {
        return Verdict::Stay(StayReason::Unsure);
    };
    match facts.observed {
        Observed::In(state) if state == entry => go(entry, By::Entry, Why::Created),
        Observed::In(state) if graph.get(state).is_some() => go(state, By::Jump, Why::Adopted),
        Observed::Unreachable { .. } if facts.owned => Verdict::Stay(StayReason::Unsure),
        Observed::In(_) | Observed::Unforeseen | Observed::Failed { .. } => {
            Verdict::Stay(StayReason::Unsure)
        }
        Observed::Absent | Observed::Unobserved | Observed::Unreachable { .. } => {
            go(entry, By::Entry, Why::Created)
        }
    }
}

/// Decides for a recorded state that the graph does not have: only an observation can say where the application is.
fn reorient(graph: &Graph<'_>, record: &Record, facts: &LifecycleFacts<'_>) -> Verdict {
    let to = match facts.observed {
        Observed::In(state) => graph.get(state).map(|_| state),
        // An object that is being deleted is not created again.
        Observed::Absent if !facts.deleting => graph.entry(),
        Observed::Absent
        | Observed::Unobserved
        | Observed::Unforeseen
        | Observed::Unreachable { .. }
        | Observed::Failed { .. } => None,
    };
    match to {
        Some(to) if to != record.state => go(to, By::Jump, Why::Observed),
        Some(_) | None => Verdict::Stay(StayReason::UnknownState),
    }
}

/// The work of the state, as it matters for this decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkState {
    /// Still in flight.
    InFlight,
    /// In flight, and this reconciliation takes an answer that keeps it in flight.
    Continues {
        /// It failed and is retried; otherwise it asked to be called later.
        failed: bool,
    },
    /// Ended in this reconciliation, without naming a state.
    Stayed,
    /// Ended in this reconciliation: go on towards the desired state.
    Next,
    /// Ended in this reconciliation, naming a state.
    Named(StateId),
    /// Failed permanently in this reconciliation.
    Fails,
    /// There is no work, or it succeeded before.
    Over,
    /// Failed permanently before.
    Failed,
}

struct Situation<'a, 'g> {
    graph: &'a Graph<'g>,
    state: &'a State<'g>,
    record: &'a Record,
    facts: &'a LifecycleFacts<'a>,
}

impl Situation<'_, '_> {
    fn decide(&self) -> Verdict {
        let work = self.work();
        if self.state.is(Mark::Leaf) {
            return self.in_leaf(work);
        }
        if let Some(decision) = self.follow(work) {
            return decision;
        }
        if let Some(decision) = self.triggered(work) {
            return decision;
        }
        match work {
            WorkState::InFlight | WorkState::Continues { .. } => self.in_flight(work),
            WorkState::Stayed
            | WorkState::Next
            | WorkState::Named(_)
            | WorkState::Fails
            | WorkState::Over
            | WorkState::Failed => {
                if self.state.is(Mark::Rest) {
                    self.at_rest(work)
                } else {
                    self.passing(work)
                }
            }
        }
    }

    fn work(&self) -> WorkState {
        let record = self.record;
        if self.state.is(Mark::Idle) {
            return WorkState::Over;
        }
        match record.action.map(|action| action.phase) {
            Some(Phase::Done) => return WorkState::Over,
            Some(Phase::Failed) => return WorkState::Failed,
            // A status that another writer changed may lack the action: the work then counts as not ended.
            Some(Phase::Pending) | None => {}
        }
        // Work that began before the deletion is not continued: where it would wait or retry, it counts as Next.
        let hurries = self.facts.deleting
            && !self.state.is(Mark::Leaf)
            && record.action.is_some_and(|action| !action.leaving);
        match self.facts.task {
            Task::Ended(ActionResult::Stay) => WorkState::Stayed,
            Task::Ended(answer) if self.waits_for(answer) => WorkState::Continues { failed: false },
            Task::Ended(ActionResult::Next) => WorkState::Next,
            Task::Ended(ActionResult::To(to)) => WorkState::Named(to),
            Task::Ended(ActionResult::Failed { permanent: true }) => WorkState::Fails,
            Task::Ended(ActionResult::Failed { .. } | ActionResult::Wait(_))
            | Task::New
            | Task::Waiting
            | Task::Due
                if hurries =>
            {
                WorkState::Next
            }
            Task::Ended(ActionResult::Wait(_)) => WorkState::Continues { failed: false },
            Task::Ended(ActionResult::Failed { .. }) => WorkState::Continues { failed: true },
            Task::Absent | Task::New | Task::Running | Task::Waiting | Task::Due => {
                WorkState::InFlight
            }
        }
    }

    /// Returns whether an answer leads along a child edge before which the object waits: then it counts as `Wait`.
    fn waits_for(&self, answer: ActionResult) -> bool {
        if self.facts.shut.is_empty() {
            return false;
        }
        let child = match answer {
            ActionResult::To(to) => Some(to)
                .filter(|to| self.state.children.contains(to))
                .map(|to| (to, Why::Handler)),
            ActionResult::Next => self
                .state
                .next()
                .filter(|_| self.leads_out().is_none())
                .map(|to| (to, Why::Next)),
            ActionResult::Stay | ActionResult::Wait(_) | ActionResult::Failed { .. } => None,
        };
        child.is_some_and(|(to, why)| self.is_shut(to, why))
    }

    /// Returns whether the observation names a state, as an event or as the state of the application, and counts here.
    fn seen(&self, to: StateId) -> bool {
        (self.facts.events.contains(&to) || self.facts.observed == Observed::In(to))
            && !self.facts.deleting
            && !self.state.is(Mark::Hold)
            && !matches!(self.facts.task, Task::Ended(_))
    }

    /// Rule 1: the record follows the application.
    fn follow(&self, work: WorkState) -> Option<Verdict> {
        let follows = matches!(work, WorkState::Over | WorkState::Failed)
            && self.state.is(Mark::Rest)
            && !self.state.is(Mark::Hold)
            && !self.facts.deleting;
        if !follows {
            return None;
        }
        let seen = match self.facts.observed {
            Observed::In(state) => self.graph.get(state).map(|_| state),
            Observed::Absent => self.graph.entry(),
            Observed::Unobserved
            | Observed::Unforeseen
            | Observed::Unreachable { .. }
            | Observed::Failed { .. } => None,
        };
        let to = seen.filter(|to| *to != self.record.state)?;
        let by = if self.state.trigger_to(to).is_some() {
            By::Trigger
        } else if self.state.children.contains(&to) {
            By::Child
        } else {
            By::Jump
        };
        Some(go(to, by, Why::Observed))
    }

    /// Rule 2: the object takes the first trigger whose cause applies or that was named.
    fn triggered(&self, work: WorkState) -> Option<Verdict> {
        self.state.triggers.iter().find_map(|trigger| {
            let why = self.raised(trigger, work)?;
            let waits = why == Why::OnChange && self.is_shut(trigger.to, why);
            (!waits).then(|| go(trigger.to, By::Trigger, why))
        })
    }

    fn raised(&self, trigger: &Trigger, work: WorkState) -> Option<Why> {
        // If a child leads there too, the name means the child, and only the cause means the trigger.
        let by_name = !self.state.children.contains(&trigger.to);
        if by_name && work == WorkState::Named(trigger.to) {
            return Some(Why::Handler);
        }
        if by_name && self.seen(trigger.to) && !self.lags(trigger.to, work) {
            return Some(Why::Observed);
        }
        match trigger.cause {
            // A lifecycle has no give-up.
            Cause::Named | Cause::OnGiveUp => None,
            Cause::After(time) => (self.facts.in_state >= time).then_some(Why::After),
            Cause::Deadline(time) => (self.facts.in_deadline >= time).then_some(Why::After),
            Cause::OnError { attempts } => {
                (self.failures(work) >= attempts).then_some(Why::OnError)
            }
            Cause::OnDelete => self.facts.deleting.then_some(Why::OnDelete),
            Cause::OnChange => (self.facts.revision != self.record.changed
                || self.is_outdated(trigger))
            .then_some(Why::OnChange),
            Cause::OnAbort => {
                let state = self.record.served().and_then(|it| it.served_by(self.graph));
                let serves = state == Some(self.record.state);
                (serves && self.facts.is_aborted).then_some(Why::OnAbort)
            }
            Cause::OnChangeOf(parts) => (!self.facts.parts.and(parts).is_empty()
                || self.is_outdated(trigger))
            .then_some(Why::OnChange),
        }
    }

    /// Returns whether an outdated resource raises a trigger for a change.
    fn is_outdated(&self, trigger: &Trigger) -> bool {
        // During a deletion, resources change in any state.
        self.facts.outdated == Some(trigger.to) && !self.facts.deleting
    }

    /// Returns whether the observation may be outdated: the work is in flight, and `to` is the current or the previous
    /// state.
    ///
    /// An event of the previous state counts once an attempt has failed. Otherwise work that cannot succeed, because
    /// the application fell back, would be retried for ever.
    fn lags(&self, to: StateId, work: WorkState) -> bool {
        let in_flight = matches!(work, WorkState::InFlight | WorkState::Continues { .. });
        let fell_back = self.facts.events.contains(&to) && self.failures(work) > 0;
        in_flight && (to == self.record.state || (to == self.record.left && !fell_back))
    }

    /// Returns the number of consecutive failed attempts; one that failed permanently counts as the last.
    fn failures(&self, work: WorkState) -> u32 {
        match work {
            WorkState::Fails | WorkState::Failed => u32::MAX,
            WorkState::Continues { failed: true } => self.facts.attempt,
            WorkState::InFlight | WorkState::Continues { failed: false } => {
                self.facts.attempt.saturating_sub(1)
            }
            WorkState::Next
                if matches!(self.facts.task, Task::Ended(ActionResult::Failed { .. })) =>
            {
                // For work that began before the deletion, a failure counts as Next, but first as a failure.
                self.facts.attempt
            }
            WorkState::Stayed | WorkState::Next | WorkState::Named(_) | WorkState::Over => 0,
        }
    }

    /// Rule 3: an action in flight keeps the object where it is.
    fn in_flight(&self, work: WorkState) -> Verdict {
        let between = match (work, self.facts.task) {
            (WorkState::Continues { .. }, _) | (_, Task::New | Task::Waiting | Task::Due) => true,
            (_, Task::Absent | Task::Running | Task::Ended(_)) => false,
        };
        let changed = self.facts.revision != self.record.revision;
        if between
            && self.state.is(Mark::Rest)
            && let Some((hop, why)) = self.desired_after_arrival()
            && let Some(decision) = self.along(hop, why)
        {
            return decision;
        }
        match (work, self.facts.task) {
            (WorkState::Continues { failed: true }, _) => Verdict::Retry {
                counted: self.counts_attempts(),
            },
            (WorkState::Continues { failed: false }, _) => Verdict::Stay(StayReason::Waiting),
            (_, Task::Absent) => Verdict::Run(Run::Resume),
            (_, Task::New | Task::Waiting | Task::Due) if changed => Verdict::Run(Run::Changed),
            (_, Task::New) => Verdict::Run(Run::Begin),
            (_, Task::Waiting) if self.may_be_asked_again() => Verdict::Run(Run::Again),
            (_, Task::Waiting) => Verdict::Stay(StayReason::Waiting),
            (_, Task::Due) => Verdict::Run(Run::Again),
            (_, Task::Running | Task::Ended(_)) => Verdict::Stay(StayReason::Running),
        }
    }

    /// Returns whether the gate is open for which the answer of the handler counted as `Wait`.
    fn may_be_asked_again(&self) -> bool {
        let waiting = self.record.waiting.filter(|it| it.why == Why::Handler);
        waiting.is_some_and(|it| !self.facts.shut.has(it.gate))
    }

    fn counts_attempts(&self) -> bool {
        let mut triggers = self.state.triggers.iter();
        triggers.any(|trigger| matches!(trigger.cause, Cause::OnError { .. }))
    }

    /// Rule 4: a passing state is left when its work is over.
    fn passing(&self, work: WorkState) -> Verdict {
        match work {
            WorkState::Named(to) => {
                let refused = Verdict::End(Ending::Refused(to));
                return self.along(to, Why::Handler).unwrap_or(refused);
            }
            // A request that fails is not tried again, and keeps no other from its turn: the object goes on.
            WorkState::Fails | WorkState::Failed if self.state.is(Mark::Args) => {}
            WorkState::Fails if !self.facts.deleting => return Verdict::End(Ending::Failed),
            WorkState::Failed if !self.facts.deleting => return self.stays_failed(),
            WorkState::Stayed
            | WorkState::Next
            | WorkState::Over
            | WorkState::Fails
            | WorkState::Failed
            | WorkState::InFlight
            | WorkState::Continues { .. } => {}
        }
        let last = self.state.next().unwrap_or(StateId::UNKNOWN);
        let (hop, why) = self.onwards().unwrap_or((StateId::UNKNOWN, Why::Next));
        if let Some(decision) = self.along(hop, why).or_else(|| self.along(last, Why::Next)) {
            return decision;
        }
        match work {
            WorkState::Failed | WorkState::Over => Verdict::Stay(StayReason::Failed),
            WorkState::Stayed
            | WorkState::Next
            | WorkState::Fails
            | WorkState::Named(_)
            | WorkState::InFlight
            | WorkState::Continues { .. } => Verdict::End(Ending::Refused(StateId::UNKNOWN)),
        }
    }

    /// Rule 5: a resting state is left for a named state or the desired one.
    fn at_rest(&self, work: WorkState) -> Verdict {
        let hop = self.leads_out();
        let named = self.state.children.iter().find_map(|child| {
            let why = match hop {
                _ if work == WorkState::Named(*child) => Why::Handler,
                Some((to, why)) if to == *child => why,
                _ if self.seen(*child) && !self.is_shut(*child, Why::Observed) => Why::Observed,
                _ => return None,
            };
            Some((*child, why))
        });
        let next = || {
            let next = self.state.next().filter(|_| work == WorkState::Next)?;
            Some((next, Why::Next))
        };
        if let Some((to, why)) = named.or_else(next) {
            return go(to, By::Child, why);
        }
        match work {
            WorkState::Named(to) => Verdict::End(Ending::Refused(to)),
            WorkState::Stayed | WorkState::Next => Verdict::End(Ending::Well),
            WorkState::Fails => Verdict::End(Ending::Failed),
            WorkState::Failed => self.stays_failed(),
            WorkState::Over | WorkState::InFlight | WorkState::Continues { .. } => self.rerun(),
        }
    }

    /// A resting state runs its work again for a new revision, unless `on_change` leads out of it for any change.
    fn rerun(&self) -> Verdict {
        let mut triggers = self.state.triggers.iter();
        let mut by_trigger = || triggers.any(|trigger| trigger.cause == Cause::OnChange);
        if self.facts.revision != self.record.revision
            && !self.state.is(Mark::Idle)
            && !self.facts.deleting
            && !by_trigger()
        {
            Verdict::Run(Run::Changed)
        } else {
            Verdict::Stay(StayReason::Settled)
        }
    }

    /// Permanently failed work runs again if the spec that it acted upon has changed.
    fn stays_failed(&self) -> Verdict {
        let generation = self.record.action.map(|action| action.generation);
        if self.facts.revision != self.record.revision {
            Verdict::Run(Run::Changed)
        } else if generation != Some(self.facts.generation) {
            Verdict::Run(Run::Amended)
        } else {
            Verdict::Stay(StayReason::Failed)
        }
    }

    /// A leaf is left only for a desired state or visit that was set there, by a re-entry.
    fn in_leaf(&self, work: WorkState) -> Verdict {
        match work {
            WorkState::InFlight | WorkState::Continues { .. } => return self.in_flight(work),
            WorkState::Fails => return Verdict::End(Ending::Failed),
            WorkState::Named(to) => return Verdict::End(Ending::Refused(to)),
            WorkState::Failed if self.facts.deleting => {
                return self.stays_failed();
            }
            WorkState::Stayed | WorkState::Next | WorkState::Over if self.facts.deleting => {
                return Verdict::Release;
            }
            WorkState::Stayed | WorkState::Next | WorkState::Over | WorkState::Failed => {}
        }
        if let Some(why) = self.reentry()
            && let Some(entry) = self.graph.entry()
        {
            return go(entry, By::Reentry, why);
        }
        match work {
            WorkState::Stayed | WorkState::Next => Verdict::End(Ending::Well),
            WorkState::Failed => self.stays_failed(),
            WorkState::Over
            | WorkState::Fails
            | WorkState::Named(_)
            | WorkState::InFlight
            | WorkState::Continues { .. } => Verdict::Stay(StayReason::Settled),
        }
    }

    fn reentry(&self) -> Option<Why> {
        let (record, graph, facts) = (self.record, self.graph, self.facts);
        if let Some((_, made)) = record.open_visit(graph, facts)
            && made == record.transition
        {
            return Some(Why::Visit);
        }
        // `desired_here` takes into account that a leaf becomes the desired state again only with a new request.
        let wanted = facts
            .known_target(graph)
            .filter(|to| graph.may_be_desired(*to));
        (wanted.is_some() && record.desired_here(graph, facts)).then_some(Why::DesiredState)
    }

    /// Returns the hop of the deletion, or of the first of these that has one: the request that the object serves, the open
    /// visit, the first request that waits, the desired state.
    fn onwards(&self) -> Option<(StateId, Why)> {
        self.hop_where(|_| true)
    }

    /// Like `onwards`, but a holding state is left only for a desired state or visit set after the arrival.
    fn leads_out(&self) -> Option<(StateId, Why)> {
        self.hop_where(|made| !self.state.is(Mark::Hold) || made == self.record.transition)
    }

    /// Like `onwards`, but only for a desired state or visit set after the arrival.
    fn desired_after_arrival(&self) -> Option<(StateId, Why)> {
        self.hop_where(|made| made == self.record.transition)
            .filter(|_| !self.facts.deleting)
    }

    fn hop_where(&self, counts: impl Fn(u64) -> bool) -> Option<(StateId, Why)> {
        let (record, graph, facts) = (self.record, self.graph, self.facts);
        if facts.deleting {
            return graph.out(record.state).map(|hop| (hop, Why::Deletion));
        }
        let towards = |to: Option<(StateId, u64)>, why| {
            let (to, _) = to.filter(|(_, made)| counts(*made))?;
            Some((graph.hop(record.state, to)?, why))
        };
        let served = record.served();
        let on_way = served.and_then(|it| Some((it.served_by(graph)?, it.transition)));
        let asked = || {
            let next = facts.request.filter(|_| served.is_none())?;
            self.state
                .is(Mark::Rest)
                .then_some((next.state, record.transition))
        };
        // Before a gate, a visit keeps its precedence: otherwise the desired state would lead away, and the visit back.
        let is_open = |(hop, why): &(StateId, Why)| !self.is_shut(*hop, *why);
        let visit = towards(on_way, Why::Request)
            .or_else(|| towards(record.open_visit(graph, facts), Why::Visit));
        if visit.is_some() {
            return visit.filter(is_open);
        }
        let asked = towards(asked(), Why::Request).filter(is_open);
        if asked.is_some() {
            return asked;
        }
        let hop = graph.hop(record.state, facts.known_target(graph)?)?;
        let hop = counts(record.desired_since(graph, facts)).then_some((hop, Why::DesiredState));
        hop.filter(is_open)
    }

    /// Returns whether a gate is shut between a resting state and another one: an object waits nowhere else.
    ///
    /// A deletion waits for nothing, and a change that waits leads no object astray that is on its way out.
    fn is_shut(&self, to: StateId, why: Why) -> bool {
        !self.facts.shut.is_empty()
            && self.state.is(Mark::Rest)
            && (why == Why::OnChange || !self.facts.deleting)
            && self
                .record
                .first_shut(self.graph, self.facts, (to, why))
                .is_some()
    }

    /// Returns the move to a state along a child edge, or else along a trigger edge.
    fn along(&self, to: StateId, why: Why) -> Option<Verdict> {
        let by = if self.state.children.contains(&to) {
            By::Child
        } else if self.state.trigger_to(to).is_some() {
            By::Trigger
        } else {
            return None;
        };
        Some(go(to, by, why))
    }
}

/// Returns how long the next transition must still wait: beyond twice the number of states, each waits like a retry.
fn loop_guard(graph: &Graph<'_>, record: &Record, facts: &LifecycleFacts<'_>) -> Option<Duration> {
    // One jump leads out of a state that the graph does not have, and nothing leads back.
    graph.get(record.state)?;
    let rounds = record.rounds_now(graph, facts);
    let beyond = rounds.saturating_sub(rounds_limit(graph));
    if beyond == 0 {
        return None;
    }
    let wait = facts.backoff.wait(beyond, facts.seed);
    let left = wait.checked_sub(facts.in_state);
    left.filter(|left| !left.is_zero())
}

/// Returns the number of transitions after which the loop guard acts: twice the number of states.
///
/// In the model that tested the rules, an object needs at most 1.6 times the number of states to come to rest.
pub fn rounds_limit(graph: &Graph<'_>) -> u32 {
    u32::try_from(graph.states.len())
        .unwrap_or(u32::MAX)
        .saturating_mul(2)
}
