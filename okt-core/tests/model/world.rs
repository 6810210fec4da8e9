//! One object, its user, its application, the cache that shows it and the operator that keeps it.

use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::conditions::{Words, conditions};
use okt_core::decide::{Decision, Run, Stand, decide};
use okt_core::facts::{Facts, Named, Observed, Said, Task, Visit, Wish};
use okt_core::record::{Outcome, Recorded};
use okt_core::{ConditionStatus, Graph, Mark, StateId};

/// How often something unexpected may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) user: u8,
    pub(crate) crashes: u8,
    /// Answers of handlers other than that the work is done.
    pub(crate) answers: u8,
    pub(crate) sights: u8,
    pub(crate) overdue: u8,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The user wishes the object to be kept in a state.
    Wish(StateId),
    /// The user asks for a visit.
    Visit(StateId),
    /// The user changes what handlers act upon.
    Change,
    /// The user deletes the object.
    Delete,
    /// The application is seen elsewhere.
    Sees(Observed),
    /// The time in the state is over.
    Overdue,
    /// The next version arrives in the cache.
    Deliver,
    /// The operator takes a turn.
    Turn,
    /// The work that runs ends.
    Ends(Said),
    /// The wait for the next attempt is over.
    Due,
    /// The operator crashes, and is shown this many versions less than there are when it is back.
    Crash(usize),
}

/// What a user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Spec {
    wish: Option<(StateId, u8)>,
    visit: Option<(StateId, u8)>,
    revision: u64,
    generation: i64,
    deleting: bool,
}

/// A version of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Object {
    version: u64,
    spec: Spec,
    recorded: Recorded,
    /// The wish and the visit as they were recorded.
    wish: Option<(StateId, u8)>,
    visit: Option<(StateId, u8)>,
}

/// What the operator knows beside what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Memory {
    task: Task,
    /// The id of the work that `task` is about.
    work: (u64, u32),
    attempt: u32,
    started_under: i64,
    seen: u64,
}

const FRESH: Memory = Memory {
    task: Task::Absent,
    work: (0, 0),
    attempt: 1,
    started_under: 1,
    seen: 0,
};

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    stored: Object,
    /// Versions that the cache may still be shown, oldest first; the last is what is stored.
    versions: Vec<Object>,
    cache: Object,
    memory: Memory,
    sight: Observed,
    /// The transition whose state has lasted too long.
    overdue: Option<u64>,
    budget: Budget,
    /// What each id stood for.
    ids: Vec<((u64, u32), (StateId, u64))>,
    pub(crate) conflicts: u8,
    pub(crate) released: bool,
    pub(crate) broken: Option<String>,
}

/// As many versions may be shown again.
const VERSIONS: usize = 3;

impl World {
    pub(crate) fn new(budget: Budget) -> Self {
        let spec = Spec {
            wish: None,
            visit: None,
            revision: 1,
            generation: 1,
            deleting: false,
        };
        let object = Object {
            version: 1,
            spec,
            recorded: Recorded::Nothing,
            wish: None,
            visit: None,
        };
        Self {
            stored: object,
            versions: vec![object],
            cache: object,
            memory: FRESH,
            sight: Observed::Unobserved,
            overdue: None,
            budget,
            ids: Vec::new(),
            conflicts: 0,
            released: false,
            broken: None,
        }
    }

    pub(crate) fn has_made_a_visit(&self) -> bool {
        let record = self.stored.recorded.at();
        let visit = record.and_then(|record| record.visit);
        visit.is_some_and(|visit| visit.outcome == Outcome::Reached)
    }

    /// Everything that can happen now.
    pub(crate) fn events(&self, graph: &Graph<'_>) -> Vec<Event> {
        let mut events = self.calm_events(graph);
        if self.released || self.broken.is_some() {
            return Vec::new();
        }
        let states = || graph.iter().map(|(id, _)| id);
        if self.budget.user > 0 {
            let wishes: Vec<_> = graph.wishes().collect();
            for to in wishes {
                let visits = graph.get(to).is_some_and(|state| state.is(Mark::Visit));
                events.push(if visits {
                    Event::Visit(to)
                } else {
                    Event::Wish(to)
                });
            }
            events.push(Event::Change);
            if !self.stored.spec.deleting {
                events.push(Event::Delete);
            }
        }
        if self.budget.sights > 0 {
            events.push(Event::Sees(Observed::Absent));
            events.extend(states().map(|state| Event::Sees(Observed::In(state))));
        }
        if self.budget.overdue > 0 && self.stored.recorded.at().is_some() {
            events.push(Event::Overdue);
        }
        if self.budget.crashes > 0 {
            events.extend((0..self.versions.len()).map(Event::Crash));
        }
        if self.memory.task == Task::Running && self.budget.answers > 0 {
            events.extend([true, false].map(|permanent| Event::Ends(Said::Failed { permanent })));
            events.push(Event::Ends(Said::Wait));
            let state = self.working_in().and_then(|state| graph.get(state));
            let targets = state.into_iter().flat_map(okt_core::State::targets);
            events.extend(targets.map(|to| Event::Ends(Said::To(to))));
        }
        events
    }

    /// What happens when nothing is unexpected any more.
    pub(crate) fn calm_events(&self, graph: &Graph<'_>) -> Vec<Event> {
        if self.released || self.broken.is_some() {
            return Vec::new();
        }
        let mut events = vec![Event::Turn];
        if self.cache.version < self.stored.version {
            events.push(Event::Deliver);
        }
        match self.memory.task {
            Task::Running => {
                let state = graph.iter().find(|(id, _)| Some(*id) == self.working_in());
                let passing = state.is_some_and(|(_, state)| state.is_passing());
                events.push(Event::Ends(if passing { Said::Next } else { Said::Stay }));
            }
            Task::Waiting => events.push(Event::Due),
            Task::Absent | Task::New | Task::Due | Task::Ended(_) => {}
        }
        events
    }

    fn working_in(&self) -> Option<StateId> {
        let of =
            |(id, work): &((u64, u32), (StateId, u64))| (*id == self.memory.work).then_some(work.0);
        self.ids.iter().find_map(of)
    }

    /// From now on nothing is unexpected: the application says no more what is not so.
    pub(crate) fn calmed(&self) -> Self {
        Self {
            sight: Observed::Unobserved,
            budget: Budget {
                user: 0,
                crashes: 0,
                answers: 0,
                sights: 0,
                overdue: 0,
            },
            conflicts: 0,
            ..self.clone()
        }
    }

    /// What becomes of it; none where the event changes nothing.
    pub(crate) fn after(&self, graph: &Graph<'_>, event: Event) -> Option<Self> {
        let mut next = self.clone();
        match event {
            Event::Wish(to) => next.user(|spec| spec.wish = Some((to, bumped(spec.wish)))),
            Event::Visit(to) => next.user(|spec| spec.visit = Some((to, bumped(spec.visit)))),
            Event::Change => next.user(|spec| spec.revision += 1),
            Event::Delete => next.user(|spec| spec.deleting = true),
            Event::Sees(sight) => {
                next.budget.sights = next.budget.sights.saturating_sub(1);
                next.sight = sight;
            }
            Event::Overdue => {
                next.budget.overdue -= 1;
                next.overdue = next.stored.recorded.at().map(|record| record.transition);
            }
            Event::Deliver => {
                let newer = |object: &&Object| object.version > self.cache.version;
                next.cache = *self.versions.iter().find(newer)?;
            }
            Event::Turn => next.turn(graph),
            Event::Ends(said) => {
                if !matches!(said, Said::Stay | Said::Next) {
                    next.budget.answers -= 1;
                }
                next.memory.task = Task::Ended(said);
            }
            Event::Due => next.memory.task = Task::Due,
            Event::Crash(back) => {
                next.budget.crashes -= 1;
                next.memory = FRESH;
                next.cache = *self.versions.iter().nth_back(back)?;
            }
        }
        (next != *self).then_some(next)
    }

    fn user(&mut self, change: impl FnOnce(&mut Spec)) {
        self.budget.user -= 1;
        let mut spec = self.stored.spec;
        change(&mut spec);
        spec.generation += 1;
        self.write(Object {
            spec,
            ..self.stored
        });
    }

    fn write(&mut self, object: Object) {
        self.stored = Object {
            version: self.stored.version + 1,
            ..object
        };
        self.versions.push(self.stored);
        if self.versions.len() > VERSIONS {
            self.versions.remove(0);
        }
        if self.cache.version < self.versions[0].version {
            // A watch so far behind lists anew.
            self.cache = self.versions[0];
        }
    }

    /// One turn of the operator.
    fn turn(&mut self, graph: &Graph<'_>) {
        let object = self.cache;
        if object.version < self.memory.seen {
            return;
        }
        let in_flight = object
            .recorded
            .at()
            .filter(|record| record.in_flight(graph));
        let in_flight = in_flight.and_then(|record| Some((record.transition, record.action?.run)));
        if self.memory.task != Task::Absent && in_flight != Some(self.memory.work) {
            self.memory.task = Task::Absent;
            self.memory.attempt = 1;
        }
        let facts = self.facts(&object);
        let decision = decide(graph, &object.recorded, &facts);
        let next = object.recorded.after(graph, &facts, &decision);
        if let Decision::Release { .. } = decision {
            if object.version == self.stored.version {
                self.release(graph, &object);
            }
            return;
        }
        let written = Object {
            recorded: next,
            wish: object.spec.wish,
            visit: object.spec.visit,
            ..object
        };
        if written != object && object.recorded != Recorded::Nothing || next != object.recorded {
            if object.version != self.stored.version {
                // 409: look again.
                self.conflicts = 1;
                return;
            }
            // As the API server sees it.
            self.check_edge(graph, &self.stored.recorded.clone(), &next);
            self.check_conditions(graph, &next, &facts, &decision);
            self.write(written);
            self.memory.seen = self.stored.version;
            // Whoever was seen elsewhere and followed is where the record says.
            self.sight = Observed::Unobserved;
        }
        self.act(&next, &decision, &facts);
    }

    fn facts(&self, object: &Object) -> Facts<'static> {
        let hour = Duration::from_hours(1);
        let record = object.recorded.at();
        let is_overdue = record.is_some_and(|record| self.overdue == Some(record.transition));
        let request = |asked: Option<(StateId, u8)>| asked.map(|(_, request)| request);
        Facts {
            wish: Wish {
                state: object.spec.wish.map(|(state, _)| Named::Known(state)),
                fresh: record.is_some() && object.wish != object.spec.wish,
                requested: request(object.wish) != request(object.spec.wish),
            },
            visit: object.spec.visit.map(|(state, _)| Visit {
                state: Named::Known(state),
                fresh: object.visit != object.spec.visit,
            }),
            generation: object.spec.generation,
            revision: object.spec.revision,
            deleting: object.spec.deleting,
            abandoned: false,
            paused: false,
            newer: false,
            observed: self.sight,
            events: &[],
            owned: false,
            task: self.memory.task,
            attempt: self.memory.attempt,
            started_under: self.memory.started_under,
            in_state: if is_overdue { hour } else { Duration::ZERO },
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_mins(5)),
            seed: 3,
        }
    }

    fn act(&mut self, next: &Recorded, decision: &Decision, facts: &Facts<'_>) {
        let Recorded::At(record) = next else { return };
        let starts = match decision {
            Decision::Go(_) => {
                self.memory.task = Task::Absent;
                self.memory.attempt = 1;
                record.action.is_some()
            }
            Decision::Run(run) => {
                if matches!(run, Run::Changed | Run::Amended) {
                    self.memory.attempt = 1;
                }
                true
            }
            Decision::Retry { .. } => {
                self.memory.attempt += 1;
                self.memory.task = Task::Waiting;
                false
            }
            Decision::Stand(Stand::Waiting) if facts.task == Task::Ended(Said::Wait) => {
                self.memory.task = Task::Waiting;
                false
            }
            Decision::End(_) => {
                self.memory.task = Task::Absent;
                false
            }
            Decision::Stand(_) | Decision::Release { .. } => false,
        };
        let Some(action) = record.action.filter(|_| starts) else {
            return;
        };
        let id = (record.transition, action.run);
        let work = (record.state, facts.revision);
        match self.ids.iter().find(|(known, _)| *known == id) {
            Some((_, before)) if *before != work => {
                self.breaks(format!("{id:?} is work of {before:?} and of {work:?}"));
            }
            Some(_) => {}
            None => self.ids.push((id, work)),
        }
        self.memory.task = Task::Running;
        self.memory.work = id;
        self.memory.started_under = facts.generation;
    }

    fn release(&mut self, graph: &Graph<'_>, object: &Object) {
        let in_leaf = object.recorded.at().is_none_or(|record| {
            let state = graph.get(record.state);
            let done = matches!(self.memory.task, Task::Ended(Said::Stay | Said::Next));
            state.is_some_and(|state| state.is(Mark::Leaf)) && (done || !record.in_flight(graph))
        });
        if !object.spec.deleting || !in_leaf {
            self.breaks(format!("let go at {:?}", object.recorded));
        }
        self.released = true;
    }

    fn check_edge(&mut self, graph: &Graph<'_>, before: &Recorded, after: &Recorded) {
        let Recorded::At(to) = after else {
            return;
        };
        let Recorded::At(from) = before else {
            if graph.entry() != Some(to.state) && to.jumps == 0 {
                self.breaks(format!("began in {:?}", to.state));
            }
            return;
        };
        let moved = to.transition.checked_sub(from.transition);
        if from.state == to.state {
            if moved != Some(0) {
                self.breaks("a transition to itself".to_owned());
            }
            return;
        }
        let state = graph.get(from.state);
        let is_edge = state.is_some_and(|state| {
            let reentry = state.is(Mark::Leaf) && graph.entry() == Some(to.state);
            reentry || state.targets().any(|target| target == to.state)
        });
        if moved != Some(1) || !(is_edge || to.jumps > from.jumps) {
            self.breaks(format!("from {from:?} to {to:?}"));
        }
    }

    fn check_conditions(
        &mut self,
        graph: &Graph<'_>,
        after: &Recorded,
        facts: &Facts<'_>,
        decision: &Decision,
    ) {
        let all = conditions(graph, after, facts, decision, &Words::default());
        let status = |name: &str| {
            let found = all.iter().find(|condition| condition.name == name);
            found.map(|condition| condition.status)
        };
        let beside = (status("Reconciling"), status("Stalled"));
        let truth = Some(ConditionStatus::True);
        let fits = match status("Ready") {
            Some(ConditionStatus::True) => beside == (None, None),
            Some(ConditionStatus::False) => beside == (truth, None) || beside == (None, truth),
            Some(ConditionStatus::Unknown) => beside == (truth, None),
            None => false,
        };
        if !fits {
            self.breaks(format!("conditions {all:?}"));
        }
    }

    fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    /// What is in the way of rest, for the object as it is; none where it is at rest.
    pub(crate) fn unrest(&self, graph: &Graph<'_>) -> Option<String> {
        if self.released {
            return None;
        }
        let facts = self.facts(&self.stored);
        let decision = decide(graph, &self.stored.recorded, &facts);
        let after = self.stored.recorded.after(graph, &facts, &decision);
        let all = conditions(graph, &after, &facts, &decision, &Words::default());
        let says = |name: &str| {
            all.iter()
                .any(|c| c.name == name && c.status == ConditionStatus::True)
        };
        let rests = says("Ready") || says("Stalled");
        (!rests || after != self.stored.recorded)
            .then(|| format!("{decision:?} at {:?}", self.stored.recorded))
    }
}

fn bumped(asked: Option<(StateId, u8)>) -> u8 {
    asked.map_or(0, |(_, request)| request + 1)
}
