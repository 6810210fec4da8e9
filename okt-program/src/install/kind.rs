//! A kind of a program, as the tools of others are told of it.

use okt_core::Graph;

/// A kind whose objects an operator of the program moves.
pub(crate) struct OperatedKind {
    pub(crate) group: String,
    /// The version in which the operator reads its objects.
    pub(crate) version: String,
    pub(crate) kind: String,
    /// The field of the spec with the desired state, and the graph; none if objects of the kind have no states.
    pub(crate) lifecycle: Option<(String, &'static Graph<'static>)>,
}
