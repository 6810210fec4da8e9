//! A release of an operator whose spec has more fields: only what somebody changed is a new revision.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::CustomResource;
use kube::api::{Patch, PatchParams};
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use okt_testing::{Fault, Verb};
use okt_tests::{Objects, Rig, Served};
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

            impl Served for Lanterns {}
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

release!(
    with_secret,
    {},
    fn watches(watches: okt::Watches<Lantern>) -> okt::Watches<Lantern> {
        (watches.refers::<Secret>(|_| vec!["oil".to_owned()])).in_revision()
    }
);

fn forty() -> u32 {
    40
}

/// Returns the number of transitions of the lantern.
async fn transitions<A: Served>(rig: &Rig<A>) -> u64 {
    let lantern = rig.raw().read("lantern").await;
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
    rig.create_ready("lantern", LanternState::Lit).await;
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
    rig.create_ready("lantern", LanternState::Lit).await;
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

/// Applies a change of the Secret; returns how many transitions it caused.
async fn rotate<A: Served>(rig: &Rig<A>, change: Value) -> u64 {
    let before = transitions(rig).await;
    let mut secret = change;
    secret["apiVersion"] = json!("v1");
    secret["kind"] = json!("Secret");
    secret["metadata"]["name"] = json!("oil");
    let secrets = rig.of::<Secret>();
    let params = PatchParams::apply("test").force();
    let applied = secrets.patch("oil", &params, &Patch::Apply(secret)).await;
    applied.expect("it is accepted");
    rig.pass(Duration::from_mins(2)).await;
    transitions(rig).await - before
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_referred_object_is_a_new_revision_if_it_is_declared_as_part_of_it() {
    let (_first, rig, before) = upgraded::<with_secret::Lanterns>().await;
    assert_eq!(transitions(&rig).await, before, "the release moves nothing");
    let secret = |text: &str| json!({ "stringData": { "oil": text } });
    assert_eq!(rotate(&rig, secret("whale")).await, 2, "it is there now");
    assert_eq!(rotate(&rig, secret("whale")).await, 0);
    assert_eq!(rotate(&rig, secret("colza")).await, 2);
    let mut labelled = secret("colza");
    labelled["metadata"] = json!({ "labels": { "a": "b" } });
    assert_eq!(rotate(&rig, labelled).await, 0, "only its metadata differ");
    assert_eq!(edit(&rig, json!({ "oil": 3 })).await, 2);
    let status = rig.raw().read("lantern").await.data["status"].to_string();
    for text in ["colza", "Y29semE"] {
        assert!(!status.contains(text), "{status}");
    }
    // Neither a restart, nor a role that does not allow to read it, is a change.
    let before = transitions(&rig).await;
    rig.kill().await;
    let fault = rig.inject(Fault::forbidden().on(Verb::List).resource("secrets"));
    rig.start();
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before);
    fault.end();
    rig.pass(Duration::from_mins(5)).await;
    assert_eq!(transitions(&rig).await, before);
    // What changes while no operator runs counts.
    rig.kill().await;
    assert_eq!(rotate(&rig, secret("olive")).await, 0);
    rig.start();
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before + 2);
    let secrets = rig.of::<Secret>();
    secrets.remove("oil").await;
    rig.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&rig).await, before + 4, "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_later_release_moves_nothing_where_the_desired_state_was_set_to_where_the_object_is() {
    let rig = Rig::<first::Lanterns>::of().await;
    rig.create_ready("lantern", LanternState::Lit).await;
    assert_eq!(
        edit(&rig, json!({ "lifecycle": { "state": "Lit" } })).await,
        0
    );
    let before = transitions(&rig).await;
    rig.kill().await;
    let next = Rig::<second::Lanterns>::beside(&rig).await;
    next.start();
    next.pass(Duration::from_mins(2)).await;
    assert_eq!(transitions(&next).await, before);
}
