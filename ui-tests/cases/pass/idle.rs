//! A graph without work has a handler trait without methods.
#![deny(warnings)]

use okt_core::{Dispatch, Lifecycle};
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Light {
    #[entry]
    #[rest(idle)]
    #[child(On)]
    #[child(Gone)]
    Off,

    #[rest(idle)]
    #[child(Off)]
    On,

    #[leaf(idle)]
    Gone,
}

struct Lights;

impl LightHandler for Lights {
    type Context = ();
    type Error = ();
}

fn dispatched<S: Dispatch<Lights, Context = (), Error = ()>>() -> usize {
    S::GRAPH.states.len()
}

fn main() {
    assert_eq!(dispatched::<Light>(), 3);
    assert_eq!(Light::from_id(Light::On.id()), Some(Light::On));
}
