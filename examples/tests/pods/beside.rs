//! A shop in a Pod: the agent is a native sidecar beside the application.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Secret, VolumeMount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::DeleteParams;
use kube::{Api, CustomResource, ResourceExt};
use okt::sidecar::{AgentConfigError, AgentPods, InPods, PodAgent};
use okt::{
    Context, Delegated, Desired, Failure, LifecycleSpec, Resources, Status, Watches,
    lifecycle_graph,
};
use okt_examples::desk::{Desk, Trouble};
use okt_testing::{ApiServer, Kubernetes, free_ports};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kubelet::{Image, Kubelet};
use crate::{AGENT_IMAGE, NAMESPACE, NodeDirectory, PATIENCE};

#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShopState {
    /// The shop is opened.
    #[entry]
    #[child(Open)]
    Start,
    /// It sells.
    #[rest(idle)]
    #[child(Closing)]
    Open,
    /// It is closed.
    #[child(End)]
    Closing,
    /// It is closed for good.
    #[leaf(idle)]
    End,
}

/// A shop.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Shop",
    namespaced,
    status = "Status<ShopState>"
)]
pub(crate) struct ShopSpec {
    /// The desired lifecycle state.
    #[serde(default)]
    pub(crate) lifecycle: Desired<ShopState>,
}

/// What the agent does: it sees the application through the volume that both have.
const CONFIG: &str = "
probe: { command: [cat, /srv/state], every: 100ms }
states:
  Start: { command: [sh, -c, 'touch /srv/starts; until [ -f /srv/go ]; do sleep 0.1; done; touch /srv/open'], until: Open, timeout: 20m, repeatable: true }
  Closing: { command: [rm, -f, /srv/open], timeout: 5m, repeatable: true }
";

/// What the application does.
const APPLICATION: &str = "while true; do if [ -f /srv/open ]; then echo Open; else echo absent; fi > /srv/state.new; \
                           mv /srv/state.new /srv/state; sleep 0.1; done";

struct ShopPods {
    agent: PodAgent,
    /// The container that becomes the agent's, if it is not beside it.
    inside: Option<&'static str>,
}

fn agent() -> Result<PodAgent, AgentConfigError> {
    let agent = PodAgent::new(AGENT_IMAGE, CONFIG, "data")?;
    Ok(agent.container(|container| {
        container
            .volume_mounts
            .get_or_insert_default()
            .push(VolumeMount {
                name: "data".to_owned(),
                mount_path: "/srv".to_owned(),
                sub_path: Some("srv".to_owned()),
                ..VolumeMount::default()
            });
    }))
}

impl AgentPods for ShopPods {
    type Resource = Shop;

    fn agent(&self) -> &PodAgent {
        &self.agent
    }

    fn watches(watches: Watches<Shop>) -> Watches<Shop> {
        PodAgent::watches(watches).owns::<StatefulSet>()
    }

    async fn resources(&self, cx: &Context<Shop>, _: ShopState) -> Result<Resources, Failure> {
        let name = cx.object().name_any();
        let container = json!({
            "name": "shop", "image": "shop:1", "command": ["sh", "-c", APPLICATION],
            "ports": [{ "containerPort": 8080 }],
            "volumeMounts": [{ "name": "data", "mountPath": "/srv", "subPath": "srv" }],
        });
        let claim = json!({
            "metadata": { "name": "data" },
            "spec": { "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } } },
        });
        let mut set: StatefulSet = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": 1,
                "serviceName": "shops",
                "podManagementPolicy": "Parallel",
                "selector": { "matchLabels": { "shop": name } },
                "template": {
                    "metadata": { "labels": { "shop": name } },
                    "spec": { "containers": [container] },
                },
                "volumeClaimTemplates": [claim],
            },
        }))?;
        let template = &mut set.spec.template;
        let agent = match self.inside {
            None => self.agent.beside(cx, template)?,
            Some(container) => self.agent.inside(cx, template, container)?,
        };
        Ok(agent.apply(set))
    }
}

fn operator(agent: PodAgent, inside: Option<&'static str>) -> Delegated<InPods<ShopPods>> {
    Delegated(InPods::of(ShopPods { agent, inside }))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn an_agent_beside_an_application_does_its_work() {
    let what = "an agent as a native sidecar";
    let Some(server) = Kubernetes::start_or_skip(what).await.expect("a server") else {
        return;
    };
    let client = server.client();
    crate::define::<Shop>(&client).await;
    let node = NodeDirectory::new();
    let [port] = free_ports().expect("a port");
    let agent = agent().expect("a configuration").port(port);
    let agent = agent.reached_at(move |_, _| format!("127.0.0.1:{port}"));
    let images = [
        (AGENT_IMAGE, crate::agent_image()),
        ("shop:1", Image::default()),
    ];
    let kubelet = Kubelet::new(client.clone(), NAMESPACE, images, node.path());
    let desk: Desk<Shop> = Desk {
        api: Api::namespaced(client.clone(), NAMESPACE),
        patience: PATIENCE,
    };
    let life = async {
        // A Service could not be named after the last two.
        for name in [
            "corner",
            "1-shop",
            "a-shop-with-a-name-that-is-too-long-for-a-suffix",
        ] {
            desk.create(name, json!({})).await?;
            let volume = node.path().join(format!("{name}-0/data/srv"));
            let starts = async || Ok(volume.join("starts").exists().then_some(()));
            desk.wait("the work begins", starts).await?;
            if name == "corner" {
                another_secret_is_taken(&client, &desk).await?;
            }
            std::fs::write(volume.join("go"), "")?;
            desk.until_ready(name, ShopState::Open).await?;
            as_declared(&client, name, port).await?;
            desk.delete(name).await?;
            desk.until_gone(name).await?;
            assert!(!volume.join("open").exists(), "it is open");
        }
        Ok::<(), Trouble>(())
    };
    let outcome = tokio::select! {
        outcome = life => outcome,
        ended = crate::operate(client.clone(), operator(agent, None)) => Err(ended.into()),
        error = kubelet.run() => Err(error),
    };
    crate::end(node, server, outcome).await;
}

/// A Secret that is deleted during work is drawn again, and the operator follows the work with the new one.
async fn another_secret_is_taken(client: &kube::Client, desk: &Desk<Shop>) -> Result<(), Trouble> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let name = "corner-shop-agent";
    let old = secrets.get(name).await?.data;
    secrets.delete(name, &DeleteParams::default()).await?;
    let is_drawn = async || {
        let secret = secrets.get_opt(name).await?;
        Ok(secret.filter(|it| it.data != old).map(drop))
    };
    desk.wait("another Secret", is_drawn).await?;
    // The agent reads it within a second, and then ends the operator's present request within ten.
    tokio::time::sleep(Duration::from_secs(12)).await;
    Ok(())
}

/// The Pod has the sidecar, and the policy leaves the ports of the application open.
async fn as_declared(client: &kube::Client, name: &str, port: u16) -> Result<(), Trouble> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let pod = serde_json::to_value(pods.get(&format!("{name}-0")).await?)?;
    let sidecar = &pod["spec"]["initContainers"][0];
    assert_eq!(sidecar["restartPolicy"], "Always");
    assert_eq!(sidecar["securityContext"]["runAsNonRoot"], true);
    let agent = pod["metadata"]["labels"]["okt.dev/agent"].as_str();
    let policies: Api<NetworkPolicy> = Api::namespaced(client.clone(), NAMESPACE);
    let policy = policies.get(agent.unwrap_or_default()).await?;
    let policy: Value = serde_json::to_value(policy.spec)?;
    // The operator of this test is outside of the cluster.
    let of_operator = json!({ "ports": [{ "port": port, "protocol": "TCP" }] });
    let of_everybody = json!({ "ports": [{ "port": 8080, "protocol": "TCP" }] });
    assert_eq!(policy["ingress"], json!([of_operator, of_everybody]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_have_the_agent_is_reported() {
    for (container, why) in [
        ("shop", "the container `shop` has a command of its own"),
        ("store", "the Pod has no container `store`"),
    ] {
        let server = ApiServer::new();
        crate::define::<Shop>(&server.client()).await;
        let desk: Desk<Shop> = Desk {
            api: Api::namespaced(server.client(), NAMESPACE),
            patience: PATIENCE,
        };
        desk.create("corner", json!({}))
            .await
            .expect("it is accepted");
        let agent = agent().expect("a configuration");
        let app = operator(agent, Some(container));
        let operator = okt::Operator::new(server.client_named("operator"), app).virtual_time();
        let running = tokio::spawn(operator.run(std::future::pending()));
        let is_said = |shop: &Shop| {
            let conditions = shop.status.iter().flat_map(|it| &it.conditions);
            conditions
                .into_iter()
                .any(|it| it.reason == "BadAgentPod" && it.message.contains(why))
        };
        desk.until("corner", "says why", is_said)
            .await
            .expect("a condition");
        running.abort();
    }
}

/// Returns the namespace from which the agent's port is reached, and what is declared for a shop that has this Secret.
async fn declared(agent: &PodAgent, secret: Option<&Secret>) -> (Value, Vec<Value>) {
    let shop = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Shop",
        "metadata": { "name": "corner", "namespace": "street", "uid": "1" }, "spec": {},
    });
    let mut cx = okt_testing::context::<Shop>(serde_json::from_value(shop).expect("a shop"))
        .watches(ShopPods::watches);
    if let Some(secret) = secret {
        cx = cx.owned(secret);
    }
    let pods = ShopPods {
        agent: agent.clone(),
        inside: None,
    };
    let resources = pods.resources(&cx.build(), ShopState::Open).await;
    let objects = resources.expect("no failure").objects().expect("objects");
    (objects[3]["spec"]["ingress"][0].clone(), objects)
}

#[tokio::test]
async fn what_is_declared_stays_the_same_until_the_configuration_changes() {
    let agent = agent().expect("a configuration");
    let (ingress, first) = declared(&agent, None).await;
    // The client of a test is in this namespace, the shop is in another one.
    let home = json!({ "matchLabels": { "kubernetes.io/metadata.name": "default" } });
    assert_eq!(ingress["from"], json!([{ "namespaceSelector": home }]));
    let secret: Secret = serde_json::from_value(first[0].clone()).expect("a Secret");
    let (_, again) = declared(&agent, Some(&secret)).await;
    assert_eq!(again, first, "the Secret is kept");
    let (_, other) = declared(&agent, None).await;
    assert_ne!(other[0], first[0], "each Secret is drawn");
    let changed = format!("{CONFIG}limits: {{ connections: 7 }}\n");
    let changed = PodAgent::new(AGENT_IMAGE, changed, "data").expect("a configuration");
    let (_, changed) = declared(&changed, Some(&secret)).await;
    let annotations = "/spec/template/metadata/annotations/okt.dev~1agent-config";
    assert_ne!(
        changed[4].pointer(annotations),
        first[4].pointer(annotations)
    );
    let sidecar = &first[4]["spec"]["template"]["spec"]["initContainers"][0];
    let probe = json!({ "path": "/livez", "port": 8470, "scheme": "HTTPS" });
    assert_eq!(sidecar["startupProbe"]["httpGet"], probe);
    assert_eq!(sidecar["livenessProbe"]["httpGet"], probe);
    assert_eq!(first[2]["spec"]["publishNotReadyAddresses"], true);
}

#[test]
fn a_configuration_that_no_pod_can_have_is_refused() {
    for (config, why) in [
        (
            "listen: 0.0.0.0:1",
            "must not have `listen`: it follows from the Pod",
        ),
        ("tokenFile: /a", "must not have `tokenFile`"),
        ("data: /a", "must not have `data`"),
        ("object: { name: a }", "must not have `object`"),
        ("[]", "is no table in YAML"),
        (
            "  probe: { http: \"http://127.0.0.1/\" }",
            "at the beginning of their lines",
        ),
        (
            "{ probe: { http: \"http://127.0.0.1/\" } }",
            "at the beginning of their lines",
        ),
        (
            "---\nprobe: { http: \"http://127.0.0.1/\" }",
            "no table in YAML",
        ),
        ("probe: [", "is no table in YAML"),
    ] {
        let refused = PodAgent::new(AGENT_IMAGE, config, "data").expect_err(config);
        assert!(refused.to_string().contains(why), "{config}: {refused}");
    }
}
