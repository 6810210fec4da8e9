//! Rule 1: the record follows the application. Also: decisions without a record, or with an unknown state on record.

#[test]
fn observations() {
    crate::decides(
        "
        An observed move along an edge is followed, and is no jump.
            Running, seen Servicing -> Servicing by Child for Observed, jumps 0
            Running, seen Failed -> Failed by Trigger for Observed
        An observed move along no edge is a jump and counted; the handler of the new state runs.
            Running, seen Start -> Start by Jump for Observed, jumps 1, action Some(Pending)
        After a jump to an idle state there is no action.
            Running, seen End -> action None
        An absent application begins at the entry again.
            Running, absent -> Start by Jump for Observed
        An observation moves nothing while an action is in flight.
            Running, task Running, seen Start -> Stay(Running)
            Running, task Waiting, seen Start -> Stay(Waiting)
        A reconciliation that takes a result ignores the observation.
            Running, says Stay, seen Start -> End(Well)
        A resting state whose action failed permanently is left by observation.
            Running, work Failed, seen Start -> Start by Jump for Observed
        An observation never leads out of a holding state, does not move a passing state, and counts in no leaf.
            Failed, desired Failed 1, seen Running -> Stay(Settled)
            Failed, absent -> Stay(Settled)
            Stopping, work Failed, seen Running -> Stay(Failed)
            End, desired End 1, seen Running | absent -> Stay(Settled)
        Without an observed state the object does not move, but the other rules still apply.
            Running, seen Running | unforeseen | unreachable 9 | unobservable 9 -> Stay(Settled)
            Running, newly desired End, unforeseen | unreachable 9 | unobservable 9 -> Stopping by Child for DesiredState
        A new object observed in a state is adopted by a jump.
            nothing, seen Running -> Running by Jump for Adopted, jumps 1, transition 1
        A new object observed in the entry, or not at all, enters it and does not jump.
            nothing, seen Start | absent | unreachable 1 -> Start by Entry for Created, jumps 0, transition 1
            nothing -> Start by Entry for Created, jumps 0, transition 1
        A new object waits while an owned resource exists and the application is unreachable.
            nothing, unreachable 1, owned -> Stay(Unsure)
        A new object waits if the observed state is unknown or the observation failed.
            nothing, unforeseen | unobservable 1 | seen Nope -> Stay(Unsure)
        Without a record the desired state and the visit are older than the first state.
            nothing, new visit Servicing -> desired Running 0, visit NotReplayed 0
        A state that the graph does not have is left only by observation.
            Running, lost, seen Running -> Running by Jump for Observed
            Running, lost, absent -> Start by Jump for Observed
            Running, lost -> Stay(UnknownState)
            Running, lost, unforeseen | unreachable 9 | unobservable 9 -> Stay(UnknownState)
        An object in an unknown state is not created again while it is deleted.
            Running, lost, absent, deleting -> Stay(UnknownState)
        ",
    );
}
