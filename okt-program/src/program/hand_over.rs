//! Whether the objects of a kind go back to an earlier version, on which another release acts.

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use okt_wire::api_timeout::limit_answers;
use okt_wire::keys::HANDED_OVER_ANNOTATION;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// Follows a definition, whose annotation says so.
pub(super) struct HandOver {
    is_handed_over: watch::Receiver<bool>,
    _following: AbortOnDropHandle<()>,
}

impl HandOver {
    /// Follows the definition of a kind, for a release that acts on this version.
    pub(super) fn follow(client: Client, name: &'static str, version: String) -> Self {
        let (send, is_handed_over) = watch::channel(false);
        let following = tokio::spawn(async move {
            let crds: Api<PartialObjectMeta<CustomResourceDefinition>> =
                Api::all(limit_answers(client));
            let config = Config::default().fields(&format!("metadata.name={name}"));
            let definitions = watcher(crds, config).default_backoff();
            let mut definitions = Box::pin(definitions.applied_objects());
            while let Some(definition) = definitions.next().await {
                // The watch begins again by itself.
                let Ok(definition) = definition else { continue };
                let to = definition.annotations().get(HANDED_OVER_ANNOTATION);
                send.send_replace(to.is_some_and(|to| *to != version));
            }
        });
        Self {
            is_handed_over,
            _following: AbortOnDropHandle::new(following),
        }
    }

    /// Waits until the objects go back to an earlier version, or do so no more.
    pub(super) fn until(&self, is: bool) -> impl Future<Output = ()> + Send + use<> {
        let mut is_handed_over = self.is_handed_over.clone();
        async move {
            // Nobody follows the definition any more if the sender is gone, so nothing changes.
            if is_handed_over.wait_for(|it| *it == is).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::timeout;
    use tower::{BoxError, service_fn};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hand_over_is_seen_though_an_answer_about_it_was_lost() {
        let asked = Arc::new(AtomicUsize::new(0));
        let server = service_fn(move |_: Request<Body>| {
            let is_second = asked.fetch_add(1, Ordering::SeqCst) == 1;
            async move {
                if !is_second {
                    pending::<()>().await;
                }
                let list = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": { "resourceVersion": "1" },
                    "items": [{ "metadata": { "name": "tents", "annotations": { HANDED_OVER_ANNOTATION: "v1alpha1" } } }],
                });
                Ok::<_, BoxError>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        });
        let client = Client::new(server, "default");
        let hand_over = HandOver::follow(client, "tents", "v1".to_owned());
        let seen = timeout(Duration::from_hours(1), hand_over.until(true)).await;
        seen.expect("it is seen");
    }
}
