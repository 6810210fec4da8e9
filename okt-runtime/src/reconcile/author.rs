//! Effects that call the application's code: observations, and runs of the pass.

use std::sync::Arc;

use okt_core::conditions::{self, Way};
use okt_core::machine::{Observe, PassReport, RunEnd, RunPass};
use okt_core::{Lifecycle, StateId};
use okt_wire::clock::moment;
use okt_wire::object::has_lifecycle;

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf, StepsOf};
use crate::author::pass::{Hands, run};

impl<A: Application> Reconciliation<'_, A> {
    /// Observes the application.
    pub(super) async fn observe(&mut self, effect: Observe) {
        let seen = self.sighting(effect.calls).await;
        self.refuse_events(&seen.events);
        // The work may have ended meanwhile.
        self.known.catch_up(self.memory);
        let (result, events) = (seen.result, seen.events.clone());
        let counts_as = self
            .memory
            .machine
            .observed(effect, result, events, moment());
        self.observed = seen.into_words(counts_as);
    }

    /// Logs events to which no edge leads, when they are new.
    fn refuse_events(&mut self, events: &[StateId]) {
        let graph = StateOf::<A>::GRAPH;
        let Some(here) = self.recorded().at().map(|record| record.state) else {
            return;
        };
        let leads = |to: &StateId| {
            let state = graph.get(here);
            *to == here || state.is_some_and(|state| state.targets().any(|target| target == *to))
        };
        let refused: Vec<StateId> = events
            .iter()
            .copied()
            .filter(|event| !leads(event))
            .collect();
        if refused == self.memory.refused_events {
            return;
        }
        for event in &refused {
            tracing::warn!(
                from = graph.name_of(here),
                to = graph.name_of(*event),
                "refused an event that the observation named: no edge leads there"
            );
        }
        self.memory.refused_events = refused;
    }

    /// Runs the pass.
    pub(super) async fn run_pass(&mut self, effect: RunPass) {
        let shared = self.shared;
        let Some(pass) = &shared.pass else {
            // Only an application with a pass is asked to run one.
            let nothing = PassReport::of(&okt_core::pass::PassOutcome::Complete);
            return self
                .memory
                .machine
                .pass_ran(effect, &nothing, &self.setup, moment());
        };
        let (leaving, is_alone) = (effect.leaving, !has_lifecycle::<A::Resource>());
        let hands = Hands {
            client: shared.connection.client.clone(),
            cluster: Arc::clone(&shared.cluster),
            pace: self.pace(),
            creates: !leaving,
            finalizes: self.setup.graphs.needs_finalizer(),
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
        let (run, memory) = run(&steps, &asker, &self.cx, hands, is_alone).await;
        self.memory.owned = memory;
        let report = PassReport {
            is_in_the_way: run.in_the_way().is_some(),
            requeue_after: run.run.results().requeue_after,
            due: run.due,
            ..PassReport::of(&run.run.outcome())
        };
        self.memory.held = (report.end == RunEnd::Held)
            .then(|| run.in_the_way())
            .flatten()
            .map(|why| (why, conditions::of_pass(pass.graph(), Way::Ran(&run.run))));
        self.run = Some(run);
        self.memory
            .machine
            .pass_ran(effect, &report, &self.setup, moment());
    }
}
