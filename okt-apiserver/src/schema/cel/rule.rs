//! A compiled CEL rule.

use std::fmt;

use kube::core::cel::cel::IdedExpr;

use super::used::Used;

/// One entry of `x-kubernetes-validations`.
pub(crate) struct CelRule {
    pub(super) expression: IdedExpr,
    pub(super) text: String,
    pub(super) message: Option<String>,
    pub(super) message_expression: Option<IdedExpr>,
    /// What its expressions use of a value.
    pub(super) used: Used,
    pub(super) reason: Reason,
    /// The path below the node that carries the rule (e.g. `.replicas`).
    pub(super) field_path: String,
    /// The rule uses `oldSelf`.
    pub(super) is_transition: bool,
    /// `oldSelf` is an optional, and the rule also runs without an old value.
    pub(super) is_optional: bool,
    /// The type of the values (e.g. `object`).
    pub(super) kind: &'static str,
}

/// The reason of a violated rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl fmt::Debug for CelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.text).finish()
    }
}
