//! The keeper of pg_auto_failover as published: version 1.5.2, and main at bc8c6ae0.
//!
//! Source: `KeeperFSM` in src/bin/pg_autoctl/fsm.c of hapostgres/pg_auto_failover.
//! One edge per pair of states: the table has a row for each kind of node.
//! A child is what the monitor assigns on its normal course or for a command; a trigger is its answer to a node that
//! stopped reporting or is unhealthy.

/// The 64 pairs of version 1.5.2.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeeperV1 {
    #[entry]
    #[child(WaitStandby)]
    #[child(ReportLsn)]
    #[child(Single)]
    Init,

    #[rest]
    #[child(WaitPrimary)]
    Single,

    #[rest]
    #[child(ApplySettings)]
    #[child(Single)]
    #[child(JoinPrimary)]
    #[child(Primary)]
    WaitPrimary,

    #[rest]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[trigger(WaitPrimary)]
    #[child(Single)]
    #[child(JoinPrimary)]
    #[child(PrepareMaintenance)]
    #[child(ApplySettings)]
    #[child(Draining)]
    Primary,

    #[trigger(Draining)]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Single)]
    #[child(WaitPrimary)]
    #[child(Primary)]
    JoinPrimary,

    #[visit]
    #[trigger(Draining)]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Single)]
    #[child(WaitPrimary)]
    #[child(JoinPrimary)]
    #[child(Primary)]
    ApplySettings,

    #[trigger(DemoteTimeout)]
    #[child(Single)]
    #[child(Demoted)]
    Draining,

    #[child(Single)]
    #[child(Primary)]
    #[child(Demoted)]
    DemoteTimeout,

    #[child(Single)]
    #[child(Catchingup)]
    Demoted,

    #[child(Catchingup)]
    WaitStandby,

    #[child(Single)]
    #[child(PreparePromotion)]
    #[child(WaitMaintenance)]
    #[child(ReportLsn)]
    #[child(Secondary)]
    Catchingup,

    #[rest]
    #[trigger(Catchingup)]
    #[child(Single)]
    #[child(WaitStandby)]
    #[child(WaitMaintenance)]
    #[child(ReportLsn)]
    #[child(PreparePromotion)]
    Secondary,

    #[child(Single)]
    #[child(WaitPrimary)]
    #[child(StopReplication)]
    PreparePromotion,

    #[child(Single)]
    #[child(WaitPrimary)]
    StopReplication,

    #[child(Single)]
    #[child(FastForward)]
    #[child(PreparePromotion)]
    #[child(Secondary)]
    #[child(JoinSecondary)]
    ReportLsn,

    #[child(PreparePromotion)]
    FastForward,

    #[child(Secondary)]
    JoinSecondary,

    #[child(Maintenance)]
    PrepareMaintenance,

    #[child(Maintenance)]
    WaitMaintenance,

    #[rest(hold)]
    #[child(Catchingup)]
    Maintenance,
}

/// The 108 pairs of main without the three to `JoinPrimary`, which the monitor never assigns any more; one pair is from
/// any state to `Dropped`.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeeperMain {
    #[entry]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(WaitStandby)]
    #[child(ReportLsn)]
    #[child(Single)]
    Init,

    #[rest]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(WaitPrimary)]
    Single,

    #[rest]
    #[trigger(Demoted)]
    #[child(Dropped)]
    #[child(ApplySettings)]
    #[child(Single)]
    #[child(Primary)]
    WaitPrimary,

    #[rest]
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

    #[trigger(Draining)]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(WaitPrimary)]
    #[child(Primary)]
    JoinPrimary,

    #[visit]
    #[trigger(Draining)]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(WaitPrimary)]
    #[child(Primary)]
    ApplySettings,

    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(Demoted)]
    Draining,

    #[child(Dropped)]
    #[child(Single)]
    #[child(Primary)]
    #[child(ReportLsn)]
    #[child(Demoted)]
    DemoteTimeout,

    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(Catchingup)]
    Demoted,

    #[child(Dropped)]
    #[child(Catchingup)]
    WaitStandby,

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

    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(WaitPrimary)]
    #[child(StopReplication)]
    PreparePromotion,

    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(WaitPrimary)]
    StopReplication,

    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(FastForward)]
    #[child(PreparePromotion)]
    #[child(Secondary)]
    #[child(JoinSecondary)]
    ReportLsn,

    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(PreparePromotion)]
    FastForward,

    #[child(Dropped)]
    #[child(ReportLsn)]
    #[child(Secondary)]
    JoinSecondary,

    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Catchingup)]
    #[child(ReportLsn)]
    #[child(Maintenance)]
    PrepareMaintenance,

    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(Single)]
    #[child(ReportLsn)]
    #[child(Maintenance)]
    WaitMaintenance,

    #[rest(hold)]
    #[trigger(Demoted)]
    #[trigger(DemoteTimeout)]
    #[child(Dropped)]
    #[child(ReportLsn)]
    #[child(Catchingup)]
    Maintenance,

    #[leaf]
    #[child(WaitStandby)]
    #[child(ReportLsn)]
    #[child(Single)]
    Dropped,
}
