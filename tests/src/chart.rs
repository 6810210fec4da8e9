//! The application of charts: a resource without a lifecycle, whose operator runs a scripted pass.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use okt::{
    Admission, Application, Failure, LifecycleSpec, Pass, PassGraph, PassStatus, Validation,
    Watches, lifecycle_graph,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;
use crate::script::{Script, steps};

/// The pass of a chart.
#[lifecycle_graph(pass)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartPass {
    /// Checks the chart.
    #[entry]
    #[condition(Valid)]
    #[trigger(Leave, on_delete)]
    #[child(Provision)]
    Check,

    /// Applies the objects that the chart needs.
    #[condition(Provisioned)]
    #[child(Report)]
    Provision,

    /// Reports the result.
    #[condition(Reported)]
    #[child(End)]
    Report,

    /// Deletes the objects.
    #[condition(Left)]
    #[child(End)]
    Leave,

    /// Done.
    #[leaf(idle)]
    End,
}

/// The spec of a chart.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Chart",
    namespaced,
    status = "PassStatus"
)]
#[lifecycle(none)]
pub struct ChartSpec {
    /// The text of the chart.
    #[serde(default)]
    pub text: String,
}

/// The operator of charts; clones share their script.
#[derive(Clone, Default)]
pub struct Charts {
    /// The results of its steps.
    pub script: Script,
}

impl ChartPassHandler for Charts {
    type Context = Pass<Chart>;
    type Error = Failure;

    steps! { Chart:
        check "Check" chart_pass::AfterCheck,
        provision "Provision" chart_pass::AfterProvision,
        report "Report" chart_pass::AfterReport,
        leave "Leave" chart_pass::AfterLeave,
    }
}

impl Application for Charts {
    type Resource = Chart;

    fn watches(watches: Watches<Chart>) -> Watches<Chart> {
        watches.owns::<ConfigMap>()
    }

    fn admission(admission: Admission<Chart>) -> Admission<Chart> {
        admission.validated_by(|_, _| Validation::default())
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<ChartPass>())
    }
}

impl Served for Charts {}
