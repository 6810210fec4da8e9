//! This file watches the notebooks through the whole run, and looks up what it missed while the API server was dead.

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

/// Tells a history all that happens, for as long as it is polled.
pub(crate) async fn watch(api: &Api<DynamicObject>, history: &History) {
    loop {
        // What goes wrong here is that the server is dead, and is tried again.
        if catch_up(api, history).await.is_some() {
            follow(api, history).await;
        }
        sleep(AGAIN).await;
    }
}

/// Sees one version of the cluster after the other, from the last one seen to the present one.
async fn catch_up(api: &Api<DynamicObject>, history: &History) -> Option<()> {
    let present = list(api, &ListParams::default()).await.ok()?;
    let present = present.metadata.resource_version?.parse().ok()?;
    let last = history.told().version;
    // At first there is nothing before the present.
    let first = if last == 0 { present } else { last + 1 };
    for version in first..=present {
        let exactly = ListParams::default()
            .at(&version.to_string())
            .matching(VersionMatch::Exact);
        match list(api, &exactly).await {
            Ok(list) => history.told().see_all(version, &list.items),
            Err(kube::Error::Api(status)) if status.code == 410 => history.told().miss(version),
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

/// Watches until the watch ends, however it does.
async fn follow(api: &Api<DynamicObject>, history: &History) {
    let since = history.told().version.to_string();
    let Ok(Ok(events)) = timeout(PATIENCE, api.watch(&WatchParams::default(), &since)).await else {
        return;
    };
    let mut events = pin!(events);
    while let Some(Ok(event)) = events.next().await {
        let mut told = history.told();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => told.see(&object),
            WatchEvent::Deleted(object) => {
                let version = object.metadata.resource_version.as_deref();
                let version = version.and_then(|version| version.parse().ok());
                told.gone(object.metadata.uid.as_deref().unwrap_or_default());
                told.version = told.version.max(version.unwrap_or(0));
            }
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return,
        }
    }
}
