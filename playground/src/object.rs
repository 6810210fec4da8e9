//! An object, its application and its operator: decisions and records are those of `okt-core`, everything around them is
//! this file, which does at once what an operator does through the API server.

use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::decide::{By, Ending, Go, Run, StayReason, Why};
use okt_core::facts::{ActionResult, DesiredState, DesiredVisit, Named, Observed, Task};
use okt_core::{
    Gates, Graph, LifecycleFacts, Mark, Parts, Recorded, State, StateId, Verdict, decide,
};

/// More decisions follow from nothing.
const LIMIT: usize = 100;

/// What a spec asks for.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Spec {
    desired: Option<StateId>,
    /// The number of the text in `spec.lifecycle.request`.
    request: u32,
    /// A visit, and the number of its request.
    visit: Option<(StateId, u32)>,
    /// The rest of the spec.
    revision: u64,
}

/// An object on its graph.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; no combination is excluded"
)]
pub(crate) struct PlayedObject<'g> {
    graph: &'g Graph<'g>,
    recorded: Recorded,
    spec: Spec,
    /// The spec when the record was written.
    written: Spec,
    generation: i64,
    is_deleting: bool,
    is_gone: bool,
    /// Whether the spec has changed since an edge for a change was taken.
    is_changed: bool,
    task: Task,
    attempt: u32,
    /// Whether the attempt failed.
    has_failed: bool,
    started_under: i64,
    /// How long until the next call.
    due: Duration,
    in_state: Duration,
    in_deadline: Duration,
    /// Why it stays.
    stays: StayReason,
    /// What has happened since [`take_log`](Self::take_log).
    log: Vec<String>,
}

impl<'g> PlayedObject<'g> {
    /// Creates an object on a graph, and lets its operator act.
    pub(crate) fn create(graph: &'g Graph<'g>) -> Self {
        let mut object = Self {
            graph,
            recorded: Recorded::Nothing,
            spec: Spec::default(),
            written: Spec::default(),
            generation: 1,
            is_deleting: false,
            is_gone: false,
            is_changed: false,
            task: Task::Absent,
            attempt: 0,
            has_failed: false,
            started_under: 0,
            due: Duration::ZERO,
            in_state: Duration::ZERO,
            in_deadline: Duration::ZERO,
            stays: StayReason::Settled,
            log: Vec::new(),
        };
        object.reconcile(Observed::Absent);
        object
    }

    pub(crate) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Returns the state, if there is a record.
    pub(crate) fn state(&self) -> Option<StateId> {
        let record = self.recorded.at().filter(|_| !self.is_gone);
        record.map(|record| record.state)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(crate) fn is_working(&self) -> bool {
        !self.is_gone && self.task == Task::Running
    }

    /// Returns what the object does now, in words.
    pub(crate) fn doing(&self) -> String {
        if self.is_gone {
            return "gone".to_owned();
        }
        match (self.task, self.stays) {
            (Task::Running, _) => format!("works, attempt {}", self.attempt.max(1)),
            (Task::Waiting, _) => format!("calls the handler again in {:?}", self.due),
            (_, StayReason::LoopGuard(left)) => format!("the loop guard delays it by {left:?}"),
            (_, StayReason::Failed) => "the work failed permanently".to_owned(),
            (_, StayReason::Settled) => "rests".to_owned(),
            (_, StayReason::Unsure) => "waits for an observation".to_owned(),
            (_, other) => format!("{other:?}"),
        }
    }

    /// The spec asks for a state; none for the default.
    pub(crate) fn desire(&mut self, state: Option<StateId>) {
        self.spec.desired = state;
        self.change();
    }

    /// The spec asks for the same again.
    pub(crate) fn request(&mut self) {
        self.spec.request += 1;
        self.change();
    }

    /// The spec asks for a visit.
    pub(crate) fn visit(&mut self, state: StateId) {
        let before = self.spec.visit.map_or(0, |(_, request)| request);
        self.spec.visit = Some((state, before + 1));
        self.change();
    }

    /// Something else in the spec changes.
    pub(crate) fn edit(&mut self) {
        self.spec.revision += 1;
        self.is_changed = true;
        self.change();
    }

    fn change(&mut self) {
        self.generation += 1;
        self.reconcile(Observed::Unobserved);
    }

    pub(crate) fn delete(&mut self) {
        self.is_deleting = true;
        self.change();
    }

    /// The operator observes the application.
    pub(crate) fn observe(&mut self, observed: Observed) {
        self.reconcile(observed);
    }

    /// The handler answers.
    pub(crate) fn answer(&mut self, result: ActionResult) {
        self.task = Task::Ended(result);
        self.has_failed = matches!(result, ActionResult::Failed { .. });
        if let ActionResult::Wait(time) = result {
            self.due = time;
        }
        self.reconcile(Observed::Unobserved);
    }

    /// The process of the operator ends, and another one begins: it knows what is recorded.
    pub(crate) fn crash(&mut self) {
        let lost = if self.is_working() {
            ", and its work with it"
        } else {
            ""
        };
        self.log.push(format!(
            "the operator crashes{lost}; another process begins with the record"
        ));
        self.task = Task::Absent;
        self.attempt = 0;
        self.has_failed = false;
        self.reconcile(Observed::Unobserved);
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.in_state += time;
        self.in_deadline += time;
        if self.task == Task::Waiting {
            self.due = self.due.saturating_sub(time);
            if self.due.is_zero() {
                self.task = Task::Due;
            }
        }
        self.reconcile(Observed::Unobserved);
    }

    fn facts(&self, observed: Observed) -> LifecycleFacts<'static> {
        let (spec, written) = (self.spec, self.written);
        let is_requested = spec.request != written.request;
        LifecycleFacts {
            desired: DesiredState {
                state: spec.desired.map(Named::Known),
                fresh: spec.desired != written.desired || is_requested,
                requested: is_requested,
            },
            visit: spec.visit.map(|(state, _)| DesiredVisit {
                state: Named::Known(state),
                fresh: spec.visit != written.visit,
            }),
            request: None,
            is_aborted: false,
            generation: self.generation,
            revision: spec.revision,
            parts: if self.is_changed {
                Parts::ALL
            } else {
                Parts::NONE
            },
            outdated: None,
            content: None,
            shut: Gates::NONE,
            has_unused_place: false,
            uid: 1,
            approved: None,
            deleting: self.is_deleting,
            paused: false,
            observed,
            events: &[],
            owned: false,
            task: self.task,
            attempt: self.attempt.max(1),
            started_under: self.started_under,
            in_state: self.in_state,
            in_deadline: self.in_deadline,
            backoff: Backoff::default(),
            seed: 0,
        }
    }

    /// Decides and does what is decided, until nothing is to be done now.
    fn reconcile(&mut self, observed: Observed) {
        let mut observed = observed;
        for _ in 0..LIMIT {
            if self.is_gone {
                return;
            }
            let facts = self.facts(observed);
            let verdict = decide(self.graph, &self.recorded, &facts);
            let recorded = self.recorded.after(self.graph, &facts, &verdict);
            let before = self.recorded;
            if recorded != before {
                self.recorded = recorded;
                self.written = self.spec;
            }
            match verdict {
                Verdict::Go(go) => self.go(before, go),
                Verdict::Run(run) => {
                    self.run(run);
                    return;
                }
                Verdict::Retry { .. } => {
                    self.due = facts.backoff.wait(self.attempt, facts.seed);
                    self.task = Task::Waiting;
                    let (attempt, due) = (self.attempt, self.due);
                    self.log.push(format!(
                        "attempt {attempt} failed; the next follows in {due:.0?}"
                    ));
                    return;
                }
                Verdict::End(ending) => {
                    self.task = Task::Absent;
                    self.log.push(self.ended(ending));
                }
                Verdict::Release => {
                    self.is_gone = true;
                    self.log
                        .push("the operator removes its finalizer: the object is gone".to_owned());
                }
                Verdict::Stay(reason) => {
                    // The loop guard delays a move: the answer is taken when its time is over.
                    if matches!(self.task, Task::Ended(_)) && reason == StayReason::Waiting {
                        self.task = Task::Waiting;
                        self.log
                            .push(format!("the handler is called again in {:?}", self.due));
                    }
                    self.stays = reason;
                    return;
                }
            }
            // The next reconciliation has no news of the application.
            observed = Observed::Unobserved;
        }
    }

    fn go(&mut self, before: Recorded, go: Go) {
        let name = |state| self.graph.name_of(state);
        let from = before.at().map_or("(new)", |record| name(record.state));
        let edge = match go.by {
            By::Jump => ", a jump",
            By::Trigger => ", by a trigger",
            By::Entry | By::Child | By::Reentry => "",
        };
        self.log.push(format!(
            "{from} → {} ({}{edge})",
            name(go.to),
            go.why.as_str()
        ));
        let deadline = |state: StateId| self.graph.get(state).and_then(State::deadline);
        let left = before.at().and_then(|record| deadline(record.state));
        if left.is_none() || left != deadline(go.to) {
            self.in_deadline = Duration::ZERO;
        }
        if go.why == Why::OnChange || go.by == By::Reentry {
            self.is_changed = false;
        }
        self.in_state = Duration::ZERO;
        self.attempt = 0;
        self.has_failed = false;
        let has_work = self
            .recorded
            .at()
            .is_some_and(|record| record.action.is_some());
        self.task = if has_work { Task::New } else { Task::Absent };
    }

    fn run(&mut self, run: Run) {
        let recorded = self.recorded.at().and_then(|record| record.action);
        let again = self.attempt + u32::from(self.has_failed);
        self.attempt = match run {
            Run::Again => again.max(1),
            Run::Begin | Run::Changed | Run::Amended => 1,
            Run::Resume => recorded.map_or(1, |action| action.attempt.max(1)),
        };
        self.has_failed = false;
        self.task = Task::Running;
        self.started_under = self.generation;
        let name = self.state().map_or("", |state| self.graph.name_of(state));
        let how = match run {
            Run::Resume => "resumes, under the same id",
            Run::Begin => "begins",
            Run::Again => "goes on",
            Run::Changed => "begins anew, because the spec changed",
            Run::Amended => "is tried again, because the spec changed",
        };
        self.log.push(format!(
            "the work of {name} {how}, attempt {}",
            self.attempt
        ));
    }

    fn ended(&self, ending: Ending) -> String {
        match ending {
            Ending::Well => "the work is done, and the object stays".to_owned(),
            Ending::Failed => "the work failed permanently".to_owned(),
            Ending::Refused(to) => {
                format!("refused: no edge leads to {}", self.graph.name_of(to))
            }
        }
    }

    fn here(&self) -> Option<&'g State<'g>> {
        self.graph.get(self.state()?)
    }

    /// Returns whether the handler may answer Next.
    pub(crate) fn has_next(&self) -> bool {
        self.here().and_then(State::next).is_some()
    }

    /// Returns the states that the handler may answer with.
    pub(crate) fn successors(&self) -> Vec<StateId> {
        let here = self.here().into_iter();
        here.flat_map(State::targets).collect()
    }

    /// Returns whether the handler may answer that the object stays.
    pub(crate) fn may_stay(&self) -> bool {
        self.here().is_some_and(|state| !state.is_passing())
    }

    /// Returns whether a spec may ask for visits of a state.
    pub(crate) fn is_visit(&self, state: StateId) -> bool {
        let state = self.graph.get(state);
        state.is_some_and(|state| state.is(Mark::Visit) && !state.is(Mark::Args))
    }
}
