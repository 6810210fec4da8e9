//! A `KafkaRebalance` of Strimzi: one move of partitions among the brokers of a Kafka cluster, by Cruise Control.
//!
//! # Source
//!
//! `KafkaRebalanceState.java` and `KafkaRebalanceAssemblyOperator.java` of `strimzi/strimzi-kafka-operator`, version
//! 1.2.0 (2026-08-18).
//!
//! # Marks
//!
//! - A rebalance rests where it waits for the annotation `strimzi.io/rebalance`: `ProposalReady` (approve), `Stopped`,
//!   `NotReady` and `Ready` (refresh).
//! - A child is what the annotation asks for, or the end of the work; a trigger is an error.
//! - In a spec of OKT, to approve is to ask for `Ready`, to stop is to ask for `Stopped`, and to refresh is to ask for
//!   `ProposalReady`. The annotation `okt.dev/paused` replaces the state `ReconciliationPaused`.
//!
//! # Holes
//!
//! - Version 0.22.0: no way out of `Ready` (OKT012). Version 0.23.0 added the refresh.
//! - Version 0.22.0: no way to `Ready` without a person (OKT012), because `ProposalReady` holds. Version 0.32.0 added
//!   the automatic approval.
//! - No leaf (OKT003): after a deletion a rebalance goes on, and nothing reports its end. Here a deletion waits for it.

use okt_macros::lifecycle_graph;

/// The state of a rebalance.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebalanceState {
    /// The operator asks Cruise Control for a proposal.
    #[entry]
    #[trigger(NotReady, on_error)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    New,

    /// Cruise Control computes the proposal.
    #[trigger(NotReady, on_error)]
    #[child(Stopped)]
    #[child(ProposalReady)]
    PendingProposal,

    /// The proposal can be approved.
    #[rest]
    #[trigger(NotReady, on_error)]
    #[child(PendingProposal)]
    #[child(Rebalancing)]
    #[child(Deleted)]
    ProposalReady,

    /// Cruise Control moves the partitions.
    #[trigger(NotReady, on_error)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    #[child(Stopped)]
    #[child(Ready)]
    Rebalancing,

    /// The proposal or the move was stopped.
    #[rest]
    #[trigger(NotReady, on_error)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    #[child(Deleted)]
    Stopped,

    /// Cruise Control or the cluster refused.
    #[rest]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    #[child(Deleted)]
    NotReady,

    /// The partitions are moved.
    #[rest]
    #[trigger(NotReady, on_error)]
    #[child(ProposalReady)]
    #[child(PendingProposal)]
    #[child(Deleted)]
    Ready,

    /// Nothing is left to do.
    #[leaf(idle)]
    Deleted,
}
