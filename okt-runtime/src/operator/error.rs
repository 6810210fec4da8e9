//! The errors that keep an operator from running.

use kube::runtime::watcher;
use okt_core::conditions::DECLARED_LIMIT;

use crate::crd::definition::CrdError;

/// An error that keeps an operator from running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// The API server refuses this client at the start, or the address is not that of an API server; only a change of
    /// the configuration helps.
    #[error("cannot reach the Kubernetes API")]
    NoContact(#[source] Box<kube::Error>),
    /// The declared types make no valid CRD; only a change of the code helps.
    #[error("cannot make the CRD")]
    Crd(#[from] CrdError),
    /// Namespaces were given for a cluster-scoped kind; leave them out.
    #[error("cannot watch {0} in some namespaces only: it is cluster-scoped")]
    ClusterScoped(String),
    /// The API server refuses the selector of [`labels`](crate::Operator::labels) or [`fields`](crate::Operator::fields); only a
    /// change of the selector helps, or a CRD that declares the field.
    #[error("cannot select the objects of kind {0} by `{1}`")]
    Selector(String, String, #[source] Box<watcher::Error>),
    /// A pass graph is declared as the lifecycle; only a change of the code helps.
    #[error(
        "cannot run a pass as a lifecycle: `{0}` is a pass graph; say `#[lifecycle(none)]` of the spec, and name the graph in `Application::pass`"
    )]
    Pass(&'static str),
    /// There is neither a lifecycle nor a pass; only a change of the code helps.
    #[error(
        "cannot run an application with neither a lifecycle nor a pass: name a graph in `Application::pass`"
    )]
    Nothing,
    /// A state takes arguments, and no kind of request gives them; only a change of the code helps.
    #[error(
        "cannot serve requests in {0}: no kind does; name it in `Application::requests`, `requests.serves::<..>()`"
    )]
    Unserved(&'static str),
    /// The lifecycle and the pass declare the same condition; only a change of the code helps.
    #[error(
        "cannot tell two conditions apart: `{0}` is declared by the lifecycle and by the pass; rename one"
    )]
    SameCondition(&'static str),
    /// Lifecycle and pass together declare more conditions than a status holds; only a change of the code helps.
    #[error(
        "cannot hold {0} conditions: the lifecycle and the pass may declare {DECLARED_LIMIT} together"
    )]
    ManyConditions(usize),
}
