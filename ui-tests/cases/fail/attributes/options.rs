//! Options that do not exist, and values that make no sense.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[trigger(Slow, after = "soon")]
    #[trigger(Broken, on_error(attempts = 0))]
    #[trigger(Changed, on_chang)]
    #[child(Running)]
    Start,

    #[rest(hodl)]
    #[trigger(Slow, after = "0s")]
    #[trigger(Broken, on_error(atempts = 3))]
    #[trigger(Changed, on_change, on_change)]
    #[child(End)]
    Running,

    #[trigger(Broken, after = 30)]
    #[child(End, soon)]
    Slow,

    #[trigger(Changed, on_give_up)]
    #[trigger(Slow, after = "30M")]
    #[child("End")]
    Broken,

    #[trigger(Broken, on_error(attempts = "3"))]
    #[condition]
    #[child]
    #[child(Self::End)]
    Changed,

    #[leaf(hold, idle = true)]
    #[was(Gone)]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    #[entry]
    #[trigger(Slow, on_error = 3)]
    #[trigger(Broken, after)]
    #[child(3)]
    #[child(+)]
    #[child(Running)]
    Start,

    #[rest]
    #[no_route(Slow)]
    #[no_route(Broken, reason = " ")]
    #[condition(Available, status = "Yes", status = "True")]
    #[trigger(Slow, on_error())]
    #[child(Broken, End)]
    Running,

    #[was]
    #[child(End)]
    Slow,

    #[was("Old", "Older")]
    #[child(End)]
    Broken,

    #[leaf]
    End,
}

fn main() {}
