//! [`Context`]: the facts about an operator that its objects do not show.

use jiff::Timestamp;

use super::rule::{Violation, rule};

/// The facts that the rules need in addition to the objects.
///
/// # Examples
///
/// ```
/// use okt_view::conditions::Context;
///
/// // The conditions of a certificate operator; another controller writes the condition of a mesh.
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
    /// Creates a context with only the rules that hold for every operator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds condition types that every object has once the operator has written its status.
    #[must_use]
    pub fn declares(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.declared.extend(types.into_iter().map(Into::into));
        self
    }

    /// Sets the condition types that belong to the operator; all others belong to other controllers.
    /// Without this call all types belong to the operator.
    #[must_use]
    pub fn owns(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let owned = self.owned.get_or_insert_default();
        owned.extend(types.into_iter().map(Into::into));
        self
    }

    /// Declares that the operator has nothing left to do for the object.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.settled = true;
        self
    }

    /// Sets the current time; later times are in the future.
    #[must_use]
    pub fn now(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Limits the status to this many bytes as compact JSON.
    #[must_use]
    pub fn status_limit(mut self, bytes: usize) -> Self {
        self.status_limit = Some(bytes);
        self
    }

    /// Leaves out the rule of this name (e.g. `D07`).
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
