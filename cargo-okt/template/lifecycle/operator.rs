//! The work of each state, and the resources in the cluster.

use std::collections::BTreeMap;

use okt::k8s_openapi::api::core::v1::ConfigMap;
use okt::kube::ResourceExt;
use okt::kube::api::ObjectMeta;
use okt::tracing;
use okt::{Action, Application, Context, Failure, Resources, Watches};

use super::resource::{Widget, WidgetState, WidgetStateHandler, widget_state};

/// The operator; add fields for what its handlers need, such as clients.
#[derive(Clone)]
pub struct Keeper;

/// The work of each state. A handler may run again with the same `cx.id()`: make its effect idempotent.
impl WidgetStateHandler for Keeper {
    type Context = Action<Widget>;
    type Error = Failure;

    async fn starting(&self, cx: &Action<Widget>) -> Result<widget_state::AfterStarting, Failure> {
        tracing::info!(name = cx.object().name_any(), id = cx.id(), "starts");
        Ok(widget_state::AfterStarting::Running)
    }

    /// Runs on arrival, and again when the spec changes.
    async fn running(&self, _: &Action<Widget>) -> Result<widget_state::AfterRunning, Failure> {
        Ok(widget_state::AfterRunning::Stay)
    }

    async fn stopping(&self, cx: &Action<Widget>) -> Result<widget_state::AfterStopping, Failure> {
        tracing::info!(name = cx.object().name_any(), id = cx.id(), "stops");
        Ok(widget_state::AfterStopping::Gone)
    }
}

impl Application for Keeper {
    type Resource = Widget;

    fn watches(watches: Watches<Widget>) -> Watches<Widget> {
        watches.owns::<ConfigMap>()
    }

    async fn resources(
        &self,
        cx: &Context<Widget>,
        state: WidgetState,
    ) -> Result<Resources, Failure> {
        let object = cx.object();
        let settings = ConfigMap {
            metadata: ObjectMeta {
                name: Some(object.name_any()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(
                "message".to_owned(),
                object.spec.message.clone(),
            )])),
            ..ConfigMap::default()
        };
        Ok(if state == WidgetState::Gone {
            Resources::new()
        } else {
            Resources::new().apply(settings)
        })
    }
}
