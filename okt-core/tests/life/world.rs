//! A cluster, an application and an operator that can crash, small enough to run tens of thousands of times.

use std::collections::BTreeMap;
use std::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::decide::{By, Run, Verdict, decide};
use okt_core::facts::{
    ActionResult, DesiredState, DesiredVisit, LifecycleFacts, Named, Observed, Task,
};
use okt_core::record::{Recorded, VisitOutcome};
use okt_core::{Graph, Mark, StateId};

use crate::rng::Rng;

/// How the application reports its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Never.
    Blind,
    /// The state in which the last work left it.
    Honest,
    /// Like `Honest`, but only while it rests.
    HonestAtRest,
    /// It is never reachable.
    Unreachable,
    /// The state on record.
    Echo,
    /// Like `Honest`, but every third observation finds a state that no graph has.
    Strange,
}

pub(crate) const SIGHTS: [Sight; 6] = [
    Sight::Blind,
    Sight::Honest,
    Sight::HonestAtRest,
    Sight::Unreachable,
    Sight::Echo,
    Sight::Strange,
];

/// A request of the user: the state and the number of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) state: StateId,
    pub(crate) request: u32,
}

/// The object as the cluster stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) recorded: Recorded,
    pub(crate) arrived: Duration,
    desired: Option<Asked>,
    visit: Option<Asked>,
    version: u64,
}

pub(crate) struct World<'r> {
    pub(crate) graph: Graph<'static>,
    pub(crate) stored: Stored,
    pub(crate) desired: Option<Asked>,
    pub(crate) visit: Option<Asked>,
    pub(crate) revision: u64,
    pub(crate) generation: i64,
    pub(crate) deleting: bool,
    pub(crate) released: bool,
    pub(crate) writes: u64,
    sight: Sight,
    /// The state whose work the application carried out last.
    app: Option<StateId>,
    /// The work of each action id.
    ids: BTreeMap<(u64, u32), (StateId, u64)>,
    /// The number of attempts of an action that will still fail.
    failing: usize,
    pub(crate) now: Duration,
    memory: Memory,
    rng: &'r mut Rng,
    crashes: usize,
    pub(crate) log: Vec<String>,
    failures: u32,
}

/// The knowledge of the operator that is not stored.
#[derive(Clone, Copy)]
struct Memory {
    task: Task,
    attempt: u32,
    started_under: i64,
    due: Duration,
    waits: u32,
    seen: u64,
    stale: Option<Stored>,
}

const FRESH: Memory = Memory {
    task: Task::Absent,
    attempt: 1,
    started_under: 1,
    due: Duration::ZERO,
    waits: 0,
    seen: 0,
    stale: None,
};

impl<'r> World<'r> {
    pub(crate) fn new(graph: Graph<'static>, sight: Sight, rng: &'r mut Rng) -> Self {
        let failing = if rng.one_in(2) { 0 } else { rng.below(3) };
        Self {
            graph,
            stored: Stored {
                recorded: Recorded::Nothing,
                arrived: Duration::ZERO,
                desired: None,
                visit: None,
                version: 0,
            },
            desired: None,
            visit: None,
            revision: 7,
            generation: 1,
            deleting: false,
            released: false,
            writes: 0,
            sight,
            app: None,
            ids: BTreeMap::new(),
            failing,
            now: Duration::ZERO,
            memory: FRESH,
            crashes: 6,
            rng,
            log: Vec::new(),
            failures: 0,
        }
    }

    /// Runs one reconciliation; returns whether it wrote or started anything.
    pub(crate) fn turn(&mut self) -> bool {
        self.now += Duration::from_secs(30);
        // A cache may be behind, but not behind the operator's own last write.
        let object = match self.memory.stale.take() {
            Some(stale) if stale.version >= self.memory.seen => stale,
            Some(_) | None => self.stored,
        };
        self.finish_work(&object);
        let facts = self.facts(&object);
        let decision = decide(&self.graph, &object.recorded, &facts);
        let next = object.recorded.after(&self.graph, &facts, &decision);
        self.log.push(format!("{decision:?} <- {:?}", facts.task));
        if let Verdict::Release = decision {
            assert!(
                object.recorded.at().is_none_or(|record| {
                    self.graph
                        .get(record.state)
                        .is_some_and(|state| state.is(Mark::Leaf))
                }),
                "released outside a leaf"
            );
            self.released = true;
            return true;
        }
        if self.crash() {
            return true;
        }
        let written = Stored {
            recorded: next,
            arrived: if matches!(decision, Verdict::Go(_)) {
                self.now
            } else {
                object.arrived
            },
            desired: self.desired,
            visit: self.visit,
            version: object.version,
        };
        let writes = next != object.recorded;
        if writes {
            if object.version != self.stored.version {
                return true; // 409: reconcile again
            }
            self.follows_the_graph(&object.recorded, &next, &decision);
            self.stored = Stored {
                version: object.version + 1,
                ..written
            };
            self.writes += 1;
            self.memory.seen = self.stored.version;
            if self.crash() {
                return true;
            }
        }
        let acted = self.act(&next, &decision);
        if self.rng.one_in(4) {
            self.memory.stale = Some(object);
        }
        writes || acted
    }

    fn facts(&mut self, object: &Stored) -> LifecycleFacts<'static> {
        let observed = self.look(object);
        let task = self.memory.task;
        let task = match task {
            Task::Waiting if self.now >= self.memory.due => Task::Due,
            other => other,
        };
        self.memory.task = task;
        LifecycleFacts {
            desired: DesiredState {
                state: self.desired.map(|asked| Named::Known(asked.state)),
                fresh: object.recorded.at().is_some() && object.desired != self.desired,
                requested: object.desired.map(|w| w.request) != self.desired.map(|w| w.request),
            },
            visit: self.visit.map(|asked| DesiredVisit {
                state: Named::Known(asked.state),
                fresh: object.visit != self.visit,
            }),
            generation: self.generation,
            revision: self.revision,
            deleting: self.deleting,
            paused: false,
            observed,
            events: &[],
            owned: false,
            task,
            attempt: self.memory.attempt,
            started_under: self.memory.started_under,
            in_state: self.now.checked_sub(object.arrived).unwrap_or_default(),
            in_deadline: Duration::ZERO,
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_mins(5)),
            seed: 3,
        }
    }

    fn look(&mut self, object: &Stored) -> Observed {
        let Some(record) = object.recorded.at() else {
            return match self.sight {
                Sight::Blind | Sight::Echo => Observed::Unobserved,
                Sight::Unreachable => Observed::Unreachable { failures: 1 },
                Sight::Honest | Sight::HonestAtRest | Sight::Strange => Observed::Absent,
            };
        };
        let state = self.graph.get(record.state).expect("a recorded state");
        if state.is(Mark::Idle) {
            self.app = Some(record.state);
        }
        let honest = match self.app {
            Some(state) => Observed::In(state),
            None => Observed::Absent,
        };
        self.failures += 1;
        match self.sight {
            Sight::Blind => Observed::Unobserved,
            Sight::Unreachable => Observed::Unreachable {
                failures: self.failures,
            },
            Sight::Echo => Observed::In(record.state),
            Sight::HonestAtRest if state.is_passing() => Observed::Unobserved,
            Sight::Strange if self.failures.is_multiple_of(3) => Observed::Unforeseen,
            Sight::Honest | Sight::HonestAtRest | Sight::Strange => honest,
        }
    }

    /// Ends the running work before the next reconciliation, as most work does.
    fn finish_work(&mut self, object: &Stored) {
        if self.memory.task != Task::Running {
            return;
        }
        let Some(record) = object.recorded.at() else {
            return;
        };
        let Some(state) = self.graph.get(record.state) else {
            return;
        };
        let said = if self.failing > 0 && self.rng.one_in(3) {
            self.failing -= 1;
            ActionResult::Failed { permanent: false }
        } else if self.memory.waits > 0 && self.rng.one_in(3) {
            self.memory.waits -= 1;
            ActionResult::Wait
        } else {
            self.app = Some(record.state);
            if state.is_passing() {
                ActionResult::Next
            } else {
                ActionResult::Stay
            }
        };
        self.memory.task = Task::Ended(said);
    }

    /// Starts the work that the decision asks for; returns whether it acted.
    fn act(&mut self, next: &Recorded, decision: &Verdict) -> bool {
        let Recorded::At(record) = next else {
            return false;
        };
        let starts = match decision {
            Verdict::Go(_) => {
                self.memory.attempt = 1;
                self.memory.waits = 2;
                self.memory.task = Task::Absent;
                record.action.is_some()
            }
            Verdict::Run(run) => {
                if matches!(run, Run::Changed | Run::Amended) {
                    self.memory.attempt = 1;
                }
                true
            }
            Verdict::Retry { .. } => {
                self.memory.attempt += 1;
                self.memory.task = Task::Waiting;
                self.memory.due = self.now + Duration::from_secs(45);
                return true;
            }
            Verdict::Stand(_) if self.memory.task == Task::Ended(ActionResult::Wait) => {
                self.memory.task = Task::Waiting;
                self.memory.due = self.now + Duration::from_secs(45);
                return true;
            }
            Verdict::End(_) => {
                self.memory.task = Task::Absent;
                return true;
            }
            // An object that the loop guard delays has not come to rest.
            Verdict::Stand(stand) => {
                return !matches!(
                    stand,
                    okt_core::decide::Stand::Settled | okt_core::decide::Stand::Failed
                );
            }
            Verdict::Release => false,
        };
        if starts {
            let action = record.action.expect("work to start");
            let work = (record.state, self.revision);
            let before = self.ids.insert((record.transition, action.run), work);
            assert!(
                before.is_none_or(|before| before == work),
                "one id for two pieces of work: {before:?} and {work:?}"
            );
            self.memory.task = Task::Running;
            self.memory.started_under = self.generation;
        }
        true
    }

    fn crash(&mut self) -> bool {
        let crashes = self.crashes > 0 && self.rng.one_in(12);
        if crashes {
            self.crashes -= 1;
            self.memory = FRESH;
            self.log.push("crash".into());
        }
        crashes
    }

    fn follows_the_graph(&self, before: &Recorded, after: &Recorded, decision: &Verdict) {
        let Recorded::At(to) = after else { return };
        let Some(from) = before.at() else {
            assert!(
                self.graph.entry() == Some(to.state) || to.jumps > 0,
                "first state"
            );
            return;
        };
        assert!(
            to.transition >= from.transition && to.jumps >= from.jumps,
            "counters"
        );
        if to.state == from.state {
            assert_eq!(to.transition, from.transition, "a transition to itself");
            return;
        }
        assert_eq!(
            to.transition,
            from.transition + 1,
            "one transition, one number"
        );
        let state = self.graph.get(from.state).expect("a state");
        let edge = state.targets().any(|target| target == to.state);
        let reentry = state.is(Mark::Leaf) && self.graph.entry() == Some(to.state);
        assert!(edge || reentry || to.jumps > from.jumps, "no declared edge");
        if let Verdict::Go(go) = decision {
            assert_eq!(
                go.by == By::Jump,
                to.jumps > from.jumps,
                "jumps are counted"
            );
        }
    }

    /// Keeps the operator from crashing from now on.
    pub(crate) fn stop_crashing(&mut self) {
        self.crashes = 0;
    }

    /// Reconciles until nothing happens any more; panics if that takes too long.
    pub(crate) fn settle(&mut self, what: &str) {
        let mut quiet = 0;
        for _ in 0..4_000 {
            if self.released {
                return;
            }
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet > 3 {
                return;
            }
        }
        panic!("{what}: does not come to rest\n{}", self.tail());
    }

    pub(crate) fn tail(&self) -> String {
        let from = self.log.len().saturating_sub(30);
        format!(
            "{:#?}\n{:?}\n{:?}",
            self.graph.states,
            self.stored,
            &self.log[from..]
        )
    }

    pub(crate) fn visit_outcome(&self) -> Option<VisitOutcome> {
        Some(self.stored.recorded.at()?.visit?.outcome)
    }
}
