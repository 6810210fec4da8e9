//! A release of an operator whose spec has more fields: only what somebody changed is a new revision.

use std::time::Duration;

use kube::{Api, Client, CustomResource};
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use okt_tests::{Rig, Served};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LanternState {
    /// It is being lit.
    #[entry]
    #[child(Lit)]
    Lighting,

    /// It shines.
    #[rest(idle)]
    #[trigger(Trimming, on_change)]
    #[child(Trimming)]
    #[child(Resting)]
    Lit,

    /// Its wick is cut.
    #[child(Lit)]
    Trimming,

    /// It shines in another place.
    #[rest(idle)]
    #[child(Lit)]
    #[child(Out)]
    Resting,

    /// It is out.
    #[leaf(idle)]
    Out,
}

/// Makes a release of the operator, whose spec has these fields beside the first one.
macro_rules! release {
    ($release:ident, { $($fields:tt)* } $(, $revision:item)?) => {
        mod $release {
            use super::*;

            #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
            #[kube(
                group = "demo.okt.dev",
                version = "v1",
                kind = "Lantern",
                namespaced,
                status = "Status<LanternState>",
            )]
            pub(super) struct LanternSpec {
                #[serde(default)]
                pub(super) lifecycle: Desired<LanternState>,
                #[serde(default)]
                pub(super) oil: u32,
                $($fields)*
            }

            #[derive(Clone, Default)]
            pub(super) struct Lanterns;

            impl LanternStateHandler for Lanterns {
                type Context = Action<Lantern>;
                type Error = Failure;

                async fn lighting(&self, _: &Action<Lantern>) -> Result<lantern_state::AfterLighting, Failure> {
                    Ok(lantern_state::AfterLighting::Next)
                }

                async fn trimming(&self, _: &Action<Lantern>) -> Result<lantern_state::AfterTrimming, Failure> {
                    Ok(lantern_state::AfterTrimming::Next)
                }
            }

            impl Application for Lanterns {
                type Resource = Lantern;
                $($revision)?
            }

            impl Served for Lanterns {
                fn api(client: Client) -> Api<Lantern> {
                    Api::namespaced(client, "default")
                }
            }
        }
    };
}

release!(first, {});
release!(second, {
    #[serde(default)]
    pub(super) colour: Option<String>,
    #[serde(default = "forty")]
    pub(super) watts: u32,
});
release!(
    on_purpose,
    {},
    fn revision(object: &Lantern) -> impl Serialize + Send {
        ("again", object.spec.oil)
    }
);

fn forty() -> u32 {
    40
}

/// Returns the number of transitions of the lantern.
async fn transitions<A: Served>(rig: &Rig<A>) -> u64 {
    let lantern = rig.raw().get("lantern").await.expect("it is there");
    lantern.data["status"]["lifecycle"]["transition"]
        .as_u64()
        .expect("a number")
}

async fn edit<A: Served>(rig: &Rig<A>, spec: Value) -> u64 {
    let before = transitions(rig).await;
    rig.patch("lantern", json!({ "spec": spec })).await;
    rig.pass(Duration::from_mins(2)).await;
    transitions(rig).await - before
}

/// Lights a lantern with the first release, stops it, and starts the next one; returns its number of transitions.
async fn upgraded<B: Served>() -> (Rig<first::Lanterns>, Rig<B>, u64) {
    let rig = Rig::<first::Lanterns>::of().await;
    rig.create("lantern", json!({})).await;
    rig.until_ready("lantern", LanternState::Lit).await;
    let before = transitions(&rig).await;
    rig.kill().await;
    let next = Rig::<B>::beside(&rig).await;
    next.start();
    next.pass(Duration::from_mins(2)).await;
    (rig, next, before)
}

#[tokio::test(start_paused = true)]
async fn a_release_with_more_fields_in_the_spec_moves_nothing() {
    let (_first, rig, before) = upgraded::<second::Lanterns>().await;
    assert_eq!(transitions(&rig).await, before);
    // Neither does a change of the lifecycle field alone, before anything else was recorded, but for the way there and back.
    assert_eq!(
        edit(&rig, json!({ "lifecycle": { "state": "Resting" } })).await,
        1
    );
    assert_eq!(
        edit(&rig, json!({ "lifecycle": { "state": "Lit" } })).await,
        1
    );
    rig.restart().await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before + 2);
    // What somebody changes is a new revision, once.
    assert_eq!(edit(&rig, json!({ "colour": "red" })).await, 2);
    assert_eq!(edit(&rig, json!({ "oil": 7 })).await, 2);
    rig.restart().await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before + 6);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_spec_while_no_operator_runs_is_a_new_revision() {
    let rig = Rig::<first::Lanterns>::of().await;
    rig.create("lantern", json!({})).await;
    rig.until_ready("lantern", LanternState::Lit).await;
    rig.kill().await;
    rig.patch("lantern", json!({ "spec": { "oil": 9 } })).await;
    let before = transitions(&rig).await;
    rig.start();
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before + 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_says_a_new_revision_on_purpose_moves_its_objects() {
    let (_first, rig, before) = upgraded::<on_purpose::Lanterns>().await;
    assert_eq!(transitions(&rig).await, before + 2);
    rig.restart().await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before + 2);
}
