//! The operator of docs/observing.md.
use super::surroundings::*;

use std::time::Duration;

use okt::k8s_openapi::api::apps::v1::StatefulSet;
use okt::kube::CustomResource;
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{
    Action, Application, Context, Desired, Failure, LifecycleSpec, Observation, Resources,
    ResultExt, Status, Watches, Which,
};

#[okt::crates]
#[derive(
    CustomResource, LifecycleSpec, Clone, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Database",
    namespaced,
    status = "Status<DatabaseState>"
)]
pub struct DatabaseSpec {
    #[serde(default)]
    pub lifecycle: Desired<DatabaseState>,
    pub storage: String,
}

/// The operator; `Servers` is a client of the database servers.
pub struct Databases {
    servers: Servers,
}

impl DatabaseStateHandler for Databases {
    type Context = Action<Database>;
    type Error = Failure;

    async fn start(&self, cx: &Action<Database>) -> Result<database_state::AfterStart, Failure> {
        cx.wait_ready(&[Which::of::<StatefulSet>()]).await?;
        // The server keeps the id, and does nothing if it has initialized the directory for this id before.
        self.servers
            .initialize(cx.object(), cx.id())
            .await
            .retry("NotInitialized")?;
        Ok(database_state::AfterStart::Running)
    }

    async fn running(&self, _: &Action<Database>) -> Result<database_state::AfterRunning, Failure> {
        Ok(database_state::AfterRunning::Stay)
    }

    async fn servicing(
        &self,
        cx: &Action<Database>,
    ) -> Result<database_state::AfterServicing, Failure> {
        // Begins the backup of this id, or returns its progress.
        let backup = self
            .servers
            .back_up(cx.object(), cx.id())
            .await
            .retry("NoBackup")?;
        if !backup.is_complete {
            cx.progress(format!("{} of {} files", backup.files, backup.all_files));
            return Ok(database_state::AfterServicing::Wait(Duration::from_secs(
                10,
            )));
        }
        Ok(database_state::AfterServicing::Next)
    }

    async fn stopping(
        &self,
        cx: &Action<Database>,
    ) -> Result<database_state::AfterStopping, Failure> {
        self.servers
            .disconnect_clients(cx.object())
            .await
            .retry("ClientsStay")?;
        Ok(database_state::AfterStopping::End)
    }
}

impl Application for Databases {
    type Resource = Database;

    fn watches(watches: Watches<Database>) -> Watches<Database> {
        watches.owns::<StatefulSet>()
    }

    async fn observe(&self, cx: &Context<Database>) -> Result<Observation<DatabaseState>, Failure> {
        Ok(match self.servers.find(cx.object()).await {
            Ok(Some(server)) if server.is_corrupt => {
                Observation::in_state(DatabaseState::Running).event(DatabaseState::Failed)
            }
            Ok(Some(_)) => Observation::in_state(DatabaseState::Running),
            Ok(None) => Observation::absent(),
            Err(error) => Observation::unreachable(error),
        })
    }

    async fn resources(
        &self,
        cx: &Context<Database>,
        state: DatabaseState,
    ) -> Result<Resources, Failure> {
        Ok(match state {
            DatabaseState::End => Resources::new(),
            _ => Resources::new().apply(stateful_set(cx.object())),
        })
    }
}

#[tokio::test]
async fn a_database_runs_once_its_server_is_initialized() {
    let object = Database::new("db", DatabaseSpec::default());
    let cx = okt_testing::action(object)
        .attempt(2)
        .owned(&ready_stateful_set())
        .build();
    let databases = Databases {
        servers: Servers::fake(),
    };
    let next = databases.start(&cx).await;
    assert!(
        matches!(next, Ok(database_state::AfterStart::Running)),
        "{next:?}"
    );
}
