//! The parts of a spec in `on_change(..)`.
use okt_macros::lifecycle_graph;

pub struct Disk {
    pub size: u32,
}

pub struct AppSpec {
    pub version: String,
    pub disk: Disk,
}

impl AppSpec {
    pub fn major(&self) -> u32 {
        1
    }
}

#[lifecycle_graph(crate(okt_core), spec(AppSpec))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misspelt {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[trigger(Start, on_change(verison, disk.sise, majr()))]
    #[child(End)]
    Running,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithoutSpec {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[trigger(Start, on_change(version))]
    #[child(End)]
    Running,

    #[leaf]
    End,
}

#[lifecycle_graph(crate(okt_core), spec = AppSpec)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoParts {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[trigger(Start, on_change())]
    #[trigger(Other, on_change(version, 7))]
    #[trigger(Third, on_change(major(1)))]
    #[trigger(Fourth, on_change = "version")]
    #[trigger(Fifth, on_change(version, version))]
    #[child(End)]
    Running,

    #[child(End)]
    Other,

    #[child(End)]
    Third,

    #[child(End)]
    Fourth,

    #[child(End)]
    Fifth,

    #[leaf]
    End,
}

fn main() {}
