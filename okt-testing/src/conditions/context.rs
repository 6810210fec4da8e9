//! This file says what a checker cannot see in an object.

use jiff::Timestamp;

use super::rule::{Violation, rule};

/// What the rules need to know beside the objects.
///
/// # Examples
///
/// ```
/// use okt_testing::conditions::Context;
///
/// // What an operator of certificates declares; somebody else writes the condition of a mesh.
/// let context = Context::new().declares(["Ready", "Issued"]).owns(["Ready", "Issued", "Reconciling", "Stalled"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub(super) declared: Vec<String>,
    pub(super) owned: Option<Vec<String>>,
    pub(super) settled: bool,
    pub(super) now: Option<Timestamp>,
    pub(super) status_limit: Option<usize>,
    left_out: Vec<&'static str>,
}

impl Context {
    /// Nothing is known but what Kubernetes asks of everybody.
    pub fn new() -> Self {
        Self::default()
    }

    /// These condition types are on every object that was visited once.
    #[must_use]
    pub fn declares(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.declared.extend(types.into_iter().map(Into::into));
        self
    }

    /// These condition types are the operator's own, and all others somebody else's; without this
    /// all are its own.
    #[must_use]
    pub fn owns(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let owned = self.owned.get_or_insert_default();
        owned.extend(types.into_iter().map(Into::into));
        self
    }

    /// The operator has nothing left to do about the object.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.settled = true;
        self
    }

    /// What time it is; times after it are in the future.
    #[must_use]
    pub fn now(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// The status has at most so many bytes as compact JSON.
    #[must_use]
    pub fn status_limit(mut self, bytes: usize) -> Self {
        self.status_limit = Some(bytes);
        self
    }

    /// Does not judge by the rule of this name (e.g. `D07`).
    ///
    /// # Panics
    ///
    /// No rule has this name.
    #[must_use]
    pub fn without(mut self, id: &str) -> Self {
        assert!(
            super::RULES.iter().any(|rule| rule.id == id),
            "no rule is called {id}"
        );
        self.left_out.push(rule(id).id);
        self
    }

    pub(super) fn is_own(&self, name: &str) -> bool {
        let owned = self.owned.as_ref();
        owned.is_none_or(|owned| owned.iter().any(|own| own == name))
    }

    pub(super) fn leave_out(&self, found: &mut Vec<Violation>) {
        found.retain(|violation| !self.left_out.contains(&violation.rule.id));
    }
}
