//! Requests, and their outcomes.

#[test]
fn requests() {
    crate::decides(
        "
        graph: entry Start >Up | rest Up >Way >Sole >Out | Way >Back >Up | visit args Back !Up:abort !Bad:error2 >Up | rest hold Bad >Back >Up >Out | visit args Sole >Up | leaf Out
        A request begins with the move towards the state that serves it.
            Up, request Back -> Way by Child for Request, request Running 2 5
        It begins before the desired state is pursued, and after an open visit and a request that is served.
            Up, newly desired Out, request Back -> Way by Child for Request
            Way, serves Back, request Back, says Next -> Back by Child for Request, request Running 1 3
        Work of a resting state that is in flight is left for it between two calls.
            Up, task Waiting, request Back -> Way by Child for Request
            Up, task Running, request Back -> Stay(Running), unchanged true
        A request that does not begin is not recorded.
            Up, reached, request Back, paused -> Stay(Paused), unchanged true
            Back, serves Back, task Running, request Back -> Stay(Running), unchanged true
            Way, request Back, says Next -> Up by Child for DesiredState
            Out, request Back -> Stay(Settled), unchanged true
        It takes the place of one that is over, and counts no earlier transitions.
            Up, serves Back, served Reached, request Back, rounds 90 -> Way by Child for Request, request Running 2 5, rounds 1
        It is reached when the work of its state succeeded.
            Back, serves Back, says Next -> Up by Child for DesiredState, request Reached 1 3
            Back, serves Back, names Up -> Up by Child for Handler, request Reached 1 3
            Back, serves Back, newly desired Out, says Next -> Up by Child for DesiredState, request Reached 1 3
        It fails when a trigger ends the work, or the work fails permanently: it is not retried.
            Back, serves Back, attempt 2, fails -> Bad by Trigger for OnError, request Failed 1 3
            Back, serves Back, names Bad -> Bad by Trigger for Handler, request Failed 1 3
            Back, serves Back, fails | says Wait -> request Running 1 3
            Bad, serves Back, served Failed, desired Bad 1 -> Stay(Settled), request Failed 1 3
        Without on_error the object goes on.
            Sole, serves Sole, fails permanently -> Up by Child for DesiredState, request Failed 1 3
            Sole, fails permanently | work Failed -> Up by Child for DesiredState
            Sole, serves Sole, served Reached, request Back, work Failed -> Up by Child for DesiredState
        A deletion of the request leads along on_abort, and only there.
            Back, serves Back, task Running, aborted -> Up by Trigger for OnAbort, request Aborted 1 3
            Way, serves Back, task Running, aborted -> Stay(Running), request Running 1 3
            Back, serves Back, served Failed, task Running, aborted -> Stay(Running), request Failed 1 3
        A request that is served fails where the object holds before it is there, and only there.
            Bad, serves Back, desired Bad 1 -> Stay(Settled), request Failed 1 3
            Bad, serves Back, newly desired Up -> Up by Child for DesiredState, request Running 1 3
            Up, serves Back -> Way by Child for Request, request Running 1 3
        A deletion of the object overtakes it, unless its work succeeds.
            Way, serves Back, task Running, newly deleting -> request Overtaken 1 3
            Back, serves Back, task Running, newly deleting -> request Running 1 3
            Back, serves Back, says Next, deleting -> request Reached 1 3
            Back, serves Back, fails, deleting -> request Overtaken 1 3
        A state that serves none any more refuses it, and the object takes no step towards that.
            Up, serves Way | serves Nope -> Stay(Settled), request Refused 1 3
        A spec cannot ask for a state with arguments.
            Up, new visit Back -> Stay(Settled), visit Refused 5
        ",
    );
}
