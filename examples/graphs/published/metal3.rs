//! The provisioning states of Metal3's BareMetalHost as published: version 0.13.2, and version 0.14.0-beta.0.
//!
//! Source: internal/controller/metal3.io/host_state_machine.go of metal3-io/baremetal-operator, and the webhook in
//! internal/webhooks/metal3.io/v1alpha1/baremetalhost_validation.go, which decides what a spec may ask for.
//! A child is what the spec or a deletion asks for; a trigger is an error, a change, or the deletion of a detached host.

/// Version 0.13.2. The webhook refuses to reset `externallyProvisioned`, so the edges for it are never taken.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostV013 {
    #[entry]
    #[child(Unmanaged)]
    #[child(Deleting)]
    #[child(Registering)]
    None,

    #[rest]
    #[child(Deleting)]
    #[child(Registering)]
    Unmanaged,

    #[child(Deleting)]
    #[child(ExternallyProvisioned)]
    #[child(Preparing)]
    #[child(Inspecting)]
    Registering,

    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Preparing)]
    Inspecting,

    #[rest]
    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    ExternallyProvisioned,

    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Preparing)]
    MatchProfile,

    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Available)]
    Preparing,

    #[rest]
    #[trigger(Deleting)]
    #[trigger(Preparing, on_change)]
    #[child(PoweringOffBeforeDelete)]
    #[child(ExternallyProvisioned)]
    #[child(Inspecting)]
    #[child(Provisioning)]
    Available,

    #[rest]
    #[trigger(Deleting)]
    #[trigger(Preparing, on_change)]
    #[child(PoweringOffBeforeDelete)]
    #[child(ExternallyProvisioned)]
    #[child(Inspecting)]
    #[child(Provisioning)]
    Ready,

    #[trigger(Deleting)]
    #[trigger(Deprovisioning, on_error)]
    #[child(Deprovisioning)]
    #[child(Provisioned)]
    Provisioning,

    #[rest]
    #[trigger(Deleting)]
    #[child(Deprovisioning)]
    Provisioned,

    #[trigger(Deleting, on_error(attempts = 4))]
    #[child(PoweringOffBeforeDelete)]
    #[child(Available)]
    Deprovisioning,

    #[trigger(Deleting, on_error(attempts = 4))]
    #[child(Deleting)]
    PoweringOffBeforeDelete,

    #[leaf]
    Deleting,
}

/// Version 0.14.0-beta.0.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostV014 {
    #[entry]
    #[child(Unmanaged)]
    #[child(Deleting)]
    #[child(Registering)]
    None,

    #[rest]
    #[child(Deleting)]
    #[child(Registering)]
    Unmanaged,

    #[child(Deleting)]
    #[child(ExternallyProvisioned)]
    #[child(Preparing)]
    #[child(Inspecting)]
    Registering,

    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Preparing)]
    Inspecting,

    #[rest]
    #[trigger(Deleting)]
    #[child(Provisioned)]
    #[child(PoweringOffBeforeDelete)]
    ExternallyProvisioned,

    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Preparing)]
    MatchProfile,

    #[trigger(Deleting)]
    #[child(PoweringOffBeforeDelete)]
    #[child(Available)]
    Preparing,

    #[rest]
    #[trigger(Deleting)]
    #[trigger(Preparing, on_change)]
    #[child(PoweringOffBeforeDelete)]
    #[child(ExternallyProvisioned)]
    #[child(Inspecting)]
    #[child(Provisioning)]
    Available,

    #[rest]
    #[trigger(Deleting)]
    #[trigger(Preparing, on_change)]
    #[child(PoweringOffBeforeDelete)]
    #[child(ExternallyProvisioned)]
    #[child(Inspecting)]
    #[child(Provisioning)]
    Ready,

    #[trigger(Deleting)]
    #[trigger(Deprovisioning, on_error)]
    #[child(Deprovisioning)]
    #[child(Provisioned)]
    Provisioning,

    #[rest]
    #[trigger(Deleting)]
    #[child(Deprovisioning)]
    Provisioned,

    #[trigger(Deleting, on_error(attempts = 4))]
    #[child(PoweringOffBeforeDelete)]
    #[child(Available)]
    Deprovisioning,

    #[trigger(Deleting, on_error(attempts = 4))]
    #[child(Deleting)]
    PoweringOffBeforeDelete,

    #[leaf]
    Deleting,
}
