//! The rest of the programs that the docs show in part: clients of imaginary services, and Kubernetes objects.

use okt::k8s_openapi::api::apps::v1::{Deployment, StatefulSet};

pub(super) use super::lifecycle::{DatabaseState, DatabaseStateHandler, database_state};

/// An error of an imaginary service.
#[derive(Debug, thiserror::Error)]
#[error("the service does not answer")]
pub(super) struct ServiceError;

/// A client of a DNS service.
pub(super) struct Dns;

impl Dns {
    pub(super) fn connect() -> Self {
        Self
    }

    pub(super) async fn add(&self, _host: &str) -> Result<(), ServiceError> {
        Ok(())
    }

    pub(super) async fn remove(&self, _host: &str) -> Result<(), ServiceError> {
        Ok(())
    }
}

/// A client of database servers.
pub(super) struct Servers;

pub(super) struct Server {
    pub(super) is_corrupt: bool,
}

pub(super) struct Backup {
    pub(super) is_complete: bool,
    pub(super) files: u32,
    pub(super) all_files: u32,
}

impl Servers {
    pub(super) fn fake() -> Self {
        Self
    }

    pub(super) async fn initialize<T>(&self, _: &T, _id: &str) -> Result<(), ServiceError> {
        Ok(())
    }

    pub(super) async fn back_up<T>(&self, _: &T, _id: &str) -> Result<Backup, ServiceError> {
        Ok(Backup {
            is_complete: true,
            files: 10,
            all_files: 10,
        })
    }

    pub(super) async fn disconnect_clients<T>(&self, _: &T) -> Result<(), ServiceError> {
        Ok(())
    }

    pub(super) async fn find<T>(&self, _: &T) -> Result<Option<Server>, ServiceError> {
        Ok(Some(Server { is_corrupt: false }))
    }
}

pub(super) fn deployment<T>(_: &T) -> Deployment {
    Deployment::default()
}

pub(super) fn stateful_set<T>(_: &T) -> StatefulSet {
    StatefulSet::default()
}

pub(super) fn ready_stateful_set() -> StatefulSet {
    serde_json::from_value(serde_json::json!({
        "metadata": { "name": "db", "generation": 1 },
        "spec": { "replicas": 1, "selector": {}, "serviceName": "db", "template": {} },
        "status": { "observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1 },
    }))
    .expect("a StatefulSet")
}
