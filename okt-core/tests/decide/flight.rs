//! Rule 3: an action in flight keeps the object where it is; attempts, waits and restarts.

#[test]
fn an_action_in_flight() {
    crate::decides(
        "
        It keeps the object where it is.
            Running, task Running, newly desired End | new visit Servicing -> Stay(Running)
        Between attempts a resting state is left for a desired state set after the arrival.
            Running, task Waiting | task Due | fails | says Wait, newly desired End | desired End 5 -> Stopping by Child for DesiredState
            Running, task Waiting | task Due | fails | says Wait, new visit Servicing -> Servicing by Child for Visit
        Between attempts an older desired state does not move the object.
            Running, desired End 4, task Waiting -> Stay(Waiting)
            Running, desired End 4, fails -> Retry { counted: true }
        Between attempts a passing state is not left.
            Start, task Waiting, newly desired End -> Stay(Waiting)
        After a restart a pending action is resumed.
            Running, task Absent -> Run(Resume), run 1, attempt 1, action Some(Pending), generation 1, leaving false
        Work without a recorded action is started.
            Running, no action -> Run(Resume)
        After the wait the work runs under the same id.
            Running, task Due -> Run(Again), run 1
        A new revision between attempts begins a run of its own at once.
            Start, task Waiting | task Due, begun attempt 4, revision 8 -> Run(Changed), run 2, attempt 1, revision 8
        A resumption under another revision is a run of its own.
            Start, task Absent, revision 8 -> run 2
        A new revision does not disturb work that runs.
            Start, task Running, revision 8 -> Stay(Running)
        An attempt is recorded only if a trigger counts attempts.
            Running, fails -> Retry { counted: true }, attempt 2
            Stopping, fails -> Retry { counted: false }, unchanged true
        An answer to wait is not written.
            Running, says Wait -> Stay(Waiting), unchanged true
        An arrival begins an action and counts from one.
            Running, newly desired End, generation 4, attempt 3 -> transition 6, left Running, run 1, attempt 1, generation 4
            Running, newly desired End -> action Some(Pending), leaving false
        An idle state has nothing in flight.
            graph: entry A >B | rest idle B >C | leaf C
            B, work Pending -> Stay(Settled)
        ",
    );
}
