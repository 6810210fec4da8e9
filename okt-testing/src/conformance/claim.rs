//! The assertions of behaviours, and [`Failure`].

use core::{fmt, panic::Location};
use std::{error::Error, time::Duration};

use kube::core::Status;
use tokio::time::{Instant, sleep};

/// The result of a check of a behaviour.
pub(super) type Outcome = Result<(), Failure>;

/// The interval of polling a server.
const POLL: Duration = Duration::from_millis(50);
/// How long a server may take for asynchronous work, e.g. garbage collection.
const PATIENCE: Duration = Duration::from_mins(2);

/// The error for a server that behaves differently, with its location in the suite.
#[derive(Debug)]
pub struct Failure {
    message: String,
    at: &'static Location<'static>,
}

impl Failure {
    /// Creates a failure at the line of the caller.
    #[track_caller]
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Location::caller(),
        }
    }

    /// Creates a failure from an error and its causes.
    #[track_caller]
    fn of(error: &dyn Error) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self::new(message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}:{})",
            self.message,
            self.at.file(),
            self.at.line()
        )
    }
}

impl Error for Failure {}

macro_rules! failures_of {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            #[track_caller]
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        })*
    };
}

failures_of!(
    kube::Error,
    kube::runtime::watcher::Error,
    kube::runtime::wait::Error,
    serde_json::Error,
    http::Error,
    core::num::ParseIntError,
);

/// An optional value that must be there.
pub(super) trait Given<T> {
    fn given(self) -> Result<T, Failure>;
}

impl<T> Given<T> for Option<T> {
    #[track_caller]
    fn given(self) -> Result<T, Failure> {
        match self {
            Some(value) => Ok(value),
            None => Err(Failure::new("a value is missing")),
        }
    }
}

/// Returns the `Status` of a refused request.
#[track_caller]
pub(super) fn refusal<T: fmt::Debug>(outcome: kube::Result<T>) -> Result<Status, Failure> {
    match outcome {
        Err(kube::Error::Api(status)) => Ok(*status),
        other => Err(Failure::new(format!("expected a refusal, got {other:?}"))),
    }
}

/// Polls until there is a result, for asynchronous work of the server.
#[track_caller]
pub(super) fn eventually<T, Asked>(
    what: &str,
    mut ask: impl FnMut() -> Asked,
) -> impl Future<Output = Result<T, Failure>>
where
    Asked: Future<Output = Result<Option<T>, Failure>>,
{
    let seconds = PATIENCE.as_secs();
    let late = Failure::new(format!("not within {seconds} s: {what}"));
    async move {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            if Instant::now() >= deadline {
                return Err(late);
            }
            sleep(POLL).await;
        }
    }
}

/// Requires a condition.
macro_rules! ensure {
    ($condition:expr $(,)?) => {
        ensure!($condition, "it does not hold: {}", stringify!($condition))
    };
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Failure::new(format!($($message)+)));
        }
    };
}

/// Requires that two values are equal: first the actual value, then the expected value.
macro_rules! ensure_eq {
    ($left:expr, $right:expr $(,)?) => {
        ensure_eq!($left, $right, "{}", stringify!($left))
    };
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => if !(*left == *right) {
                let what = format!($($message)+);
                return Err($crate::conformance::Failure::new(format!(
                    "{what}\n  is:       {left:?}\n  expected: {right:?}\n "
                )));
            },
        }
    };
}

/// Requires that two values differ.
macro_rules! ensure_ne {
    ($left:expr, $right:expr $(,)?) => {
        match (&$left, &$right) {
            (left, right) => {
                if *left == *right {
                    return Err($crate::conformance::Failure::new(format!(
                        "{} and {} are both {left:?}",
                        stringify!($left),
                        stringify!($right)
                    )));
                }
            }
        }
    };
}

/// Lists the behaviours of a theme; those without a number are `further`.
macro_rules! behaviours {
    ($theme:literal: $($number:tt $check:ident,)*) => {
        pub(super) const BEHAVIOURS: &[$crate::conformance::Behaviour] = &[$(
            $crate::conformance::Behaviour {
                number: behaviours!(@ $number),
                theme: $theme,
                name: stringify!($check),
                check: |world| Box::pin($check(world)),
            },
        )*];
    };
    (@ further) => { None };
    (@ $number:literal) => { Some($number) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Outcome {
        ensure_eq!(1 + 1, 3);
        Ok(())
    }

    #[test]
    fn a_failure_shows_both_values_and_the_location() {
        let text = one().map_err(|failure| failure.to_string());
        let start = "1 + 1\n  is:       2\n  expected: 3\n  (";
        assert!(
            matches!(&text, Err(text) if text.starts_with(start) && text.contains("claim.rs:")),
            "{text:?}"
        );
    }

    #[test]
    fn an_error_is_reported_at_the_line_that_returned_it() {
        let outcome = (|| -> Outcome {
            "x".parse::<u8>()?;
            Ok(())
        })();
        let line = line!() - 3;
        let text = outcome.map_err(|failure| failure.to_string());
        let end = format!("claim.rs:{line})");
        assert!(
            matches!(&text, Err(text) if text.ends_with(&end)),
            "{text:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn eventually_fails_after_the_time_limit() {
        let never = || async { Ok(None::<()>) };
        let outcome = eventually("it comes", never).await;
        assert!(outcome.is_err_and(|failure| {
            failure
                .to_string()
                .starts_with("not within 120 s: it comes")
        }));
    }
}
