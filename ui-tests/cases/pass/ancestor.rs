//! The graph of OKT's ancestor, with nothing added but `#[rest]` and `#[visit]`.
use okt_core::{Event, Lifecycle};
use okt_macros::lifecycle_graph;

#[lifecycle_graph(crate(okt_core))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum App {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[child(Servicing)]
    #[child(Stopping)]
    Running,

    #[visit]
    #[child(Running)]
    #[child(End)]
    Servicing,

    #[child(End)]
    Stopping,

    #[leaf]
    End,
}

fn main() {
    let next = |from: App, event| App::GRAPH.next(from.id(), &[event]).and_then(App::from_id);
    assert_eq!(next(App::Start, Event::Next), Some(App::Running));
    assert_eq!(next(App::Running, Event::Next), Some(App::Stopping));
    assert_eq!(next(App::Running, Event::To(App::Servicing.id())), Some(App::Servicing));
    assert_eq!(next(App::Running, Event::To(App::End.id())), None);
    let answer = app::AfterRunning::Servicing;
    assert!(matches!(answer, app::AfterRunning::Servicing), "{answer:?}");
}
