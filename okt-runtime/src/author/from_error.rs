//! Converts any error to a failure, so that `?` works in handlers.
//!
//! It is not in the file of [`Failure`](crate::Failure), because it uses the errors of `reach`, which use failures.

use std::error::Error;

use crate::failure::Failure;
use crate::texts::chain;

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        #[cfg(feature = "reach")]
        if let Some(failure) = crate::reach::failure_of(&error) {
            return failure;
        }
        Self::retry("Error", chain(&error))
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

    #[test]
    fn a_failure_has_the_causes_of_its_error_in_its_message() {
        let failure = Failure::from(Outer(Inner));
        assert_eq!(failure.message(), "open the door: the key is lost");
        assert!(!failure.is_permanent());
    }
}
