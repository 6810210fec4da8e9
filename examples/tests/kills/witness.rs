//! A watch of the notebooks through the whole run, which reads what it missed while the API server was down.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::api::{DynamicObject, ListParams, VersionMatch, WatchEvent, WatchParams};
use tokio::time::{sleep, timeout};

use crate::history::History;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

const AGAIN: Duration = Duration::from_millis(100);

/// Reports all events to a history, for as long as it is polled.
pub(crate) async fn watch(api: &Api<DynamicObject>, history: &History) {
    loop {
        // An error here means that the API server is down; the loop retries.
        if catch_up(api, history).await.is_some() {
            follow(api, history).await;
        }
        sleep(AGAIN).await;
    }
}

/// Reads one version of the cluster after the other, from the last one observed to the current one.
async fn catch_up(api: &Api<DynamicObject>, history: &History) -> Option<()> {
    let present = list(api, &ListParams::default()).await.ok()?;
    let present = present.metadata.resource_version?.parse().ok()?;
    let last = history.seen().version;
    // At first nothing comes before the current version.
    let first = if last == 0 { present } else { last + 1 };
    for version in first..=present {
        let exactly = ListParams::default()
            .at(&version.to_string())
            .matching(VersionMatch::Exact);
        match list(api, &exactly).await {
            Ok(list) => history.seen().see_all(version, &list.items),
            Err(kube::Error::Api(status)) if status.code == 410 => history.seen().miss(version),
            Err(_) => return None,
        }
    }
    Some(())
}

async fn list(
    api: &Api<DynamicObject>,
    params: &ListParams,
) -> kube::Result<kube::api::ObjectList<DynamicObject>> {
    match timeout(PATIENCE, api.list(params)).await {
        Ok(list) => list,
        Err(late) => Err(kube::Error::Service(Box::new(late))),
    }
}

/// Watches until the watch ends, for any reason.
async fn follow(api: &Api<DynamicObject>, history: &History) {
    let since = history.seen().version.to_string();
    let Ok(Ok(events)) = timeout(PATIENCE, api.watch(&WatchParams::default(), &since)).await else {
        return;
    };
    let mut events = pin!(events);
    while let Some(Ok(event)) = events.next().await {
        let mut seen = history.seen();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => seen.see(&object),
            WatchEvent::Deleted(object) => {
                let version = object.metadata.resource_version.as_deref();
                let version = version.and_then(|version| version.parse().ok());
                seen.gone(object.metadata.uid.as_deref().unwrap_or_default());
                seen.version = seen.version.max(version.unwrap_or(0));
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return,
        }
    }
}
