//! Requests whose object does not exist, and finished ones whose time is over.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::core::DynamicObject;
use okt_wire::api_timeout::answer;
use okt_wire::clock::Clock;
use okt_wire::scope::{api, with_name};
use okt_wire::texts::chain;
use okt_wire::watch::Connection;
use tokio::time::{Instant, sleep};

use super::api::{RequestPlace, deliver, expire};
use super::open::OpenRequest;
use super::outcome::TargetFacts;
use super::queue::RequestQueue;
use crate::resources::{Name, ResourceKind};

/// How often requests without an object are looked at.
const LOOK: Duration = Duration::from_secs(30);

/// How long a request waits for an object that does not exist.
const PATIENCE: Duration = Duration::from_mins(10);

/// How often finished requests are looked at.
const SWEEP: Duration = Duration::from_mins(10);

/// What an operator knows of the objects that serve requests.
pub(crate) struct Targets<'a> {
    /// Their kind.
    pub(crate) kind: ResourceKind,
    /// Returns whether the cache has an object of this name, or may lack it although it exists.
    pub(crate) may_exist: &'a (dyn Fn(&Name) -> bool + Send + Sync),
    /// Returns whether this replica looks after the request of this uid.
    pub(crate) is_ours: &'a (dyn Fn(&str) -> bool + Send + Sync),
}

/// Looks after the requests that no object looks after: those whose object does not exist, and finished ones.
pub(crate) async fn look_after(
    queue: &RequestQueue,
    connection: &Connection,
    namespace: Option<&str>,
    targets: &Targets<'_>,
    clock: &Clock,
) {
    if queue.kinds.is_empty() {
        return std::future::pending().await;
    }
    let client = &connection.client;
    let mut swept = Instant::now();
    loop {
        sleep(LOOK).await;
        for request in queue.all() {
            let is_alone =
                (targets.is_ours)(&request.uid) && !(targets.may_exist)(&request.target());
            if is_alone
                && let Err(error) = deliver_alone(queue, connection, &request, targets, clock).await
            {
                tracing::warn!(
                    request = request.name,
                    "cannot report to a request that its object does not exist: {}",
                    chain(&error)
                );
            }
        }
        if swept.elapsed() < SWEEP {
            continue;
        }
        swept = Instant::now();
        for served in &queue.kinds {
            let swept = expire(
                client,
                &served.kind,
                namespace,
                targets.is_ours,
                clock.now(),
            );
            if let Err(error) = swept.await {
                tracing::warn!(kind = %served.kind, "cannot delete finished requests: {}", chain(&error));
            }
        }
    }
}

/// Reports to a request that its object does not exist, if that is so: at once as `Queued`, after ten minutes as its
/// outcome.
fn deliver_alone<'a>(
    queue: &'a RequestQueue,
    connection: &'a Connection,
    request: &'a OpenRequest,
    targets: &'a Targets<'_>,
    clock: &'a Clock,
) -> BoxFuture<'a, Result<(), kube::Error>> {
    async move {
        let client = &connection.client;
        let now = clock.now();
        let is_over = request
            .created
            .is_none_or(|created| clock.since(created) >= PATIENCE);
        if request.outcome.is_some() && !is_over {
            return Ok(());
        }
        let all = api::<DynamicObject>(client, request.namespace.as_deref(), &targets.kind.api);
        let found = answer(all.list_metadata(&with_name(&request.target))).await?;
        if !found.items.is_empty() {
            return Ok(());
        }
        let nothing = TargetFacts {
            request: None,
            is_recorded: false,
            deleting: false,
            transition: 0,
            action: None,
            now,
        };
        let place = RequestPlace {
            kind: &queue.kinds[request.kind].kind,
            namespace: request.namespace.as_deref(),
            name: &request.name,
            uid: &request.uid,
        };
        let report = nothing.without_target(is_over);
        match deliver(client, place, &report, request.ttl, now).await? {
            Some(report) => queue.renew(request.kind, &report),
            None => {
                queue.remove(&request.uid);
            }
        }
        Ok(())
    }
    .boxed()
}
