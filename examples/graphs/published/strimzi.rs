//! The states of Strimzi's KafkaRebalance as published: version 0.22.0, and version 1.2.0.
//!
//! Source: KafkaRebalanceState.java and KafkaRebalanceAssemblyOperator.java of strimzi/strimzi-kafka-operator.
//! A child is what the annotation `strimzi.io/rebalance` asks for, or the end of the work; a trigger is an error or a
//! pause. Staying in a state is no edge.

/// Version 0.22.0.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RebalanceV022 {
    #[entry]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    New,

    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(Stopped)]
    #[child(ProposalReady)]
    PendingProposal,

    #[rest(hold)]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(PendingProposal)]
    #[child(Rebalancing)]
    ProposalReady,

    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(Stopped)]
    #[child(Ready)]
    Rebalancing,

    #[rest(hold)]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    Stopped,

    #[rest(hold)]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    NotReady,

    #[rest]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    Ready,

    #[rest(hold)]
    #[trigger(NotReady, on_error)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    ReconciliationPaused,
}

/// Version 1.2.0.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RebalanceV1 {
    #[entry]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    New,

    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(Stopped)]
    #[child(ProposalReady)]
    PendingProposal,

    #[rest]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(PendingProposal)]
    #[child(Rebalancing)]
    ProposalReady,

    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    #[child(Stopped)]
    #[child(Ready)]
    Rebalancing,

    #[rest(hold)]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    Stopped,

    #[rest]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    NotReady,

    #[rest]
    #[trigger(NotReady, on_error)]
    #[trigger(ReconciliationPaused)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    Ready,

    #[rest(hold)]
    #[trigger(NotReady, on_error)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    ReconciliationPaused,
}
