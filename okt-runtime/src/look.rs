//! Asking the application: where it is, and what it adds to the status; whatever it does, the turn goes on.

use kube::ResourceExt;
use okt_core::facts::Observed;
use okt_core::{Lifecycle, StateId};

use crate::application::{Application, ExtraOf};
use crate::asked::{Unanswered, asked};
use crate::context::Context;
use crate::failure::Failure;
use crate::object::LifecycleObject;
use crate::observation::Observation;
use crate::schema::FAILURE_LIMIT;
use crate::status::cut;

/// What the application said in a turn.
pub(crate) struct Look {
    pub(crate) observed: Observed,
    /// The same in words, for people.
    pub(crate) words: String,
    /// The states that it named as events.
    pub(crate) events: Vec<StateId>,
}

impl Look {
    /// Nobody looked.
    pub(crate) fn nothing() -> Self {
        Self {
            observed: Observed::Unobserved,
            words: String::new(),
            events: Vec::new(),
        }
    }
}

/// Asks the application where it is; what hangs or panics counts as a failed look.
pub(crate) async fn look<A: Application>(
    application: &A,
    cx: &Context<A::Resource>,
    failed_looks: &mut u32,
) -> Look {
    let outcome = match asked(application.observe(cx)).await {
        Ok(outcome) => outcome,
        Err(Unanswered::Panicked(said)) => Err(Failure::retry("Panicked", said)),
        Err(why @ Unanswered::TimedOut) => Ok(Observation::unreachable(why)),
    };
    let failed = match &outcome {
        Ok(observation) => observation.is_unreachable(),
        Err(_) => true,
    };
    *failed_looks = if failed {
        failed_looks.saturating_add(1)
    } else {
        0
    };
    let looks = *failed_looks;
    match outcome {
        Ok(observation) => {
            let (observed, words) = observation.facts(looks);
            Look {
                observed,
                words: cut(&words, FAILURE_LIMIT),
                events: observation.events().map(Lifecycle::id).collect(),
            }
        }
        Err(failure) => {
            tracing::warn!(object = %cx.object().name_any(), "cannot observe: {failure}");
            Look {
                observed: Observed::Failed { looks },
                words: cut(&failure.to_string(), FAILURE_LIMIT),
                ..Look::nothing()
            }
        }
    }
}

/// Asks the application what it adds to the status; where it cannot say, what it said before stays.
pub(crate) async fn extra<A: Application>(
    application: &A,
    cx: &Context<A::Resource>,
) -> ExtraOf<A> {
    let why = match asked(application.extra(cx)).await {
        Ok(Ok(extra)) => return extra,
        Ok(Err(failure)) => failure.to_string(),
        Err(unanswered) => unanswered.to_string(),
    };
    tracing::warn!(object = %cx.object().name_any(), "cannot compute the extra status: {why}");
    let status = cx.object().status_of();
    status
        .map(|status| status.extra.clone())
        .unwrap_or_default()
}
