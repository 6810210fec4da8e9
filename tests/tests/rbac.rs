//! These tests check that the roles of `rbac` grant all requests of an operator, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use kube::{Api, Client, Config};
use okt::{Answer, Application, Declared, Operator, Resources, ServiceAccount, crd, rbac};
use okt_testing::{Kubernetes, Verb};
use okt_tests::{
    Database, DatabaseState::*, Databases, OPERATOR, Objects, Reply, Rig, Served, ShopState::Open,
    Shops, Sight, Stalls, in_time,
};
use serde_json::{Value, json};

/// Returns the RBAC verb of a request.
fn verb(verb: Verb) -> String {
    match verb {
        Verb::Apply => "patch".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_granted_what_it_asks_for_and_no_more() {
    let rig = Rig::<Databases>::lenient().await;
    rig.start();
    rig.create_ready("db", Running).await;
    for _ in 0..2 {
        // The object is observed as gone: a jump and its event, which the second jump repeats.
        let slowly = Reply::After(Duration::from_secs(1), Answer::Next);
        rig.app.next_time(Start, slowly);
        rig.app.sees("db", Sight::Absent);
        rig.until_in("db", Start).await;
        rig.app.sees("db", Sight::In(Running));
        rig.until_ready("db", Running).await;
    }
    // An object that does not decode is read as JSON.
    rig.patch("db", json!({ "spec": { "storage": 5 } })).await;
    rig.pass(Duration::from_secs(5)).await;
    let mut granted = granted::<Databases>();
    // Only clusters in which owner references block deletions need this permission.
    assert!(granted.remove("update demo.okt.dev/databases/finalizers"));
    assert_eq!(granted, asked(&rig));
}

/// Returns the API of an object's kind.
fn dynamic(rig: &Rig<Shops>, object: &Value) -> Api<DynamicObject> {
    let types: TypeMeta = serde_json::from_value(object.clone()).expect("its types");
    let kind = GroupVersionKind::try_from(&types).expect("a kind");
    let api = ApiResource::from_gvk(&kind);
    if kind.kind == "ClusterRole" {
        Api::all_with(rig.client.clone(), &api)
    } else {
        Api::namespaced_with(rig.client.clone(), "default", &api)
    }
}

#[tokio::test(start_paused = true)]
async fn roles_grant_owned_and_referred_kinds_and_no_more() {
    let rig = Rig::<Shops>::without_operator_of().await;
    let declared = |object| Declared::dynamic(object).unowned().prunable();
    let mut resources = Resources::new();
    let mut foreign = Vec::new();
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("apps/v1", "Deployment"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ] {
        let mut object =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } });
        if kind == "Deployment" {
            let labels = json!({ "app": "a" });
            object["spec"] = json!({
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "a", "image": "a" }] },
                },
            });
        }
        foreign.push(object.clone());
        resources = resources.with(declared(object));
    }
    // These objects have the names first, belong to another owner, and are read before the report of `NotOwned`.
    for object in &foreign {
        dynamic(&rig, object).make(object.clone()).await;
    }
    rig.app.declare(resources);
    rig.start();
    rig.create("shop", json!({})).await;
    rig.until_reason("shop", "Ready", "NotOwned").await;
    for object in &foreign {
        let there = dynamic(&rig, object);
        there.remove("a").await;
    }
    rig.until_ready("shop", Open).await;
    rig.app.declare(Resources::new());
    rig.pass(Duration::from_mins(1)).await;
    let of_others = |what: &String| !what.contains("demo.okt.dev") && !what.contains("events");
    let granted: BTreeSet<_> = granted::<Shops>().into_iter().filter(of_others).collect();
    let mut asked: BTreeSet<_> = asked(&rig).into_iter().filter(of_others).collect();
    // An apply of a missing object is a creation too.
    for kind in [
        "/configmaps",
        "/secrets",
        "apps/deployments",
        "rbac.authorization.k8s.io/clusterroles",
    ] {
        asked.insert(format!("create {kind}"));
    }
    assert_eq!(granted, asked);
}

#[test]
fn referred_and_watched_kinds_get_only_list_and_watch() {
    let granted = granted::<Stalls>();
    let verbs = |what: &str| -> Vec<&str> {
        let all = granted.iter().filter_map(|it| it.split_once(' '));
        all.filter(|(_, it)| *it == what)
            .map(|(verb, _)| verb)
            .collect()
    };
    for watched in ["/serviceaccounts", "/secrets", "/services"] {
        assert_eq!(verbs(watched), ["list", "watch"], "{watched}");
    }
    for owned in ["/configmaps", "batch/jobs"] {
        let all = ["create", "delete", "get", "list", "patch", "watch"];
        assert_eq!(verbs(owned), all, "{owned}");
    }
}

/// Returns the requests of the operator, as `verb group/resource`.
fn asked<A: Served>(rig: &Rig<A>) -> BTreeSet<String> {
    (rig.server.requests().iter())
        .filter(|request| request.client == OPERATOR && !request.resource.is_empty())
        .map(|request| {
            let sub = request.subresource.as_deref();
            let sub = sub.map_or_else(String::new, |sub| format!("/{sub}"));
            let verb = verb(request.verb);
            format!("{verb} {}/{}{sub}", request.group, request.resource)
        })
        .collect()
}

/// Returns the permissions of an operator's role.
fn granted<A: Application>() -> BTreeSet<String> {
    let roles = rbac::<A>(&[] as &[&str], None).expect("it is namespaced");
    let mut granted = BTreeSet::new();
    for rule in roles.cluster_roles[0].rules.iter().flatten() {
        let group = &rule.api_groups.as_ref().expect("a group")[0];
        for resource in rule.resources.iter().flatten() {
            let verbs = rule.verbs.iter();
            granted.extend(verbs.map(|verb| format!("{verb} {group}/{resource}")));
        }
    }
    granted
}

/// Waits until a condition holds, for ten minutes at most.
async fn until<T>(what: &str, mut so: impl AsyncFnMut() -> Option<T>) -> T {
    let waited = async {
        loop {
            if let Some(value) = so().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    in_time(what, waited).await
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn on_a_real_server_the_printed_roles_are_enough_and_grant_no_more() {
    let started = Kubernetes::start_or_skip("the roles of an operator").await;
    let Some(kubernetes) = started.expect("a server") else {
        return;
    };
    let admin = kubernetes.client();
    let account: ServiceAccount = "ops/databases".parse().expect("an account");
    for name in ["ops", "team-a", "team-b"] {
        let namespace: Namespace =
            serde_json::from_value(json!({ "metadata": { "name": name } })).expect("a namespace");
        let made = Api::all(admin.clone())
            .create(&PostParams::default(), &namespace)
            .await;
        made.expect("a namespace");
    }
    let definition = crd::<Database>().expect("a CRD");
    let made = Api::all(admin.clone())
        .create(&PostParams::default(), &definition)
        .await;
    made.expect("the CRD is accepted");
    let roles = rbac::<Databases>(&["team-a"], Some(&account)).expect("it is namespaced");
    for object in roles.objects().expect("JSON") {
        create(&admin, object).await;
    }
    let databases: Api<Database> = Api::namespaced(admin.clone(), "team-a");
    until("the kind is served", async || {
        databases.list(&ListParams::default()).await.ok()
    })
    .await;

    let client = as_account(kubernetes.config(), &account);
    let app = Databases::default();
    let operator = Operator::new(client.clone(), app.clone()).namespaces(["team-a"]);
    let operator = tokio::spawn(operator.run(std::future::pending()));
    let mut object = Databases::object("db", json!({}));
    object["metadata"]["namespace"] = json!("team-a");
    create(&admin, object).await;
    let ready = async || {
        let status = databases.get("db").await.ok()?.status?;
        let ready = status.conditions.iter().find(|c| c.type_ == "Ready")?;
        (ready.status == "True").then_some(status.lifecycle?.transition)
    };
    let before = until("it is ready", ready).await;
    app.sees("db", Sight::Absent);
    touch(&databases).await;
    let moved = async || ready().await.filter(|transition| *transition > before);
    until("it was found in another state", async || {
        let position = databases.get("db").await.ok()?.status?.lifecycle?;
        (position.transition > before).then_some(())
    })
    .await;
    app.sees("db", Sight::In(Running));
    touch(&databases).await;
    until("it is ready again", moved).await;
    let events: Api<Event> = Api::namespaced(admin.clone(), "team-a");
    until("the jump is told", async || {
        let events = events.list(&ListParams::default()).await.ok()?.items;
        events
            .into_iter()
            .find(|event| event.reason.as_deref() == Some("JumpedToStart"))
    })
    .await;
    databases.remove("db").await;
    until("it is gone", async || {
        databases.get_opt("db").await.ok()?.is_none().then_some(())
    })
    .await;

    let secrets: Api<Secret> = Api::namespaced(client.clone(), "team-a");
    let elsewhere: Api<Database> = Api::namespaced(client, "team-b");
    let refused = [
        secrets.list(&ListParams::default()).await.map(drop),
        elsewhere.list(&ListParams::default()).await.map(drop),
    ];
    for refused in refused {
        match refused {
            Err(kube::Error::Api(status)) => assert_eq!(status.code, 403),
            other => panic!("it may read what is not its own: {other:?}"),
        }
    }
    operator.abort();
    let _ = operator.await;
    kubernetes.stop().await;
}

/// Returns a client that impersonates this service account.
fn as_account(mut config: Config, account: &ServiceAccount) -> Client {
    config.auth_info.impersonate = Some(format!(
        "system:serviceaccount:{}:{}",
        account.namespace, account.name
    ));
    Client::try_from(config).expect("a client")
}

/// Creates an object of any kind, as `kubectl create` does.
async fn create(client: &Client, object: serde_json::Value) {
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let types = object.types.clone().expect("types");
    let kind = GroupVersionKind::try_from(types).expect("a kind");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match object.metadata.namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let made = api.create(&PostParams::default(), &object).await;
    made.unwrap_or_else(|error| panic!("{}: {error}", kind.kind));
}

/// Causes a reconciliation at once instead of within half a minute.
async fn touch(databases: &Api<Database>) {
    let now = format!("{:?}", std::time::SystemTime::now());
    let patch = json!({ "metadata": { "annotations": { "touched": now } } });
    let patch = kube::api::Patch::Merge(patch);
    let touched = databases
        .patch("db", &kube::api::PatchParams::default(), &patch)
        .await;
    touched.expect("an annotation");
}

#[tokio::test(start_paused = true)]
async fn a_replica_is_granted_what_it_asks_for_and_no_more() {
    let server = okt_testing::ApiServer::new();
    let join = |name: &str| {
        let group = okt::Group::new("databases", "default")
            .replica(name)
            .virtual_time();
        okt::Membership::join(server.client_named(OPERATOR), group)
    };
    // A replica dies, another one deletes its lease, and leaves.
    let dead = join("dead");
    let alive = join("alive");
    tokio::time::sleep(Duration::from_secs(40)).await;
    drop(dead);
    tokio::time::sleep(Duration::from_secs(40)).await;
    alive.leave().await;
    let asked: BTreeSet<(String, String)> = (server.requests().into_iter())
        .filter(|request| request.client == OPERATOR)
        .map(|request| (request.resource, verb(request.verb)))
        .collect();
    let account = ServiceAccount {
        namespace: "ops".to_owned(),
        name: "databases".to_owned(),
    };
    let roles = okt::lease_roles("databases", &account);
    let rules = roles.roles[0].rules.clone().expect("rules");
    let granted: BTreeSet<(String, String)> = (rules.iter())
        .flat_map(|rule| {
            rule.verbs
                .iter()
                .map(|verb| ("leases".to_owned(), verb.clone()))
        })
        .collect();
    assert_eq!(asked, granted);
}
