//! This module is the operator of `Memcached` objects: a cache has no states, so it has a pass and no lifecycle.
//!
//! Its steps are those of the [`Stepper`]; the program is `src/bin/memcached.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::api::ObjectMeta;
use kube::{CustomResource, ResourceExt};
use okt::stepper::{
    AfterCRChecker, AfterCRFinalizer, AfterErrorManager, AfterGiveupManager, AfterMutator,
    AfterObjectsGetter, AfterSuccessManager, AfterUpdater,
};
use okt::{
    Application, Context, Failure, LifecycleSpec, Pass, PassGraph, PassStatus, Step, Stepper,
    StepperHandler, Template, TemplateError, Watches,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The desired state of a cache.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Memcached",
    namespaced,
    status = "PassStatus<MemcachedExtra>",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.readyServers",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Servers",
        type_ = "integer",
        json_path = ".status.readyServers"
    )
)]
#[lifecycle(none)]
pub struct MemcachedSpec {
    /// How many servers run.
    #[schemars(range(min = 0, max = 100))]
    pub size: i32,
    /// The memcached version: a tag of its image.
    #[schemars(regex(pattern = r"^[\w][\w.-]{0,127}$"))]
    pub version: String,
    /// The memory for the items of one server, in MiB.
    #[schemars(range(min = 8, max = 65536))]
    pub memory_mib: i32,
    /// The largest item, in MiB; at most half of the memory.
    #[serde(default = "max_item_mib")]
    #[schemars(range(min = 1, max = 1024))]
    pub max_item_mib: i32,
    /// A Secret whose key `users` has a line `name:password` for each user; read when a server starts.
    /// Without it every client may connect.
    #[serde(default)]
    #[schemars(regex(pattern = "^[a-z0-9.-]{1,253}$"))]
    pub users: Option<String>,
}

fn max_item_mib() -> i32 {
    1
}

/// The status fields in addition to the conditions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedExtra {
    /// How many servers take requests.
    #[serde(default)]
    pub ready_servers: i32,
    /// By which labels an autoscaler finds them.
    #[serde(default)]
    pub selector: String,
}

/// The operator of caches.
pub struct Memcacheds {
    service: Template,
    deployment: Template,
}

impl Memcacheds {
    /// Creates the operator.
    ///
    /// # Errors
    ///
    /// When one of its templates is invalid.
    pub fn new() -> Result<Self, TemplateError> {
        let service = include_str!("../memcached/service.yaml");
        let deployment = include_str!("../memcached/deployment.yaml");
        Ok(Self {
            service: Template::new("service.yaml", service)?,
            deployment: Template::new("deployment.yaml", deployment)?,
        })
    }
}

impl StepperHandler for Memcacheds {
    type Context = Pass<Memcached>;
    type Error = Failure;

    /// Refuses a spec that the schema accepts but with which memcached would not start.
    async fn cr_checker(&self, cx: &Pass<Memcached>) -> Result<Step<AfterCRChecker>, Failure> {
        let spec = &cx.object().spec;
        if spec.max_item_mib > spec.memory_mib / 2 {
            let (item, memory) = (spec.max_item_mib, spec.memory_mib);
            let why =
                format!("spec.maxItemMib: {item} is more than half of spec.memoryMib, {memory}");
            return Err(Failure::permanent("ItemsTooLarge", why));
        }
        Ok(Step::done(AfterCRChecker::Next))
    }

    /// Waits for the Secret with the users, which others create.
    async fn objects_getter(
        &self,
        cx: &Pass<Memcached>,
    ) -> Result<Step<AfterObjectsGetter>, Failure> {
        let Some(name) = &cx.object().spec.users else {
            return Ok(Step::done(AfterObjectsGetter::Next));
        };
        let users = cx.referred::<Secret>(name)?.and_then(|secret| secret.data);
        if users.is_some_and(|data| data.contains_key("users")) {
            return Ok(Step::done(AfterObjectsGetter::Next));
        }
        let why = format!("there is no Secret {name} with a key `users`");
        Ok(Step::wait("WaitingForUsers", Duration::from_mins(10)).text(why))
    }

    async fn mutator(&self, cx: &Pass<Memcached>) -> Result<Step<AfterMutator>, Failure> {
        let cache = cx.object();
        cx.put(ConfigMap {
            metadata: ObjectMeta {
                name: Some(cache.name_any()),
                labels: Some(labels(cache)),
                ..ObjectMeta::default()
            },
            data: Some(settings(cache)),
            ..ConfigMap::default()
        });
        let values = json!({
            "name": cache.name_any(),
            "labels": labels(cache),
            "settings": serde_json::to_string(&settings(cache))?,
            "spec": cache.spec,
        });
        // The service is deleted before the servers, so that no client is sent to a server that ends.
        cx.declare(self.service.declare(&values)?.wave(2));
        cx.declare(self.deployment.declare(&values)?.wave(1).ready());
        Ok(Step::done(AfterMutator::Next))
    }

    async fn updater(&self, cx: &Pass<Memcached>) -> Result<Step<AfterUpdater>, Failure> {
        cx.commit().await?;
        Ok(Step::done(AfterUpdater::Next))
    }

    async fn success_manager(
        &self,
        cx: &Pass<Memcached>,
    ) -> Result<Step<AfterSuccessManager>, Failure> {
        let size = cx.object().spec.size;
        let said = format!("{size} of {size} servers are ready");
        Ok(Step::done(AfterSuccessManager::Next).text(said))
    }

    /// Resources with a wave are deleted after this step, and the cache after them.
    async fn cr_finalizer(&self, _: &Pass<Memcached>) -> Result<Step<AfterCRFinalizer>, Failure> {
        Ok(Step::done(AfterCRFinalizer::Next))
    }

    /// Logs the failure for the administrator of the operator; the conditions report it to the user of the cache.
    async fn error_manager(
        &self,
        cx: &Pass<Memcached>,
    ) -> Result<Step<AfterErrorManager>, Failure> {
        if let Some(failed) = cx.results().failure {
            let (name, reason) = (cx.object().name_any(), failed.reason);
            tracing::warn!(name, reason, "{}", failed.message);
        }
        Ok(Step::done(AfterErrorManager::Next))
    }

    async fn giveup_manager(
        &self,
        cx: &Pass<Memcached>,
    ) -> Result<Step<AfterGiveupManager>, Failure> {
        tracing::error!(name = cx.object().name_any(), "a person has to look at it");
        Ok(Step::done(AfterGiveupManager::Next))
    }
}

impl Application for Memcacheds {
    type Resource = Memcached;

    fn watches(watches: Watches<Memcached>) -> Watches<Memcached> {
        watches
            .owns::<ConfigMap>()
            .owns::<Service>()
            .owns::<Deployment>()
            .refers::<Secret>(|cache| cache.spec.users.iter().cloned().collect())
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<Stepper>())
    }

    async fn extra(&self, cx: &Context<Memcached>) -> Result<MemcachedExtra, Failure> {
        let deployments = cx.owned::<Deployment>()?.into_iter();
        let ready = deployments.filter_map(|it| it.status?.ready_replicas);
        let labels = labels(cx.object()).into_iter();
        let labels: Vec<_> = labels
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        Ok(MemcachedExtra {
            ready_servers: ready.sum(),
            selector: labels.join(","),
        })
    }
}

fn labels(cache: &Memcached) -> BTreeMap<String, String> {
    [("demo.okt.dev/memcached".to_owned(), cache.name_any())].into()
}

/// Returns the environment variables of the servers.
fn settings(cache: &Memcached) -> BTreeMap<String, String> {
    let spec = &cache.spec;
    [
        ("MEMORY".to_owned(), spec.memory_mib.to_string()),
        ("MAX_ITEM".to_owned(), format!("{}m", spec.max_item_mib)),
    ]
    .into()
}
