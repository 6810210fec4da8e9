//! What an application says about an object before the API server stores it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use okt_wire::object::LifecycleObject;
use okt_wire::texts::panic_text;

/// How an application checks and completes objects.
///
/// With the feature `webhooks` of `okt`, the API server asks before it stores an object whose spec is new. The operator
/// does the same with every object that it reads: one that came past a missing webhook is completed, or reported as
/// `Invalid` and not acted upon.
/// Both functions depend on the object alone; what needs the cluster belongs into a handler.
///
/// ```
/// # use okt::{Admission, Validation};
/// # struct Spec { people: u8, stoves: u8, site: String }
/// # struct Tent { spec: Spec }
/// # fn example(admission: Admission<Tent>) -> Admission<Tent> {
/// fn validate(old: Option<&Tent>, new: &Tent) -> Validation {
///     let mut validation = Validation::default();
///     if new.spec.people == 0 {
///         validation.refuse("spec.people", "a tent is for somebody");
///     }
///     if old.is_some_and(|old| old.spec.site != new.spec.site) {
///         validation.warn("its guests look for it at the site before");
///     }
///     validation
/// }
///
/// fn complete(tent: &mut Tent) {
///     if tent.spec.stoves == 0 {
///         tent.spec.stoves = tent.spec.people.div_ceil(4);
///     }
/// }
///
/// admission.validated_by(validate).completed_by(complete)
/// # }
/// ```
pub struct Admission<K> {
    validate: Option<fn(Option<&K>, &K) -> Validation>,
    complete: Option<fn(&mut K)>,
}

impl<K> Default for Admission<K> {
    fn default() -> Self {
        Self {
            validate: None,
            complete: None,
        }
    }
}

impl<K> Clone for Admission<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Admission<K> {}

impl<K> Admission<K> {
    /// Refuses objects, and warns of them. The function gets the object before, if there is one, and after a change.
    ///
    /// An object that is not changed comes as both: so the operator checks what is stored. An object that is being
    /// deleted is not checked.
    #[must_use]
    pub fn validated_by(self, validate: fn(Option<&K>, &K) -> Validation) -> Self {
        Self {
            validate: Some(validate),
            ..self
        }
    }

    /// Completes objects by defaults that depend on other fields. The function must change nothing the second time.
    #[must_use]
    pub fn completed_by(self, complete: fn(&mut K)) -> Self {
        Self {
            complete: Some(complete),
            ..self
        }
    }

    /// Returns whether objects are validated.
    pub const fn validates(&self) -> bool {
        self.validate.is_some()
    }

    /// Returns whether objects are completed.
    pub const fn completes(&self) -> bool {
        self.complete.is_some()
    }

    /// Validates an object.
    ///
    /// # Errors
    ///
    /// If the function panics; only another release helps.
    pub fn validation(&self, old: Option<&K>, new: &K) -> Result<Validation, String> {
        let Some(validate) = self.validate else {
            return Ok(Validation::default());
        };
        guarded(|| validate(old, new))
    }

    /// Completes an object.
    ///
    /// # Errors
    ///
    /// If the function panics; only another release helps. The object may be half complete.
    pub fn complete(&self, object: &mut K) -> Result<(), String> {
        self.complete
            .map_or(Ok(()), |complete| guarded(|| complete(object)))
    }
}

impl<K: LifecycleObject> Admission<K> {
    /// Completes an object that is stored, and validates it, unless it is being deleted.
    ///
    /// # Errors
    ///
    /// Why it is not to be acted upon; a retry helps once the object has changed.
    pub fn admit(&self, object: Arc<K>) -> Result<Arc<K>, String> {
        let object = self.completed(object)?;
        if !self.validates() || object.meta().deletion_timestamp.is_some() {
            return Ok(object);
        }
        match self.validation(Some(&object), &object)?.refusal() {
            Some(why) => Err(why),
            None => Ok(object),
        }
    }

    /// Completes an object that came past the webhook.
    pub(crate) fn completed(&self, object: Arc<K>) -> Result<Arc<K>, String> {
        if !self.completes() {
            return Ok(object);
        }
        let mut complete = (*object).clone();
        self.complete(&mut complete)?;
        Ok(Arc::new(complete))
    }
}

/// Runs code of the author, which may panic.
fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| panic_text(&*panic))
}

/// What is wrong with an object, and what its user should know.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Validation {
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Validation {
    /// Refuses the object because of a field (e.g. `spec.people`).
    pub fn refuse(&mut self, field: &str, why: &str) {
        self.errors.push(format!("{field}: {why}"));
    }

    /// Warns the user, whether the object is refused or not. `kubectl` shows each warning as a line.
    pub fn warn(&mut self, what: impl Into<String>) {
        self.warnings.push(what.into());
    }

    /// Returns why the object is refused; none if it is not.
    pub fn refusal(&self) -> Option<String> {
        (!self.errors.is_empty()).then(|| self.errors.join("; "))
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
