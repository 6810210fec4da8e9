//! The keeper of `pg_auto_failover`: one PostgreSQL node, whose states a monitor assigns.
//!
//! # Source
//!
//! `KeeperFSM` in `src/bin/pg_autoctl/fsm.c` of `hapostgres/pg_auto_failover`, on main at `bc8c6ae0` (2026-08-03, after
//! version 2.2).
//!
//! # Marks
//!
//! - A child is an edge that the monitor assigns on its normal course or for a command (`perform promotion`,
//!   `enable maintenance`, `drop node`). A trigger is its answer to a node that is unhealthy or does not report.
//! - A node rests as `Single`, `Primary`, `WaitPrimary` or `Secondary`. `Maintenance` holds: a person ends it.
//! - `ApplySettings` is a visit: a node goes through it once and is a primary again.
//! - Every state has the child `Dropped`, because the project's table has one row from any state to it.
//!
//! # Holes
//!
//! - Version 1.5.2 had no leaf (OKT003): a dropped node did not realise it. Version 1.6.1 added `Dropped`.
//! - `JoinPrimary` is not reachable since version 1.6.2 (OKT004). Here it is a former name of `Primary`.
//! - `Dropped` has edges (OKT006) because a dropped node may be created again. Here that is a re-entry at `Init`.

use okt_macros::lifecycle_graph;

/// The state of a keeper.
#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperState {
    /// The node is registered; the monitor knows nothing else about it.
    #[entry]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(WaitStandby)]
    #[child(ReportLsn)]
    #[child(Single)]
    Init,

    /// The node is alone in its group: an ordinary PostgreSQL server.
    #[rest]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(WaitPrimary)]
    Single,

    /// The node takes writes without a healthy standby.
    #[rest]
    #[trigger(Demoted)]
    #[child(Dropped)]
    #[child(ApplySettings)]
    #[child(Single)]
    #[child(Primary)]
    WaitPrimary,

    /// The node takes writes, and a standby has them all.
    #[rest]
    #[was("JoinPrimary")]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[trigger(WaitPrimary)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(Maintenance)]
    #[child(PrepareMaintenance)]
    #[child(ApplySettings)]
    #[child(Draining)]
    Primary,

    /// The primary applies changed replication settings.
    #[visit]
    #[trigger(Draining)]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(WaitPrimary)]
    #[child(Primary)]
    ApplySettings,

    /// The primary stops; what it wrote reaches the standbys.
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(Demoted)]
    Draining,

    /// The old primary did not confirm in time that it stopped.
    #[child(Dropped)]
    #[child(Single)]
    #[child(Primary)]
    #[child(ReportLsn)]
    #[child(Demoted)]
    DemoteTimeout,

    /// PostgreSQL is stopped on the old primary and stays so.
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(Catchingup)]
    Demoted,

    /// The standby waits until the primary lets it connect.
    #[child(Dropped)]
    #[child(Catchingup)]
    WaitStandby,

    /// The standby copies or rewinds its data and follows the primary.
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(PreparePromotion)]
    #[child(WaitMaintenance)]
    #[child(Maintenance)]
    #[child(ReportLsn)]
    #[child(Secondary)]
    Catchingup,

    /// The standby is up to date and may be promoted.
    #[rest]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[trigger(Catchingup)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(WaitStandby)]
    #[child(WaitMaintenance)]
    #[child(Maintenance)]
    #[child(ReportLsn)]
    #[child(PreparePromotion)]
    Secondary,

    /// The standby was chosen; it waits until the old primary has stopped.
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(WaitPrimary)]
    #[child(StopReplication)]
    PreparePromotion,

    /// The standby cuts its replication and is promoted.
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(WaitPrimary)]
    StopReplication,

    /// An election is under way: the standby reports how far it has come.
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(FastForward)]
    #[child(PreparePromotion)]
    #[child(Secondary)]
    #[child(JoinSecondary)]
    ReportLsn,

    /// The chosen standby fetches what it lacks from another standby.
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(PreparePromotion)]
    FastForward,

    /// Another standby was chosen; this one stops until it can follow the new primary.
    #[child(Dropped)]
    #[child(ReportLsn)]
    #[child(Secondary)]
    JoinSecondary,

    /// The primary hands over before its maintenance.
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Catchingup)]
    #[child(ReportLsn)]
    #[child(Maintenance)]
    PrepareMaintenance,

    /// The standby waits until the primary no longer waits for it.
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(Maintenance)]
    WaitMaintenance,

    /// A person maintains the node and ends it.
    #[rest(hold)]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(ReportLsn)]
    #[child(Catchingup)]
    Maintenance,

    /// The node is removed from its group; its data stays.
    #[leaf]
    Dropped,
}
