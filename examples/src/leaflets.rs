//! This module is the operator of leaflets: a press does their work and knows each job by its id.

use std::time::SystemTime;

use kube::{CustomResource, ResourceExt};
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lifecycle of a leaflet.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafletState {
    /// Its plate is being made.
    #[entry]
    #[child(Printing)]
    Typesetting,
    /// It is at the press.
    #[child(Printed)]
    Printing,
    /// It lies on the shelf.
    #[rest(idle)]
    #[condition(Available, reason = "InStock")]
    #[child(Reprinting)]
    #[child(Pulping)]
    Printed,
    /// More copies are printed.
    #[visit]
    #[condition(Available, reason = "InStock")]
    #[child(Printed)]
    Reprinting,
    /// The remaining copies are recycled.
    #[child(Pulped)]
    Pulping,
    /// No copies are left.
    #[leaf(idle)]
    Pulped,
}

/// A leaflet to print.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Leaflet",
    namespaced,
    status = "Status<LeafletState>"
)]
pub struct LeafletSpec {
    /// The desired lifecycle state of the leaflet.
    #[serde(default)]
    pub lifecycle: Desired<LeafletState>,
    /// The text to print.
    pub text: String,
}

/// A job, the body of `PUT /jobs/<id>` to the press.
///
/// For a known id the press does nothing else than answer when the job is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The name of the leaflet.
    pub leaflet: String,
    /// The work: the name of the leaflet's state.
    pub work: String,
    /// The text to print.
    pub text: String,
    /// The replica of the operator that sends the request.
    pub replica: String,
    /// When its handler began, in milliseconds since 1970.
    pub begun: u128,
}

/// The operator of leaflets.
#[derive(Clone, Debug)]
pub struct Printer {
    /// The URL of the press (e.g. `http://press:8080`).
    pub press: String,
    /// The name of this replica.
    pub replica: String,
    client: reqwest::Client,
}

impl Printer {
    /// Creates an operator with a press.
    pub fn new(press: impl Into<String>, replica: impl Into<String>) -> Self {
        Self {
            press: press.into(),
            replica: replica.into(),
            client: reqwest::Client::new(),
        }
    }

    async fn have(&self, work: &str, cx: &Action<Leaflet>) -> Result<(), Failure> {
        let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let job = Job {
            leaflet: cx.object().name_any(),
            work: work.to_owned(),
            text: cx.object().spec.text.clone(),
            replica: self.replica.clone(),
            begun: begun.unwrap_or_default().as_millis(),
        };
        let address = format!("{}/jobs/{}", self.press, cx.id());
        let answer = self.client.put(address).json(&job).send().await?;
        answer.error_for_status()?;
        Ok(())
    }
}

impl LeafletStateHandler for Printer {
    type Context = Action<Leaflet>;
    type Error = Failure;

    async fn typesetting(
        &self,
        cx: &Action<Leaflet>,
    ) -> Result<leaflet_state::AfterTypesetting, Failure> {
        self.have("Typesetting", cx).await?;
        Ok(leaflet_state::AfterTypesetting::Next)
    }

    async fn printing(
        &self,
        cx: &Action<Leaflet>,
    ) -> Result<leaflet_state::AfterPrinting, Failure> {
        self.have("Printing", cx).await?;
        Ok(leaflet_state::AfterPrinting::Next)
    }

    async fn reprinting(
        &self,
        cx: &Action<Leaflet>,
    ) -> Result<leaflet_state::AfterReprinting, Failure> {
        self.have("Reprinting", cx).await?;
        Ok(leaflet_state::AfterReprinting::Next)
    }

    async fn pulping(&self, cx: &Action<Leaflet>) -> Result<leaflet_state::AfterPulping, Failure> {
        self.have("Pulping", cx).await?;
        Ok(leaflet_state::AfterPulping::Next)
    }
}

impl Application for Printer {
    type Resource = Leaflet;
}
