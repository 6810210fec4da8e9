//! Effects that call the application's code: observations, and runs of the pass.

use std::sync::Arc;

use okt_core::conditions::{self, Way};
use okt_core::reconcile::{Ran, RunEnd};
use okt_core::{Lifecycle, StateId};

use super::observe::{Findings, observe};
use super::round::{Reconciliation, graphs};
use crate::author::application::{Application, StateOf, StepsOf};
use crate::author::asked::Asker;
use crate::author::pass::{Hands, run};
use crate::wire::object::has_lifecycle;

impl<'a, A: Application> Reconciliation<'a, A> {
    /// Returns the caller of the application's code.
    pub(super) fn asker(&self) -> Asker<'a, A::Resource> {
        Asker {
            questions: &self.shared.questions,
            place: self.place,
            doubtful: self.memory.is_silent(),
        }
    }

    /// Observes the application.
    ///
    /// If the work has ended meanwhile, the observation is dropped: it may be older than the result of the work.
    pub(super) async fn observe(&mut self) {
        let had_ended = self.memory.work.has_ended();
        let asker = self.asker();
        let application = &*self.shared.application;
        let seen = observe(&asker, application, &self.round.cx, &mut self.memory.sight).await;
        self.memory.work.catch_up();
        let is_outdated = self.memory.work.has_ended() && !had_ended;
        let findings = if is_outdated {
            Findings::nothing()
        } else {
            seen
        };
        self.refuse_events(&findings);
        self.round.findings = Some(findings);
    }

    /// Logs events to which no edge leads, when they are new.
    fn refuse_events(&mut self, findings: &Findings) {
        let graph = StateOf::<A>::GRAPH;
        let Some(here) = self.round.stored.recorded.at().map(|record| record.state) else {
            return;
        };
        let leads = |to: &StateId| {
            let state = graph.get(here);
            *to == here || state.is_some_and(|state| state.targets().any(|target| target == *to))
        };
        let refused: Vec<StateId> = (findings.events.iter().copied())
            .filter(|event| !leads(event))
            .collect();
        if refused == self.memory.sight.refused_events {
            return;
        }
        for event in &refused {
            tracing::warn!(
                from = graph.name_of(here),
                to = graph.name_of(*event),
                "refused an event that the observation named: no edge leads there"
            );
        }
        self.memory.sight.refused_events = refused;
    }

    /// Runs the pass.
    pub(super) async fn run_pass(&mut self, leaving: bool) {
        let shared = self.shared;
        let Some(pass) = &shared.pass else {
            return;
        };
        let is_alone = !has_lifecycle::<A::Resource>();
        // The findings of the run are not reported yet.
        self.memory.seen.reported = false;
        self.memory.pass.is_unreported = is_alone;
        let pace = self.pace();
        let hands = Hands {
            client: shared.client.clone(),
            cluster: Arc::clone(&shared.cluster),
            pace,
            creates: !leaving,
            finalizes: graphs(shared).needs_finalizer(),
            may_act: {
                let (shared, uid) = (Arc::clone(shared), self.uid().to_owned());
                Box::new(move || shared.may_act(&uid))
            },
            memory: std::mem::take(&mut self.memory.owned),
        };
        let steps = StepsOf {
            pass,
            application: &*shared.application,
        };
        let asker = self.asker();
        let (run, memory) = run(&steps, &asker, &self.round.cx, hands, leaving, is_alone).await;
        self.memory.owned = memory;
        let generation = self.round.stored.asked.generation;
        let end = (self.memory.pass).take(&run, generation, &pace, leaving);
        if end == RunEnd::Held {
            let of_pass = conditions::of_pass(pass.graph(), Way::Ran(&run.run));
            self.memory.pass.held = run.in_the_way().map(|why| (why, of_pass));
        }
        self.round.run = Some((run, Ran { end, leaving }));
    }
}
