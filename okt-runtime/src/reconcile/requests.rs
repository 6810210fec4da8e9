//! The effects about requests: reading the one that begins or may be gone, and writing outcomes into them.

use std::sync::Arc;

use kube::Resource;
use kube::core::DynamicObject;
use okt_core::Lifecycle;
use okt_core::machine::{self, Deliver, DeliverResult, ReadRequest, ReadRequestResult};
use okt_core::request::RequestOutcome;
use okt_wire::clock::moment;
use okt_wire::read;
use okt_wire::sealed::Sealed;
use okt_wire::status::RecordedRequest;
use okt_wire::texts::chain;

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::requests::{
    OpenRequest, OutcomeReport, RequestPlace, ServedKind, deliver, facts_of, is_over, known,
};
use crate::resources::name_of;

/// The number of requests that get their outcomes at once.
const AT_ONCE: usize = 20;

impl<A: Application> Reconciliation<'_, A> {
    /// Returns the requests for the object at hand, for its machine.
    fn requests(&self) -> machine::KnownRequests {
        let shared = self.shared;
        known(
            &shared.requests,
            &*self.object,
            self.recorded(),
            self.gates
                .times::<StateOf<A>>(self.recorded().at().map(|at| at.state))
                .shut,
            &shared.clock,
        )
    }

    /// Reads a request from the API server. Before another one may take the place of the one on record, writes the outcome
    /// of that.
    pub(super) async fn read_request(&mut self, effect: ReadRequest) {
        let token = effect.token;
        let result = self.try_to_read(token).await.unwrap_or_else(|error| {
            tracing::warn!("cannot read a request: {}", chain(&error));
            ReadRequestResult::Failed
        });
        let (known, setup) = (self.requests(), self.setup);
        let machine = &mut self.memory.machine;
        machine.request_read(effect, result, known, &setup, moment());
    }

    async fn try_to_read(&mut self, token: u64) -> Result<ReadRequestResult, kube::Error> {
        let shared = Arc::clone(self.shared);
        let client = &shared.connection.client;
        let own = self.position().and_then(|it| it.request.clone());
        let is_own = |it: &RecordedRequest| read::hash(&it.uid) == token;
        if let Some(own) = own.as_ref().filter(|it| is_own(it)) {
            let Some((_, place)) = self.place_of(own) else {
                // No release that knows the kind serves it: its work goes on.
                return Ok(ReadRequestResult::There);
            };
            let found = crate::requests::read(client, place).await?;
            return Ok(found.map_or(ReadRequestResult::Gone, |_| ReadRequestResult::There));
        }
        if let Some(own) = &own {
            self.deliver_own(own).await?;
        }
        let open = shared.requests.waiting(&name_of(&*self.object));
        let Some(next) = open.iter().find(|it| it.token() == token) else {
            return Ok(ReadRequestResult::Gone);
        };
        let kind = &shared.requests.kinds[next.kind];
        match crate::requests::read(client, place(kind, next)).await? {
            Some(found) if !is_over(&found) => {
                shared.requests.renew(next.kind, &found);
                self.begun = begun::<StateOf<A>>(&shared.requests.kinds, next.kind, &found);
                let is_fit = self.begun.is_some();
                Ok(if is_fit {
                    ReadRequestResult::There
                } else {
                    ReadRequestResult::Gone
                })
            }
            found => {
                // One that has finished and lacks the label gets it.
                self.put(next.kind, &next.uid, found);
                Ok(ReadRequestResult::Gone)
            }
        }
    }

    /// Takes a request as it is now.
    fn put(&self, kind: usize, uid: &str, found: Option<DynamicObject>) {
        let queue = &self.shared.requests;
        match found {
            Some(found) => queue.renew(kind, &found),
            None => {
                queue.remove(uid);
            }
        }
    }

    /// Writes the outcome of the request on record into it.
    async fn deliver_own(&self, own: &RecordedRequest) -> Result<(), kube::Error> {
        let Some((kind, place)) = self.place_of(own) else {
            return Ok(());
        };
        let shared = self.shared;
        let now = shared.clock.now();
        let report = facts_of(&*self.object, &shared.clock).of_recorded(own);
        let ttl = self.ttl(own).unwrap_or(shared.requests.kinds[kind].ttl);
        let found = deliver(&shared.connection.client, place, &report, ttl, now).await?;
        self.put(kind, &own.uid, found);
        Ok(())
    }

    /// Returns how long the request on record is kept, as the cache has it.
    fn ttl(&self, own: &RecordedRequest) -> Option<std::time::Duration> {
        let open = self.shared.requests.waiting(&name_of(&*self.object));
        open.iter().find(|it| it.uid == own.uid).map(|it| it.ttl)
    }

    /// Returns whether a request is the one on record.
    fn serves(&self, open: &OpenRequest) -> bool {
        let own = self.position().and_then(|it| it.request.as_ref());
        own.is_some_and(|own| own.uid == open.uid)
    }

    /// Returns the number of the kind of the request on record, and where it is; none if no kind of this name is served.
    fn place_of<'r>(&'r self, own: &'r RecordedRequest) -> Option<(usize, RequestPlace<'r>)> {
        let kinds = &self.shared.requests.kinds;
        let number = kinds.iter().position(|it| it.kind.api.kind == own.kind)?;
        let place = RequestPlace {
            kind: &kinds[number].kind,
            namespace: self.object.meta().namespace.as_deref(),
            name: &own.name,
            uid: &own.uid,
        };
        Some((number, place))
    }

    /// Writes outcomes into the requests for the object, or that they wait.
    pub(super) async fn deliver(&mut self, effect: Deliver) {
        let result = self.deliver_some().await;
        let (known, setup) = (self.requests(), self.setup);
        let machine = &mut self.memory.machine;
        machine.delivered(effect, result, known, &setup, moment());
    }

    /// Writes outcomes into a few requests: the object's work may end meanwhile.
    async fn deliver_some(&mut self) -> DeliverResult {
        let shared = Arc::clone(self.shared);
        let (requests, client) = (&shared.requests, &shared.connection.client);
        let now = shared.clock.now();
        let open = requests.waiting(&name_of(&*self.object));
        let facts = facts_of(&*self.object, &shared.clock);
        let undelivered = open.iter().filter(|open| facts.is_undelivered(open));
        let undelivered: Vec<(&OpenRequest, OutcomeReport)> = undelivered
            .map(|open| (&**open, facts.report(open)))
            .take(AT_ONCE)
            .collect();
        // An outcome that no record has depends on the newest version: another replica may have begun the request.
        let is_judged = |(open, report): &(&OpenRequest, OutcomeReport)| {
            report.outcome.is_final() && !self.serves(open)
        };
        if undelivered.iter().any(is_judged)
            && let Err(newest) = self.check_newest().await
        {
            return DeliverResult::Outdated(newest);
        }
        let mut result = DeliverResult::Delivered;
        for (open, report) in undelivered {
            let kind = &requests.kinds[open.kind];
            match deliver(client, place(kind, open), &report, open.ttl, now).await {
                Ok(found) => self.put(open.kind, &open.uid, found),
                Err(error) => {
                    result = DeliverResult::Failed;
                    let why = chain(&error);
                    tracing::warn!(
                        request = open.name,
                        "cannot write the outcome of a request: {why}"
                    );
                    self.memory.undelivered = format!("{}: {why}", open.name);
                }
            }
        }
        result
    }
}

fn place<'a>(kind: &'a ServedKind, request: &'a OpenRequest) -> RequestPlace<'a> {
    RequestPlace {
        kind: &kind.kind,
        namespace: request.namespace.as_deref(),
        name: &request.name,
        uid: &request.uid,
    }
}

/// Returns the record of a request that may begin; none if it cannot be served.
fn begun<S: Lifecycle>(
    kinds: &[ServedKind],
    kind: usize,
    found: &DynamicObject,
) -> Option<RecordedRequest> {
    let open = OpenRequest::of(kinds, kind, found).filter(|it| it.unfit.is_none())?;
    Some(RecordedRequest {
        kind: kinds[kind].kind.api.kind.clone(),
        name: open.name,
        uid: open.uid,
        state: S::GRAPH.name_of(kinds[kind].state).to_owned(),
        transition: 0,
        args: Sealed::new(open.args),
        outcome: RequestOutcome::Running,
        result: None,
        failure: None,
    })
}
