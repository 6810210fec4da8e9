//! Gates.

use okt_core::Plan;
use okt_core::facts::{ActionResult, Task};

use crate::build;
use crate::case::Case;

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

#[test]
fn approvals() {
    crate::decides(
        "
        graph: entry Start >Up | rest Up !Swap:change >Down >Gone | rest Down >Up >Gone | Swap >Up | leaf Gone | approval major Swap Down | window night Swap
        An object waits for the approval of the plan, and goes with it.
            Up, revision 9, shut major -> Stay(Settled), waiting major Swap OnChange
            Up, newly desired Down, shut major -> Stay(Settled), waiting major Down DesiredState
            Up, newly desired Down, shut major, approved Down DesiredState Down -> Down by Child for DesiredState, waiting -
        A plan of another move, and one of other resources, is another plan.
            Up, newly desired Down, shut major, approved Swap DesiredState Down -> Stay(Settled), waiting major Down DesiredState
            Up, newly desired Down, content 2, shut major, approved Down DesiredState Down -> Stay(Settled), waiting major Down DesiredState
        As long as it is not known which resources it changes, nothing is approved.
            Up, newly desired Down, content ?, shut major, approved Down DesiredState Down -> Stay(Settled), waiting major Down DesiredState
        It waits for the window first.
            Up, revision 9, shut major, shut night -> Stay(Settled), waiting night Swap OnChange
            Up, revision 9, shut night -> Stay(Settled), waiting night Swap OnChange
        An approval of no present plan does nothing, and neither does one that is not needed.
            Up, approved Down DesiredState Down -> Stay(Settled), waiting -
            Up, newly desired Down -> Down by Child for DesiredState
        Nothing holds up a deletion.
            Up, deleting, shut major -> Gone by Child for Deletion

        graph: entry Start >Up | rest Up >Mid >Gone | Mid >Down >Far | rest Down >Up >Gone | rest Far >Up >Gone | leaf Gone | approval major Mid
        Another goal by the same way, and another reason, are other plans.
            Up, newly desired Down, shut major, approved Mid DesiredState Down -> Mid by Child for DesiredState
            Up, newly desired Far, shut major, approved Mid DesiredState Down -> Stay(Settled), waiting major Mid DesiredState
            Up, newly desired Down, shut major, approved Mid Visit Down -> Stay(Settled), waiting major Mid DesiredState

        graph: entry Start >Up | rest Up >Back >Gone | visit args Back >Up | leaf Gone | approval major Back
        Another request for the same state is another plan.
            Up, request Back, shut major, approved Back Request Back -> Back by Child for Request
            Up, request Back 3, shut major, approved Back Request Back -> Stay(Settled), waiting major Back Request
        ",
    );
}

/// The acceptance case A8.
#[test]
fn an_approved_plan_is_carried_out_once_also_when_the_spec_comes_back() {
    const LINES: [&str; 5] = [
        "entry Start >Up",
        "rest Up !Swap:change >Gone",
        "Swap >Up",
        "leaf Gone",
        "approval major Swap",
    ];
    let graph = build::graph(&LINES);
    let mut case = Case::of(&graph, "Up, desired Up 1, shut major");
    let ends = Task::Ended(ActionResult::Next);
    // Returns the plan for which the object waits after a decision, if it waits.
    let mut goes_on = |revision: u64, approved: Option<Plan>, task: Option<Task>| {
        case.facts.revision = revision;
        case.facts.approved = approved;
        case.facts.task = task.unwrap_or(Task::Absent);
        case.record = case.after().at().copied();
        let record = case.record.expect("a record");
        (
            graph.name_of(record.state),
            record.waiting.and_then(|it| it.plan),
        )
    };
    let mut plans = Vec::new();
    for (round, revision) in [9, 7, 9, 7].into_iter().enumerate() {
        let last = plans.last().copied();
        let (state, plan) = goes_on(revision, last, None);
        assert_eq!(state, "Up", "round {round}: approved by an earlier plan");
        let plan = plan.expect("it waits for its approval");
        assert!(
            !plans.contains(&plan),
            "round {round}: a plan a second time"
        );
        for earlier in &plans {
            assert_eq!(goes_on(revision, Some(*earlier), None), ("Up", Some(plan)));
        }
        plans.push(plan);
        assert_eq!(goes_on(revision, Some(plan), None), ("Swap", None));
        assert_eq!(goes_on(revision, Some(plan), Some(ends)), ("Up", None));
    }
}
