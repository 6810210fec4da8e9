//! The phases of an OdooInstance of bemade's odoo-operator as published: version 2.5.0.
//!
//! Source: `TRANSITIONS` in src/controller/state_machine.rs of bemade/odoo-operator, which draws STATE_MACHINE.md.
//! One edge per pair of phases: several guards may lead the same way.
//! A child is what `spec.replicas` or a job resource asks for, or the end of the work; a trigger is what is observed.

/// Version 2.5.0.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstanceV2 {
    #[entry]
    #[child(Starting)]
    #[child(Uninitialized)]
    Provisioning,

    #[rest]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Initializing)]
    Uninitialized,

    #[trigger(InitFailed, on_error)]
    #[trigger(Uninitialized)]
    #[child(Starting)]
    Initializing,

    #[rest(hold)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Initializing)]
    InitFailed,

    #[child(Stopped)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Upgrading)]
    #[child(BackingUp)]
    #[child(Running)]
    Starting,

    #[rest]
    #[trigger(MigratingFilestore)]
    #[trigger(MigratingDatabase)]
    #[trigger(Degraded)]
    #[trigger(Starting)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Upgrading)]
    #[child(BackingUp)]
    #[child(Stopped)]
    Running,

    #[rest(idle)]
    #[trigger(MigratingFilestore)]
    #[trigger(MigratingDatabase)]
    #[trigger(Starting)]
    #[child(Stopped)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Upgrading)]
    #[child(BackingUp)]
    #[child(Running)]
    Degraded,

    #[rest]
    #[trigger(MigratingFilestore)]
    #[trigger(MigratingDatabase)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Upgrading)]
    #[child(BackingUp)]
    #[child(Starting)]
    Stopped,

    #[visit]
    #[trigger(Degraded)]
    #[trigger(Starting)]
    #[child(BackingUp)]
    #[child(Stopped)]
    #[child(Running)]
    BackingUp,

    #[visit]
    #[trigger(InitFailed, on_error)]
    #[trigger(Uninitialized)]
    #[child(Starting)]
    CloningFromSource,

    #[visit]
    #[trigger(Starting, on_error)]
    #[child(Starting)]
    Upgrading,

    #[visit]
    #[trigger(Uninitialized, on_error)]
    #[child(Starting)]
    Restoring,

    #[trigger(Starting)]
    #[trigger(Stopped)]
    #[child(FinalizingFilestoreMigration)]
    MigratingFilestore,

    #[child(Stopped)]
    #[child(Starting)]
    FinalizingFilestoreMigration,

    #[trigger(Starting)]
    #[trigger(Stopped)]
    #[child(FinalizingDatabaseMigration)]
    MigratingDatabase,

    #[child(Stopped)]
    #[child(Starting)]
    FinalizingDatabaseMigration,

    #[child(Uninitialized)]
    #[child(Starting)]
    Error,
}
