//! The application of web sites: a cluster-scoped kind with former state names, a field that an autoscaler
//! owns, a leaf with work, and its own status fields.

use std::sync::Arc;

use kube::CustomResource;
use okt::{Action, Application, Context, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::Served;

/// The life of a web site.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteState {
    /// Pages are being rendered.
    #[entry]
    #[was("Draft")]
    #[child(Online)]
    Building,

    /// Readers are served.
    #[rest]
    #[was("Live")]
    #[trigger(Rebuilding, on_change)]
    #[child(Rebuilding)]
    #[child(Archived)]
    #[child(Gone)]
    Online,

    /// The pages are rendered anew.
    #[visit]
    #[child(Online)]
    Rebuilding,

    /// Kept, but not served.
    #[rest]
    #[no_route(Online, Rebuilding, reason = "an archive is not opened again")]
    #[child(Gone)]
    Archived,

    /// The pages are deleted.
    #[leaf]
    Gone,
}

/// The spec of a site.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Site",
    status = "Status<SiteState, SiteExtra>"
)]
pub struct SiteSpec {
    /// The desired state of the site.
    #[serde(default)]
    pub lifecycle: Desired<SiteState>,
    /// The theme.
    pub theme: String,
    /// The number of servers, which an autoscaler sets.
    #[serde(default)]
    pub replicas: u32,
}

/// The additional status fields of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SiteExtra {
    /// The number of pages.
    #[serde(default)]
    pub pages: u32,
}

/// The operator of sites; clones share their memory.
#[derive(Clone, Default)]
pub struct Sites(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    pages: u32,
    ran: Vec<(SiteState, String)>,
    failures: u32,
    for_good: bool,
}

impl Sites {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock())
    }

    /// Sets the number of pages of every site.
    pub fn set_pages(&self, pages: u32) {
        self.memory(|memory| memory.pages = pages);
    }

    /// Makes this number of next runs of the leaf's work fail.
    pub fn fail_in_leaf(&self, times: u32) {
        self.memory(|memory| memory.failures = times);
    }

    /// Makes the leaf's work fail permanently.
    pub fn fail_in_leaf_permanently(&self, fails: bool) {
        self.memory(|memory| memory.for_good = fails);
    }

    /// Returns every call of a handler so far: the state and the part of the id after the uid.
    pub fn ran(&self) -> Vec<(SiteState, String)> {
        self.memory(|memory| memory.ran.clone())
    }

    fn note(&self, state: SiteState, cx: &Action<Site>) {
        let id = cx.id().split_once('/').map_or("", |(_, id)| id).to_owned();
        self.memory(|memory| memory.ran.push((state, id)));
    }
}

impl SiteStateHandler for Sites {
    type Context = Action<Site>;
    type Error = Failure;

    async fn building(&self, cx: &Action<Site>) -> Result<site_state::AfterBuilding, Failure> {
        self.note(SiteState::Building, cx);
        Ok(site_state::AfterBuilding::Next)
    }

    async fn online(&self, cx: &Action<Site>) -> Result<site_state::AfterOnline, Failure> {
        self.note(SiteState::Online, cx);
        Ok(site_state::AfterOnline::Stay)
    }

    async fn rebuilding(&self, cx: &Action<Site>) -> Result<site_state::AfterRebuilding, Failure> {
        self.note(SiteState::Rebuilding, cx);
        Ok(site_state::AfterRebuilding::Next)
    }

    async fn archived(&self, cx: &Action<Site>) -> Result<site_state::AfterArchived, Failure> {
        self.note(SiteState::Archived, cx);
        Ok(site_state::AfterArchived::Stay)
    }

    async fn gone(&self, cx: &Action<Site>) -> Result<(), Failure> {
        self.note(SiteState::Gone, cx);
        if self.memory(|memory| memory.for_good) {
            return Err(Failure::permanent("DiskGone", "there is no disk"));
        }
        let fails = self.memory(|memory| {
            let fails = memory.failures > 0;
            memory.failures = memory.failures.saturating_sub(1);
            fails
        });
        if fails {
            return Err(Failure::retry("DiskBusy", "pages are still open"));
        }
        Ok(())
    }
}

impl Application for Sites {
    type Resource = Site;

    async fn extra(&self, _: &Context<Site>) -> Result<SiteExtra, Failure> {
        Ok(SiteExtra {
            pages: self.memory(|memory| memory.pages),
        })
    }

    fn revision(object: &Site) -> impl Serialize + Send {
        object.spec.theme.clone()
    }
}

impl Served for Sites {
    fn object(name: &str, lifecycle: Value) -> Value {
        json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Site",
            "metadata": { "name": name },
            "spec": { "theme": "plain", "lifecycle": lifecycle },
        })
    }
}
