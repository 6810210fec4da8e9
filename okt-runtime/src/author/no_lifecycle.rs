//! A resource without a lifecycle: its operator runs a pass and stores no position.

use okt_core::routes::Routes;
use okt_core::{Answer, Dispatch, Graph, Kind, Lifecycle, NoGate, SpecParts, StateId};
use okt_reach::Failure;
use okt_wire::desired::Desired;
use okt_wire::status::Status;

use crate::author::application::Application;
use crate::author::context::Action;

/// The states of a resource without a lifecycle: there are none.
///
/// For a spec without a field `Desired<..>`: `#[derive(LifecycleSpec)]` with `#[lifecycle(none)]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoLifecycle {}

/// The status of a resource without a lifecycle, for `#[kube(status = "PassStatus")]`.
pub type PassStatus<Extra = ()> = Status<NoLifecycle, Extra>;

impl NoLifecycle {
    /// Returns the desired state of a spec without a lifecycle; for derived code.
    #[doc(hidden)]
    pub fn desired() -> &'static Desired<Self> {
        const NONE: &Desired<NoLifecycle> = &Desired::NONE;
        NONE
    }
}

impl<S: ?Sized> SpecParts<S> for NoLifecycle {}

impl Lifecycle for NoLifecycle {
    type Gate = NoGate;

    const GRAPH: &'static Graph<'static> = &Graph {
        name: "NoLifecycle",
        doc: "",
        kind: Kind::Pass,
        parts: &[],
        gates: &[],
        states: &[],
        routes: Routes::NONE,
    };

    fn id(self) -> StateId {
        match self {}
    }

    fn from_id(_: StateId) -> Option<Self> {
        None
    }
}

impl<A: Application> Dispatch<A> for NoLifecycle {
    type Context = Action<A::Resource>;
    type Error = Failure;

    async fn dispatch(self, _: &A, _: &Self::Context) -> Result<Answer, Failure> {
        match self {}
    }
}
