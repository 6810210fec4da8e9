//! Every option is known and its value makes sense.
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

fn main() {}
