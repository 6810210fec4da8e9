//! Objects of three versions, converted by an operator that renews its certificates.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, CustomResourceExt, Resource, ResourceExt};
use okt_examples::tents::{v1, v1alpha1, v1beta1};
use okt_testing::{Kubernetes, free_ports};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::chaos::number;
use crate::replica::Replica;
use crate::{STAGE, in_time, show_logs, until};

/// How many tents there are.
const TENTS: usize = 30;

/// How often the certificate is renewed; `OKT_ROTATIONS` sets another number.
const ROTATIONS: usize = 3;

/// Returns the specs of all tents in a version, by name.
pub(crate) async fn specs<K>(client: &Client) -> Result<BTreeMap<String, Value>, kube::Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let all = api_of::<K>(client).list(&ListParams::default()).await?;
    let specs = all
        .items
        .into_iter()
        .map(|it| (it.name_any(), it.data["spec"].clone()));
    Ok(specs.collect())
}

/// Creates a tent of the first version that stands, as its operator would have left it.
async fn create(client: &Client, number: usize) {
    let tents: Api<v1alpha1::Tent> = Api::default_namespaced(client.clone());
    let name = format!("tent-{number:02}");
    let tent = json!({
        "apiVersion": "demo.okt.dev/v1alpha1", "kind": "Tent", "metadata": { "name": name },
        "spec": { "size": 2, "site": format!("river/{number}"), "stoves": 1, "color": "red" },
    });
    let tent = serde_json::from_value(tent).expect("a tent");
    tents
        .create(&PostParams::default(), &tent)
        .await
        .expect("it is accepted");
    let status = json!({ "status": { "lifecycle": {
        "state": "Pitching", "transition": 1, "jumps": 0, "trail": ">Pitching>",
        "history": [{ "transition": 1, "to": "Pitching", "cause": "New" }],
    } } });
    let parameters = PatchParams::default();
    let written = tents
        .patch_status(&name, &parameters, &Patch::Merge(status))
        .await;
    written.expect("it is accepted");
}

fn replica(kubernetes: &Kubernetes, name: &'static str, port: u16) -> Replica {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tents"));
    program
        .args(["run", "--leader-election", "--shards", "auto"])
        .args(["--webhook-address", &format!("127.0.0.1:{port}")])
        .args(["--webhook-cert-duration", "2m"]);
    Replica::start_program(name, kubernetes.kubeconfig(), program)
}

pub(crate) async fn apply(client: &Client, crd: &CustomResourceDefinition) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let parameters = PatchParams::apply("test").force();
    let applied = crds
        .patch(v1::Tent::crd_name(), &parameters, &Patch::Apply(crd))
        .await;
    applied.expect("it is accepted");
    let established = conditions::is_crd_established();
    let established = await_condition(crds, v1::Tent::crd_name(), established);
    let established = in_time("the definition is established", established).await;
    established.expect("it is watched");
}

pub(crate) async fn tents<
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
>(
    client: &Client,
) -> Vec<K> {
    let api: Api<K> = Api::default_namespaced(client.clone());
    api.list(&ListParams::default())
        .await
        .expect("a list")
        .items
}

/// Makes the next certificate of the webhooks due.
async fn renew(client: &Client) {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let due = json!({ "okt.dev/renew-certificate": Timestamp::now().to_string() });
    let due = Patch::Merge(json!({ "metadata": { "annotations": due } }));
    let parameters = PatchParams::default();
    let patched = secrets.patch("tents-webhook", &parameters, &due).await;
    patched.expect("the secret of the webhooks");
}

/// Lists all versions again and again, on more connections after each certificate: no request may fail.
async fn lists_while_certificates_are_renewed(
    client: &Client,
    replica: &Replica,
    first: &BTreeMap<String, Value>,
) {
    let (mut lists, begun) = (0, Instant::now());
    let rotations = number("OKT_ROTATIONS", ROTATIONS);
    for rotation in 0..rotations {
        renew(client).await;
        until("it has the certificate", async || {
            let oldest = join_all((0..=2 * rotation).map(|_| specs::<v1alpha1::Tent>(client)));
            for oldest in oldest.await {
                assert_eq!(oldest.expect("v1alpha1 is served"), *first);
                lists += 1;
            }
            specs::<v1beta1::Tent>(client)
                .await
                .expect("v1beta1 is served");
            specs::<v1::Tent>(client).await.expect("v1 is served");
            lists += 2;
            sleep(Duration::from_millis(50)).await;
            let taken = replica.lines("took the new certificate", begun).len();
            (taken > rotation).then_some(())
        })
        .await;
    }
    println!("{rotations} certificates, {lists} lists of {TENTS} tents, none refused");
}

/// Applies the policy of verbs: it knows the former names of states, so a guest who may only edit is refused by both.
async fn guard(kubernetes: &Kubernetes) {
    let client = kubernetes.client();
    let roles = okt::rbac::<v1::Camp>(&[""; 0], None).expect("roles");
    let mut objects = roles.objects().expect("JSON");
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "guest" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tents.demo.okt.dev:edit" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guest" }],
    }));
    objects.extend(okt::verb_policy::<v1::Camp>());
    for object in objects {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').expect("a group");
        let kind = GroupVersionKind::gvk(group, version, &text("kind"));
        let kind = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let name = object["metadata"]["name"].as_str().expect("a name");
        let parameters = PatchParams::apply("test").force();
        let applied = api.patch(name, &parameters, &Patch::Apply(&object)).await;
        applied.expect("it is accepted");
    }
    let mut config = kubernetes.config();
    config.auth_info.impersonate = Some("guest".to_owned());
    let guest = Client::try_from(config).expect("a client");
    let trial = PatchParams::default().dry_run();
    let lifecycle =
        |state: &str| Patch::Merge(json!({ "spec": { "lifecycle": { "state": state } } }));
    let oldest: Api<v1alpha1::Tent> = Api::default_namespaced(guest.clone());
    let newest: Api<v1::Tent> = Api::default_namespaced(guest);
    until("the policy is enforced", async || {
        let in_first = oldest.patch("tent-00", &trial, &lifecycle("Packed")).await;
        let in_last = newest.patch("tent-00", &trial, &lifecycle("Stowed")).await;
        let refused = [in_first.err()?.to_string(), in_last.err()?.to_string()];
        let lacks = |why: &String| why.contains("you need the verb `go-stowed`");
        refused.iter().all(lacks).then_some(())
    })
    .await;
}

/// Asks for another state, by the name that it has in the first version.
async fn a_user_of_the_first_version_packs_one(client: &Client) {
    let oldest: Api<v1alpha1::Tent> = Api::default_namespaced(client.clone());
    let packed = Patch::Merge(json!({ "spec": { "lifecycle": { "state": "Packed" }, "size": 3 } }));
    let patched = oldest
        .patch("tent-00", &PatchParams::default(), &packed)
        .await;
    patched.expect("it is accepted");
    let newest: Api<v1::Tent> = Api::default_namespaced(client.clone());
    let stowed = until("the tent is stowed", async || {
        let tent = newest.get("tent-00").await.expect("it is there");
        let position = tent.status.as_ref()?.lifecycle.as_ref()?;
        (position.state.known() == Some(v1::TentState::Stowed)).then_some(tent)
    })
    .await;
    assert_eq!(stowed.spec.people, 3);
    let seen = oldest.get("tent-00").await.expect("it is there");
    let seen = serde_json::to_value(seen).expect("JSON");
    assert_eq!(seen["status"]["lifecycle"]["state"], "Packed");
    assert_eq!(seen["spec"]["color"], "red");
}

/// Returns a definition whose objects are converted at a port of this machine.
pub(crate) fn converted_at(
    port: u16,
    mut crd: CustomResourceDefinition,
) -> CustomResourceDefinition {
    let conversion = crd.spec.conversion.as_mut();
    let webhook = conversion.and_then(|it| it.webhook.as_mut());
    let config = webhook.and_then(|it| it.client_config.as_mut());
    let config = config.expect("a webhook");
    config.service = None;
    let name = v1::Tent::crd_name();
    config.url = Some(format!("https://localhost:{port}/convert/{name}"));
    crd
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn objects_of_all_versions_are_converted_while_certificates_are_renewed() {
    let _stage = STAGE.lock().await;
    show_logs();
    let Some(kubernetes) = Kubernetes::start_or_skip("versions")
        .await
        .expect("a server")
    else {
        return;
    };
    let client = kubernetes.client();
    apply(&client, &okt::crd::<v1alpha1::Tent>().expect("a CRD")).await;
    for number in 0..TENTS {
        create(&client, number).await;
    }
    let first = specs::<v1alpha1::Tent>(&client).await.expect("a list");
    let ports: [u16; 2] = free_ports().expect("two ports");
    let replicas = [
        replica(&kubernetes, "first", ports[0]),
        replica(&kubernetes, "second", ports[1]),
    ];
    let crd = okt::crd::<v1::Tent>().expect("a CRD");
    apply(&client, &converted_at(ports[0], crd)).await;
    until("the definition trusts the webhook", async || {
        specs::<v1::Tent>(&client).await.ok()
    })
    .await;
    lists_while_certificates_are_renewed(&client, &replicas[0], &first).await;
    until("all tents stand", async || {
        let all = tents::<v1::Tent>(&client).await;
        let stands = |tent: &v1::Tent| {
            let status = tent.status.as_ref()?;
            status.lifecycle.as_ref()?.state.known()
        };
        all.iter()
            .all(|it| stands(it) == Some(v1::TentState::Standing))
            .then_some(())
    })
    .await;
    guard(&kubernetes).await;
    a_user_of_the_first_version_packs_one(&client).await;
    let answers = answers_while_nobody_converts(&client, replicas).await;
    assert_eq!(answers, WHILE_NOBODY_CONVERTS);
    kubernetes.stop().await;
}

/// What works while no webhook answers: docs/versions.md has it as a table.
const WHILE_NOBODY_CONVERTS: &str = "\
create v1: yes
get v1, of v1 only: yes
list v1: yes
patch v1, of v1 only: yes
apply v1, of v1 only: yes
patch v1, of both: yes
patch status v1, of both: yes
apply v1, of both: no
delete v1, of both: yes
delete v1, of v1 only: yes
get v1alpha1, of v1 only: no
create v1alpha1: no
delete v1alpha1, of v1 only: no
delete everything in the namespace: yes
";

/// Tries what users do once the replicas are gone. All tents are stored as `v1`; most were created as `v1alpha1`.
async fn answers_while_nobody_converts(client: &Client, replicas: [Replica; 2]) -> String {
    drop(replicas);
    let (first, last) = (api_of::<v1alpha1::Tent>(client), api_of::<v1::Tent>(client));
    until("no webhook answers", async || {
        first.get("tent-01").await.err().map(drop)
    })
    .await;
    let (parameters, deletion) = (PatchParams::default(), DeleteParams::default());
    let (listing, posting) = (ListParams::default(), PostParams::default());
    let tent = |name: &str, spec: Value, api: &str| {
        let kind = GroupVersionKind::gvk("demo.okt.dev", api, "Tent");
        let kind = ApiResource::from_gvk(&kind);
        DynamicObject::new(name, &kind).data(json!({ "spec": spec }))
    };
    let new = |name| {
        tent(
            name,
            json!({ "people": 2, "site": { "field": "hill" } }),
            "v1",
        )
    };
    let old = tent("old", json!({ "size": 2, "site": "hill" }), "v1alpha1");
    let more = Patch::Merge(json!({ "spec": { "people": 4 } }));
    let noted = Patch::Merge(json!({ "status": { "observedGeneration": 7 } }));
    let applying = PatchParams::apply("somebody").force();
    let applied_to = |name: &str| {
        let spec = json!({ "people": 3, "site": { "field": "river" } });
        Patch::Apply(tent(name, spec, "v1"))
    };
    let mut answers = String::new();
    let mut note = |what: &str, answer: Option<kube::Error>| {
        if let Some(why) = &answer {
            println!("{what}: {why}");
        }
        let works = if answer.is_none() { "yes" } else { "no" };
        answers.push_str(&format!("{what}: {works}\n"));
    };
    last.create(&posting, &new("other")).await.expect("created");
    note("create v1", last.create(&posting, &new("new")).await.err());
    note("get v1, of v1 only", last.get("new").await.err());
    note("list v1", last.list(&listing).await.err());
    let patched = last.patch("new", &parameters, &more).await;
    note("patch v1, of v1 only", patched.err());
    let applied = last.patch("new", &applying, &applied_to("new")).await;
    note("apply v1, of v1 only", applied.err());
    let patched = last.patch("tent-01", &parameters, &more).await;
    note("patch v1, of both", patched.err());
    let patched = last.patch_status("tent-01", &parameters, &noted).await;
    note("patch status v1, of both", patched.err());
    let applied = last
        .patch("tent-02", &applying, &applied_to("tent-02"))
        .await;
    note("apply v1, of both", applied.err());
    let deleted = last.delete("tent-01", &deletion).await;
    note("delete v1, of both", deleted.err());
    let deleted = last.delete("new", &deletion).await;
    note("delete v1, of v1 only", deleted.err());
    note("get v1alpha1, of v1 only", first.get("other").await.err());
    note("create v1alpha1", first.create(&posting, &old).await.err());
    let deleted = first.delete("other", &deletion).await;
    note("delete v1alpha1, of v1 only", deleted.err());
    let deleted = last.delete_collection(&deletion, &listing).await;
    note("delete everything in the namespace", deleted.err());
    answers
}

/// Returns the API of a version, without its types.
fn api_of<K>(client: &Client) -> Api<DynamicObject>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::default_namespaced_with(client.clone(), &ApiResource::erase::<K>(&()))
}
