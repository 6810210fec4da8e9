//! One object at one moment, from words.

use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::decide::Why;
use okt_core::decide::{Verdict, decide};
use okt_core::facts::NextRequest;
use okt_core::facts::{
    ActionResult, DesiredState, DesiredVisit, LifecycleFacts, Named, Observed, Task,
};
use okt_core::record::{
    ActionRecord, DesiredRecord, Phase, Record, Recorded, VisitOutcome, VisitRecord, WaitRecord,
};
use okt_core::request::{RequestOutcome, RequestRecord};
use okt_core::{GateId, Gates, Graph, Mark, Parts, Plan, PlannedMove, StateId};

/// The revision at the arrival. The transition at the arrival is 5: a desired state with a lower number is older.
pub(crate) const REVISION: u64 = 7;

pub(crate) struct Case {
    pub(crate) graph: Graph<'static>,
    /// The record, if there is one.
    pub(crate) record: Option<Record>,
    pub(crate) facts: LifecycleFacts<'static>,
}

impl Case {
    /// Returns an object in a state, or with `nothing` on record, and with these changes
    /// (e.g. `Running, desired End 5, deleting`).
    ///
    /// Without changes its work is done, the graph's default is its older desired state, and it is not observed yet.
    pub(crate) fn of(graph: &Graph<'static>, words: &str) -> Self {
        let mut words = words.split(", ");
        let name = words.next().unwrap_or_default();
        let state = graph.named(name);
        assert!(state.is_some() || name == "nothing", "no state: {name}");
        let case = Self {
            graph: *graph,
            record: state.map(|state| arrived(graph, state)),
            facts: LifecycleFacts {
                desired: DesiredState::default(),
                visit: None,
                request: None,
                is_aborted: false,
                generation: 1,
                revision: REVISION,
                parts: Parts::NONE,
                shut: Gates::NONE,
                outdated: None,
                content: Some(1),
                has_unused_place: false,
                uid: 1,
                approved: None,
                deleting: false,
                paused: false,
                observed: Observed::Unobserved,
                events: &[],
                owned: false,
                task: Task::Absent,
                attempt: 1,
                started_under: 1,
                in_state: Duration::from_mins(1),
                in_deadline: Duration::from_mins(1),
                backoff: Backoff::default(),
                seed: 1,
            },
        };
        words.fold(case, Self::but)
    }

    fn but(mut self, change: &str) -> Self {
        let graph = self.graph;
        let (record, facts) = (self.record.as_mut(), &mut self.facts);
        let at = || record.expect("a record to change");
        let id = |name: &str| graph.named(name).unwrap_or(StateId::UNKNOWN);
        let named = |name: &str| graph.named(name).map_or(Named::Unknown, Named::Known);
        let words: Vec<&str> = change.split(' ').collect();
        match words[..] {
            // --- the spec, as it is recorded or not yet
            ["desired", to, since] => {
                let recorded = &mut at().desired;
                (recorded.state, recorded.transition) = (named(to), number(since));
                facts.desired.state = Some(named(to));
            }
            ["newly", "desired", to] => {
                (facts.desired.state, facts.desired.fresh) = (Some(named(to)), true);
            }
            ["requested"] => facts.desired.requested = true,
            ["reached"] => at().desired.reached = true,
            ["visit", to, since] => {
                at().visit = Some(VisitRecord {
                    state: named(to),
                    transition: number(since),
                    outcome: VisitOutcome::Pending,
                });
                facts.visit = Some(DesiredVisit {
                    state: named(to),
                    fresh: false,
                });
            }
            ["new", "visit", to] => {
                let state = named(to);
                facts.visit = Some(DesiredVisit { state, fresh: true });
            }
            ["made", outcome] => {
                use VisitOutcome::{NotReplayed, Overtaken, Reached, Refused};
                let outcome = one_of(&[NotReplayed, Overtaken, Reached, Refused], outcome);
                at().visit.as_mut().expect("a visit").outcome = outcome;
            }
            ["no", "visit"] => facts.visit = None,
            ["revision", revision] => facts.revision = number(revision),
            ["part", part] => {
                let index = graph.parts.iter().position(|it| *it == part);
                facts.parts = facts.parts.with(index.expect("a part"));
            }
            ["generation", generation] => facts.generation = number(generation),
            ["paused"] => facts.paused = true,
            ["deleting"] => (at().deleting, facts.deleting) = (true, true),
            ["newly", "deleting"] => facts.deleting = true,

            // --- the work
            ["no", "action"] => at().action = None,
            ["work", phase] => {
                let all = [Phase::Pending, Phase::Done, Phase::Failed];
                at().action = Some(action(one_of(&all, phase)));
            }
            ["task", task] => {
                use Task::{Absent, Due, New, Running, Waiting};
                facts.task = one_of(&[Absent, New, Running, Waiting, Due], task);
                at().action = Some(action(Phase::Pending));
            }
            ["says" | "fails" | "names", ..] => {
                facts.task = Task::Ended(match words[..] {
                    ["names", to] => ActionResult::To(id(to)),
                    ["says", "Stay"] => ActionResult::Stay,
                    ["says", "Next"] => ActionResult::Next,
                    ["says", "Wait"] => ActionResult::Wait(Duration::ZERO),
                    ["fails"] => ActionResult::Failed { permanent: false },
                    ["fails", "permanently"] => ActionResult::Failed { permanent: true },
                    _ => panic!("no answer: {change}"),
                });
                at().action = Some(action(Phase::Pending));
            }
            ["begun", "leaving"] => at().action.as_mut().expect("an action").leaving = true,
            ["begun", "attempt", attempt] => {
                at().action.as_mut().expect("an action").attempt = number(attempt);
            }
            ["begun", "revision", revision] => at().revision = number(revision),
            ["begun", "generation", generation] => facts.started_under = number(generation),
            ["attempt", attempt] => facts.attempt = number(attempt),

            // --- the application, the position and the time
            ["seen", state] => facts.observed = Observed::In(id(state)),
            ["unreachable", failures] => {
                let failures = number(failures);
                facts.observed = Observed::Unreachable { failures };
            }
            ["unobservable", failures] => {
                let failures = number(failures);
                facts.observed = Observed::Failed { failures };
            }
            ["absent"] => facts.observed = Observed::Absent,
            ["unforeseen"] => facts.observed = Observed::Unforeseen,
            ["event", state] => facts.events = vec![id(state)].leak(),
            ["owned"] => facts.owned = true,
            ["lost"] => at().state = StateId::UNKNOWN,
            ["left", state] => at().left = id(state),
            ["changed", revision] => at().changed = number(revision),
            ["rounds", rounds] => at().rounds = number(rounds),
            ["for", time] => facts.in_state = Duration::from_secs(number(time)),
            ["deadline", time] => facts.in_deadline = Duration::from_secs(number(time)),
            _ => return self.but_gate(&words),
        }
        self
    }

    /// The gates, and what is held back by them.
    fn but_gate(mut self, words: &[&str]) -> Self {
        let graph = self.graph;
        let (record, facts) = (self.record.as_mut(), &mut self.facts);
        let at = || record.expect("a record to change");
        let id = |name: &str| graph.named(name).unwrap_or(StateId::UNKNOWN);
        match *words {
            ["outdated", to] => facts.outdated = Some(id(to)),
            ["content", content] => facts.content = content.parse().ok(),
            // The move to a state, which leads to a goal for this reason.
            ["approved", to, why, goal] => {
                let is_request = why == "Request";
                facts.approved = Some(Plan::of(&PlannedMove {
                    object: facts.uid,
                    transition: at().transition,
                    to,
                    why,
                    goal,
                    request: if is_request { 2 } else { 0 },
                    revision: REVISION,
                    resources: 1,
                }));
            }
            ["unused", "place"] => facts.has_unused_place = true,
            ["shut", gate] => facts.shut = facts.shut.with(gate_of(&graph, gate)),
            ["waiting", gate, to] => {
                at().waiting = Some(WaitRecord {
                    gate: gate_of(&graph, gate),
                    to: id(to),
                    why: Why::Handler,
                    plan: None,
                });
            }
            _ => return self.but_request(words),
        }
        self
    }

    /// Changes the requests.
    fn but_request(mut self, words: &[&str]) -> Self {
        let graph = self.graph;
        let named = |name: &str| graph.named(name).map_or(Named::Unknown, Named::Known);
        let record = self.record.as_mut();
        let record = || record.expect("a record to change");
        match *words {
            ["request", to] => self = self.but_request(&["request", to, "2"]),
            ["request", to, token] => {
                self.facts.request = Some(NextRequest {
                    state: named(to).known().expect("a state"),
                    token: number(token),
                });
            }
            ["serves", to] => {
                let state = named(to);
                record().request = Some(RequestRecord {
                    state,
                    token: 1,
                    transition: 3,
                    outcome: RequestOutcome::Running,
                });
            }
            ["served", outcome] => {
                use RequestOutcome::{Aborted, Failed, Reached};
                let outcome = one_of(&[Aborted, Failed, Reached], outcome);
                record().request.as_mut().expect("a request").outcome = outcome;
            }
            ["aborted"] => self.facts.is_aborted = true,
            _ => panic!("no change: {words:?}"),
        }
        self
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.record.map_or(Recorded::Nothing, Recorded::At)
    }

    pub(crate) fn decide(&self) -> Verdict {
        decide(&self.graph, &self.recorded(), &self.facts)
    }

    /// Returns what is recorded after the decision.
    pub(crate) fn after(&self) -> Recorded {
        self.recorded()
            .after(&self.graph, &self.facts, &self.decide())
    }
}

/// Returns the record of an object that rests in a state.
fn arrived(graph: &Graph<'_>, state: StateId) -> Record {
    let is_idle = graph.get(state).is_none_or(|state| state.is(Mark::Idle));
    Record {
        state,
        left: StateId::UNKNOWN,
        transition: 5,
        jumps: 0,
        jumped: false,
        rounds: 0,
        deleting: false,
        desired: DesiredRecord {
            state: graph.home().map_or(Named::Unknown, Named::Known),
            transition: 1,
            reached: false,
        },
        visit: None,
        request: None,
        revision: REVISION,
        changed: REVISION,
        action: (!is_idle).then_some(action(Phase::Done)),
        waiting: None,
        returned: 0,
    }
}

fn gate_of(graph: &Graph<'_>, name: &str) -> GateId {
    let mut gates = graph.all_gates();
    gates.find(|(_, gate)| gate.name == name).expect(name).0
}

fn action(phase: Phase) -> ActionRecord {
    ActionRecord {
        run: 1,
        attempt: 1,
        phase,
        generation: 1,
        leaving: false,
    }
}

fn one_of<T: Copy + Debug>(all: &[T], word: &str) -> T {
    let mut all = all.iter().copied();
    all.find(|one| format!("{one:?}") == word).expect(word)
}

fn number<T: FromStr<Err: Debug>>(word: &str) -> T {
    word.parse().expect("a number")
}
