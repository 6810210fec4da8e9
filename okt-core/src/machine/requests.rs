//! The memory of the requests for an object: a deletion that was seen, and failures to read them or to write their outcomes.

use super::facts::{RequestFacts, Setup};
use super::findings::Findings;
use super::object::Object;
use super::results::{DeliverResult, ReadRequestResult};
use super::time::Time;
use crate::facts::NextRequest;

/// The memory of the requests for an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct RequestMemory {
    /// The request on record, if it was deleted.
    pub(super) gone: Option<u64>,
    /// The number of consecutive failures to read a request or to write an outcome.
    pub(super) failures: u32,
    /// Until when that is not tried again.
    pub(super) until: Option<Time>,
}

impl RequestMemory {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Forgets a request that is no longer on record.
    pub(super) fn keep(&mut self, object: &Object) {
        let token = token(object);
        self.gone.take_if(|gone| Some(*gone) != token);
    }

    /// Returns the next request, unless requests cannot be read.
    pub(super) fn next(&self, object: &Object, now: Time) -> Option<NextRequest> {
        object.requests.next.filter(|_| !self.waits(now))
    }

    /// Returns whether the request on record was deleted.
    pub(super) fn is_gone(&self, object: &Object) -> bool {
        self.gone.is_some() && self.gone == token(object)
    }

    fn waits(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    pub(super) fn facts(&self, findings: &Findings, now: Time) -> RequestFacts {
        let waits = self.waits(now);
        let left = self.until.map(|until| until.left(now));
        RequestFacts {
            confirmed: findings.confirmed,
            to_deliver: findings.object.requests.undelivered && !waits,
            wait: left.filter(|_| waits),
        }
    }

    /// Takes the result of reading a request.
    pub(super) fn request_read(
        &mut self,
        token: u64,
        result: ReadRequestResult,
        object: &Object,
        setup: &Setup<'_>,
        now: Time,
    ) {
        let is_next = object.requests.next.is_some_and(|next| next.token == token);
        match result {
            // It is still the next one: the shell has not taken it out.
            ReadRequestResult::Gone if is_next => self.fails(object, setup, now),
            ReadRequestResult::There | ReadRequestResult::Gone => {
                if result == ReadRequestResult::Gone && self::token(object) == Some(token) {
                    self.gone = Some(token);
                }
                self.succeeds();
            }
            ReadRequestResult::Failed => self.fails(object, setup, now),
        }
    }

    /// Takes the result of writing outcomes into requests.
    pub(super) fn delivered(
        &mut self,
        result: DeliverResult,
        object: &Object,
        setup: &Setup<'_>,
        now: Time,
    ) {
        if result == DeliverResult::Delivered && !object.requests.undelivered {
            self.succeeds();
        } else {
            self.fails(object, setup, now);
        }
    }

    fn succeeds(&mut self) {
        (self.failures, self.until) = (0, None);
    }

    fn fails(&mut self, object: &Object, setup: &Setup<'_>, now: Time) {
        self.failures = self.failures.saturating_add(1);
        let wait = setup.backoff.wait(self.failures, object.seed);
        self.until = Some(now.after(wait));
    }
}

/// Returns the request on record.
fn token(object: &Object) -> Option<u64> {
    Some(object.recorded.at()?.request?.token)
}
