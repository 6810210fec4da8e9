//! The operator of docs/from-kube-rs.md.
use super::surroundings::*;

use std::{convert::Infallible, process::ExitCode};

use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Resources, ResultExt, Status,
    Watches, lifecycle_graph,
};
use okt::{
    k8s_openapi::api::apps::v1::Deployment,
    kube::CustomResource,
    schemars::JsonSchema,
    serde::{Deserialize, Serialize},
};

#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteState {
    /// The Deployment becomes available.
    #[entry]
    #[trigger(Removing, on_delete)]
    #[child(Serving)]
    Starting,

    /// The DNS record leads to the site.
    #[rest]
    #[condition(Available)]
    #[child(Removing)]
    Serving,

    /// The DNS record is removed.
    #[child(Gone)]
    Removing,

    /// The site is gone.
    #[leaf(idle)]
    Gone,
}

#[okt::crates]
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "Status<SiteState>"
)]
pub struct SiteSpec {
    #[serde(default)]
    pub lifecycle: Desired<SiteState>,
    pub host: String,
    pub image: String,
}

struct Sites {
    dns: Dns,
}

impl SiteStateHandler for Sites {
    type Context = Action<Site>;
    type Error = Failure;

    // OKT calls it when the Deployment is ready: see `resources`.
    async fn starting(&self, _: &Action<Site>) -> Result<site_state::AfterStarting, Failure> {
        Ok(site_state::AfterStarting::Next)
    }

    // OKT calls it on arrival, and again when the spec changes.
    async fn serving(&self, cx: &Action<Site>) -> Result<site_state::AfterServing, Failure> {
        self.dns
            .add(&cx.object().spec.host)
            .await
            .retry("NoRecord")?;
        Ok(site_state::AfterServing::Stay)
    }

    async fn removing(&self, cx: &Action<Site>) -> Result<site_state::AfterRemoving, Failure> {
        self.dns
            .remove(&cx.object().spec.host)
            .await
            .retry("RecordStays")?;
        Ok(site_state::AfterRemoving::Next)
    }
}

impl Application for Sites {
    type Resource = Site;

    fn watches(watches: Watches<Site>) -> Watches<Site> {
        watches.owns::<Deployment>()
    }

    async fn resources(&self, cx: &Context<Site>, state: SiteState) -> Result<Resources, Failure> {
        Ok(match state {
            SiteState::Starting | SiteState::Serving => {
                Resources::new().apply_ready(deployment(cx.object()))
            }
            SiteState::Removing => Resources::new().apply(deployment(cx.object())),
            SiteState::Gone => Resources::new(),
        })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async {
        Ok::<_, Infallible>(Sites {
            dns: Dns::connect(),
        })
    })
    .await
}
