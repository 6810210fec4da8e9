//! The same resource under OKT's operator: the controller writes the statuses that the operator writes.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use okt::{Action, Application, Context, Failure, Observation, Operator};
use serde_json::{Value, json};

use crate::own_loop::notice_state::{AfterPosting, AfterRemoving};
use crate::own_loop::{Notice, NoticeState, NoticeStateHandler};
use crate::place::Place;

struct Operated;

fn maps(cx: &Context<Notice>) -> Api<ConfigMap> {
    Api::default_namespaced(cx.client().clone())
}

impl NoticeStateHandler for Operated {
    type Context = Action<Notice>;
    type Error = Failure;

    async fn posting(&self, cx: &Action<Notice>) -> Result<AfterPosting, Failure> {
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": cx.object().name_any() },
            "data": { "text": cx.object().spec.text },
        });
        let params = PatchParams::apply("notices");
        let name = cx.object().name_any();
        maps(cx).patch(&name, &params, &Patch::Apply(map)).await?;
        Ok(AfterPosting::Next)
    }

    async fn removing(&self, cx: &Action<Notice>) -> Result<AfterRemoving, Failure> {
        let name = cx.object().name_any();
        maps(cx).delete(&name, &DeleteParams::default()).await?;
        Ok(AfterRemoving::Next)
    }
}

impl Application for Operated {
    type Resource = Notice;

    async fn observe(&self, cx: &Context<Notice>) -> Result<Observation<NoticeState>, Failure> {
        let found = maps(cx).get_opt(&cx.object().name_any()).await?;
        Ok(match found {
            Some(_) => Observation::in_state(NoticeState::Posted),
            None => Observation::absent(),
        })
    }
}

/// Replaces what differs from run to run.
fn timeless(status: &mut Value) {
    match status {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_of_run = ["at", "since", "startedAt", "lastTransitionTime", "id"];
                if is_of_run.contains(&name.as_str()) {
                    *value = "-".into();
                }
                timeless(value);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(timeless),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the statuses that a notice goes through.
async fn statuses(place: &Place) -> Vec<Value> {
    place.create("hello").await;
    place.until_ready().await;
    place.change("good bye").await;
    place.until_text("good bye").await;
    place.until_ready().await;
    let gone = place.maps.delete("welcome", &DeleteParams::default()).await;
    gone.expect("accepted");
    tokio::time::sleep(Duration::from_mins(2)).await;
    place.until_ready().await;
    place.delete().await;
    place.until_gone().await;
    let mut all = place
        .server
        .versions()
        .resource("notices")
        .course("/status");
    all.iter_mut().for_each(timeless);
    all
}

#[tokio::test(start_paused = true)]
async fn a_controller_writes_the_statuses_that_the_operator_writes() {
    let place = Place::without_controller().await;
    let operator = Operator::new(place.server.client(), Operated).virtual_time();
    tokio::spawn(async move { operator.run(pending()).await.expect("it runs") });
    let of_operator = statuses(&place).await;
    let of_controller = statuses(&Place::new().await).await;
    assert!(of_operator.len() > 8, "{of_operator:#?}");
    assert_eq!(of_controller, of_operator);
}
