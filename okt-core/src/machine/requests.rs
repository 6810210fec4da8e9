//! The memory of the requests for an object: a deletion that was seen, and failures to read them or to write their outcomes.

use core::time::Duration;

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
    /// The attempts to read a request.
    pub(super) reads: Attempts,
    /// The attempts to write outcomes.
    pub(super) deliveries: Attempts,
}

/// Attempts that failed one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Attempts {
    pub(super) failures: u32,
    /// Until when there is no other.
    pub(super) until: Option<Time>,
}

impl Attempts {
    fn wait(self, now: Time) -> Option<Duration> {
        let until = self.until.filter(|until| now < *until)?;
        Some(until.left(now))
    }

    fn end(&mut self, is_success: bool, object: &Object, setup: &Setup<'_>, now: Time) {
        if is_success {
            *self = Self::default();
        } else {
            self.failures = self.failures.saturating_add(1);
            let wait = setup.backoff.wait(self.failures, object.seed);
            self.until = Some(now.after(wait));
        }
    }
}

impl RequestMemory {
    /// How many deliveries may fail before an object is deleted without them.
    const PATIENCE: u32 = 5;

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
        let may_read = self.reads.wait(now).is_none();
        object.requests.next.filter(|_| may_read)
    }

    /// Returns whether the request on record was deleted.
    pub(super) fn is_gone(&self, object: &Object) -> bool {
        self.gone.is_some() && self.gone == token(object)
    }

    pub(super) fn facts(&self, findings: &Findings, now: Time) -> RequestFacts {
        let requests = &findings.object.requests;
        let (reads, deliveries) = (self.reads.wait(now), self.deliveries.wait(now));
        RequestFacts {
            confirmed: findings.confirmed,
            may_read: reads.is_none(),
            to_deliver: requests.undelivered > 0 && deliveries.is_none(),
            is_patient: self.deliveries.failures < Self::PATIENCE,
            wait: reads.into_iter().chain(deliveries).min(),
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
        if result == ReadRequestResult::Gone && self::token(object) == Some(token) {
            self.gone = Some(token);
        }
        let is_next = object.requests.next.is_some_and(|next| next.token == token);
        let is_success = match result {
            ReadRequestResult::There => true,
            // If it is still the next one, the shell has not taken it out.
            ReadRequestResult::Gone => !is_next,
            ReadRequestResult::Failed => false,
        };
        self.reads.end(is_success, object, setup, now);
    }

    /// Takes the result of writing outcomes into requests; `before` is the number of those that were to be written.
    pub(super) fn delivered(
        &mut self,
        result: DeliverResult,
        before: usize,
        object: &Object,
        setup: &Setup<'_>,
        now: Time,
    ) {
        let left = object.requests.undelivered;
        let is_success = match result {
            DeliverResult::Delivered => left == 0 || left < before,
            DeliverResult::Failed | DeliverResult::Outdated(None) => false,
            // The newer version comes first.
            DeliverResult::Outdated(Some(_)) => return,
        };
        self.deliveries.end(is_success, object, setup, now);
    }
}

/// Returns the request on record.
fn token(object: &Object) -> Option<u64> {
    Some(object.recorded.at()?.request?.token)
}
