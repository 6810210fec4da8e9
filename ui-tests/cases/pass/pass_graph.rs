//! A pass: the whole graph in one reconciliation; successors without `Stay` and `Wait`, no handler trait yet.
#![deny(warnings, missing_docs)]

use okt_core::{Answer, Kind, Lifecycle};
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
    #[trigger(Report)]
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
    #[child(End)]
    Report,
    /// Done.
    #[leaf(idle)]
    End,
}

fn main() {
    assert_eq!(BrokerPass::GRAPH.kind, Kind::Pass);
    assert_eq!(Answer::from(broker_pass::AfterCheck::Next), Answer::Next);
    match broker_pass::AfterApply::Report {
        broker_pass::AfterApply::Next
        | broker_pass::AfterApply::Report
        | broker_pass::AfterApply::End => {}
    }
}
