//! Arguments of visits that cannot be read, that are no types, or that two visits take.
use okt_macros::lifecycle_graph;

struct Args;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[rest]
    #[child(NoType)]
    #[child(NoValue)]
    #[child(Text)]
    #[child(Unknown)]
    #[child(Literal)]
    #[child(Twice)]
    #[child(Visited)]
    #[child(One)]
    #[child(Other)]
    #[child(End)]
    Running,

    #[visit(args = 3, result = "Found")]
    #[child(Running)]
    NoType,

    #[visit(args, result(Args))]
    #[child(Running)]
    NoValue,

    #[visit(args = "Args")]
    #[child(Running)]
    Text,

    #[visit(arg = Vec<(u8, u8)>)]
    #[child(Running)]
    Unknown,

    #[visit("Args")]
    #[child(Running)]
    Literal,

    #[visit(args = Vec<u8>, args = Vec<u16>)]
    #[child(Running)]
    Twice,

    #[visit(args = Vec<u32>)]
    #[visit]
    #[child(Running)]
    Visited,

    #[visit(args = Args)]
    #[child(Running)]
    One,

    #[visit(args = Args)]
    #[trigger(Running, on_abort = 3)]
    #[child(End)]
    Other,

    #[leaf(idle)]
    End,
}

fn main() {}
