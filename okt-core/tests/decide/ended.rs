//! Rules 4 and 5: where an object goes when its work is over, and refused answers.

#[test]
fn work_that_is_over() {
    crate::decides(
        "
        The desired state counts if the visit has no route.
            Servicing, says Next, visit Servicing 1 -> Running by Child for DesiredState
        Next is the last child if no desired state leads on.
            Stopping, says Next -> End by Child for Next
        A state that no edge leads to is refused, and nothing moves.
            Start, names Servicing -> End(Refused(StateId(2))), state Start
            Stopping, names Servicing -> End(Refused(StateId(2))), state Stopping
        A refused answer is not taken again.
            Stopping, names Servicing -> action Some(Failed)
            Stopping, work Failed -> Stay(Failed)
        A resting state goes where its handler named.
            Running, names Stopping -> Stopping by Child for Handler
        A resting state whose work ended without a name stays.
            Running, says Stay -> End(Well), action Some(Done), reached true
        The Next of a resting state is raised only by its handler.
            Running -> Stay(Settled)
            Running, says Next -> Stopping by Child for Next
        A child that the observation named is taken at rest and never out of a holding state.
            Running, event Stopping -> Stopping by Child for Observed
            Failed, event Stopping, desired Failed 1 -> Stay(Settled)
            Running, event Stopping, deleting -> Stopping by Child for Deletion

        graph: entry Fork >Up >Other >Last | rest Up >Other >Last | visit Other >Up >Last | leaf Last
        A passing state goes where its handler named and nowhere else.
            Fork, newly desired Up, names Last -> Last by Child for Handler
        Next leads from a passing state towards the desired state.
            Fork, says Next, desired Up 1 -> Up by Child for DesiredState
            Fork, says Next, newly desired Last -> Last by Child for DesiredState
        Next leads from a passing state towards an open visit first.
            Fork, says Next, visit Other 1 -> Other by Child for Visit
        During deletion Next is the way out.
            Fork, says Next, deleting -> Last by Child for Deletion
        In a resting state a visit beats Next, and the edge declared first beats both.
            Up, says Next, new visit Other -> Other by Child for Visit
            Up, names Last, new visit Other -> Other by Child for Visit
            Up, names Other, newly desired Last -> Other by Child for Handler

        A passing state without work is left at once.
            graph: entry idle A >B | leaf B
            A -> B by Child for DesiredState
        Next without a child is refused. No graph that passes the rules has such a state.
            graph: entry A !B | leaf B
            A, says Next -> End(Refused(StateId(65535)))
        The handler of a holding state may lead out of it.
            graph: entry A >B | rest hold B >A >C | leaf C
            B, desired B 1, names A -> A by Child for Handler
            B, desired B 1, says Next -> C by Child for Next
        Work that fails permanently in a resting state does not delay the desired state.
            graph: entry A >B | rest B >C | leaf C
            B, fails permanently, desired C 5 -> C by Child for DesiredState
        ",
    );
}
