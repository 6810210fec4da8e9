//! The phases of Cluster API's Machine as published: v1beta1 in version 1.8.0, and v1beta2 on main at ae7ff047.
//!
//! Source: machine_phase_types.go (the phases), and `reconcilePhase` or `setMachinePhaseAndLastUpdated` of the machine
//! controller (which of them it sets, and when), of kubernetes-sigs/cluster-api.

/// v1beta1, as version 1.8.0 has it.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MachineV1Beta1 {
    #[entry]
    #[trigger(Deleting, on_delete)]
    #[trigger(Failed)]
    #[child(Provisioning)]
    Pending,

    #[trigger(Deleting, on_delete)]
    #[trigger(Failed)]
    #[child(Provisioned)]
    Provisioning,

    #[trigger(Deleting, on_delete)]
    #[trigger(Failed)]
    #[child(Running)]
    Provisioned,

    #[rest]
    #[trigger(Failed)]
    #[child(Deleting)]
    Running,

    Deleting,

    #[leaf]
    Deleted,

    #[rest(hold)]
    #[child(Deleting)]
    Failed,

    #[rest]
    #[child(Deleting)]
    Unknown,
}

/// v1beta2, as main has it.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MachineV1Beta2 {
    #[entry]
    #[trigger(Deleting, on_delete)]
    #[child(Provisioning)]
    Pending,

    #[trigger(Deleting, on_delete)]
    #[child(Provisioned)]
    Provisioning,

    #[trigger(Deleting, on_delete)]
    #[child(Running)]
    Provisioned,

    #[rest]
    #[trigger(Updating)]
    #[child(Deleting)]
    Running,

    #[trigger(Deleting, on_delete)]
    #[child(Running)]
    Updating,

    Deleting,

    #[leaf]
    Deleted,

    #[rest(hold)]
    #[child(Deleting)]
    Failed,

    #[rest]
    #[child(Deleting)]
    Unknown,
}
