//! Gates.

#[test]
fn gates() {
    crate::decides(
        "
        graph: entry Start >Up | rest Up !Swap:change !Broken:error2 >Down >Save >Gone | rest Down >Up >Gone | Swap >Up | visit Save >Up | visit args Back >Up | rest hold Broken >Up >Gone | leaf Gone | window night Swap Down | window day Save Back
        An object waits in a resting state for a move that the operator chooses.
            Up, newly desired Down, shut night -> Stay(Settled), waiting night Down DesiredState
            Up, revision 9, shut night -> Stay(Settled), waiting night Swap OnChange
            Up, new visit Save, shut day -> Stay(Settled), waiting day Save Visit
            Up, desired Up 1, event Down, shut night -> Stay(Settled)
        An outdated resource takes the edge to where it may change, and waits like a change of the spec.
            Up, outdated Swap -> Swap by Trigger for OnChange
            Up, outdated Swap, shut night -> Stay(Settled), waiting night Swap OnChange
            Up, outdated Swap, deleting -> Gone by Child for Deletion
            Up, outdated Broken -> Stay(Settled)
        It goes as soon as the gate is open.
            Up, newly desired Down, waiting night Down -> Down by Child for DesiredState, waiting -
            Up, newly desired Down, shut day -> Down by Child for DesiredState, waiting -
            Up, revision 9, shut day -> Swap by Trigger for OnChange
        A gate that is shut stops nothing else.
            Up, new visit Save, revision 9, shut night -> Save by Child for Visit, waiting -
            Up, attempt 2, fails, revision 9, shut night -> Broken by Trigger for OnError
            Up, newly desired Gone, revision 9, shut night -> Gone by Child for DesiredState
        An open visit keeps its precedence while it waits.
            Up, new visit Save, newly desired Down, shut day -> Stay(Settled), waiting day Save Visit
        A request that has not begun does not.
            Up, request Back, newly desired Down, shut day -> Down by Child for DesiredState
        A handler that names a state behind a gate is called again when that is open.
            Up, names Down, shut night -> Stay(Waiting), waiting night Down Handler
            Up, task Waiting, waiting night Down, shut night -> Stay(Waiting), waiting night Down Handler
            Up, task Waiting, waiting night Down -> Run(Again)
            Up, says Next, desired Up 1, shut night -> Gone by Child for Next
        Moves between the states of a gate pass no gate.
            Swap, says Next, shut night -> Up by Child for DesiredState
            Down, newly desired Up, shut night -> Up by Child for DesiredState
        Nothing holds up a deletion, and what was observed is recorded at once.
            Up, deleting, shut night -> Gone by Child for Deletion
            Up, seen Down, shut night -> Down by Child for Observed
        While the object is paused, it waits for no gate.
            Up, newly desired Down, shut night, paused -> Stay(Settled), waiting -
        ",
    );
}
