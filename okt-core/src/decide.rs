//! What an object does next: one pure, total function from record and facts to a decision.

use core::time::Duration;

pub use crate::decision::{By, Decision, Ending, Go, Run, Stand, Why};
use crate::facts::{Facts, Observed, Said, Task};
use crate::graph::{Cause, Graph, Mark, State, StateId, Trigger};
use crate::record::{Phase, Record, Recorded};

/// Decides what an object does next.
///
/// # Guarantees
///
/// - Total: any graph, record and facts give a decision; nothing panics.
/// - Only declared edges, except for what [`By`] calls entry, re-entry and jump.
/// - The same input gives the same decision.
/// - No allocation.
///
/// A turn that takes the result of an action ([`Task::Ended`]) leaves the observation out of account:
/// it was begun before the action ended.
pub fn decide(graph: &Graph<'_>, recorded: &Recorded, facts: &Facts<'_>) -> Decision {
    if facts.deleting && facts.abandoned {
        return Decision::Release { abandoned: true };
    }
    // Built once and then only overruled: copying what was just written would cost more than deciding.
    let mut decision = match recorded {
        Recorded::Nothing => begin(graph, facts),
        Recorded::At(record) => match graph.get(record.state) {
            None => reorient(graph, record, facts),
            Some(state) => {
                let turn = Situation {
                    graph,
                    state,
                    record,
                    facts,
                };
                turn.decide()
            }
        },
    };
    if let Decision::Go(_) = decision
        && let Recorded::At(record) = recorded
        && let Some(left) = loop_guard(graph, record, facts)
    {
        decision = Decision::Stand(Stand::Braking(left));
    }
    // What has ended is taken when the pause is over.
    if facts.is_paused() && !matches!(decision, Decision::Stand(_)) {
        decision = Decision::Stand(Stand::Paused);
    }
    decision
}

const fn go(to: StateId, by: By, why: Why) -> Decision {
    Decision::Go(Go { to, by, why })
}

/// Nothing is recorded: the object is new, or it is adopted where it stands.
fn begin(graph: &Graph<'_>, facts: &Facts<'_>) -> Decision {
    if facts.deleting {
        return match facts.observed {
            // Its status was lost: what is there is led to its end.
            Observed::In(state) if graph.get(state).is_some() => go(state, By::Jump, Why::Adopted),
            Observed::Unreachable { .. } if facts.owned => Decision::Stand(Stand::Unsure),
            Observed::In(_)
            | Observed::Absent
            | Observed::Unobserved
            | Observed::Unforeseen
            | Observed::Unreachable { .. }
            | Observed::Failed { .. } => Decision::Release { abandoned: false },
        };
    }
    let Some(entry) = graph.entry() else {
        return Decision::Stand(Stand::Unsure);
    };
    match facts.observed {
        Observed::In(state) if state == entry => go(entry, By::Entry, Why::Created),
        Observed::In(state) if graph.get(state).is_some() => go(state, By::Jump, Why::Adopted),
        Observed::Unreachable { .. } if facts.owned => Decision::Stand(Stand::Unsure),
        Observed::In(_) | Observed::Unforeseen | Observed::Failed { .. } => {
            Decision::Stand(Stand::Unsure)
        }
        Observed::Absent | Observed::Unobserved | Observed::Unreachable { .. } => {
            go(entry, By::Entry, Why::Created)
        }
    }
}

/// The recorded state is none of this graph: only an observation can say where the application is.
fn reorient(graph: &Graph<'_>, record: &Record, facts: &Facts<'_>) -> Decision {
    if facts.newer {
        return Decision::Stand(Stand::HandsOff);
    }
    let to = match facts.observed {
        Observed::In(state) => graph.get(state).map(|_| state),
        // What is being deleted is not made anew.
        Observed::Absent if !facts.deleting => graph.entry(),
        Observed::Absent
        | Observed::Unobserved
        | Observed::Unforeseen
        | Observed::Unreachable { .. }
        | Observed::Failed { .. } => None,
    };
    match to {
        Some(to) if to != record.state => go(to, By::Jump, Why::Observed),
        Some(_) | None => Decision::Stand(Stand::UnknownState),
    }
}

/// What the work of the state means for this decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// In flight still.
    InFlight,
    /// In flight, and this turn takes an answer that keeps it so.
    Continues {
        /// It failed and is to be tried again; otherwise it asked to be called later.
        failed: bool,
    },
    /// Ended in this turn, naming no state.
    Stayed,
    /// Ended in this turn: on towards what is wished.
    SaidNext,
    /// Ended in this turn, naming a state.
    Named(StateId),
    /// Failed for good in this turn.
    Fails,
    /// There is none, or it ended well before.
    Over,
    /// It failed for good before.
    Failed,
}

struct Situation<'a, 'g> {
    graph: &'a Graph<'g>,
    state: &'a State<'g>,
    record: &'a Record,
    facts: &'a Facts<'a>,
}

impl Situation<'_, '_> {
    fn decide(&self) -> Decision {
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
            Work::InFlight | Work::Continues { .. } => self.in_flight(work),
            Work::Stayed
            | Work::SaidNext
            | Work::Named(_)
            | Work::Fails
            | Work::Over
            | Work::Failed => {
                if self.state.is(Mark::Rest) {
                    self.at_rest(work)
                } else {
                    self.passing(work)
                }
            }
        }
    }

    fn work(&self) -> Work {
        let record = self.record;
        if self.state.is(Mark::Idle) {
            return Work::Over;
        }
        match record.action.map(|action| action.phase) {
            Some(Phase::Done) => return Work::Over,
            Some(Phase::Failed) => return Work::Failed,
            // Status written by somebody else may lack the action: its work was never seen to end.
            Some(Phase::Pending) | None => {}
        }
        // On deletion, work begun before it has had its chance: what it still wants counts as Next.
        let hurries = self.facts.deleting
            && !self.state.is(Mark::Leaf)
            && record.action.is_some_and(|action| !action.leaving);
        match self.facts.task {
            Task::Ended(Said::Stay) => Work::Stayed,
            Task::Ended(Said::Next) => Work::SaidNext,
            Task::Ended(Said::To(to)) => Work::Named(to),
            Task::Ended(Said::Failed { permanent: true }) => Work::Fails,
            Task::Ended(Said::Failed { .. } | Said::Wait)
            | Task::New
            | Task::Waiting
            | Task::Due
                if hurries =>
            {
                Work::SaidNext
            }
            Task::Ended(Said::Wait) => Work::Continues { failed: false },
            Task::Ended(Said::Failed { .. }) => Work::Continues { failed: true },
            Task::Absent | Task::New | Task::Running | Task::Waiting | Task::Due => Work::InFlight,
        }
    }

    /// Whether the observation names a state, as an event or as where the application is, and can be heard.
    fn seen(&self, to: StateId) -> bool {
        (self.facts.events.contains(&to) || self.facts.observed == Observed::In(to))
            && !self.facts.deleting
            && !self.state.is(Mark::Hold)
            && !matches!(self.facts.task, Task::Ended(_))
    }

    /// Rule 1: the record follows the application.
    fn follow(&self, work: Work) -> Option<Decision> {
        let follows = matches!(work, Work::Over | Work::Failed)
            && self.state.is(Mark::Rest)
            && !self.state.is(Mark::Hold)
            && !self.facts.deleting;
        if !follows {
            return None;
        }
        let to = match self.facts.observed {
            Observed::In(state) => self.graph.get(state).map(|_| state),
            Observed::Absent => self.graph.entry(),
            Observed::Unobserved
            | Observed::Unforeseen
            | Observed::Unreachable { .. }
            | Observed::Failed { .. } => None,
        };
        let to = to.filter(|to| *to != self.record.state)?;
        let by = if self.state.trigger_to(to).is_some() {
            By::Trigger
        } else if self.state.children.contains(&to) {
            By::Child
        } else {
            By::Jump
        };
        Some(go(to, by, Why::Observed))
    }

    /// Rule 2: the first trigger whose cause has come, or that was named.
    fn triggered(&self, work: Work) -> Option<Decision> {
        self.state.triggers.iter().find_map(|trigger| {
            let why = self.raised(trigger, work)?;
            Some(go(trigger.to, By::Trigger, why))
        })
    }

    fn raised(&self, trigger: &Trigger, work: Work) -> Option<Why> {
        // Where a child leads there too, the name means the child, and only the cause means the trigger.
        let by_name = !self.state.children.contains(&trigger.to);
        if by_name && work == Work::Named(trigger.to) {
            return Some(Why::Handler);
        }
        if by_name && self.seen(trigger.to) && !self.lags(trigger.to, work) {
            return Some(Why::Observed);
        }
        match trigger.cause {
            // Nothing gives a life up.
            Cause::Named | Cause::OnGiveUp => None,
            Cause::After(time) => (self.facts.in_state >= time).then_some(Why::After),
            Cause::OnError { attempts } => {
                (self.failures(work) >= attempts).then_some(Why::OnError)
            }
            Cause::OnDelete => self.facts.deleting.then_some(Why::OnDelete),
            Cause::OnChange => {
                (self.facts.revision != self.record.changed).then_some(Why::OnChange)
            }
        }
    }

    /// Whether what was seen may only be where the object comes from, or where it is: its work is in flight.
    ///
    /// An event of the state that was left is believed once an attempt has failed: work that cannot succeed because
    /// the application fell back would otherwise be tried for ever.
    fn lags(&self, to: StateId, work: Work) -> bool {
        let in_flight = matches!(work, Work::InFlight | Work::Continues { .. });
        let fell_back = self.facts.events.contains(&to) && self.failures(work) > 0;
        in_flight && (to == self.record.state || (to == self.record.left && !fell_back))
    }

    /// How many attempts in a row have failed; one that failed for good counts as the last.
    fn failures(&self, work: Work) -> u32 {
        match work {
            Work::Fails | Work::Failed => u32::MAX,
            Work::Continues { failed: true } => self.facts.attempt,
            Work::InFlight | Work::Continues { failed: false } => {
                self.facts.attempt.saturating_sub(1)
            }
            Work::SaidNext if matches!(self.facts.task, Task::Ended(Said::Failed { .. })) => {
                // Work begun before the deletion: its failure counts as Next, but first as a failure.
                self.facts.attempt
            }
            Work::Stayed | Work::SaidNext | Work::Named(_) | Work::Over => 0,
        }
    }

    /// Rule 3: an action in flight keeps the object where it is.
    fn in_flight(&self, work: Work) -> Decision {
        let between = match (work, self.facts.task) {
            (Work::Continues { .. }, _) | (_, Task::New | Task::Waiting | Task::Due) => true,
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
            (Work::Continues { failed: true }, _) => Decision::Retry {
                counted: self.counts_attempts(),
            },
            (Work::Continues { failed: false }, _) => Decision::Stand(Stand::Waiting),
            (_, Task::Absent) => Decision::Run(Run::Resume),
            (_, Task::New | Task::Waiting | Task::Due) if changed => Decision::Run(Run::Changed),
            (_, Task::New) => Decision::Run(Run::Begin),
            (_, Task::Waiting) => Decision::Stand(Stand::Waiting),
            (_, Task::Due) => Decision::Run(Run::Again),
            (_, Task::Running | Task::Ended(_)) => Decision::Stand(Stand::Running),
        }
    }

    fn counts_attempts(&self) -> bool {
        (self.state.triggers.iter()).any(|trigger| matches!(trigger.cause, Cause::OnError { .. }))
    }

    /// Rule 4: a passing state is left when its work is over.
    fn passing(&self, work: Work) -> Decision {
        let named = match work {
            Work::Named(to) => Some(to),
            Work::Fails | Work::Failed if !self.facts.deleting => {
                return if work == Work::Fails {
                    Decision::End(Ending::Failed)
                } else {
                    self.amended().unwrap_or(Decision::Stand(Stand::Failed))
                };
            }
            Work::Stayed
            | Work::SaidNext
            | Work::Over
            | Work::Fails
            | Work::Failed
            | Work::InFlight
            | Work::Continues { .. } => None,
        };
        if let Some(to) = named {
            return self
                .along(to, Why::Handler)
                .unwrap_or(Decision::End(Ending::Refused(to)));
        }
        let last = self.state.next().unwrap_or(StateId::UNKNOWN);
        let (hop, why) = self.onwards().unwrap_or((StateId::UNKNOWN, Why::Next));
        if let Some(decision) = self.along(hop, why).or_else(|| self.along(last, Why::Next)) {
            return decision;
        }
        match work {
            Work::Failed | Work::Over => Decision::Stand(Stand::Failed),
            Work::Stayed
            | Work::SaidNext
            | Work::Fails
            | Work::Named(_)
            | Work::InFlight
            | Work::Continues { .. } => Decision::End(Ending::Refused(StateId::UNKNOWN)),
        }
    }

    /// Rule 5: a resting state is left for what was named or wished.
    fn at_rest(&self, work: Work) -> Decision {
        let hop = self.leads_out();
        let named = self.state.children.iter().find_map(|child| {
            let why = match hop {
                _ if work == Work::Named(*child) => Why::Handler,
                Some((to, why)) if to == *child => why,
                _ if self.seen(*child) => Why::Observed,
                _ => return None,
            };
            Some((*child, why))
        });
        let next = || {
            let next = self.state.next().filter(|_| work == Work::SaidNext)?;
            Some((next, Why::Next))
        };
        if let Some((to, why)) = named.or_else(next) {
            return go(to, By::Child, why);
        }
        match work {
            Work::Named(to) => Decision::End(Ending::Refused(to)),
            Work::Stayed | Work::SaidNext => Decision::End(Ending::Well),
            Work::Fails => Decision::End(Ending::Failed),
            Work::Failed => self.amended().unwrap_or(Decision::Stand(Stand::Failed)),
            Work::Over | Work::InFlight | Work::Continues { .. } => self.rerun(),
        }
    }

    /// A resting state without `on_change` runs its work again for a new revision.
    fn rerun(&self) -> Decision {
        let by_trigger =
            || (self.state.triggers.iter()).any(|trigger| trigger.cause == Cause::OnChange);
        if self.facts.revision != self.record.revision
            && !self.state.is(Mark::Idle)
            && !self.facts.deleting
            && !by_trigger()
        {
            Decision::Run(Run::Changed)
        } else {
            Decision::Stand(Stand::Settled)
        }
    }

    /// What failed for good runs again once the spec it acted upon is another.
    fn amended(&self) -> Option<Decision> {
        let generation = self.record.action.map(|action| action.generation);
        if self.facts.revision != self.record.revision {
            Some(Decision::Run(Run::Changed))
        } else if generation != Some(self.facts.generation) {
            Some(Decision::Run(Run::Amended))
        } else {
            None
        }
    }

    /// A leaf is left only for a wish made there, by entering the entry again.
    fn in_leaf(&self, work: Work) -> Decision {
        match work {
            Work::InFlight | Work::Continues { .. } => return self.in_flight(work),
            Work::Fails => return Decision::End(Ending::Failed),
            Work::Named(to) => return Decision::End(Ending::Refused(to)),
            Work::Failed if self.facts.deleting => {
                return self.amended().unwrap_or(Decision::Stand(Stand::Failed));
            }
            Work::Stayed | Work::SaidNext | Work::Over if self.facts.deleting => {
                return Decision::Release { abandoned: false };
            }
            Work::Stayed | Work::SaidNext | Work::Over | Work::Failed => {}
        }
        if let Some(why) = self.reentry()
            && let Some(entry) = self.graph.entry()
        {
            return go(entry, By::Reentry, why);
        }
        match work {
            Work::Stayed | Work::SaidNext => Decision::End(Ending::Well),
            Work::Failed => self.amended().unwrap_or(Decision::Stand(Stand::Failed)),
            Work::Over | Work::Fails | Work::Named(_) | Work::InFlight | Work::Continues { .. } => {
                Decision::Stand(Stand::Settled)
            }
        }
    }

    fn reentry(&self) -> Option<Why> {
        let (record, graph, facts) = (self.record, self.graph, self.facts);
        if let Some((_, made)) = record.open_visit(graph, facts)
            && made == record.transition
        {
            return Some(Why::Visit);
        }
        // `desired_here` knows that a leaf is wished anew only by a request of its own.
        let wanted = facts
            .known_target(graph)
            .filter(|to| graph.may_be_desired(*to));
        (wanted.is_some() && record.desired_here(graph, facts)).then_some(Why::DesiredState)
    }

    /// The hop of the deletion, or of the visit if one is open and has one, else of the wish.
    fn onwards(&self) -> Option<(StateId, Why)> {
        self.hop_where(|_| true)
    }

    /// The same where the state may be left for it: a holding one only for what was wished there.
    fn leads_out(&self) -> Option<(StateId, Why)> {
        self.hop_where(|made| !self.state.is(Mark::Hold) || made == self.record.transition)
    }

    /// The same for what was wished after the arrival.
    fn desired_after_arrival(&self) -> Option<(StateId, Why)> {
        self.hop_where(|made| made == self.record.transition)
            .filter(|_| !self.facts.deleting)
    }

    fn hop_where(&self, counts: impl Fn(u64) -> bool) -> Option<(StateId, Why)> {
        let (record, graph, facts) = (self.record, self.graph, self.facts);
        if facts.deleting {
            return graph.out(record.state).map(|hop| (hop, Why::Deletion));
        }
        let visit = record
            .open_visit(graph, facts)
            .filter(|(_, made)| counts(*made))
            .and_then(|(to, _)| graph.hop(record.state, to));
        if let Some(hop) = visit {
            return Some((hop, Why::Visit));
        }
        let hop = graph.hop(record.state, facts.known_target(graph)?)?;
        counts(record.desired_since(graph, facts)).then_some((hop, Why::DesiredState))
    }

    /// A move along a child edge; triggers were asked before.
    fn along(&self, to: StateId, why: Why) -> Option<Decision> {
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

/// How long the next transition waits yet: beyond twice the number of states, each waits like a retry.
fn loop_guard(graph: &Graph<'_>, record: &Record, facts: &Facts<'_>) -> Option<Duration> {
    // Out of a state that the graph does not know leads one jump, and nothing leads back.
    graph.get(record.state)?;
    let rounds = record.rounds_now(graph, facts);
    let beyond = rounds.saturating_sub(rounds_limit(graph));
    if beyond == 0 {
        return None;
    }
    let wait = facts.backoff.wait(beyond, facts.seed);
    (wait.checked_sub(facts.in_state)).filter(|left| !left.is_zero())
}

/// How many transitions an object may make before it is taken to go round: twice the number of states.
///
/// Settling takes at most 1.6 times the states in the model that the rules were tried on.
pub fn rounds_limit(graph: &Graph<'_>) -> u32 {
    u32::try_from(graph.states.len())
        .unwrap_or(u32::MAX)
        .saturating_mul(2)
}
