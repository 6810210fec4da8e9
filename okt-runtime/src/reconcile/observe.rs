//! Calls of the application's code that ask for its state and for its own fields of the status.

use okt_core::StateId;
use okt_core::facts::Observed;
use okt_core::machine::{ExtraResult, ObservationResult};
use okt_core::{Lifecycle, reasons};
use okt_reach::Failure;
use okt_wire::limits::FAILURE_LIMIT;
use okt_wire::object::LifecycleObject;
use okt_wire::texts::{cut, seconds};

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::author::asked::Unanswered;
use crate::author::observation::Observation;

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
        if counts_as == Observed::Unobserved {
            String::new()
        } else {
            self.words
        }
    }
}

impl<A: Application> Reconciliation<'_, A> {
    /// Asks the application for its state; a call that hangs or panics counts as a failed observation.
    ///
    /// An application that did not answer is not called before its backoff ends, whatever happens to the object meanwhile.
    pub(super) async fn sighting(&self, calls: bool) -> Sighting {
        let application = &*self.shared.application;
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
        let answer = self.asker().ask(limit, application.observe(&self.cx)).await;
        let outcome = match answer {
            Ok(outcome) => outcome,
            Err(Unanswered::Panicked(text)) => Err(Failure::retry(reasons::PANICKED, text)),
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

    /// Asks the application for its own fields of the status, once for each state of the object. The previous ones stay
    /// on a failure, or if it is not to be asked.
    pub(super) async fn ask_extra(&mut self, asks: bool) -> ExtraResult {
        if self.extra.is_some() {
            return ExtraResult::NotAsked;
        }
        let before = self.object.status_of().map(|status| status.extra.clone());
        self.extra = Some(before.unwrap_or_default());
        if !asks {
            return ExtraResult::NotAsked;
        }
        let application = &*self.shared.application;
        let question = application.extra(&self.cx);
        let answer = self.asker().ask(application.answer_limit(), question).await;
        let (why, result) = match answer {
            Ok(Ok(extra)) => {
                self.extra = Some(extra);
                return ExtraResult::Answered;
            }
            Ok(Err(failure)) => (failure.to_string(), ExtraResult::Answered),
            Err(unanswered @ Unanswered::TimedOut(_)) => {
                (unanswered.to_string(), ExtraResult::TimedOut)
            }
            Err(unanswered @ Unanswered::Panicked(_)) => {
                (unanswered.to_string(), ExtraResult::NotAsked)
            }
        };
        tracing::warn!("cannot compute the extra status: {why}");
        result
    }
}
