//! Rule 2: triggers, by cause and by name.

#[test]
fn triggers() {
    crate::decides(
        "
        A trigger that the handler or the observation named is taken, also while an action is in flight.
            Start, names Failed -> Failed by Trigger for Handler
            Running, event Failed -> Failed by Trigger for Observed
            Start, task Running, event Failed -> Failed by Trigger for Observed
        Observing its target raises a trigger even while an action is in flight; a child may be observed on the way.
            Start, task Running, seen Failed -> Failed by Trigger for Observed
            Start, task Running, seen Running -> Stay(Running)
            Start, task Running, seen Failed, left Failed -> Stay(Running)
        While an action is in flight the previous state is no event.
            Start, event Failed, left Failed, task Running -> Stay(Running)
            Running, event Failed, left Failed -> Failed by Trigger for Observed
        It is one once an attempt has failed; being observed there is none: the work has not changed the state yet.
            Start, left Failed, attempt 2, event Failed, task Running | task Waiting -> Failed by Trigger for Observed
            Start, left Failed, attempt 2, task Running, seen Failed -> Stay(Running)
        A reconciliation that takes a result ignores events.
            Running, says Stay, event Failed -> End(Well)
        The time in a state raises its trigger while the action runs, and after it failed permanently.
            Servicing, task Running, for 1799 -> Stay(Running)
            Servicing, task Running | work Failed, for 1800 -> Failed by Trigger for After
        on_error is raised by the last attempt that it allows, and a permanent failure counts as that.
            Start, fails, attempt 4 -> Retry { counted: true }
            Start, fails, attempt 5 -> Failed by Trigger for OnError
            Start, fails permanently -> Failed by Trigger for OnError
        Attempts that failed count after a restart, and the one under way does not.
            Start, task Absent, attempt 5 -> Run(Resume)
            Start, task Absent, attempt 6 -> Failed by Trigger for OnError
        Waiting is no failure, and work that succeeded forgets the attempts that failed.
            Start, says Wait, attempt 5 -> Stay(Waiting)
            Running, says Stay, attempt 9 -> End(Well)
        Triggers by cause and by handler count during deletion, and observed ones do not.
            Servicing, task Running, for 1800, deleting -> Failed by Trigger for After
            Servicing, names Failed, deleting -> Failed by Trigger for Handler
            Running, event Failed, deleting -> Stopping by Child for Deletion
        Another edge does not count as on_change.
            Running, newly desired End, revision 8 -> revision 8, changed 7

        An observation names no trigger of a holding state; its handler may, and causes lead out of it.
            graph: entry A >B | rest hold B !A >C | leaf C
            B, desired B 1, event A -> Stay(Settled)
            B, names A -> A by Trigger for Handler
            graph: entry A >B | rest hold B !A:after60 >C | leaf C
            B, for 60 -> A by Trigger for After
        While an action is in flight the current state is no event. No graph that passes the rules has such an edge.
            graph: entry A !A >B | leaf B
            A, task Running, event A -> Stay(Running)
        Of two triggers the one declared first is taken.
            graph: entry A !B:after60 !C:change >D | leaf B | leaf C | leaf D
            A, task Running, revision 8, for 60 -> B by Trigger for After
            graph: entry A !C:change !B:after60 >D | leaf B | leaf C | leaf D
            A, task Running, revision 8, for 60 -> C by Trigger for OnChange
        A trigger that names parts of the spec is raised by a change of one of them, and by no other.
            graph: entry A >B | rest B !C:change0 !D:change01 >E | C >B | D >B | leaf E
            B, revision 8, part version -> C by Trigger for OnChange, revision 8, changed 7
            B, revision 8, part size -> D by Trigger for OnChange
            B, revision 8, part version, part size -> C by Trigger for OnChange
            B, revision 8 -> Run(Changed), run 2
            A, revision 8, task Running, part version -> Stay(Running)
        One for any change takes what remains, and the work there acts upon all of it.
            graph: entry A >B | rest B !C:change0 !D:change >E | C >B | D >B | leaf E
            B, revision 8, part version -> C by Trigger for OnChange, revision 8, changed 7
            B, revision 8 -> D by Trigger for OnChange, revision 8, changed 8
            B, revision 8, changed 8 -> Stay(Settled)
        Triggers come before children.
            graph: entry A !B:after60 >C | leaf B | leaf C
            A, names C, for 60 -> B by Trigger for After
        A name means the child if a trigger has the same target.
            graph: entry A !C:after60 >C | leaf C
            A, names C, for 59 -> C by Child for Handler
            A, task Running, event C, for 59 -> Stay(Running)
            A, task Running, event C, for 60 -> C by Trigger for After
        A deletion raises on_delete also while an action is in flight.
            graph: entry A !C:delete >B | rest B >C | leaf C
            A, task Running -> Stay(Running)
            A, task Running, deleting -> C by Trigger for OnDelete
        on_change is raised when the revision differs from that of its last edge.
            graph: entry A >B | rest B !A:change >C | leaf C
            B, revision 8 -> A by Trigger for OnChange, changed 8
        A change made elsewhere is not lost: the state was entered under the new revision, by another edge.
            B, revision 8, begun revision 8 -> A by Trigger for OnChange
        A deadline over several states counts its own time.
            graph: entry A !D:deadline60 !D:error2 >B | rest B >C | leaf C | rest hold idle D >C
            A, task Running, for 3600, deadline 59 -> Stay(Running)
            A, task Running, for 3600, deadline 60 -> D by Trigger for After
        ",
    );
}
