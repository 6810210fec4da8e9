//! A cluster in the process with the database operator in it, and words to say what a test expects.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use okt_runtime::{Lifecycle, Operator, Position, crd};
use okt_testing::{ApiServer, RequestRecord};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::database::{Database, DatabaseState, Databases};

/// The longest wait for something to become so, in tokio time.
const PATIENCE: Duration = Duration::from_mins(60);

/// A cluster, a database script, and an operator that can be killed and started again.
///
/// Use it under paused tokio time.
pub struct Rig {
    /// The API server.
    pub server: ApiServer,
    /// A client of it.
    pub client: Client,
    /// The script of all databases.
    pub databases: Databases,
    operator: Option<JoinHandle<()>>,
}

impl Rig {
    /// A cluster with the CRD and a running operator.
    pub async fn new() -> Self {
        let mut rig = Self::without_operator().await;
        rig.start();
        rig
    }

    /// A cluster with the CRD and no operator yet.
    pub async fn without_operator() -> Self {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        let server = ApiServer::new();
        let client = server.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = crd::<Database>().expect("a CRD");
        crds.create(&PostParams::default(), &definition)
            .await
            .expect("the CRD is accepted");
        Self {
            server,
            client,
            databases: Databases::default(),
            operator: None,
        }
    }

    /// Starts the operator.
    pub fn start(&mut self) {
        let operator = Operator::new(self.client.clone(), self.databases.clone()).virtual_time();
        self.operator = Some(tokio::spawn(async move {
            operator
                .run(std::future::pending())
                .await
                .expect("the operator runs");
        }));
    }

    /// Kills the operator and all its work, as SIGKILL would.
    pub async fn kill(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
            let _ = operator.await;
        }
    }

    /// The databases of the cluster.
    pub fn api(&self) -> Api<Database> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates a database with this lifecycle field.
    pub async fn create(&self, name: &str, lifecycle: Value) -> Database {
        let database: Database = serde_json::from_value(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Database",
            "metadata": { "name": name },
            "spec": { "storage": "1Gi", "lifecycle": lifecycle },
        }))
        .expect("a database");
        self.api()
            .create(&PostParams::default(), &database)
            .await
            .expect("the database is accepted")
    }

    /// Changes the object as `kubectl patch` would.
    pub async fn patch(&self, name: &str, patch: Value) -> Database {
        self.api()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("the patch is accepted")
    }

    /// Changes the lifecycle field of the spec.
    pub async fn wish(&self, name: &str, lifecycle: Value) -> Database {
        self.patch(name, json!({ "spec": { "lifecycle": lifecycle } }))
            .await
    }

    /// Asks for the deletion.
    pub async fn delete(&self, name: &str) {
        self.api()
            .delete(name, &DeleteParams::default())
            .await
            .expect("the deletion is accepted");
    }

    /// The database; none when it is gone.
    pub async fn get(&self, name: &str) -> Option<Database> {
        self.api().get_opt(name).await.expect("a read")
    }

    /// The position of the database.
    pub async fn position(&self, name: &str) -> Option<Position<DatabaseState>> {
        self.get(name).await?.status?.lifecycle
    }

    /// A condition of the database.
    pub async fn condition(&self, name: &str, condition: &str) -> Option<Condition> {
        let conditions = self.get(name).await?.status?.conditions;
        conditions.into_iter().find(|c| c.type_ == condition)
    }

    /// Waits until something is so of the database, in tokio time.
    pub async fn until(&self, name: &str, what: &str, so: impl Fn(&Database) -> bool) -> Database {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let database = self.get(name).await;
            if let Some(database) = &database
                && so(database)
            {
                return database.clone();
            }
            if tokio::time::Instant::now() > deadline {
                panic!("waited in vain until {name} {what}: {}", pretty(&database));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the database is in this state.
    pub async fn until_in(&self, name: &str, state: DatabaseState) -> Database {
        self.until(name, &format!("is in {}", state.name()), |database| {
            at(database) == Some(state)
        })
        .await
    }

    /// Waits until the database is in this state and ready.
    pub async fn until_ready(&self, name: &str, state: DatabaseState) -> Database {
        self.until(name, &format!("is ready in {}", state.name()), |database| {
            at(database) == Some(state) && status_of(database, "Ready") == Some("True")
        })
        .await
    }

    /// Waits until the database has this reason in a condition.
    pub async fn until_reason(&self, name: &str, condition: &str, reason: &str) -> Condition {
        let database = self
            .until(name, &format!("says {condition} {reason}"), |database| {
                find(database, condition).is_some_and(|c| c.reason == reason)
            })
            .await;
        find(&database, condition).expect("just seen").clone()
    }

    /// Waits until the database is gone.
    pub async fn until_gone(&self, name: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while let Some(database) = self.get(name).await {
            if tokio::time::Instant::now() > deadline {
                panic!(
                    "waited in vain until {name} is gone: {}",
                    pretty(&Some(database))
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The writes of the operator since the requests were last cleared.
    pub fn writes(&self) -> Vec<RequestRecord> {
        (self.server.requests().into_iter())
            .filter(RequestRecord::is_write)
            .collect()
    }
}

fn at(database: &Database) -> Option<DatabaseState> {
    database.status.as_ref()?.lifecycle.as_ref()?.state.known()
}

fn find<'a>(database: &'a Database, condition: &str) -> Option<&'a Condition> {
    let conditions = &database.status.as_ref()?.conditions;
    conditions.iter().find(|c| c.type_ == condition)
}

fn status_of<'a>(database: &'a Database, condition: &str) -> Option<&'a str> {
    find(database, condition).map(|condition| condition.status.as_str())
}

fn pretty(value: &(impl serde::Serialize + Debug)) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| format!("{value:?}"))
}
