//! Calls `observe` and `extra` of the application. Whatever they do, the reconciliation continues.

use std::time::Duration;

use kube::Resource;
use okt_core::facts::Observed;
use okt_core::reconcile::ObservedFacts;
use okt_core::{Lifecycle, StateId, reasons};

use crate::author::application::{Application, ExtraOf, StateOf};
use crate::author::asked::{Asker, Sight, Silence, Unanswered};
use crate::author::context::Context;
use crate::author::observation::Observation;
use crate::failure::Failure;
use crate::texts::{cut, seconds};
use crate::wire::limits::FAILURE_LIMIT;
use crate::wire::object::LifecycleObject;
use crate::wire::read;

/// The first backoff after a call without an answer, if the application sets no interval.
const USUAL: Duration = Duration::from_secs(30);

/// The observation of one reconciliation.
pub(crate) struct Findings {
    pub(crate) observed: Observed,
    /// The observation as text, for people.
    pub(crate) words: String,
    /// The states that the observation named as events.
    pub(crate) events: Vec<StateId>,
    /// A write has acted upon it.
    pub(crate) spent: bool,
}

impl Findings {
    /// Returns the findings, for a decision.
    pub(crate) fn facts(&self) -> ObservedFacts<'_> {
        ObservedFacts {
            observed: Some(self.observed),
            events: &self.events,
            spent: self.spent,
        }
    }

    /// Returns findings without an observation.
    pub(crate) fn nothing() -> Self {
        Self {
            observed: Observed::Unobserved,
            words: String::new(),
            events: Vec::new(),
            spent: false,
        }
    }

    /// Takes the outcome of an observation. `in_state` is the time since the object entered its state.
    pub(crate) fn of<S: Lifecycle>(
        outcome: Result<Observation<S>, Failure>,
        sight: &mut Sight,
        in_state: Duration,
    ) -> Self {
        let failed = match &outcome {
            Ok(observation) => observation.is_unreachable(),
            Err(_) => true,
        };
        sight.failed = if failed {
            sight.failed.saturating_add(1)
        } else {
            0
        };
        match outcome {
            Ok(observation) => Self::at(&sight.counted(observation, in_state), sight.failed),
            Err(failure) => Self {
                observed: Observed::Failed {
                    failures: sight.failed,
                },
                words: cut(&failure.to_string(), FAILURE_LIMIT),
                ..Self::nothing()
            },
        }
    }

    /// Returns the findings of an observation; `failed` is the number of failed observations in a row.
    fn at<S: Lifecycle>(observation: &Observation<S>, failed: u32) -> Self {
        let (observed, words) = observation.facts(failed);
        Self {
            observed,
            words: cut(&words, FAILURE_LIMIT),
            events: observation.events().map(Lifecycle::id).collect(),
            spent: false,
        }
    }
}

/// Observes the application; a call that hangs or panics counts as a failed observation.
///
/// An application that did not answer is not called before its backoff ends, whatever happens to the object meanwhile:
/// see [`Sight::silence`].
pub(crate) async fn observe<A: Application>(
    asker: &Asker<'_, A::Resource>,
    application: &A,
    cx: &Context<A::Resource>,
    sight: &mut Sight,
) -> Findings {
    let limit = application.answer_limit();
    if sight.silence.left().is_some() {
        return Findings::at(
            &Observation::<StateOf<A>>::unreachable(Unanswered::TimedOut(limit)),
            sight.failed,
        );
    }
    let outcome = match asker.ask(limit, application.observe(cx)).await {
        Ok(outcome) => {
            sight.silence.end();
            outcome
        }
        Err(Unanswered::Panicked(said)) => Err(Failure::retry(reasons::PANICKED, said)),
        Err(why @ Unanswered::TimedOut(_)) => {
            let usual = cx
                .state()
                .known()
                .map_or(USUAL, |state| application.observe_every(state));
            let meta = cx.object().meta();
            sight
                .silence
                .lasts(usual, read::seed(meta.uid.as_deref().unwrap_or_default()));
            tracing::warn!(
                again_in = ?sight.silence.left(),
                "cannot observe: no answer within {}", seconds(limit)
            );
            Ok(Observation::unreachable(why))
        }
    };
    if let Err(failure) = &outcome {
        tracing::warn!("cannot observe: {failure}");
    }
    Findings::of(outcome, sight, cx.time_in_state().unwrap_or_default())
}

/// Computes the fields that the application adds to the status; returns the previous ones on a failure.
pub(crate) async fn extra<A: Application>(
    asker: &Asker<'_, A::Resource>,
    application: &A,
    cx: &Context<A::Resource>,
    silence: &mut Silence,
) -> ExtraOf<A> {
    let status = cx.object().status_of();
    let before = || {
        status
            .map(|status| status.extra.clone())
            .unwrap_or_default()
    };
    if silence.left().is_some() {
        return before();
    }
    let limit = application.answer_limit();
    let why = match asker.ask(limit, application.extra(cx)).await {
        Ok(answer) => {
            silence.end();
            match answer {
                Ok(extra) => return extra,
                Err(failure) => failure.to_string(),
            }
        }
        Err(unanswered) => {
            if let Unanswered::TimedOut(_) = unanswered {
                let seed = read::seed(cx.object().meta().uid.as_deref().unwrap_or_default());
                silence.lasts(USUAL, seed);
            }
            unanswered.to_string()
        }
    };
    tracing::warn!("cannot compute the extra status: {why}");
    before()
}
