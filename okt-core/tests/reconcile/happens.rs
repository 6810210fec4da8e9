//! The effects of events on the world.

use okt_core::StateId;
use okt_core::facts::ActionResult;
use okt_core::record::Recorded;

use crate::cases::Budget;
use crate::event::{EffectOutcome, Event};
use crate::object::{Request, Spec};
use crate::plant::Bug;
use crate::process::Process;
use crate::translate::LONG;
use crate::world::{OwnedObject, Permits, Presence, PutObject, UNOBSERVED, World};

/// Another leader takes at most this many decisions.
const DECISIONS: usize = 60;

impl World {
    /// Returns the world after an event that can happen.
    pub(crate) fn after(&self, event: Event) -> Self {
        let mut next = self.clone();
        next.happens(event);
        next
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Decides(outcome) => self.decides(outcome),
            Event::Deliver => self.deliver(),
            Event::ActionEnds(result) => self.action_ends(result),
            Event::ActionIsLost => self.action_is_lost(),
            Event::AsksToRecord => {
                self.budget.records -= 1;
                self.process.is_recording = true;
                self.process.queued = true;
            }
            Event::CancelledTaskEnds => self.cancelled_task_ends(),
            Event::OwnedIsReady => {
                self.cluster.owned = OwnedObject::Ready;
                self.names_object();
            }
            Event::PutIsGone => {
                self.cluster.put = PutObject::Absent;
                self.names_object();
            }
            Event::PermitIsFree => {
                self.permits = Permits::Free;
                self.process.queued = true;
            }
            Event::OthersLetGo => self.presence = Presence::Gone,
            Event::TimePasses => self.time_passes(),
            Event::Requeued => self.requeued(),
            Event::Restart(old) => {
                self.budget.crashes = self.budget.crashes.saturating_sub(1);
                self.restart(old);
            }
            Event::LosesLead => {
                self.budget.lead -= 1;
                self.process.leads = false;
            }
            Event::GetsLead => self.gets_lead(),
            Event::AnotherLeads { ends } => self.another_leads(ends),
            Event::Drain => {
                self.budget.drains -= 1;
                self.process.draining = true;
                self.process.queued = true;
            }
            Event::DesiredState(to) => {
                self.user(|spec| spec.desired = Some(Request::anew(spec.desired, to)));
            }
            Event::Visit(to) => self.user(|spec| spec.visit = Some(Request::anew(spec.visit, to))),
            Event::Asks => {
                self.budget.asks -= 1;
                if let Some(next) = self.asked.iter_mut().find(|it| !it.is_made) {
                    next.is_made = true;
                }
            }
            Event::Releases => {
                self.budget.releases -= 1;
                self.cluster.is_outdated = self.cluster.owned != OwnedObject::Absent;
                self.restart(0);
            }
            Event::TendsPlaces => self.place = self.tended_place(),
            Event::Turns => {
                self.budget.turns -= 1;
                self.shut = !self.shut;
            }
            Event::Withdraws(asked) => {
                self.budget.asks -= 1;
                self.asked[asked].is_gone = true;
            }
            Event::RequestArrives(asked) => {
                self.process.asked[asked] = self.asked[asked];
                self.process.queued = true;
            }
            Event::Change => self.user(|spec| spec.revision += 1),
            Event::Delete => self.user(|spec| spec.deleting = true),
            Event::Pause => self.user(|spec| spec.paused = !spec.paused),
            Event::Label => self.user(|spec| spec.labels += 1),
            Event::Abandon => self.user(|spec| spec.abandoned = true),
            Event::Garble => self.user(|spec| spec.garbled = !spec.garbled),
            Event::NewerMoves => self.newer_moves(),
            Event::NewerGoes => self.store(|object| object.status.newer = false),
            Event::Shows(sight) => {
                self.budget.sights -= 1;
                self.sight = sight;
                self.process.queued = true;
            }
            Event::OthersWrite => {
                self.budget.sights -= 1;
                self.store(|object| object.status.has_leftovers = true);
            }
            Event::ExtraChanges => {
                self.budget.sights -= 1;
                self.extra += 1;
                self.process.queued = true;
            }
            Event::FailsForEver(write, fault) => {
                self.budget.faults -= 1;
                self.failing = Some((write, fault));
            }
            Event::Mends => self.failing = None,
            Event::FaultsStop => *self = self.calmed(),
            Event::FaultsStopButOne => *self = self.calmed_but_for_one(),
            Event::ReconciledOnceMore => self.process.queued = true,
        }
    }

    fn deliver(&mut self) {
        self.process.queued = true;
        let cached = self.process.cache.version;
        if let Some(next) = self.versions.iter().find(|it| it.version > cached) {
            self.process.cache = *next;
        } else if self.presence == Presence::Gone {
            self.presence = Presence::Forgotten;
        }
    }

    pub(crate) fn action_ends(&mut self, result: ActionResult) {
        if !matches!(result, ActionResult::Stay | ActionResult::Next) {
            self.budget.answers = self.budget.answers.saturating_sub(1);
        }
        self.process.queued = true;
        let Some(task) = self.process.task.take() else {
            return;
        };
        let is_over = !matches!(
            result,
            ActionResult::Wait(_) | ActionResult::Failed { permanent: false }
        );
        let truth = &mut self.process.truth;
        truth.ended_last = is_over.then_some(task.work);
        truth.result = Some((task.work, result));
        self.machine(|machine| machine.end_work(task.id, Some(result)));
    }

    fn action_is_lost(&mut self) {
        self.budget.crashes -= 1;
        self.process.queued = true;
        self.process.is_recording = false;
        if let Some(task) = self.process.task.take() {
            self.machine(|machine| machine.end_work(task.id, None));
        }
    }

    fn cancelled_task_ends(&mut self) {
        self.process.is_ending = false;
        self.former_task_runs = false;
        self.process.queued = true;
        self.machine(|machine| {
            machine.end_task();
        });
        if self.bug == Some(Bug::AnswerOfOlderAttempt) {
            self.process.machine.take_any_answer();
        }
    }

    /// Handles a reconcile request.
    fn names_object(&mut self) {
        self.process.queued = true;
        self.process.is_named = true;
    }

    fn requeued(&mut self) {
        self.budget.ticks = self.budget.ticks.saturating_sub(1);
        self.process.has_timer = false;
        self.process.queued = true;
    }

    fn time_passes(&mut self) {
        self.requeued();
        let record = self.stored.status.recorded.at();
        self.long_in = record.map(|record| record.transition);
        if self.permits == Permits::Later {
            self.permits = Permits::Free;
        }
        self.now = self.now.after(LONG * 2);
    }

    /// Starts a process with a list that is this many versions old.
    fn restart(&mut self, old: usize) {
        let newest = self.versions.len() - 1;
        let listed = self.versions[newest - old.min(newest)];
        self.history.processes += 1;
        self.permits = Permits::Free;
        // The list of requests may be older, too, or without any.
        let asked = match old {
            0 => self.asked,
            1 => self.process.asked,
            _ => Default::default(),
        };
        self.process = Process {
            asked,
            ..Process::started(self.history.processes, listed)
        };
    }

    fn gets_lead(&mut self) {
        self.process.leads = true;
        self.process.queued = true;
        self.process.is_reopened = true;
    }

    fn another_leads(&mut self, ends: bool) {
        let process = self.process.clone();
        let budget = std::mem::take(&mut self.budget);
        self.restart(0);
        for _ in 0..DECISIONS {
            let event = if ends && self.process.may_end() {
                Event::ActionEnds(self.usual_answer())
            } else if self.process.is_active() {
                Event::Decides(EffectOutcome::Works)
            } else {
                break;
            };
            if self.presence != Presence::Stored || self.broken.is_some() {
                break;
            }
            self.happens(event);
        }
        self.process = process;
        self.permits = Permits::Free;
        self.budget = budget;
        self.budget.lead -= 1;
        self.relist();
    }

    fn user(&mut self, change: impl FnOnce(&mut Spec)) {
        self.budget.user = self.budget.user.saturating_sub(1);
        self.asks(change);
    }

    /// Applies a change of the user to the object.
    pub(crate) fn asks(&mut self, change: impl FnOnce(&mut Spec)) {
        let before = self.stored.spec;
        self.store(|object| {
            change(&mut object.spec);
            if object.spec.differs(&before) {
                object.spec.generation += 1;
            }
        });
        if self.stored.spec.deleting && !self.stored.finalizer && !self.others_hold {
            self.presence = Presence::Gone;
        }
    }

    fn newer_moves(&mut self) {
        let Recorded::At(mut record) = self.stored.status.recorded else {
            return;
        };
        self.budget.lead -= 1;
        record.left = record.state;
        record.state = StateId::UNKNOWN;
        record.transition += 1;
        let position = (record.state, record.transition);
        self.history.positions.push(position);
        self.store(|object| {
            object.status.recorded = Recorded::At(record);
            object.status.newer = true;
        });
    }

    /// Returns the same world, but nothing unexpected happens from now on.
    pub(crate) fn calmed(&self) -> Self {
        let mut calm = self.clone();
        calm.budget = Budget::default();
        calm.failing = None;
        calm.shut = false;
        if calm.sight != UNOBSERVED {
            calm.sight = UNOBSERVED;
            calm.process.queued = true;
        }
        if !calm.process.leads {
            calm.gets_lead();
        }
        if calm.process.draining {
            calm.restart(0);
        }
        calm
    }

    /// Like `calmed`, but an operator that shuts down continues to do so; otherwise writes still fail.
    pub(crate) fn calmed_but_for_one(&self) -> Self {
        let mut running = self.clone();
        running.process.draining = false;
        let mut calm = running.calmed();
        if self.process.draining {
            calm.process.draining = true;
        } else {
            calm.failing = self.failing;
        }
        calm
    }
}
