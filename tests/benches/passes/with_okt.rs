//! The operator with OKT: a chart passes three states, each with a condition; the second may apply a
//! `ConfigMap`.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, CustomResource, ResourceExt};
use okt::{
    Application, Failure, LifecycleSpec, Operator, OperatorError, Pass, PassGraph, PassStatus,
    Step, Watches, lifecycle_graph,
};
use okt_tests::measured::Tally;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pass of a chart.
#[lifecycle_graph(pass)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartPass {
    /// Checks the chart.
    #[entry]
    #[condition(Valid)]
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

    /// Done.
    #[leaf(idle)]
    End,
}

/// The spec of a chart.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bench.okt.dev",
    version = "v1",
    kind = "Chart",
    namespaced,
    status = "PassStatus"
)]
#[lifecycle(none)]
pub(crate) struct ChartSpec {
    #[serde(default)]
    pub(crate) text: String,
}

/// Runs the pass of charts without delay.
struct Charts<const MAP: bool>(Arc<Tally>);

impl<const MAP: bool> ChartPassHandler for Charts<MAP> {
    type Context = Pass<Chart>;
    type Error = Failure;

    async fn check(&self, _: &Pass<Chart>) -> Result<Step<chart_pass::AfterCheck>, Failure> {
        self.0.reconciled();
        Ok(Step::done(chart_pass::AfterCheck::Next).text("It is sound."))
    }

    async fn provision(
        &self,
        cx: &Pass<Chart>,
    ) -> Result<Step<chart_pass::AfterProvision>, Failure> {
        if MAP {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(cx.object().name_any());
            let text = cx.object().spec.text.clone();
            map.data = Some(BTreeMap::from([("text".to_owned(), text)]));
            cx.put(map);
        }
        Ok(Step::done(chart_pass::AfterProvision::Next).text("It has what it needs."))
    }

    async fn report(&self, _: &Pass<Chart>) -> Result<Step<chart_pass::AfterReport>, Failure> {
        Ok(Step::done(chart_pass::AfterReport::Next).text("It says how it is."))
    }
}

impl<const MAP: bool> Application for Charts<MAP> {
    type Resource = Chart;

    fn watches(watches: Watches<Chart>) -> Watches<Chart> {
        if MAP {
            watches.owns::<ConfigMap>()
        } else {
            watches
        }
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<ChartPass>())
    }
}

/// Runs the operator in one namespace, forever.
pub(crate) async fn run<const MAP: bool>(
    client: Client,
    namespace: &str,
    tally: Arc<Tally>,
) -> Result<(), OperatorError> {
    Operator::new(client, Charts::<MAP>(tally))
        .namespaces([namespace])
        .run(pending())
        .await
}
