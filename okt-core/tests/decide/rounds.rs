//! The loop guard, and the pause.

use std::time::Duration;

use okt_core::decide::{StayReason, Verdict};

use crate::case::Case;
use crate::database::database;

#[test]
fn beyond_twice_the_number_of_states_each_further_transition_waits_like_a_retry() {
    for beyond in 1..20 {
        let rounds = 2 * 6 + beyond;
        let mut case = Case::of(
            &database(),
            &format!("Running, desired End 1, rounds {rounds}"),
        );
        let wait = case.facts.backoff.wait(beyond, case.facts.seed);
        for left in [wait, Duration::from_nanos(1)] {
            case.facts.in_state = wait.saturating_sub(left);
            assert_eq!(case.decide(), Verdict::Stay(StayReason::LoopGuard(left)));
        }
        case.facts.in_state = wait;
        assert!(matches!(case.decide(), Verdict::Go(_)));
    }
}

#[test]
fn the_loop_guard_and_the_pause() {
    crate::decides(
        "
        Rounds count transitions; up to twice the number of states, none waits.
            Running, desired End 1, rounds 3, for 0 -> rounds 4
            Running, rounds 3 -> rounds 3
            Running, desired End 1, rounds 12, for 0 -> Stopping by Child for DesiredState
        The loop guard does not keep an action from running or ending.
            Running, task Absent, rounds 21 -> Run(Resume)
            Running, says Stay, rounds 21 -> End(Well)
        The jump out of a state that the graph does not have does not wait.
            Running, desired End 1, rounds 21, for 0, seen Running, lost -> Running by Jump for Observed
        A new desired state, visit, revision or deletion resets the count.
            Running, desired End 1, rounds 21, for 0, newly desired End | new visit Servicing | revision 8 | newly deleting -> rounds 1
        It does so before the object moves; a recorded deletion does not.
            Running, task Running, rounds 21 -> rounds 21
            Running, task Running, rounds 21, newly desired End -> rounds 0
            Running, desired End 1, rounds 21, for 0, deleting -> Stay(LoopGuard)
        A deletion is recorded.
            Running, task Running, newly deleting -> deleting true
        Staying put for twice the longest backoff, twelve minutes, resets the count, but is no reason to write.
            Running, desired End 1, rounds 21, for 721 -> Stopping by Child for DesiredState, rounds 1
            Running, desired End 1, rounds 21, for 720 -> rounds 22
            Running, desired Running 1, rounds 21, reached, for 32400 -> unchanged true
        A visit is not reached while the loop guard delays its result.
            Servicing, visit Servicing 1, says Next, rounds 21, for 0 -> Stay(LoopGuard), visit Pending 1

        A pause stops every transition, action, retry and resumption, and a result waits.
            Running, newly desired End | seen Start | revision 8 | task Absent | task Due, paused -> Stay(Paused)
            Running, says Stay | fails | fails permanently, paused -> Stay(Paused)
            End, newly desired Running, paused -> Stay(Paused)
            nothing, paused -> Stay(Paused)
        A pause does not change a decision to stand.
            Running, paused -> Stay(Settled)
            Running, task Running, paused -> Stay(Running)
        A desired state set during a pause is recorded at once.
            Failed, newly desired Running, paused -> desired Running 5
            Failed, desired Running 5 -> Running by Child for DesiredState
        ",
    );
}
