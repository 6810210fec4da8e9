//! The application of slates: a resource without a lifecycle, whose operator runs one scripted step.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use okt::{
    Application, Failure, FreeStyle, FreeStyleHandler, LifecycleSpec, Pass, PassGraph, PassStatus,
    Step, Watches, free_style,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;
use crate::script::Script;

/// The spec of a slate.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Slate",
    namespaced,
    status = "PassStatus"
)]
#[lifecycle(none)]
pub struct SlateSpec {}

/// The operator of slates; clones share their script.
#[derive(Clone, Default)]
pub struct Slates {
    /// The results of its step.
    pub script: Script,
}

impl FreeStyleHandler for Slates {
    type Context = Pass<Slate>;
    type Error = Failure;

    async fn reconcile(
        &self,
        cx: &Pass<Slate>,
    ) -> Result<Step<free_style::AfterReconcile>, Failure> {
        let next = free_style::AfterReconcile::Next;
        self.script.take(cx, "Reconcile", next).await
    }
}

impl Application for Slates {
    type Resource = Slate;

    fn watches(watches: Watches<Slate>) -> Watches<Slate> {
        watches.owns::<ConfigMap>()
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<FreeStyle>())
    }
}

impl Served for Slates {}
