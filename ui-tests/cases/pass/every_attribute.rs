//! Every attribute and every option at once.
use std::time::Duration;

use okt_core::{Cause, ConditionStatus, Lifecycle, Mark};
use okt_macros::lifecycle_graph;

/// The life of a cache.
///
/// It is filled before it serves.
#[lifecycle_graph(crate(okt_core))]
#[deadline(Broken, after = "4h", over(Filling, Compacting))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Entries are read from disk; see [`Cache::Serving`].
    ///
    /// This can take an hour.
    #[entry]
    #[condition("cache.okt.dev/Filled", status = "Unknown", message = "still reading")]
    #[trigger(Broken, after = "1h30m", on_error(attempts = 5))]
    #[trigger(Gone, on_delete)]
    #[child(Serving)]
    Filling,

    /** Clients are served. */
    #[rest]
    #[was("Ready")]
    #[was("Up")]
    #[condition("cache.okt.dev/Filled", reason = "Warm")]
    #[condition(Serving)]
    #[trigger(Broken, on_error(attempts = 3))]
    #[trigger(Draining, on_change)]
    #[no_route(Gone, reason = "only deletion drains")]
    #[child(Compacting)]
    #[child(Restoring)]
    #[child(Parked)]
    #[child(Draining)]
    Serving,

    /// Space is made.
    #[visit]
    #[trigger(Parked)]
    #[child(Serving)]
    Compacting,

    /// Entries are read from a copy.
    #[visit(args = u32, result = u64)]
    #[trigger(Parked, on_abort)]
    #[child(Serving)]
    Restoring,

    /// Entries are written to disk.
    #[no_transit]
    #[child(Filling)]
    #[child(Gone)]
    Draining,

    /// Nobody asks.
    #[rest(idle)]
    #[no_route(Gone, reason = "only deletion drains")]
    #[child(Serving)]
    Parked,

    /// Somebody has to look.
    #[rest(hold, idle)]
    #[condition(Serving, status = "False")]
    #[no_route(Serving, Compacting, Restoring, Parked, reason = "it is broken")]
    #[no_route(Gone, reason = "only deletion drains")]
    #[child(Draining)]
    Broken,

    /// The disk is free.
    #[leaf]
    Gone,
}

fn main() {
    use Cache::{Broken, Compacting, Draining, Filling, Gone, Parked, Restoring, Serving};
    let graph = Cache::GRAPH;
    let of = |state: Cache| &graph.states[state.id().index()];

    assert_eq!(
        graph.doc,
        "The life of a cache.\n\nIt is filled before it serves."
    );
    assert_eq!(
        of(Filling).doc,
        "Entries are read from disk; see [`Cache::Serving`].\n\nThis can take an hour."
    );
    assert_eq!(of(Serving).doc, "Clients are served.");

    let has = |state, mark| of(state).is(mark);
    assert!(has(Filling, Mark::Entry) && has(Serving, Mark::Rest) && has(Compacting, Mark::Visit));
    assert!(has(Draining, Mark::NoTransit) && !has(Compacting, Mark::NoTransit));
    assert!(has(Parked, Mark::Idle) && !has(Parked, Mark::Hold) && has(Gone, Mark::Leaf));
    assert!(has(Broken, Mark::Idle) && has(Broken, Mark::Hold));
    assert!(!of(Compacting).is_transit());

    let cause = |state, to: Cache| of(state).trigger_to(to.id()).map(|trigger| trigger.cause);
    assert_eq!(
        cause(Filling, Broken),
        Some(Cause::After(Duration::from_mins(90)))
    );
    assert_eq!(cause(Filling, Gone), Some(Cause::OnDelete));
    assert_eq!(cause(Serving, Broken), Some(Cause::OnError { attempts: 3 }));
    assert_eq!(cause(Serving, Draining), Some(Cause::OnChange));
    assert_eq!(cause(Compacting, Parked), Some(Cause::Named));
    assert!(has(Restoring, Mark::Args) && !has(Compacting, Mark::Args));
    assert_eq!(cause(Restoring, Parked), Some(Cause::OnAbort));
    let causes = of(Filling)
        .triggers
        .iter()
        .filter(|trigger| trigger.to == Broken.id());
    let causes: Vec<Cause> = causes.map(|trigger| trigger.cause).collect();
    let deadline = Cause::Deadline(Duration::from_hours(4));
    assert_eq!(causes[1..], [Cause::OnError { attempts: 5 }, deadline]);
    assert_eq!(cause(Compacting, Broken), Some(deadline));

    let filled = of(Filling).conditions[0];
    assert_eq!(filled.name, cache::conditions::CACHE_OKT_DEV_FILLED);
    assert_eq!(filled.status, ConditionStatus::Unknown);
    assert_eq!((filled.reason, filled.message), ("", "still reading"));
    assert_eq!(of(Serving).conditions[0].reason, "Warm");
    assert_eq!(of(Broken).conditions[0].name, cache::conditions::SERVING);

    assert_eq!(Cache::from_name("Up"), Some(Serving));
    assert_eq!(of(Broken).no_routes.len(), 5);
    assert_eq!(of(Broken).no_routes[1].to, Compacting.id());
    assert_eq!(of(Broken).no_routes[4].reason, "only deletion drains");
}
