//! The desired state: when the object moves towards it, and under which number it is recorded.

#[test]
fn the_desired_state() {
    crate::decides(
        "
        An object that rests elsewhere moves towards the desired state.
            Running, desired End 1 | desired End 4 | desired End 5 -> Stopping by Child for DesiredState
        A holding state is left only for a desired state set after the arrival.
            Failed, desired Running 4 -> Stay(Settled)
            Failed, desired Running 5 -> Running by Child for DesiredState
            Failed, newly desired End -> Stopping by Child for DesiredState
        A new desired state gets the current number.
            Running, task Running, newly desired End -> desired End 5
        First recorded with a transition, it gets the number before it.
            Running, newly desired End -> transition 6, desired End 5
        Other writes keep the recorded number.
            Running, desired End 3 -> desired End 3
            Running, desired Running 3, says Stay -> desired Running 3
        A changed revision after the arrival counts as a new desired state.
            Failed, desired Running 1, revision 8 -> Running by Child for DesiredState
            Running, desired End 1, task Waiting, revision 8 -> Stopping by Child for DesiredState
        The write that first records a changed revision sets the current number.
            Running, desired Running 1, revision 8 -> desired Running 5
            Running, desired Running 1, fails, revision 8 -> desired Running 5
            Start, task Absent, revision 8 -> desired Running 5
        A revision that changes together with a transition is older than the new state.
            Start, says Next, revision 8 -> transition 6, desired Running 5, revision 8
        A desired state that the graph does not have does not move the object.
            Running, desired Nope 1 -> Stay(Settled), desired ? 1
        A desired state is reached only once its work succeeded.
            Start, says Next -> state Running, reached false
            Failed, names End, newly desired End -> reached false
            Stopping, says Next, desired End 1 -> reached true
            graph: entry A >B | rest B >C | leaf C
            B, fails permanently -> reached false
        The default is the first resting state on the Next way.
            graph: entry A >Last >B | B >Last >C | rest C >Up >Last | rest Up >C >Last | leaf Last
            Up -> C by Child for DesiredState
        The default is the leaf of a Next way without a resting state.
            graph: entry A >Side >Last | leaf Side | leaf Last
            Last -> reached true
            Side -> reached false
        A desired state without a route does not move the object.
            graph: entry A >B | rest B >End -C | rest C >End -B | leaf End
            B, newly desired C -> Stay(Settled)
        ",
    );
}
