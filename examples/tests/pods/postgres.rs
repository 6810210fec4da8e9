//! PostgreSQL in a Pod: the agent is the first process of its container.

use std::process::Command;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::DeleteParams;
use kube::{Api, Client};
use okt::VisitOutcome;
use okt_agent::client::{Clients, Endpoint};
use okt_examples::desk::{Desk, Trouble, position};
use okt_examples::postgres::life::{Postgres, PostgresState};
use okt_examples::postgres::pods::{Images, agent, operator};
use okt_examples::postgres::server::programs;
use okt_examples::postgres::writer::Writer;
use okt_examples::processes;
use okt_testing::{Kubernetes, free_ports};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::kubelet::{Image, Kubelet};
use crate::{AGENT_IMAGE, NAMESPACE, NodeDirectory, PATIENCE};

const NAME: &str = "orders";
const POSTGRES_IMAGE: &str = "postgres-with-scripts:17";
const AGENT: &str = "orders-postgres-agent";

/// Returns the number of PostgreSQL's user on this machine: a server that is started as root refuses.
fn user() -> u32 {
    if !rustix::process::geteuid().is_root() {
        return rustix::process::geteuid().as_raw();
    }
    let id = Command::new("id").args(["-u", "postgres"]).output();
    let id = String::from_utf8_lossy(&id.expect("it runs").stdout).into_owned();
    id.trim().parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and a real API server; run with --include-ignored"]
async fn a_postgresql_in_a_pod_lives_its_lifecycle_and_loses_no_commit() {
    let what = "a PostgreSQL in a Pod";
    let programs = match programs() {
        Ok(programs) => programs,
        Err(error) if std::env::var_os("CI").is_some() => panic!("{error}"),
        Err(error) => return eprintln!("skipped: {what}: {error}"),
    };
    let Some(server) = Kubernetes::start_or_skip(what).await.expect("a server") else {
        return;
    };
    let client = server.client();
    crate::define::<Postgres>(&client).await;
    let node = NodeDirectory::new();
    let [port] = free_ports().expect("a port");
    let images = Images {
        agent: AGENT_IMAGE,
        postgres: POSTGRES_IMAGE,
        programs: &programs,
        user: user(),
    };
    let agent = agent(&images).expect("a configuration");
    let agent = agent
        .port(port)
        .reached_at(move |_, _| format!("127.0.0.1:{port}"));
    let image = Image {
        paths: vec![(
            "/scripts".to_owned(),
            concat!(env!("CARGO_MANIFEST_DIR"), "/postgres").into(),
        )],
        ..Image::default()
    };
    let images_here = [(AGENT_IMAGE, crate::agent_image()), (POSTGRES_IMAGE, image)];
    let kubelet = Kubelet::new(client.clone(), NAMESPACE, images_here, node.path());
    let life = Life {
        desk: Desk {
            api: Api::namespaced(client.clone(), NAMESPACE),
            patience: PATIENCE,
        },
        client: client.clone(),
        node: &node,
        port,
        collects_garbage: server.collects_garbage(),
    };
    let outcome = tokio::select! {
        outcome = life.live() => outcome,
        ended = crate::operate(client, operator(&images, agent)) => Err(ended.into()),
        error = kubelet.run() => Err(error),
    };
    crate::end(node, server, outcome).await;
}

struct Life<'a> {
    desk: Desk<Postgres>,
    client: Client,
    node: &'a NodeDirectory,
    port: u16,
    collects_garbage: bool,
}

impl Life<'_> {
    async fn live(&self) -> Result<(), Trouble> {
        let socket = self
            .node
            .path()
            .join("orders-0/data/postgres/server/socket");
        self.desk.create(NAME, json!({})).await?;
        self.desk.until_ready(NAME, PostgresState::Running).await?;
        let writer = Writer::start(&socket);
        self.nobody_else_is_admitted().await?;
        self.killed_containers_go_on().await?;
        self.another_pod_goes_on().await?;
        let log = self.node.path().join("orders-0.log");
        let starts = || {
            Ok::<_, Trouble>(
                std::fs::read_to_string(&log)?
                    .matches("listens place")
                    .count(),
            )
        };
        let started = starts()?;
        self.another_secret_is_taken().await?;
        self.visited("Servicing").await?;
        assert_eq!(starts()?, started, "the agent was started again");
        let is_committed = async || Ok((writer.acknowledged() > 100).then_some(()));
        self.desk.wait("there are commits", is_committed).await?;
        let lost = async || Ok(writer.lost().await.ok());
        let lost = self.desk.wait("the server answers", lost).await?;
        if !lost.is_empty() {
            return Err(format!("lost: {lost:?}").into());
        }
        drop(writer);
        self.goes_with_all_that_it_needed().await
    }

    /// The agent is on TLS and wants its token, and the policy admits everybody to its port, as this operator is outside of the cluster.
    async fn nobody_else_is_admitted(&self) -> Result<(), Trouble> {
        let secret = self.api::<Secret>().get(AGENT).await?;
        let data = secret.data.unwrap_or_default();
        let certificate = String::from_utf8(data["tls.crt"].0.clone())?;
        let address = format!("https://127.0.0.1:{}", self.port);
        let known = Endpoint::parse(&address)?.server_name(format!("{AGENT}.{NAMESPACE}.svc"));
        let clients = Clients::default();
        let without_a_token = clients.of(&known.clone().ca_pem(&*certificate))?;
        let refused = without_a_token.status().await.expect_err("it has no token");
        assert!(refused.to_string().contains("Unauthorized"), "{refused}");
        let another_name = known.server_name("another-agent.default.svc");
        let unknown = clients.of(&another_name.ca_pem(&*certificate))?;
        let refused = unknown.status().await.expect_err("it proves its name only");
        assert!(refused.to_string().contains("certificate"), "{refused}");

        let policy = self.api::<NetworkPolicy>().get(AGENT).await?;
        let spec = policy.spec.unwrap_or_default();
        let ingress = serde_json::to_value(spec.ingress)?;
        assert_eq!(
            ingress,
            json!([{
                "ports": [{ "port": self.port, "protocol": "TCP" }],
            }])
        );
        Ok(())
    }

    async fn transition(&self) -> Result<u64, Trouble> {
        Ok(position(&self.desk.get(NAME).await?).map_or(0, |it| it.transition))
    }

    /// Waits until the server runs again, after more transitions than these.
    async fn goes_on_after(&self, before: u64) -> Result<(), Trouble> {
        let again =
            |postgres: &Postgres| position(postgres).is_some_and(|it| it.transition > before);
        self.desk.until(NAME, "starts again", again).await?;
        self.desk.until_ready(NAME, PostgresState::Running).await?;
        Ok(())
    }

    /// A Pod that somebody deletes comes again with its volume, whose group the kubelet has let in meanwhile.
    async fn another_pod_goes_on(&self) -> Result<(), Trouble> {
        let before = self.transition().await?;
        let pods = self.api::<Pod>();
        let uid = pods.get("orders-0").await?.metadata.uid;
        let now = DeleteParams::default().grace_period(0);
        pods.delete("orders-0", &now).await?;
        let is_another = async || {
            let pod = pods.get_opt("orders-0").await?;
            Ok(pod.filter(|pod| pod.metadata.uid != uid).map(drop))
        };
        self.desk.wait("another Pod", is_another).await?;
        self.goes_on_after(before).await
    }

    /// All processes of the Pod are killed, agent and server; the container starts again, and so does the server.
    async fn killed_containers_go_on(&self) -> Result<(), Trouble> {
        let before = self.transition().await?;
        for process in processes::of(&self.node.path().join("orders-0")) {
            // It may have ended with another one.
            let _ = kill_process(process, Signal::KILL);
        }
        self.goes_on_after(before).await
    }

    /// A deleted Secret is drawn again, and both sides use the new one without a restart.
    async fn another_secret_is_taken(&self) -> Result<(), Trouble> {
        let secrets = self.api::<Secret>();
        let old = secrets.get(AGENT).await?.data;
        secrets.delete(AGENT, &DeleteParams::default()).await?;
        let is_drawn = async || {
            let secret = secrets.get_opt(AGENT).await?;
            Ok(secret.filter(|it| it.data != old).map(drop))
        };
        self.desk.wait("another Secret", is_drawn).await
    }

    async fn visited(&self, state: &str) -> Result<(), Trouble> {
        let visit = json!({ "visit": { "state": state, "request": "backup" } });
        self.desk.ask_for(NAME, visit).await?;
        let is_done = |postgres: &Postgres| {
            let visit = position(postgres).and_then(|it| it.visit.as_ref());
            visit.is_some_and(|it| it.outcome == VisitOutcome::Reached)
        };
        self.desk
            .until(NAME, "has made the backup", is_done)
            .await?;
        Ok(())
    }

    async fn goes_with_all_that_it_needed(&self) -> Result<(), Trouble> {
        self.desk.delete(NAME).await?;
        self.desk.until_gone(NAME).await?;
        let data = self.node.path().join("orders-0/data/postgres/server/data");
        assert!(!data.exists(), "the data is there");
        if !self.collects_garbage {
            return Ok(());
        }
        let none = async || {
            let left = [
                self.api::<StatefulSet>().get_opt(NAME).await?.is_some(),
                self.api::<ConfigMap>().get_opt(AGENT).await?.is_some(),
                self.api::<Secret>().get_opt(AGENT).await?.is_some(),
                self.api::<Pod>().get_opt("orders-0").await?.is_some(),
            ];
            Ok((left == [false; 4]).then_some(()))
        };
        self.desk.wait("all is gone", none).await
    }

    fn api<T>(&self) -> Api<T>
    where
        T: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}
