//! The outcome of a request so far, by the record of its object.

use jiff::Timestamp;
use okt_core::reasons;
use okt_core::request::RequestOutcome;
use okt_wire::status::RecordedRequest;
use serde_json::Value;

use super::open::OpenRequest;

/// The facts about an object on which the outcomes of its requests depend.
pub(crate) struct TargetFacts<'a> {
    /// The request on record.
    pub(crate) request: Option<&'a RecordedRequest>,
    /// Whether a position is recorded.
    pub(crate) is_recorded: bool,
    pub(crate) deleting: bool,
    /// The number of transitions so far.
    pub(crate) transition: u64,
    /// The id of the work on record, if it serves the request on record.
    pub(crate) action: Option<&'a str>,
    pub(crate) now: Timestamp,
}

/// The outcome of a request so far, as its status reports it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OutcomeReport {
    pub(crate) outcome: RequestOutcome,
    /// One word.
    pub(crate) reason: String,
    pub(crate) message: String,
    /// The transition number of its object.
    pub(crate) transition: u64,
    pub(crate) action: Option<String>,
    pub(crate) result: Option<Value>,
}

impl OutcomeReport {
    /// Returns the same outcome without the result, which the API server refuses with this message.
    pub(super) fn without_result(&self, refusal: &str) -> Self {
        Self {
            reason: reasons::BAD_RESULT.to_owned(),
            message: format!("the API server refuses its result: {refusal}"),
            result: None,
            ..self.clone()
        }
    }
}

impl TargetFacts<'_> {
    /// Returns the outcome of a request so far.
    pub(crate) fn report(&self, request: &OpenRequest) -> OutcomeReport {
        match self.request.filter(|it| it.uid == request.uid) {
            Some(recorded) => self.of_recorded(recorded),
            None => self.of_waiting(request),
        }
    }

    /// Returns whether the outcome is to be written into a request.
    pub(crate) fn is_undelivered(&self, request: &OpenRequest) -> bool {
        // One that has finished lacks the label.
        request.outcome.is_none_or(RequestOutcome::is_final)
            || request.outcome != Some(self.report(request).outcome)
    }

    /// Returns the outcome of the request on record.
    pub(crate) fn of_recorded(&self, recorded: &RecordedRequest) -> OutcomeReport {
        let failure = recorded.failure.as_ref();
        let outcome = recorded.outcome;
        let message = match outcome {
            RequestOutcome::Running => format!("{} serves it", recorded.state),
            RequestOutcome::Overtaken => DELETED.to_owned(),
            _ => failure.map_or_else(String::new, |it| it.message.clone()),
        };
        OutcomeReport {
            reason: failure.map_or(outcome.as_str(), |it| &it.reason).to_owned(),
            action: self.action.map(str::to_owned),
            result: recorded.result.as_ref().map(|it| it.value.clone()),
            ..self.plain(outcome, message)
        }
    }

    fn of_waiting(&self, request: &OpenRequest) -> OutcomeReport {
        if self.deleting {
            return self.plain(RequestOutcome::Overtaken, DELETED);
        }
        if let Some(why) = &request.unfit {
            return self.plain(RequestOutcome::Refused, why);
        }
        if request.start_before.is_some_and(|until| until <= self.now) {
            return self.plain(RequestOutcome::Expired, "it had not begun by `startBefore`");
        }
        let has_begun = request.outcome == Some(RequestOutcome::Running);
        let is_older = !self.is_recorded && request.seen != Some(0);
        if !has_begun && !is_older {
            let message = "it waits for its turn: `kubectl okt why` says what for";
            return self.plain(RequestOutcome::Queued, message);
        }
        let message = if has_begun {
            "it had begun, and its object has no record of it: make another one if it has to be repeated"
        } else {
            "it was there before anything was recorded of its object, and may have been served before: make another one"
        };
        self.plain(RequestOutcome::NotReplayed, message)
    }

    /// Returns that there is no such object.
    pub(crate) fn without_target(&self, is_over: bool) -> OutcomeReport {
        let outcome = if is_over {
            RequestOutcome::TargetGone
        } else {
            RequestOutcome::Queued
        };
        OutcomeReport {
            reason: RequestOutcome::TargetGone.as_str().to_owned(),
            ..self.plain(outcome, "its object does not exist")
        }
    }

    fn plain(&self, outcome: RequestOutcome, message: impl Into<String>) -> OutcomeReport {
        OutcomeReport {
            outcome,
            reason: outcome.as_str().to_owned(),
            message: message.into(),
            transition: self.transition,
            action: None,
            result: None,
        }
    }
}

const DELETED: &str = "its object was deleted";
