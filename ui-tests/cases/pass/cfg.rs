//! Variants and edges that `#[cfg]` and `#[cfg_attr]` take away or bring in.
use okt_core::Lifecycle;
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[cfg_attr(any(), child(Gone))]
    #[cfg_attr(all(), trigger(Failed, after = "1h"))]
    #[child(End)]
    Running,

    #[cfg(any())]
    #[child(Nowhere)]
    Gone,

    #[cfg_attr(all(), child(End))]
    Failed,

    #[leaf(idle)]
    End,
}

fn main() {
    let names: Vec<&str> = Life::GRAPH.states.iter().map(|state| state.name).collect();
    assert_eq!(names, ["Start", "Running", "Failed", "End"]);
    assert!(Life::GRAPH.states[1].trigger_to(Life::Failed.id()).is_some());
    assert_eq!(okt_core::Answer::To(Life::Failed.id()), life::AfterRunning::Failed.into());
}
