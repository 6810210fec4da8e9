//! How the resource of a service is observed, created, updated and deleted.

use std::time::Duration;

use okt::kube::ResourceExt;
use okt::{Action, Context, External, Failure, Found};

use super::resource::{Widget, WidgetState};
use super::service::Service;

/// The operator.
#[derive(Clone, Default)]
pub struct Keeper {
    /// The service that has the resources.
    pub service: Service,
}

/// Returns the id of the resource: objects of other namespaces have others.
pub fn id(object: &Widget) -> String {
    let namespace = object.namespace().unwrap_or_default();
    format!("{namespace}/{}", object.name_any())
}

/// OKT calls `get` before it changes anything, so a resource that was created before a crash is not created twice.
impl External for Keeper {
    type Resource = Widget;

    async fn get(&self, cx: &Context<Widget>) -> Result<Found, Failure> {
        let object = cx.object();
        Ok(match self.service.find(&id(object)).await? {
            None => Found::Absent,
            Some(message) if message != object.spec.message => Found::Outdated,
            Some(_) => Found::Ready,
        })
    }

    async fn create(&self, cx: &Action<Widget>) -> Result<(), Failure> {
        self.update(cx).await
    }

    async fn update(&self, cx: &Action<Widget>) -> Result<(), Failure> {
        let object = cx.object();
        let message = object.spec.message.clone();
        self.service.put(id(object), message).await
    }

    async fn delete(&self, cx: &Action<Widget>) -> Result<(), Failure> {
        self.service.remove(&id(cx.object())).await
    }

    /// Without it, a resource that others changed stays so until the spec changes.
    fn repaired_in(&self, state: WidgetState) -> Option<WidgetState> {
        (state == WidgetState::Present).then_some(WidgetState::Repairing)
    }

    fn observe_every(&self, _: WidgetState) -> Duration {
        Duration::from_secs(30)
    }
}
