//! Leaves: which desired states and visits lead out of them.

#[test]
fn leaves() {
    crate::decides(
        "
        An older desired state does not lead out of a leaf; one set after the arrival does, by the entry.
            End, desired Running 4 -> Stay(Settled)
            End, newly desired Running | desired Running 5 -> Start by Reentry for DesiredState
        A visit made after the arrival leads out of a leaf.
            End, desired End 1, new visit Servicing -> Start by Reentry for Visit
            End, desired End 1, visit Servicing 4 -> Stay(Settled)
        A desired state that a spec may not ask for leads out of no leaf.
            End, newly desired Stopping -> Stay(Settled)
        A re-entry takes over every change so far and is no jump.
            End, newly desired Running, revision 8 -> changed 8, jumps 0, desired Running 5
        A changed revision leads out of a leaf only towards a state that is no leaf.
            End, desired Running 1, revision 8 -> Start by Reentry for DesiredState

        graph: entry Work >Broken >Done | leaf Broken | leaf idle Done
            Broken, desired Done 1, revision 8 -> Stay(Settled), desired Done 1
        A desired leaf without a request is recorded as older and does not lead out of a leaf.
            Done, newly desired Done -> Stay(Settled), desired Done 4
            Done, newly desired Broken -> Stay(Settled), desired Broken 4
        A desired leaf with a new request leads out of a leaf.
            Done, newly desired Done | newly desired Broken, requested -> Work by Reentry for DesiredState
        The work of a leaf ends before it is left.
            Broken, newly desired Done, requested, task Running -> Stay(Running)
            Broken, newly desired Done, requested, says Stay -> Work by Reentry for DesiredState
        The work of a leaf succeeds only without naming a state.
            Broken, says Stay | says Next -> End(Well)
            Broken, names Done -> End(Refused(StateId(2)))
        The work of a leaf is retried.
            Broken, fails -> Retry { counted: false }
            Broken, fails permanently -> End(Failed)
        The work of a leaf that failed permanently waits for another generation.
            Broken, work Failed -> Stay(Failed)
            Broken, work Failed, generation 2 -> Run(Amended)
        ",
    );
}
