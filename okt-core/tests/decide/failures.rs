//! Permanent failures, changed revisions and generations.

#[test]
fn failures_and_changes() {
    crate::decides(
        "
        The desired state is reached again only when the new run succeeded.
            Running, desired Running 1, revision 8 -> reached false
            Running, desired Running 1, revision 8, says Stay -> reached true

        graph: entry A >B | rest B >C | leaf C
        A permanent failure without on_error ends the action.
            A | B, fails permanently -> End(Failed), action Some(Failed)
        An ended action remembers the generation it was started under.
            B, fails permanently, begun generation 2, generation 3 -> generation 2
        Work that failed permanently runs again under its id when the generation differs.
            A | B, work Failed -> Stay(Failed)
            A | B, work Failed, generation 2 -> Run(Amended), run 1, action Some(Pending), generation 2
        Work that failed permanently runs again under a new id when the revision differs.
            A | B, work Failed, revision 8 -> Run(Changed), run 2, action Some(Pending), revision 8
        A resting state without on_change runs its action again for a new revision.
            B, revision 8 -> Run(Changed), run 2, action Some(Pending), revision 8, changed 7
        A revision that changed while the action ran makes it run again.
            B, says Stay, revision 8 -> End(Well), revision 7
        A desired state leads on from a state whose action failed permanently.
            B, work Failed, desired C 4 -> C by Child for DesiredState

        graph: entry A >B | rest B !A:change >C | leaf C
        A change does not rerun the work if on_change is declared; the edge was already taken for this revision.
            B, revision 8, changed 8 -> Stay(Settled)
        Neither a desired state nor a generation is a change.
            B, generation 9 -> Stay(Settled)
            B, generation 9, newly desired B -> Stay(Settled)
        An idle state has nothing to run again.
            graph: entry A >B | rest idle B >C | leaf C
            B, revision 8 -> Stay(Settled)
        ",
    );
}
