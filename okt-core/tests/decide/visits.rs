//! Visits, and their outcomes.

#[test]
fn visits() {
    crate::decides(
        "
        A visit comes before the desired state, which is kept during and after it.
            Running, newly desired End, new visit Servicing -> Servicing by Child for Visit
            Servicing, visit Servicing 1, says Next -> Running by Child for DesiredState
        A new visit is recorded under the number before a transition.
            Running, task Running, new visit Servicing -> visit Pending 5
            Running, new visit Servicing -> transition 6, visit Pending 5
        A holding state is left only for a visit made after the arrival.
            Failed, desired Failed 1, visit Servicing 4 -> Stay(Settled)
            Failed, desired Failed 1, visit Servicing 5 -> Servicing by Child for Visit
        An older visit does not hide a desired state that leads out of a holding state.
            Failed, visit Servicing 1, newly desired End -> Stopping by Child for DesiredState
        A visit is reached when its action succeeded.
            Servicing, visit Servicing 1, says Next | names End -> visit Reached 1
        It is not reached by failing, waiting or naming a trigger.
            Servicing, visit Servicing 1, fails permanently | fails | says Wait -> visit Pending 1
            Servicing, visit Servicing 1, names Failed | names Start -> visit Pending 1
            Servicing, visit Servicing 1 -> visit Pending 1
        It is reached only by an action of a later transition than its own.
            Servicing, says Next, visit Servicing 5 -> visit Pending 5
            Servicing, says Next, new visit Servicing -> visit Pending 5
        A visit that was made is not made again.
            Running, visit Servicing 5, made Reached -> Stay(Settled), visit Reached 5
            Running, visit Servicing 5, made Refused -> Stay(Settled), visit Refused 5
            Running, visit Servicing 5, made Overtaken -> Stay(Settled), visit Overtaken 5
            Running, visit Servicing 5, made NotReplayed -> Stay(Settled), visit NotReplayed 5
        A visit to a state that is no visit is refused.
            Start, task Running, new visit Stopping | new visit Nope -> visit Refused 5
        A visit that is removed from the spec is overtaken, but a reached one stays reached.
            Running, visit Servicing 5, no visit -> Stay(Settled), visit Overtaken 5
            Running, visit Servicing 2, made Reached, no visit -> visit Reached 2
        A newer visit replaces an older one.
            Running, visit Servicing 2, new visit Servicing, task Running -> visit Pending 5
        A deletion makes no visit, and does not change a recorded one.
            Running, new visit Servicing, deleting -> Stopping by Child for Deletion
            Servicing, visit Servicing 1, says Next, deleting -> visit Pending 1
        A visit whose action failed permanently stays pending.
            Servicing, visit Servicing 1, work Failed -> Stay(Failed), visit Pending 1
        A visit without a route from the resting state is refused, by the write that ends the work if there is one.
            graph: entry A >V | visit V >Up >End | rest Up >End -V | leaf End
            Up, desired Up 1, new visit V -> Stay(Settled), visit Refused 5
            Up, desired Up 1, new visit V, says Stay -> visit Refused 5
            Up, newly desired End, new visit V -> visit Pending 5
            Up, newly desired End, desired Up 1, task Running, new visit V -> visit Pending 5
        A visit to a resting state is refused.
            graph: entry A >B | rest B >C >D | rest C >D | leaf D
            B, new visit C -> Stay(Settled), visit Refused 5
        ",
    );
}
