//! Deletion: the way out, its precedence, and the removal of the finalizer.

#[test]
fn deletion() {
    crate::decides(
        "
        A deletion replaces desired state and visit.
            Running, desired Running 1, new visit Servicing, deleting -> Stopping by Child for Deletion
        Neither a hold nor a pause stops it.
            Failed, deleting -> Stopping by Child for Deletion
            Running, paused, deleting -> Stopping by Child for Deletion
        Observations move nothing during deletion.
            Running, absent | seen Start, deleting -> Stopping by Child for Deletion
        Work that runs is awaited.
            Running, task Running, deleting -> Stay(Running)
        The failure of an action begun before the deletion counts as Next.
            Servicing | Stopping, fails | fails permanently, deleting -> End by Child for Deletion
        A waiting action begun before the deletion counts as Next.
            Running, task Waiting | task Due | says Wait, deleting -> Stopping by Child for Deletion
            Servicing, task Waiting | task Due | says Wait, deleting -> End by Child for Deletion
        on_error counts a failure before the deletion counts it as Next.
            Running, fails, attempt 2, deleting -> Stopping by Child for Deletion
            Running, fails, attempt 3, deleting -> Failed by Trigger for OnError
            Running, fails permanently, deleting -> Failed by Trigger for OnError
        After a restart an action begun before the deletion is resumed.
            Stopping, task Absent, deleting -> Run(Resume)
        Resumed under another revision, it still counts as begun before the deletion.
            Stopping, task Absent, deleting, revision 8 -> run 2, leaving false
        An action begun on the way out is marked so, and retried.
            Running, deleting -> leaving true
            Stopping, fails, deleting, begun leaving -> Retry { counted: false }
            Stopping, says Wait | task Waiting, deleting, begun leaving -> Stay(Waiting)
            Stopping, task Due, deleting, begun leaving -> Run(Again)
        A passing state that failed permanently takes the way out.
            Stopping, work Failed, deleting -> End by Child for Deletion
            Stopping, fails permanently, deleting, begun leaving -> End by Child for Deletion
        No desired state leads out of a leaf during deletion.
            End, newly desired Running, deleting -> Release
        A successor that the handler named counts.
            Servicing, names Running, deleting -> Running by Child for Handler
        The finalizer is removed if nothing is recorded.
            nothing, newly deleting -> Release
        The finalizer is removed in a leaf that is idle or whose action succeeded.
            End, deleting -> Release
            graph: entry A >B | leaf B
            B, deleting -> Release
            B, says Stay, deleting -> Release
        The finalizer waits for the work of the leaf, which is retried.
            B, task Running, deleting -> Stay(Running)
            B, fails, deleting -> Retry { counted: false }
            B, task Waiting, deleting -> Stay(Waiting)
            B, fails permanently, deleting -> End(Failed)
        The finalizer stays in a leaf that failed permanently until the generation changes.
            B, work Failed, deleting -> Stay(Failed)
            B, work Failed, deleting, generation 2 -> Run(Amended)
        A resting state that failed permanently takes the way out.
            graph: entry A >B | rest B >C | leaf C
            B, work Failed, deleting -> C by Child for Deletion
        A new revision runs no work again. No graph that passes the rules has a state without a way out.
            graph: entry A >B | rest B
            B, deleting, revision 8 -> Stay(Settled)
            graph: entry A >B | rest B >C | leaf C
        No desired state leads out of a leaf that failed permanently.
            C, work Failed, newly desired B, deleting -> Stay(Failed)
        No desired state redirects an action begun on the way out.
            graph: entry A >B | rest B >C >D | rest C >D | leaf D
            B, task Waiting, newly desired C, deleting, begun leaving -> Stay(Waiting)
        ",
    );
}
