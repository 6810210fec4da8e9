//! A complete operator of game servers; each mistake changes one place of it.

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use okt::k8s_openapi::api::core::v1::{ConfigMap, Pod};
use okt::kube::CustomResource;
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{
    Action, Application, Context, Declared, Desired, Failure, LifecycleSpec, Observation,
    Resources, ResultExt, Status, Watches, Which, lifecycle_graph,
};

/// The life of a game server.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// The server starts.
    #[entry]
    #[trigger(Broken, after = "10m", on_error(attempts = 3))]
    #[child(Ready)]
    Starting,

    /// Players can be sent to the server.
    #[rest]
    #[condition(Allocatable)]
    #[trigger(Broken)]
    #[child(Updating)]
    #[child(Stopping)]
    Ready,

    /// The server loads another map.
    #[visit]
    #[child(Ready)]
    Updating,

    /// The players leave.
    #[child(Gone)]
    Stopping,

    /// The server needs a person.
    #[rest(hold, idle)]
    #[no_route(Ready, Updating, reason = "a broken server is replaced")]
    #[child(Stopping)]
    Broken,

    /// The server is gone.
    #[leaf(idle)]
    Gone,
}

/// The spec of a game server.
#[okt::crates]
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "game.example.com",
    version = "v1",
    kind = "Server",
    namespaced,
    status = "Status<ServerState>"
)]
pub struct ServerSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<ServerState>,
    /// The map.
    pub map: String,
}

/// Operates game servers.
pub struct Servers;

impl ServerStateHandler for Servers {
    type Context = Action<Server>;
    type Error = Failure;

    async fn starting(&self, cx: &Action<Server>) -> Result<server_state::AfterStarting, Failure> {
        cx.wait_ready(&[Which::of::<Pod>()]).await?;
        Ok(server_state::AfterStarting::Ready)
    }

    async fn ready(&self, cx: &Action<Server>) -> Result<server_state::AfterReady, Failure> {
        if cx.owned::<Pod>()?.is_empty() {
            return Ok(server_state::AfterReady::Broken);
        }
        Ok(server_state::AfterReady::Stay)
    }

    async fn updating(&self, cx: &Action<Server>) -> Result<server_state::AfterUpdating, Failure> {
        if cx.attempt() > 3 {
            return Err(Failure::permanent("NoMap", "the map does not load"));
        }
        load(&cx.object().spec.map).retry("NotLoaded")?;
        Ok(server_state::AfterUpdating::Wait(Duration::from_secs(5)))
    }

    async fn stopping(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {
        Ok(server_state::AfterStopping::Next)
    }
}

impl Application for Servers {
    type Resource = Server;

    fn watches(watches: Watches<Server>) -> Watches<Server> {
        watches.owns::<Pod>().owns::<ConfigMap>()
    }

    async fn observe(&self, cx: &Context<Server>) -> Result<Observation<ServerState>, Failure> {
        Ok(match cx.state().known() {
            Some(ServerState::Ready) => Observation::in_state(ServerState::Ready),
            Some(_) | None => Observation::unobserved(),
        })
    }

    async fn resources(&self, _: &Context<Server>, state: ServerState) -> Result<Resources, Failure> {
        Ok(match state {
            ServerState::Gone => Resources::new(),
            _ => Resources::new()
                .apply(ConfigMap::default())
                .with(Declared::of(Pod::default()).ready()),
        })
    }
}

fn load(_map: &str) -> Result<(), std::io::Error> {
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async { Ok::<_, Infallible>(Servers) }).await
}
