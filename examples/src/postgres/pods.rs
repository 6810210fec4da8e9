//! PostgreSQL servers in Kubernetes: each is a `StatefulSet`, and the agent is the first process of its container.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;
use okt::sidecar::{AgentConfigError, AgentPods, InPods, PodAgent};
use okt::{Context, Declared, Delegated, Failure, Resources, Watches};

use super::life::{Postgres, PostgresState};
use super::server::Places;

const STATEFUL_SET: &str = include_str!("../../postgres/statefulset.yaml");

/// The images of the Pods.
#[derive(Clone, Debug)]
pub struct Images<'a> {
    /// The agent's: `okt-sidecar/Dockerfile`.
    pub agent: &'a str,
    /// PostgreSQL's: `examples/postgres/Dockerfile`.
    pub postgres: &'a str,
    /// The programs of PostgreSQL, in its image.
    pub programs: &'a Path,
    /// The number of its user there.
    pub user: u32,
}

/// The Pods of the servers.
#[derive(Clone, Debug)]
pub struct PostgresPods {
    agent: PodAgent,
    image: String,
    user: u32,
}

/// Returns the agent of servers from these images.
///
/// # Errors
///
/// None: the configuration is that of this crate.
pub fn agent(images: &Images<'_>) -> Result<PodAgent, AgentConfigError> {
    let places = Places {
        home: Path::new("/var/lib/postgresql/server"),
        scripts: Path::new("/scripts"),
        programs: images.programs,
    };
    // The container has the user, and ends with its agent.
    let config = places.configuration(None, "stop");
    PodAgent::new(images.agent, config, "data")
}

/// Creates the operator of servers from these images, with this agent.
pub fn operator(images: &Images<'_>, agent: PodAgent) -> Delegated<InPods<PostgresPods>> {
    let pods = PostgresPods {
        agent,
        image: images.postgres.to_owned(),
        user: images.user,
    };
    // An observation is one request.
    let InPods(agents, pods) = InPods::of(pods);
    Delegated(InPods(
        agents.observe_every(|_| Duration::from_secs(5)),
        pods,
    ))
}

impl AgentPods for PostgresPods {
    type Resource = Postgres;

    fn agent(&self) -> &PodAgent {
        &self.agent
    }

    fn watches(watches: Watches<Postgres>) -> Watches<Postgres> {
        PodAgent::watches(watches).owns::<StatefulSet>()
    }

    async fn resources(
        &self,
        cx: &Context<Postgres>,
        _: PostgresState,
    ) -> Result<Resources, Failure> {
        let manifest = STATEFUL_SET
            .replace("@NAME@", &cx.object().name_any())
            .replace("@IMAGE@", &self.image)
            .replace("@USER@", &self.user.to_string());
        let mut set: StatefulSet = serde_saphyr::from_str(&manifest)?;
        let template = &mut set.spec.template;
        let agent = self.agent.inside(cx, template, "postgres")?;
        // It stays until the work on the way out is done, however the object is deleted.
        Ok(agent.with(Declared::of(set).unowned().during_deletion()))
    }
}
