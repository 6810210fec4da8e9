//! A server with charts.

use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use okt::crd;
use okt_tests::measured::Host;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::with_okt::{Chart, ChartSpec};

/// The timeout of a wait.
const LIMIT: Duration = Duration::from_mins(3);

/// A server with the CRD of charts.
pub(crate) struct Site(pub(crate) Host);

impl Site {
    pub(crate) async fn double(directory: &Path) -> Result<Self, Box<dyn Error>> {
        Self::with(Host::double(directory).await?).await
    }

    pub(crate) async fn real() -> Result<Self, Box<dyn Error>> {
        Self::with(Host::real(false).await?).await
    }

    /// Installs one CRD for both sides, so that the server does the same work for them.
    async fn with(host: Host) -> Result<Self, Box<dyn Error>> {
        host.install(&definition()?).await?;
        Ok(Self(host))
    }

    /// Creates a namespace with this number of charts.
    pub(crate) async fn charts(&self, namespace: &str, count: usize) -> kube::Result<Charts> {
        self.0.namespace(namespace).await?;
        let api: Api<Chart> = Api::namespaced(self.0.client.clone(), namespace);
        let api = &api;
        stream::iter(0..count)
            .map(|number| async move { api.create(&PostParams::default(), &chart(number)).await })
            .buffer_unordered(16)
            .try_for_each(|_| std::future::ready(Ok(())))
            .await?;
        let kind = ApiResource::erase::<Chart>(&());
        Ok(Charts {
            namespace: namespace.to_owned(),
            count,
            json: Api::namespaced_with(self.0.client.clone(), namespace, &kind),
        })
    }
}

/// Returns the CRD of OKT with a field for the status of Achilles: the references to owned objects.
fn definition() -> Result<CustomResourceDefinition, Box<dyn Error>> {
    let mut crd = serde_json::to_value(crd::<Chart>()?)?;
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let fields = crd.pointer_mut(status).and_then(Value::as_object_mut);
    fields.ok_or("a CRD without a status")?.insert(
        "resourceRefs".to_owned(),
        json!({
            "type": "array",
            "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        }),
    );
    Ok(serde_json::from_value(crd)?)
}

fn chart(number: usize) -> Chart {
    let text = format!("The chart of the caretaker of the town hall, room {number}");
    Chart::new(&format!("chart-{number:06}"), ChartSpec { text })
}

/// The charts of one namespace.
pub(crate) struct Charts {
    pub(crate) namespace: String,
    count: usize,
    json: Api<DynamicObject>,
}

impl Charts {
    /// Starts a watch; returns the time from `since` until all charts are ready.
    pub(crate) fn become_ready(&self, since: Instant) -> JoinHandle<Result<Duration, String>> {
        let (api, count) = (self.json.clone(), self.count);
        tokio::spawn(async move {
            let mut ready = HashSet::new();
            let mut seen = Box::pin(watcher(api, watcher::Config::default()).applied_objects());
            let counting = async {
                while let Some(chart) = seen.next().await {
                    let chart = chart.map_err(|error| error.to_string())?;
                    if is_ready(&chart) {
                        ready.insert(chart.name_any());
                    }
                    if ready.len() == count {
                        return Ok(since.elapsed());
                    }
                }
                Err("a watch ended".to_owned())
            };
            let counted = tokio::time::timeout(LIMIT, counting).await;
            counted.map_err(|_| format!("{} of {count} became ready", ready.len()))?
        })
    }
}

fn is_ready(chart: &DynamicObject) -> bool {
    let conditions = chart.data.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
