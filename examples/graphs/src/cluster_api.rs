//! A Machine of Cluster API: one node of a Kubernetes cluster and the server that it runs on.
//!
//! # Source
//!
//! `api/core/v1beta2/machine_phase_types.go` and `setMachinePhaseAndLastUpdated` in
//! `core/reconcilers/machine/machine_controller_status.go` of `kubernetes-sigs/cluster-api`, on main at `ae7ff047`
//! (2026-08-21, after version 1.14.0). The controller computes the phase from other fields of the status; the edges
//! are the order in which these fields are set.
//!
//! # Marks
//!
//! - A machine rests as `Running`.
//! - A child is the normal course. A trigger is an update in place, or a deletion in a state from which the normal course
//!   would lead on to `Running`.
//! - `Deleted` is the leaf: the phase is documented as the end of the machine and its infrastructure.
//!
//! # Holes
//!
//! - v1beta1 had no way from `Failed` to `Running` (OKT012): a failure was permanent. Version 1.11.0 no longer sets
//!   `Failed`; the phase is only kept for conversion (OKT004). Here it is gone.
//! - `Deleting` is a dead end (OKT005), because nothing sets `Deleted` (OKT004). Here the edge exists.
//! - `Unknown` is not reachable (OKT004): a getter answers it for a phase that it does not know. Here it is gone.

use okt_macros::lifecycle_graph;

/// The phase of a machine.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachinePhase {
    /// The machine waits for its bootstrap data.
    #[entry]
    #[trigger(Deleting, on_delete)]
    #[child(Provisioning)]
    Pending,

    /// The server is created.
    #[trigger(Deleting, on_delete)]
    #[child(Provisioned)]
    Provisioning,

    /// The server exists; its node has not joined the cluster.
    #[trigger(Deleting, on_delete)]
    #[child(Running)]
    Provisioned,

    /// The node has joined the cluster.
    #[rest]
    #[trigger(Updating)]
    #[child(Deleting)]
    Running,

    /// The machine is updated in place.
    #[trigger(Deleting, on_delete)]
    #[child(Running)]
    Updating,

    /// The node is drained; then the server is deleted.
    #[child(Deleted)]
    Deleting,

    /// The server is gone.
    #[leaf(idle)]
    Deleted,
}
