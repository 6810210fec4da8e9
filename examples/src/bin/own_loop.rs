//! A controller on plain kube-rs with OKT's graph, decisions and conditions, and without OKT's operator.
//!
//! A notice is a text in a `ConfigMap` of the same name: `own-loop crd | kubectl apply --server-side -f -`, then
//! `own-loop`.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use okt::k8s_openapi::api::core::v1::ConfigMap;
use okt::kube::api::{DeleteParams, Patch, PatchParams};
use okt::kube::runtime::controller::{Action, Controller};
use okt::kube::runtime::watcher;
use okt::kube::{self, Api, Client, CustomResource, Resource, ResourceExt};
use okt::lifecycle::{Effect, Memory, Reconciliation, Work};
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{Desired, Dispatch, Failure, LifecycleSpec, Observation, Status, lifecycle_graph};
use serde_json::json;

/// The lifecycle of a notice.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeState {
    /// The text is written.
    #[entry]
    #[child(Posted)]
    Posting,

    /// The text can be read.
    #[rest(idle)]
    #[condition(Available)]
    #[trigger(Posting, on_change)]
    #[child(Removing)]
    Posted,

    /// The text is removed.
    #[child(Removed)]
    Removing,

    /// The text is gone.
    #[leaf(idle)]
    Removed,
}

/// The spec of a notice.
#[okt::crates]
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Notice",
    namespaced,
    status = "Status<NoticeState>"
)]
pub struct NoticeSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<NoticeState>,
    /// The text.
    pub text: String,
}

/// The context of the controller.
pub struct Ctx {
    /// The client.
    pub client: Client,
    /// The memory between two reconciliations.
    pub memory: Memory<Notice>,
}

impl Ctx {
    fn api<K>(&self, notice: &Notice) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        let namespace = notice.namespace().unwrap_or_default();
        Api::namespaced(self.client.clone(), &namespace)
    }
}

impl NoticeStateHandler for Ctx {
    type Context = Work<Notice>;
    type Error = Failure;

    async fn posting(&self, work: &Work<Notice>) -> Result<notice_state::AfterPosting, Failure> {
        let notice = work.object();
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": notice.name_any(),
                "annotations": { "demo.okt.dev/action": work.id() },
                "ownerReferences": notice.controller_owner_ref(&()).map(|owner| [owner]),
            },
            "data": { "text": notice.spec.text },
        });
        let params = PatchParams::apply("notices").force();
        let maps = self.api::<ConfigMap>(notice);
        maps.patch(&notice.name_any(), &params, &Patch::Apply(map))
            .await?;
        Ok(notice_state::AfterPosting::Next)
    }

    async fn removing(&self, work: &Work<Notice>) -> Result<notice_state::AfterRemoving, Failure> {
        let maps = self.api::<ConfigMap>(work.object());
        let name = work.object().name_any();
        match maps.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            deleted => drop(deleted?),
        }
        Ok(notice_state::AfterRemoving::Next)
    }
}

async fn reconcile(notice: Arc<Notice>, cx: Arc<Ctx>) -> kube::Result<Action> {
    let name = notice.name_any();
    let (notices, maps) = (cx.api::<Notice>(&notice), cx.api::<ConfigMap>(&notice));
    let mut notice = Reconciliation::of(&cx.memory, notice);
    loop {
        match notice.decide() {
            Effect::Write(write) => notice.patched(write.send(&notices, "notices").await?)?,
            Effect::Observe => notice.observed(match maps.get_metadata_opt(&name).await? {
                Some(_) => Observation::in_state(NoticeState::Posted),
                None => Observation::absent(),
            }),
            Effect::Work(work) => notice.ended(work.state().dispatch(&*cx, &work).await),
            Effect::Rest(None) => return Ok(Action::await_change()),
            Effect::Rest(Some(time)) => return Ok(Action::requeue(time)),
        }
    }
}

/// Runs the controller.
pub async fn run(cx: Ctx) {
    let (notices, maps) = (Api::all(cx.client.clone()), Api::all(cx.client.clone()));
    Controller::new(notices, watcher::Config::default())
        .owns::<ConfigMap>(maps, watcher::Config::default())
        .run(reconcile, error_policy, Arc::new(cx))
        .for_each(|_| ready(()))
        .await;
}

#[expect(clippy::needless_pass_by_value, reason = "the type that kube expects")]
fn error_policy(notice: Arc<Notice>, error: &kube::Error, _: Arc<Ctx>) -> Action {
    tracing::warn!(notice = %notice.name_any(), "cannot reconcile: {error}");
    Action::requeue(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    okt_examples::log_to_stderr();
    if std::env::args().nth(1).as_deref() == Some("crd") {
        println!("{}", serde_json::to_string_pretty(&okt::crd::<Notice>()?)?);
        return Ok(());
    }
    let client = Client::try_default().await?;
    let memory = Memory::new();
    tokio::select! {
        () = run(Ctx { client, memory }) => {}
        () = okt_examples::shutdown_signal() => {}
    }
    Ok(())
}
