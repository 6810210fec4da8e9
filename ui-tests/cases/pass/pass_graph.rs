//! A pass runs its whole graph in one reconciliation: successors without `Stay` and `Wait`, methods that return steps.
#![deny(warnings, missing_docs)]

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use okt_core::pass::{Failed, PassOutcome, PassRun, Step};
use okt_core::{Answer, Kind, Lifecycle, PassDispatch};
use okt_macros::lifecycle_graph;

/// What is done for a broker in each reconciliation.
#[lifecycle_graph(pass, crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerPass {
    /// Is the spec sound?
    #[entry]
    #[trigger(Report)]
    #[trigger(Finalize, on_delete)]
    #[child(Gather)]
    Check,
    /// What there is.
    #[condition(ConfigReady)]
    #[trigger(Report, on_error)]
    #[child(Apply)]
    Gather,
    /// What there should be.
    #[condition(WorkloadReady)]
    #[trigger(Report)]
    #[child(End)]
    Apply,
    /// Everything goes.
    #[child(End)]
    Finalize,
    /// What went wrong.
    #[trigger(End, on_give_up)]
    #[child(End)]
    Report,
    /// Done.
    #[leaf(idle)]
    End,
}

/// The operator of brokers.
pub struct Brokers;

impl BrokerPassHandler for Brokers {
    type Context = bool;
    type Error = Failed;

    async fn check(&self, sound: &bool) -> Result<Step<broker_pass::AfterCheck>, Failed> {
        if *sound {
            Ok(Step::done(broker_pass::AfterCheck::Next))
        } else {
            Ok(Step::done(broker_pass::AfterCheck::Report).text("not sound"))
        }
    }

    async fn gather(&self, _: &bool) -> Result<Step<broker_pass::AfterGather>, Failed> {
        Ok(Step::done(broker_pass::AfterGather::Apply).requeue_after(Duration::from_mins(10)))
    }

    async fn apply(&self, _: &bool) -> Result<Step<broker_pass::AfterApply>, Failed> {
        Ok(Step::done(broker_pass::AfterApply::End))
    }

    async fn finalize(&self, _: &bool) -> Result<Step<broker_pass::AfterFinalize>, Failed> {
        Ok(Step::wait(
            "WaitingForChildDeletion",
            Duration::from_secs(5),
        ))
    }

    async fn report(&self, _: &bool) -> Result<Step<broker_pass::AfterReport>, Failed> {
        Ok(Step::give_up())
    }
}

/// Runs a pass whose steps never sleep.
fn run(sound: bool) -> PassRun<'static> {
    let mut run = PassRun::begin(BrokerPass::GRAPH, false);
    while let Some(state) = run.at().and_then(BrokerPass::from_id) {
        let step = pin!(state.step(&Brokers, &sound));
        let Poll::Ready(said) = step.poll(&mut Context::from_waker(Waker::noop())) else {
            return run;
        };
        run.take(said);
    }
    run
}

fn main() {
    assert_eq!(run(true).outcome(), PassOutcome::Complete);
    assert_eq!(run(true).results().steps, 3);
    assert!(matches!(run(false).outcome(), PassOutcome::GaveUp { .. }));
    assert_eq!(BrokerPass::GRAPH.kind, Kind::Pass);
    assert_eq!(Answer::from(broker_pass::AfterCheck::Next), Answer::Next);
    match broker_pass::AfterApply::Report {
        broker_pass::AfterApply::Next
        | broker_pass::AfterApply::Report
        | broker_pass::AfterApply::End => {}
    }
}
