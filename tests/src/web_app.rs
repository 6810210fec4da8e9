//! The application of web apps, which own a Job that migrates a schema, and a Deployment.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, PostParams};
use kube::runtime::conditions::is_job_completed;
use kube::runtime::wait::await_condition;
use kube::{CustomResource, ResourceExt};
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Resources, ResultExt, Status,
    Watches, Which, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::Served;

/// The lifecycle of a web app.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebAppState {
    /// A Job migrates the schema.
    #[entry]
    #[trigger(Failed, on_error(attempts = 3))]
    #[child(Serving)]
    Migrating,

    /// The Deployment serves.
    #[rest(idle)]
    #[child(Gone)]
    Serving,

    /// A person must look.
    #[rest(hold, idle)]
    #[child(Migrating)]
    #[child(Gone)]
    Failed,

    /// The web app is gone.
    #[leaf(idle)]
    Gone,
}

/// The spec of a web app.
#[derive(
    CustomResource, LifecycleSpec, Clone, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "WebApp",
    namespaced,
    status = "Status<WebAppState>"
)]
pub struct WebAppSpec {
    /// The desired state of the web app.
    #[serde(default)]
    pub lifecycle: Desired<WebAppState>,
    /// The version to serve.
    #[serde(default)]
    pub version: String,
}

/// A mistake in the operator of web apps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// It serves before the Job is complete.
    DoesNotWait,
    /// Its handler creates the Job, and takes a Job that already exists for an error.
    CreatesOnce,
    /// Its handler creates a Job for each attempt.
    CreatesForEachAttempt,
}

/// The operator of web apps.
#[derive(Clone, Copy, Default, Debug)]
pub struct WebApps {
    /// The planted mistake, if any.
    pub mistake: Option<Mistake>,
}

impl WebApps {
    fn has(self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn creates(self) -> bool {
        self.has(Mistake::CreatesOnce) || self.has(Mistake::CreatesForEachAttempt)
    }
}

fn parsed<T: serde::de::DeserializeOwned>(object: Value) -> Result<T, Failure> {
    serde_json::from_value(object).permanent("BadObject")
}

fn pod() -> Value {
    json!({ "restartPolicy": "Never", "containers": [{ "name": "web", "image": "web" }] })
}

/// The migration to the version of the spec: its template cannot change, so each version is another Job.
fn job(name: &str, app: &WebApp) -> Result<Job, Failure> {
    let mut pod = pod();
    pod["containers"][0]["image"] = format!("web:{}", app.spec.version).into();
    parsed(json!({
        "metadata": { "name": name },
        "spec": { "backoffLimit": 0, "template": { "spec": pod } },
    }))
}

fn deployment(app: &WebApp) -> Result<Deployment, Failure> {
    let mut pod = pod();
    pod["restartPolicy"] = "Always".into();
    pod["containers"][0]["image"] = format!("web:{}", app.spec.version).into();
    let labels = json!({ "app": app.name_any() });
    parsed(json!({
        "metadata": { "name": app.name_any() },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    }))
}

impl WebAppStateHandler for WebApps {
    type Context = Action<WebApp>;
    type Error = Failure;

    async fn migrating(
        &self,
        cx: &Action<WebApp>,
    ) -> Result<web_app_state::AfterMigrating, Failure> {
        if self.creates() {
            let name = match self.mistake {
                Some(Mistake::CreatesForEachAttempt) => format!("schema-{}", cx.attempt()),
                _ => "schema".to_owned(),
            };
            let namespace = cx.object().namespace().unwrap_or_default();
            let jobs: Api<Job> = Api::namespaced(cx.client().clone(), &namespace);
            let created = jobs
                .create(&PostParams::default(), &job(&name, cx.object())?)
                .await;
            created.permanent("NotCreated")?;
            let complete = await_condition(jobs, &name, is_job_completed());
            complete.await.retry("NotComplete")?;
        } else if !self.has(Mistake::DoesNotWait) {
            // `wait_ready` would wait within one call.
            if let Some(job) = cx.unready(&[Which::of::<Job>()]).first() {
                if job.is_stuck {
                    return Err(Failure::retry("NotMigrated", job.to_string()));
                }
                cx.progress(job.to_string());
                return Ok(web_app_state::AfterMigrating::Wait(Duration::from_secs(5)));
            }
        }
        Ok(web_app_state::AfterMigrating::Serving)
    }
}

impl Application for WebApps {
    type Resource = WebApp;

    fn watches(watches: Watches<WebApp>) -> Watches<WebApp> {
        watches.owns::<Job>().owns::<Deployment>()
    }

    async fn resources(
        &self,
        cx: &Context<WebApp>,
        state: WebAppState,
    ) -> Result<Resources, Failure> {
        let mut resources = Resources::new();
        if !self.creates() {
            resources = resources.apply(job("schema", cx.object())?);
        }
        Ok(match state {
            WebAppState::Migrating | WebAppState::Failed => resources,
            WebAppState::Serving => resources.apply_ready(deployment(cx.object())?),
            WebAppState::Gone => Resources::new(),
        })
    }
}

impl Served for WebApps {}
