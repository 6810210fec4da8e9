//! The watches of the kinds of requests: those that have not finished.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::SelectAll;
use kube::core::DynamicObject;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use okt_wire::keys::FINISHED_LABEL;
use okt_wire::scope::api;
use okt_wire::texts::LastError;
use okt_wire::watch::{Connection, PAGE, retried};

use tokio::time::Instant;

use super::queue::RequestQueue;
use crate::resources::Name;

/// How long a kind may fail to be listed before objects go on without it. A refusal counts at once: it does not pass by
/// itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Watches the requests that have not finished; `wake` is called with the objects that are to serve them.
pub(crate) async fn watch(
    queue: &RequestQueue,
    connection: &Connection,
    namespace: Option<&str>,
    wake: &(dyn Fn(Name) + Send + Sync),
) {
    let config = watcher::Config::default()
        .labels(&format!("!{FINISHED_LABEL}"))
        .page_size(PAGE);
    let kinds = queue.kinds.iter().enumerate();
    let mut events: SelectAll<_> = kinds
        .map(|(number, served)| {
            let kind = &served.kind;
            let client = connection.for_watch(&kind.api.kind);
            let namespace = namespace.filter(|_| kind.namespaced);
            let all = api::<DynamicObject>(&client, namespace, &kind.api);
            let events = retried(watcher(all, config.clone()));
            events.map(move |event| (number, event)).boxed()
        })
        .collect();
    let mut lists: Vec<Vec<DynamicObject>> = vec![Vec::new(); queue.kinds.len()];
    let mut last_errors: Vec<LastError> =
        queue.kinds.iter().map(|_| LastError::default()).collect();
    let began = Instant::now();
    while let Some((number, event)) = events.next().await {
        match event {
            Ok(Event::Init) => lists[number].clear(),
            Ok(Event::InitApply(request)) => lists[number].push(request),
            Ok(Event::InitDone) => {
                last_errors[number].end();
                let list = std::mem::take(&mut lists[number]);
                queue.replace(number, &list).into_iter().for_each(wake);
                queue.note_listed(number);
            }
            Ok(Event::Apply(request)) => {
                queue.put(number, &request).into_iter().for_each(wake);
            }
            Ok(Event::Delete(request)) => {
                let uid = request.metadata.uid.as_deref().unwrap_or_default();
                queue.remove(uid).into_iter().for_each(wake);
            }
            Err(error) => {
                let kind = &queue.kinds[number].kind.api.kind;
                last_errors[number].warn("cannot watch the requests", kind, &error);
                if began.elapsed() >= PATIENCE || is_refused(&error) {
                    queue.note_listed(number);
                }
            }
        }
    }
    // Only without kinds.
    std::future::pending::<()>().await;
}

/// Returns whether the API server refuses to list a kind, or does not serve it.
fn is_refused(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => {
            matches!(status.code, 401 | 403 | 404)
        }
        _ => false,
    }
}
