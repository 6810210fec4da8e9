//! All mistakes of a graph in one build, in source order, each on its own token.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core), modul = "life")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[trigger(Failed, on_error(atempts = 3))]
    #[trigger(Stay, after = "soon")]
    #[trigger(Failed)]
    #[child(Running)]
    #[child(Running)]
    Start,

    #[rest]
    #[visit]
    #[condition(ready)]
    #[condition(Available, reason = "in service")]
    #[child(Running)]
    #[child(Stoping)]
    Running,

    #[was("Start")]
    #[child(End)]
    Stopping,

    #[entry]
    #[child(End)]
    Failed,

    Stay,

    #[leaf(hold)]
    #[child(Start)]
    End { code: i32 },
}

fn main() {}
