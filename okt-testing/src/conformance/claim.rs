//! This file is how a behaviour says what must be, and where it was not.

use core::{fmt, panic::Location};
use std::{error::Error, time::Duration};

use kube::core::Status;
use tokio::time::{Instant, sleep};

/// What a check of a behaviour comes to.
pub(super) type Outcome = Result<(), Failure>;

/// How often a server is asked again.
const POLL: Duration = Duration::from_millis(50);
/// How long a server may take for what it does some time after the request, e.g. the collection of
/// garbage.
const PATIENCE: Duration = Duration::from_secs(40);

/// The server behaved otherwise.
#[derive(Debug)]
pub struct Failure {
    message: String,
    at: &'static Location<'static>,
}

impl Failure {
    /// A failure at the line of the caller.
    #[track_caller]
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Location::caller(),
        }
    }

    /// An error with its causes.
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

/// What must be there.
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

/// What the API refused.
#[track_caller]
pub(super) fn refusal<T: fmt::Debug>(outcome: kube::Result<T>) -> Result<Status, Failure> {
    match outcome {
        Err(kube::Error::Api(status)) => Ok(*status),
        other => Err(Failure::new(format!("expected a refusal, got {other:?}"))),
    }
}

/// Asks until there is an answer; for what a server does some time after the request.
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

/// Says what must hold.
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

/// Says what must be equal: what there is first, what is expected second.
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

/// Says what must differ.
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
    fn a_failure_says_what_is_what_was_expected_and_where() {
        let text = one().map_err(|failure| failure.to_string());
        let start = "1 + 1\n  is:       2\n  expected: 3\n  (";
        assert!(
            matches!(&text, Err(text) if text.starts_with(start) && text.contains("claim.rs:")),
            "{text:?}"
        );
    }

    #[test]
    fn an_error_is_reported_at_the_line_that_gave_it_up() {
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
    async fn patience_ends() {
        let never = || async { Ok(None::<()>) };
        let outcome = eventually("it comes", never).await;
        assert!(
            outcome
                .is_err_and(|failure| failure.to_string().starts_with("not within 40 s: it comes"))
        );
    }
}
