//! The provisioning of a `BareMetalHost` of Metal3: one physical machine.
//!
//! # Source
//!
//! `internal/controller/metal3.io/host_state_machine.go` of `metal3-io/baremetal-operator`, version 0.14.0-beta.0
//! (2026-07-31).
//!
//! # Marks
//!
//! - A host rests as `Unmanaged`, `Available`, `Provisioned` or `ExternallyProvisioned`: the goals of a spec (details
//!   of the controller or none, an image or none, `externallyProvisioned`).
//! - A child is what a spec or a deletion asks for (`checkInitiateDelete`). A trigger is an error, a change of
//!   settings, or the deletion of a detached host.
//! - `Deleting` is the leaf.
//!
//! # Holes
//!
//! - Version 0.13.2: no way from `ExternallyProvisioned` to `Provisioned` or `Available` (OKT012). Version
//!   0.14.0-beta.0 added the edge to `Provisioned`.
//! - No way back to `Unmanaged` (OKT012), by design. Here the operator refuses it with a reason.
//! - `MatchProfile` and `Ready` are not reachable (OKT004); they are kept for stored objects. Here they are former
//!   names of the states that took over.

use okt_macros::lifecycle_graph;

/// The provisioning state of a host.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// The host is new.
    #[entry]
    #[child(Unmanaged)]
    #[child(Deleting)]
    #[child(Registering)]
    None,

    /// The address and the credentials of the management controller are unknown.
    #[rest(idle)]
    #[child(Deleting)]
    #[child(Registering)]
    Unmanaged,

    /// The operator tries the address and the credentials.
    #[child(Deleting)]
    #[child(ExternallyProvisioned)]
    #[child(Preparing)]
    #[child(Inspecting)]
    Registering,

    /// An agent on the host lists its hardware.
    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Preparing)]
    Inspecting,

    /// Another tool installed the host; only its power is managed.
    #[rest]
    #[no_route(Unmanaged, reason = "a registered host stays managed")]
    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Provisioned)]
    ExternallyProvisioned,

    /// RAID, firmware and similar settings are applied.
    #[was("MatchProfile")]
    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Available)]
    Preparing,

    /// The host may be provisioned.
    #[rest]
    #[was("Ready")]
    #[no_route(Unmanaged, reason = "a registered host stays managed")]
    #[trigger(Deleting)]
    #[trigger(Preparing, on_change)]
    #[child(PoweringOffBeforeDelete)]
    #[child(ExternallyProvisioned)]
    #[child(Inspecting)]
    #[child(Provisioning)]
    Available,

    /// An image is written to the disks.
    #[trigger(Deleting)]
    #[trigger(Deprovisioning, on_error)]
    #[child(Deprovisioning)]
    #[child(Provisioned)]
    Provisioning,

    /// The host runs its image.
    #[rest]
    #[no_route(Unmanaged, reason = "a registered host stays managed")]
    #[trigger(Deleting)]
    #[child(Deprovisioning)]
    Provisioned,

    /// The image is removed and the disks are cleaned.
    #[trigger(Deleting, on_error(attempts = 4))]
    #[child(PoweringOffBeforeDelete)]
    #[child(Available)]
    Deprovisioning,

    /// The host is switched off before it is forgotten.
    #[trigger(Deleting, on_error(attempts = 4))]
    #[child(Deleting)]
    PoweringOffBeforeDelete,

    /// The host is removed from the provisioner.
    #[leaf]
    Deleting,
}
