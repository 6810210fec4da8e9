//! An `OdooInstance` of bemade's odoo-operator: one Odoo server with its database.
//!
//! # Source
//!
//! `TRANSITIONS` in `src/controller/state_machine.rs` of `bemade/odoo-operator`, version 2.5.0 (2026-07-09); the project
//! draws its `STATE_MACHINE.md` from this table.
//!
//! # Marks
//!
//! - An instance rests as `Running` or `Stopped` (`spec.replicas`), and as `Uninitialized` or `InitFailed`, where it
//!   waits for a job. `InitFailed` holds: a person has to create the next job. `Degraded` is observed.
//! - A job resource asks for a visit: `BackingUp`, `Upgrading`, `Restoring`, `CloningFromSource`.
//! - A trigger is what is observed: pods, a failed job, another storage class or database cluster.
//!
//! # Holes
//!
//! - No leaf (OKT003): a finalizer outside the table deletes an instance in any phase. Here a deletion leads through
//!   `Stopped` to `Deleted`.
//! - No way from `Running`, `Degraded` or `Stopped` to `Uninitialized` (OKT012), which `missingPolicy: Recreate` needs.
//!   Here the missing database is a trigger, and the operator refuses the desired state with a reason.
//! - Nothing leads to `Error` (OKT004). Here it is gone.
//! - `BackingUp` leads to itself (OKT010), for the next backup. Here its handler waits.

use okt_macros::lifecycle_graph;

/// The phase of an instance.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstancePhase {
    /// The resources of the instance are created.
    #[entry]
    #[child(Starting)]
    #[child(Uninitialized)]
    Provisioning,

    /// The instance has no database yet.
    #[rest]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Initializing)]
    #[child(Deleted)]
    Uninitialized,

    /// A job creates the database.
    #[trigger(InitFailed, on_error)]
    #[trigger(Uninitialized)]
    #[child(Starting)]
    Initializing,

    /// The database could not be created; the pods stay down.
    #[rest(hold)]
    #[no_route(Uninitialized, reason = "create another job")]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Initializing)]
    #[child(Deleted)]
    InitFailed,

    /// The pods are starting.
    #[trigger(Stopped, on_delete)]
    #[trigger(Uninitialized)]
    #[child(Stopped)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Upgrading)]
    #[child(BackingUp)]
    #[child(Running)]
    Starting,

    /// All pods are ready.
    #[rest]
    #[no_route(Uninitialized, reason = "a database is never dropped on request")]
    #[trigger(Uninitialized)]
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

    /// Some pods are ready.
    #[rest(idle)]
    #[no_route(Uninitialized, reason = "a database is never dropped on request")]
    #[trigger(Uninitialized)]
    #[trigger(MigratingFilestore)]
    #[trigger(MigratingDatabase)]
    #[trigger(Starting)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Upgrading)]
    #[child(BackingUp)]
    #[child(Running)]
    #[child(Stopped)]
    Degraded,

    /// No pods run.
    #[rest]
    #[no_route(Uninitialized, reason = "a database is never dropped on request")]
    #[trigger(Uninitialized)]
    #[trigger(MigratingFilestore)]
    #[trigger(MigratingDatabase)]
    #[child(Restoring)]
    #[child(CloningFromSource)]
    #[child(Upgrading)]
    #[child(BackingUp)]
    #[child(Starting)]
    #[child(Deleted)]
    Stopped,

    /// A job backs up the database and the files.
    #[visit]
    #[trigger(Degraded)]
    #[trigger(Starting)]
    #[child(Stopped)]
    #[child(Running)]
    BackingUp,

    /// Jobs copy another instance.
    #[visit]
    #[trigger(InitFailed, on_error)]
    #[trigger(Uninitialized)]
    #[child(Starting)]
    CloningFromSource,

    /// A job upgrades the modules in the database.
    #[visit]
    #[trigger(Starting, on_error)]
    #[child(Starting)]
    Upgrading,

    /// A job replaces the database by a backup; if it fails, there is no database.
    #[visit]
    #[trigger(Uninitialized, on_error)]
    #[child(Starting)]
    Restoring,

    /// A job copies the files to another storage class.
    #[trigger(Starting)]
    #[trigger(Stopped)]
    #[child(FinalizingFilestoreMigration)]
    MigratingFilestore,

    /// The volume claim is bound to the copy.
    #[child(Stopped)]
    #[child(Starting)]
    FinalizingFilestoreMigration,

    /// A job copies the database to another cluster.
    #[trigger(Starting)]
    #[trigger(Stopped)]
    #[child(FinalizingDatabaseMigration)]
    MigratingDatabase,

    /// The instance changes to the copy.
    #[child(Stopped)]
    #[child(Starting)]
    FinalizingDatabaseMigration,

    /// The database and its role are dropped.
    #[leaf]
    Deleted,
}
