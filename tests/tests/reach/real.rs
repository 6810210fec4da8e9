//! These tests use a real API server with the roles that `rbac` prints, and nodes with scripted kubelets.

use k8s_openapi::api::core::v1::{
    Namespace, Node as KubeNode, Pod, Service, ServiceAccount as Account,
};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Config, CustomResource, Resource};
use okt::reach::{Exec, Output, Reach, ReachError};
use okt::{
    Action, Application, Desired, Failure, LifecycleSpec, ServiceAccount, Status, Watches,
    lifecycle_graph, rbac,
};
use okt_testing::Kubernetes;
use okt_tests::in_time;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::node::{Answer, CLOSE, Node, STDIN, STDOUT, Socket, V4, V5};
use okt_tests::Objects;

/// The life of an application that reaches into its pods.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeState {
    /// It begins.
    #[entry]
    #[child(End)]
    Start,

    /// It has ended.
    #[leaf(idle)]
    End,
}

/// The spec of a probe.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Probe",
    namespaced,
    status = "Status<ProbeState>"
)]
pub(crate) struct ProbeSpec {
    #[serde(default)]
    lifecycle: Desired<ProbeState>,
}

struct Probes;

impl ProbeStateHandler for Probes {
    type Context = Action<Probe>;
    type Error = Failure;

    async fn start(&self, _: &Action<Probe>) -> Result<probe_state::AfterStart, Failure> {
        Ok(probe_state::AfterStart::Next)
    }
}

impl Application for Probes {
    type Resource = Probe;

    fn watches(watches: Watches<Probe>) -> Watches<Probe> {
        watches.execs().forwards()
    }
}

#[test]
#[ignore = "needs a real API server; run with --include-ignored"]
fn the_roles_grant_what_reach_needs_cluster_wide_and_per_namespace() {
    let everywhere = rbac::<Probes>(&[] as &[&str], None).expect("roles");
    let in_one = rbac::<Probes>(&["team"], None).expect("roles");
    for rules in [&everywhere.cluster_roles[0].rules, &in_one.roles[0].rules] {
        let rules = serde_json::to_value(rules).expect("JSON");
        for (resource, verbs) in [
            ("pods", json!(["get", "list"])),
            ("pods/exec", json!(["get", "create"])),
            ("pods/portforward", json!(["get", "create"])),
            ("services", json!(["get"])),
        ] {
            let expected = json!({ "apiGroups": [""], "resources": [resource], "verbs": verbs });
            let found = rules
                .as_array()
                .is_some_and(|rules| rules.contains(&expected));
            assert!(found, "{resource} in {rules}");
        }
    }
    let cluster = serde_json::to_string(&in_one.cluster_roles).expect("JSON");
    assert!(!cluster.contains("pods"), "{cluster}");
}

/// Runs a command; the API server takes a moment to know a role that is bound.
async fn permitted(exec: impl Fn() -> Exec) -> Result<Output, ReachError> {
    loop {
        match exec().run().await {
            Err(ReachError::Forbidden { .. }) => {}
            output => return output,
        }
    }
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn on_a_real_server_the_printed_roles_suffice_to_reach_pods() {
    let started = Kubernetes::start_or_skip("exec and port-forward").await;
    let Some(kubernetes) = started.expect("a server") else {
        return;
    };
    let minor = kubernetes
        .version()
        .split('.')
        .nth(1)
        .and_then(|it| it.parse::<u32>().ok());
    if minor.is_none_or(|minor| minor < 36) {
        // Older servers speak SPDY to nodes, which these scripts do not support.
        println!(
            "skipped: {} does not speak WebSocket to nodes",
            kubernetes.version()
        );
        return;
    }
    let admin = kubernetes.client();
    let (execs, exec_port) = Node::kubelet(Answer::speak(V5, shout)).await;
    let (forwards, forward_port) = Node::kubelet(Answer::speak(V4, echo)).await;
    furnish(&admin, exec_port, forward_port).await;

    let reach = Reach::outside(as_account(kubernetes.config(), "probes"));
    let exec = |pod: &str| reach.exec("team", pod, ["tr", "a-z", "A-Z"]);
    let hello = || exec("shell-0").container("app").stdin("hello");
    let output = in_time("a command", permitted(hello)).await;
    assert_eq!(output.expect("it ends well").stdout_text(), "HELLO");
    let asked = execs.asked();
    assert!(asked[0].starts_with("/exec/team/shell-0/app?"), "{asked:?}");
    let failed = in_time("a command", exec("shell-0").stdin("fail").run()).await;
    let failed = failed.expect_err("it fails");
    assert!(
        matches!(failed, ReachError::CommandFailed { code: 4, .. }),
        "{failed:?}"
    );

    let route = in_time("a route", reach.service("team", "db", 80))
        .await
        .expect("a route");
    let mut stream = TcpStream::connect(route.to_string())
        .await
        .expect("a connection");
    stream.write_all(b"ping").await.expect("it is sent");
    let mut heard = [0; 4];
    in_time("an echo", stream.read_exact(&mut heard))
        .await
        .expect("an echo");
    assert_eq!(&heard, b"ping");
    let asked = forwards.asked();
    assert!(asked[0].starts_with("/portForward/team/db-0"), "{asked:?}");

    for (pod, container, expected) in [
        ("none", None, "`tr` in team/none: there is no such pod"),
        ("waiting", None, "`tr` in team/waiting: the pod is Pending"),
        (
            "shell-0",
            Some("web"),
            "`tr` in team/shell-0: the pod has no container `web`, only app",
        ),
    ] {
        let exec = exec(pod);
        let exec = match container {
            Some(container) => exec.container(container),
            None => exec,
        };
        let error = in_time("a refusal", exec.run()).await.expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
    let away = in_time("a refusal", exec("away-0").run())
        .await
        .expect_err("its node is away");
    assert!(
        away.retry_helps() && !matches!(away, ReachError::Forbidden { .. }),
        "{away:?}"
    );

    let stranger = Reach::outside(as_account(kubernetes.config(), "stranger"));
    let refused = [
        stranger
            .exec("team", "shell-0", ["ls"])
            .run()
            .await
            .map(drop),
        stranger.pod("team", "db-0", 5432).await.map(drop),
        stranger.service("team", "db", 80).await.map(drop),
        Reach::inside(as_account(kubernetes.config(), "stranger"))
            .pod("team", "db-0", 1)
            .await
            .map(drop),
        reach
            .exec("default", "shell-0", ["ls"])
            .run()
            .await
            .map(drop),
    ];
    for refused in refused {
        let error = refused.expect_err("it is not allowed");
        assert!(matches!(error, ReachError::Forbidden { .. }), "{error:?}");
    }
    clean(&admin).await;
    kubernetes.stop().await;
}

/// Sends its input back in capitals; fails if the input says so.
async fn shout(mut socket: Socket) {
    let mut input = Vec::new();
    while let Some((channel, bytes)) = socket.heard().await {
        match channel {
            STDIN => input.extend(bytes),
            CLOSE => {
                if input == b"fail" {
                    return socket.exit(4).await;
                }
                socket.send(STDOUT, input.to_ascii_uppercase()).await;
                return socket.exit(0).await;
            }
            _ => {}
        }
    }
}

/// Sends back all data of port 5432.
async fn echo(mut socket: Socket) {
    for channel in [0, 1] {
        socket.send(channel, 5432_u16.to_le_bytes()).await;
    }
    while let Some((0, bytes)) = socket.heard().await {
        socket.send(0, bytes).await;
    }
}

/// Creates the namespace with its roles, nodes, pods and a Service.
async fn furnish(admin: &Client, exec_port: u16, forward_port: u16) {
    let namespace = json!({ "metadata": { "name": "team" } });
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    namespaces.make(namespace).await;
    make::<Account>(admin, json!({ "metadata": { "name": "default" } })).await;
    let account: ServiceAccount = "team/probes".parse().expect("an account");
    let roles = rbac::<Probes>(&["team"], Some(&account)).expect("roles");
    for role in roles.roles {
        make::<Role>(admin, json!(role)).await;
    }
    for binding in roles.role_bindings {
        make::<RoleBinding>(admin, json!(binding)).await;
    }
    for (node, port) in [
        ("execs", exec_port),
        ("forwards", forward_port),
        ("away", 1),
    ] {
        let nodes: Api<KubeNode> = Api::all(admin.clone());
        nodes.make(json!({ "metadata": { "name": node } })).await;
        // The node speaks WebSocket itself, so the server passes everything on.
        let status = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        } });
        let patched = nodes
            .patch_status(node, &PatchParams::default(), &Patch::Merge(status))
            .await;
        patched.expect("a status");
    }
    for (pod, node) in [
        ("shell-0", Some("execs")),
        ("db-0", Some("forwards")),
        ("away-0", Some("away")),
        ("waiting", None),
    ] {
        let containers = json!([{ "name": "app", "image": "x" }]);
        let spec = json!({ "nodeName": node, "schedulerName": "nobody", "containers": containers, "automountServiceAccountToken": false });
        let metadata = json!({ "name": pod, "labels": { "app": pod } });
        make::<Pod>(admin, json!({ "metadata": metadata, "spec": spec })).await;
        if node.is_some() {
            let pods: Api<Pod> = Api::namespaced(admin.clone(), "team");
            let ready = json!([{ "type": "Ready", "status": "True" }]);
            let running = json!({ "status": { "phase": "Running", "conditions": ready } });
            let patch = Patch::Merge(running);
            let patched = pods
                .patch_status(pod, &PatchParams::default(), &patch)
                .await;
            patched.expect("a status");
        }
    }
    let ports = json!([{ "port": 80, "targetPort": 5432 }]);
    let spec = json!({ "selector": { "app": "db-0" }, "ports": ports });
    let service = json!({ "metadata": { "name": "db" }, "spec": spec });
    make::<Service>(admin, service).await;
}

/// Deletes the nodes; the server or its controllers delete the namespace.
async fn clean(admin: &Client) {
    let nodes: Api<KubeNode> = Api::all(admin.clone());
    for node in ["execs", "forwards", "away"] {
        nodes.remove(node).await;
    }
    let pods: Api<Pod> = Api::namespaced(admin.clone(), "team");
    for pod in ["shell-0", "db-0", "away-0", "waiting"] {
        let now = DeleteParams::default().grace_period(0);
        pods.delete(pod, &now).await.expect("a deletion");
    }
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    namespaces.remove("team").await;
}

fn of<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("an object")
}

async fn make<K>(admin: &Client, object: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(admin.clone(), "team");
    let made = api.create(&PostParams::default(), &of(object)).await;
    made.unwrap_or_else(|error| panic!("{}: {error}", K::kind(&())));
}

/// Returns a client that impersonates this service account of the namespace.
fn as_account(mut config: Config, name: &str) -> Client {
    config.auth_info.impersonate = Some(format!("system:serviceaccount:team:{name}"));
    Client::try_from(config).expect("a client")
}
