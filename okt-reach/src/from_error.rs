//! Converts any error to a failure, so that `?` works in handlers.
//!
//! It is not in the file of [`Failure`](crate::Failure), because it uses the errors of `reach`, which use failures.

use std::error::Error;

use okt_core::reasons;
use okt_wire::texts::chain;

use crate::failure::Failure;

/// Any error, as the standard library, `anyhow` and `eyre` convert into it.
type AnyError = Box<dyn Error + Send + Sync>;

impl<E: Into<AnyError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        #[cfg(feature = "reach")]
        if let Some(failure) = crate::reach::failure_of(&*error) {
            return failure;
        }
        Self::retry(reasons::ERROR, chain(&*error))
    }
}

/// Says why an error is a failure, and whether a retry helps: `result.permanent("BadSize")?`.
///
/// Plain `?` makes any error a failure that is retried, with the reason `Error`.
///
/// ```
/// use okt::{Failure, ResultExt};
///
/// fn gibibytes(storage: &str) -> Result<u32, Failure> {
///     storage.trim_end_matches("Gi").parse().permanent("BadSize")
/// }
/// let failure = gibibytes("lots").unwrap_err();
/// assert!(failure.is_permanent());
/// assert_eq!(failure.to_string(), "BadSize: invalid digit found in string");
/// ```
pub trait ResultExt<T> {
    /// Converts an error into a failure that a retry may fix, with this reason; OKT retries with backoff.
    ///
    /// # Errors
    ///
    /// The error, as a failure.
    fn retry(self, reason: &str) -> Result<T, Failure>;

    /// Converts an error into a failure that only a change of the spec can fix, with this reason.
    ///
    /// # Errors
    ///
    /// The error, as a failure.
    fn permanent(self, reason: &str) -> Result<T, Failure>;
}

impl<T, E: Into<AnyError>> ResultExt<T> for Result<T, E> {
    fn retry(self, reason: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::retry(reason, chain(&*error.into())))
    }

    fn permanent(self, reason: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure::permanent(reason, chain(&*error.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("open the door")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("the key is lost")]
    struct Inner;

    fn converted<E: Into<AnyError>>(error: E) -> Failure {
        let fails = || -> Result<(), Failure> { Err(error)? };
        fails().expect_err("it fails")
    }

    #[test]
    fn a_failure_has_the_causes_of_its_error_in_its_message() {
        for failure in [
            converted(Outer(Inner)),
            converted(AnyError::from(Outer(Inner))),
            converted(anyhow::Error::from(Inner).context("open the door")),
            converted(eyre::Report::from(Inner).wrap_err("open the door")),
        ] {
            let expected = Failure::retry("Error", "open the door: the key is lost");
            assert_eq!(failure, expected);
        }
    }

    #[test]
    fn an_error_can_say_its_reason_and_that_a_retry_does_not_help() {
        let failed = || Err::<(), _>(anyhow::Error::from(Inner));
        let failure = failed().permanent("NoKey").expect_err("it fails");
        assert_eq!(failure, Failure::permanent("NoKey", "the key is lost"));
        let failure = failed().retry("NoKey").expect_err("it fails");
        assert_eq!(failure, Failure::retry("NoKey", "the key is lost"));
    }
}
