//! Requests to the API server about requests.
//!
//! The functions return boxed futures, so that everything in them is compiled here, and not once more for each
//! application.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, Preconditions};
use kube::core::{DynamicObject, PartialObjectMeta, Status};
use kube::{Api, Client};
use okt_core::request::RequestOutcome;
use okt_wire::api_timeout::answer;
use okt_wire::keys::{EXPIRES_ANNOTATION, FINISHED_LABEL};
use okt_wire::scope::{api, merge_by, with_name};
use okt_wire::texts::cut;
use okt_wire::watch::PAGE;
use serde_json::{Value, json};

use super::outcome::OutcomeReport;
use crate::resources::ResourceKind;

/// The field manager of requests.
pub(super) const MANAGER: &str = "okt";

/// The longest message in a status, in bytes.
pub(super) const MESSAGE_LIMIT: usize = 1024;

type Answer<'a, T> = BoxFuture<'a, Result<T, kube::Error>>;

/// Where a request is, and which one it is.
#[derive(Clone, Copy)]
pub(crate) struct RequestPlace<'a> {
    pub(crate) kind: &'a ResourceKind,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

fn api_at(client: &Client, place: RequestPlace<'_>) -> Api<DynamicObject> {
    api(client, place.namespace, &place.kind.api)
}

/// Reads a request as it is now; none if it does not exist, or is being deleted.
pub(crate) fn read<'a>(
    client: &'a Client,
    place: RequestPlace<'a>,
) -> Answer<'a, Option<DynamicObject>> {
    async move {
        let found = answer(api_at(client, place).list(&with_name(place.name))).await?;
        let is_it = |object: &DynamicObject| {
            let meta = &object.metadata;
            meta.uid.as_deref() == Some(place.uid) && meta.deletion_timestamp.is_none()
        };
        Ok(found.items.into_iter().find(is_it))
    }
    .boxed()
}

/// Returns whether a request has finished.
pub(crate) fn is_over(request: &DynamicObject) -> bool {
    let labels = request.metadata.labels.as_ref();
    labels.is_some_and(|it| it.contains_key(FINISHED_LABEL))
        || outcome(request).is_some_and(RequestOutcome::is_final)
}

fn outcome(request: &DynamicObject) -> Option<RequestOutcome> {
    serde_json::from_value(request.data["status"]["outcome"].clone()).ok()
}

/// Writes an outcome into a request that has not finished; returns the request as it is then, or none if it is gone, or
/// if the API server refuses it as it is.
///
/// A request that has finished gets the label, by which no operator watches it any more.
///
/// # Errors
///
/// 409 if somebody else has changed it: a retry helps.
pub(crate) fn deliver<'a>(
    client: &'a Client,
    place: RequestPlace<'a>,
    report: &'a OutcomeReport,
    ttl: Duration,
    now: Timestamp,
) -> Answer<'a, Option<DynamicObject>> {
    async move {
        match write_outcome(client, place, report, ttl, now).await {
            Err(kube::Error::Api(refused)) if is_unfit(&refused) => {
                tracing::warn!(
                    request = place.name,
                    "the API server takes no outcome for a request: {}",
                    refused.message
                );
                Ok(None)
            }
            written => written,
        }
    }
    .boxed()
}

async fn write_outcome(
    client: &Client,
    place: RequestPlace<'_>,
    report: &OutcomeReport,
    ttl: Duration,
    now: Timestamp,
) -> Result<Option<DynamicObject>, kube::Error> {
    let Some(mut request) = read(client, place).await? else {
        return Ok(None);
    };
    let api = api_at(client, place);
    if !is_over(&request) && outcome(&request) != Some(report.outcome) {
        let version = request.metadata.resource_version.as_deref();
        let write = async |report: &OutcomeReport| {
            let status = status(&request, report, now);
            write_status(&api, place.name, version, &status).await
        };
        request = match write(report).await {
            Err(kube::Error::Api(refused)) if is_unfit(&refused) && report.result.is_some() => {
                // Its kind may have another schema than the work, and the outcome matters more.
                write(&report.without_result(&refused.message)).await?
            }
            written => written?,
        };
    }
    let outcome = outcome(&request).filter(|outcome| outcome.is_final());
    let labels = request.metadata.labels.as_ref();
    if let Some(outcome) = outcome
        && !labels.is_some_and(|it| it.contains_key(FINISHED_LABEL))
    {
        let expires = now.saturating_add(ttl).unwrap_or(Timestamp::MAX);
        let patch = json!({ "metadata": {
            "resourceVersion": request.metadata.resource_version,
            "labels": { FINISHED_LABEL: outcome.as_str() },
            "annotations": { EXPIRES_ANNOTATION: expires.to_string() },
        } });
        let params = merge_by(MANAGER);
        request = answer(api.patch(place.name, &params, &Patch::Merge(patch))).await?;
    }
    Ok(Some(request))
}

/// Returns whether the API server refuses what is written, whoever writes it.
fn is_unfit(refused: &Status) -> bool {
    matches!(refused.code, 400 | 422)
}

/// Writes the status of a request or of a schedule, if it has this version.
///
/// # Errors
///
/// 409 if it has not.
pub(super) async fn write_status(
    api: &Api<DynamicObject>,
    name: &str,
    version: Option<&str>,
    status: &Value,
) -> Result<DynamicObject, kube::Error> {
    let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
    let (params, patch) = (merge_by(MANAGER), Patch::Merge(patch));
    answer(api.patch_status(name, &params, &patch)).await
}

/// Returns the status of a request with an outcome.
fn status(request: &DynamicObject, report: &OutcomeReport, now: Timestamp) -> Value {
    let is_complete = report.outcome == RequestOutcome::Reached;
    let has_failed = report.outcome.is_final() && !is_complete;
    let generation = request.metadata.generation;
    let condition = |name: &str, is_true: bool| {
        let status = if is_true { "True" } else { "False" };
        let before = request.data["status"]["conditions"].as_array();
        let before = before.into_iter().flatten();
        let since = before
            .filter(|it| it["type"] == name && it["status"] == status)
            .find_map(|it| it["lastTransitionTime"].as_str().map(str::to_owned));
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        json!({
            "type": name,
            "status": status,
            "reason": report.reason,
            "message": cut(&report.message, MESSAGE_LIMIT),
            "lastTransitionTime": since.unwrap_or_else(|| now.to_string()),
            "observedGeneration": generation,
        })
    };
    let known = |field: &str| request.data["status"][field].clone();
    let seen = known("transition").as_u64();
    json!({
        "outcome": report.outcome.as_str(),
        "transition": seen.unwrap_or(report.transition),
        "action": report.action.as_ref().map_or_else(|| known("action"), |it| json!(it)),
        "result": report.result,
        "conditions": [condition("Complete", is_complete), condition("Failed", has_failed)],
    })
}

/// Deletes the finished requests of a kind whose time is over, of those that `may_delete`.
///
/// # Errors
///
/// One of them, after all others were tried. A retry may help.
pub(crate) fn expire<'a>(
    client: &'a Client,
    kind: &'a ResourceKind,
    namespace: Option<&'a str>,
    may_delete: &'a (dyn Fn(&str) -> bool + Send + Sync),
    now: Timestamp,
) -> Answer<'a, ()> {
    async move {
        let all: Api<DynamicObject> = api(client, namespace.filter(|_| kind.namespaced), &kind.api);
        let mut page = ListParams::default().labels(FINISHED_LABEL).limit(PAGE);
        let mut result = Ok(());
        loop {
            let found = answer(all.list_metadata(&page)).await?;
            for request in found.items {
                let uid = request.metadata.uid.as_deref().unwrap_or_default();
                if is_expired(&request, now) && may_delete(uid) {
                    let deleted = delete(client, kind, &request).await;
                    result = deleted.and(result);
                }
            }
            match found.metadata.continue_.filter(|it| !it.is_empty()) {
                Some(next) => page.continue_token = Some(next),
                None => return result,
            }
        }
    }
    .boxed()
}

fn is_expired(request: &PartialObjectMeta<DynamicObject>, now: Timestamp) -> bool {
    let annotations = request.metadata.annotations.as_ref();
    let expires = annotations.and_then(|it| it.get(EXPIRES_ANNOTATION));
    expires.is_some_and(|it| it.parse::<Timestamp>().is_ok_and(|until| until <= now))
}

/// Deletes a request, unless it is another one of the name by now.
pub(super) async fn delete(
    client: &Client,
    kind: &ResourceKind,
    request: &PartialObjectMeta<DynamicObject>,
) -> Result<(), kube::Error> {
    let meta = &request.metadata;
    let (Some(name), Some(uid)) = (&meta.name, &meta.uid) else {
        return Ok(());
    };
    let of = api::<DynamicObject>(client, meta.namespace.as_deref(), &kind.api);
    let only_it = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match answer(of.delete(name, &only_it)).await {
        Ok(_) => Ok(()),
        // Somebody else was faster.
        Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409) => Ok(()),
        Err(error) => Err(error),
    }
}
