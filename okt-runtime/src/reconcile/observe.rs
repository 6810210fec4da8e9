//! Calls of the application's code that ask for its state and for its own fields of the status.

use okt_core::StateId;
use okt_core::facts::Observed;
use okt_core::machine::{ExtraResult, ObservationResult};
use okt_core::{Lifecycle, reasons};

use crate::author::application::{Application, ExtraOf, StateOf};
use crate::author::asked::{CallGuard, Unanswered};
use crate::author::context::Context;
use crate::author::observation::Observation;
use crate::failure::Failure;
use crate::texts::{cut, seconds};
use crate::wire::limits::FAILURE_LIMIT;
use crate::wire::object::LifecycleObject;

/// An observation, for the machine and for people.
pub(crate) struct Sighting {
    pub(crate) result: ObservationResult,
    /// The states that it named as events.
    pub(crate) events: Vec<StateId>,
    words: String,
}

impl Sighting {
    /// Takes the outcome of an observation.
    pub(crate) fn of<S: Lifecycle>(outcome: Result<Observation<S>, Failure>) -> Self {
        let (result, words, events) = match outcome {
            Ok(observation) => {
                let (result, words) = observation.result();
                (
                    result,
                    words,
                    observation.events().map(Lifecycle::id).collect(),
                )
            }
            Err(failure) => (ObservationResult::Failed, failure.to_string(), Vec::new()),
        };
        Self {
            result,
            events,
            words: cut(&words, FAILURE_LIMIT),
        }
    }

    /// Returns the observation as text, if it counts as this: one that does not count has no words.
    pub(crate) fn into_words(self, counts_as: Observed) -> String {
        match counts_as {
            Observed::Unobserved => String::new(),
            Observed::In(_)
            | Observed::Absent
            | Observed::Unforeseen
            | Observed::Unreachable { .. }
            | Observed::Failed { .. } => self.words,
        }
    }
}

/// Observes the application; a call that hangs or panics counts as a failed observation.
///
/// An application that did not answer is not called before its backoff ends, whatever happens to the object meanwhile.
pub(crate) async fn observe<A: Application>(
    asker: &CallGuard<'_, A::Resource>,
    application: &A,
    cx: &Context<A::Resource>,
    calls: bool,
) -> Sighting {
    let limit = application.answer_limit();
    let timed_out = |result: ObservationResult| Sighting {
        result,
        ..Sighting::of(Ok(Observation::<StateOf<A>>::unreachable(
            Unanswered::TimedOut(limit),
        )))
    };
    if !calls {
        return timed_out(ObservationResult::Silent);
    }
    let outcome = match asker.ask(limit, application.observe(cx)).await {
        Ok(outcome) => outcome,
        Err(Unanswered::Panicked(said)) => Err(Failure::retry(reasons::PANICKED, said)),
        Err(Unanswered::TimedOut(_)) => {
            tracing::warn!("cannot observe: no answer within {}", seconds(limit));
            return timed_out(ObservationResult::TimedOut);
        }
    };
    if let Err(failure) = &outcome {
        tracing::warn!("cannot observe: {failure}");
    }
    Sighting::of(outcome)
}

/// Computes the fields that the application adds to the status; returns the previous ones on a failure, or if it is not
/// to be asked.
pub(crate) async fn extra<A: Application>(
    asker: &CallGuard<'_, A::Resource>,
    application: &A,
    cx: &Context<A::Resource>,
    asks: bool,
) -> (ExtraOf<A>, ExtraResult) {
    let status = cx.object().status_of();
    let before = || {
        status
            .map(|status| status.extra.clone())
            .unwrap_or_default()
    };
    if !asks {
        return (before(), ExtraResult::NotAsked);
    }
    let limit = application.answer_limit();
    let (why, result) = match asker.ask(limit, application.extra(cx)).await {
        Ok(Ok(extra)) => return (extra, ExtraResult::Answered),
        Ok(Err(failure)) => (failure.to_string(), ExtraResult::Answered),
        Err(unanswered @ Unanswered::TimedOut(_)) => {
            (unanswered.to_string(), ExtraResult::TimedOut)
        }
        Err(unanswered @ Unanswered::Panicked(_)) => {
            (unanswered.to_string(), ExtraResult::NotAsked)
        }
    };
    tracing::warn!("cannot compute the extra status: {why}");
    (before(), result)
}
