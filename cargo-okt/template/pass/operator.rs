//! The steps of the pass.

use std::collections::BTreeMap;

use okt::k8s_openapi::api::core::v1::ConfigMap;
use okt::kube::ResourceExt;
use okt::kube::api::ObjectMeta;
use okt::{Application, Failure, Pass, PassGraph, Step, Watches};

use super::resource::{Widget, WidgetPass, WidgetPassHandler, widget_pass};

/// The operator; add fields for what its steps need, such as clients.
#[derive(Clone)]
pub struct Keeper;

/// The steps. A pass runs again when the object, or an object that it owns, changes: make each step idempotent.
impl WidgetPassHandler for Keeper {
    type Context = Pass<Widget>;
    type Error = Failure;

    async fn check(&self, cx: &Pass<Widget>) -> Result<Step<widget_pass::AfterCheck>, Failure> {
        if cx.object().spec.message.trim().is_empty() {
            let why = "spec.message is empty: write the text to keep";
            return Err(Failure::permanent("EmptyMessage", why));
        }
        Ok(Step::done(widget_pass::AfterCheck::Apply))
    }

    async fn apply(&self, cx: &Pass<Widget>) -> Result<Step<widget_pass::AfterApply>, Failure> {
        let object = cx.object();
        let message = ("message".to_owned(), object.spec.message.clone());
        cx.put(ConfigMap {
            metadata: ObjectMeta {
                name: Some(object.name_any()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([message])),
            ..ConfigMap::default()
        });
        cx.commit().await?;
        Ok(Step::done(widget_pass::AfterApply::End))
    }
}

impl Application for Keeper {
    type Resource = Widget;

    fn watches(watches: Watches<Widget>) -> Watches<Widget> {
        watches.owns::<ConfigMap>()
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<WidgetPass>())
    }
}
