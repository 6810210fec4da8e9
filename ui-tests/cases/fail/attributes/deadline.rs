//! A deadline over several states, with mistakes.
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[deadline(Late, after = "1h")]
#[deadline(Late, over(Start))]
#[deadline(Late, after = "0s", over(Start))]
#[deadline(Late, after = "2h", over(Start, "Slow", End, Late))]
#[deadline]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(Slow)]
    Start,

    #[deadline(Late, after = "1h", over(Start))]
    #[child(End)]
    Slow,

    #[rest(hold, idle)]
    #[child(End)]
    Late,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[deadline(Lat, after = "1h", over(Start, Slo))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misspelt {
    #[entry]
    #[trigger(Late, after = "5m", on_error)]
    #[trigger(Lost, after = "5m", on_error)]
    #[child(End)]
    Start,

    #[rest(hold, idle)]
    #[no_route(Strat, reason = "it is started once")]
    #[child(End)]
    Late,

    #[leaf]
    End,
}

fn main() {}
