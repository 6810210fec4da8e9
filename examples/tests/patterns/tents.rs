//! The three versions of tents: what is converted, what is kept, and what users change meanwhile.

use std::convert::Infallible;
use std::future::pending;

use http::{Request, Response, StatusCode};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::client::Body;
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use okt::{Operator, crd, webhooks_of};
use okt_examples::tents::v1::{Camp, Tent};
use okt_examples::tents::v1alpha1;
use okt_testing::{ApiServer, versions};
use okt_wire::versions::KindVersions;
use serde_json::{Value, json};
use tower::service_fn;

fn converted(object: &Value, to: &str) -> Value {
    let versions = KindVersions::of::<Tent>();
    versions
        .convert(object.clone(), to)
        .expect("it is converted")
}

fn tent(version: &str, spec: &Value, state: &str) -> Value {
    json!({
        "apiVersion": format!("demo.okt.dev/{version}"),
        "kind": "Tent",
        "metadata": { "name": "a" },
        "spec": spec,
        "status": { "lifecycle": {
            "state": state, "transition": 3, "jumps": 0, "rounds": 1, "revision": "", "changed": "",
            "trail": format!(">Standing>Striking>{state}>"), "graph": "",
            "history": [{ "transition": 3, "from": "Striking", "to": state, "cause": "Next" }],
        } },
    })
}

fn first() -> Value {
    let spec =
        json!({ "lifecycle": { "state": "Packed" }, "size": 4, "site": "river/12", "stoves": 2 });
    tent("v1alpha1", &spec, "Packed")
}

#[test]
fn renamed_moved_and_split_fields_and_a_renamed_state_are_where_they_belong() {
    let new = converted(&first(), "v1");
    let spec = json!({
        "lifecycle": { "state": "Stowed" }, "people": 4, "stoves": 2,
        "site": { "field": "river", "place": 12 },
    });
    assert_eq!(new, tent("v1", &spec, "Stowed"));
    assert_eq!(converted(&new, "v1alpha1"), first());
}

#[test]
fn what_a_version_cannot_hold_comes_back_unless_somebody_changed_it() {
    let spec = json!({
        "people": 4, "site": "river", "notice": "Quiet!",
        "equipment": { "stoves": 1, "lamps": [{ "place": "door", "watts": 5 }, { "place": "roof", "watts": 9 }] },
    });
    let before = tent("v1beta1", &spec, "Standing");
    let mut first = converted(&before, "v1alpha1");
    assert_eq!(converted(&first, "v1beta1"), before);
    // A user of the oldest version gives it another site; a user of the newest version removes a lamp.
    first["spec"]["site"] = json!("wood/3");
    let mut newest = converted(&first, "v1");
    assert_eq!(newest["spec"]["lamps"], json!(["door", "roof"]));
    newest["spec"]["lamps"] = json!(["roof", "porch"]);
    let after = converted(&newest, "v1beta1");
    let lamps = json!([{ "place": "roof", "watts": 9 }, { "place": "porch" }]);
    assert_eq!(after["spec"]["equipment"]["lamps"], lamps);
    assert_eq!(after["spec"]["site"], "wood/3");
    assert_eq!(after["spec"]["notice"], "Quiet!");
    assert_eq!(after["metadata"], before["metadata"]);
}

#[test]
fn an_object_that_cannot_be_read_goes_on_as_it_is_and_comes_back() {
    let spec = json!({ "size": "many", "site": ["river"] });
    let broken = tent("v1alpha1", &spec, "Packed");
    let new = converted(&broken, "v1");
    assert_eq!(new["apiVersion"], "demo.okt.dev/v1");
    assert_eq!(converted(&new, "v1alpha1"), broken);
}

#[test]
fn an_object_of_another_version_or_none_at_all_is_refused() {
    let versions = KindVersions::of::<Tent>();
    let refusal = |object: Value, to: &str| {
        versions
            .convert(object, to)
            .expect_err("refused")
            .to_string()
    };
    let unknown = "this release of the operator does not have the version v2";
    assert_eq!(refusal(first(), "v2"), unknown);
    assert_eq!(refusal(tent("v2", &json!({}), "Packed"), "v1"), unknown);
    let nothing = "this is no object with an apiVersion and metadata";
    assert_eq!(
        refusal(json!({ "apiVersion": "demo.okt.dev/v1" }), "v1beta1"),
        nothing
    );
    assert_eq!(refusal(json!([]), "v1"), nothing);
}

#[test]
fn a_crd_has_all_versions_and_stores_the_newest() {
    let crd = crd::<Tent>().expect("a CRD");
    let versions: Vec<_> = crd
        .spec
        .versions
        .iter()
        .map(|it| (&*it.name, it.served, it.storage))
        .collect();
    assert_eq!(
        versions,
        [
            ("v1", true, true),
            ("v1beta1", true, false),
            ("v1alpha1", true, false)
        ]
    );
    // An API server warns of formats that only Rust has.
    let text = serde_json::to_string(&crd).expect("JSON");
    assert!(!text.contains("\"uint"), "{text}");
    assert_eq!(crd.spec.conversion.expect("one").strategy, "Webhook");
}

#[test]
fn random_objects_of_every_version_are_the_same_when_they_come_back() {
    let objects = std::env::var("OKT_OBJECTS")
        .ok()
        .and_then(|it| it.parse().ok());
    versions::check::<Tent>(objects.unwrap_or(50));
}

/// The Service that the definition names.
const SERVICE: (&str, &str) = ("default", "tents-webhook");

/// Returns a server with the definition of tents, and their operator.
async fn camp() -> ApiServer {
    let server = ApiServer::new();
    server.set_service(SERVICE.0, SERVICE.1, webhooks_of::<Camp>());
    let definition = crd::<Tent>().expect("a CRD");
    let definitions = Api::all(server.client());
    let params = PostParams::default();
    let made = definitions.create(&params, &definition).await;
    made.expect("it is created");
    let operator = Operator::new(server.client_named("operator"), Camp).virtual_time();
    tokio::spawn(async move { operator.run(pending()).await.expect("it runs") });
    server
}

/// Returns the tents in their oldest version.
fn oldest(client: Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("demo.okt.dev", "v1alpha1", "Tent");
    Api::default_namespaced_with(client, &ApiResource::from_gvk(&kind))
}

async fn create_packed(tents: &Api<DynamicObject>) {
    let mut tent = first();
    let fields = tent.as_object_mut().expect("an object");
    fields.remove("status");
    let tent = serde_json::from_value(tent).expect("an object");
    let made = tents.create(&PostParams::default(), &tent).await;
    assert_eq!(
        made.expect("it is created").data["spec"]["site"],
        "river/12"
    );
}

async fn until_stowed(server: &ApiServer) {
    let tents: Api<Tent> = Api::default_namespaced(server.client());
    let is_stowed = |tent: Option<&Tent>| {
        let position = tent.and_then(|tent| tent.status.as_ref()?.lifecycle.as_ref());
        position.is_some_and(|position| position.state.as_str() == "Stowed")
    };
    let stowed = await_condition(tents, "a", is_stowed).await;
    stowed.expect("a watch");
}

#[tokio::test(start_paused = true)]
async fn the_operator_acts_on_an_object_of_an_older_version_whose_users_see_only_that_version() {
    let server = camp().await;
    let tents = oldest(server.client());
    create_packed(&tents).await;
    until_stowed(&server).await;
    let seen = tents.get("a").await.expect("it is there");
    assert_eq!(seen.data["status"]["lifecycle"]["state"], "Packed");
    assert_eq!(seen.data["spec"]["size"], 4);
    let seen: v1alpha1::Tent = seen.try_parse().expect("a tent of the oldest version");
    assert_eq!(seen.name_any(), "a");
}

#[tokio::test(start_paused = true)]
async fn while_the_webhook_fails_the_operator_acts_and_only_users_of_another_version_wait() {
    let server = camp().await;
    let tents = oldest(server.client());
    create_packed(&tents).await;
    let failing = service_fn(|_: Request<Body>| async {
        let mut response = Response::new(String::new());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Ok::<_, Infallible>(response)
    });
    server.set_service(SERVICE.0, SERVICE.1, failing);
    until_stowed(&server).await;
    let failed = tents.get("a").await.expect_err("nobody converts it");
    let why = "conversion webhook for demo.okt.dev/v1, Kind=Tent failed: ";
    assert!(failed.to_string().contains(why), "{failed}");
    server.set_service(SERVICE.0, SERVICE.1, webhooks_of::<Camp>());
    let seen = tents.get("a").await.expect("it is converted again");
    assert_eq!(seen.data["status"]["lifecycle"]["state"], "Packed");
}
