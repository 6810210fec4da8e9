//! A plain controller of kube, without OKT: it makes so many workers as a pool wants.
//!
//! It is here twice: as many people write it first, and as it is right.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::PostParams,
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        reflector::{self, Store},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So many workers are wanted; a worker is a `ConfigMap` here, and a machine in earnest.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "demo.okt.dev", version = "v1", kind = "Pool", namespaced)]
pub(crate) struct PoolSpec {
    pub(crate) workers: usize,
}

/// How the controller finds out which workers to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bookkeeping {
    /// It counts those in its cache, and makes one more if there are too few. This is wrong: the
    /// cache does not have the one that it made a moment ago.
    Count,
    /// It gives each a name that follows from the pool, and makes those that its cache does not
    /// have. One that is there after all cannot be made twice.
    Names,
}

struct Context {
    client: Client,
    workers: Store<ConfigMap>,
    bookkeeping: Bookkeeping,
}

/// Runs the controller; it does not end by itself.
pub(crate) async fn run(client: Client, bookkeeping: Bookkeeping) {
    let (workers, writer) = reflector::store();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let cache = watcher(maps, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .for_each(|_| async {});

    let pools: Api<Pool> = Api::default_namespaced(client.clone());
    let context = Context {
        client,
        workers,
        bookkeeping,
    };
    let controller = Controller::new(pools, watcher::Config::default())
        .run(reconcile, on_error, Arc::new(context))
        .for_each(|_| async {});
    tokio::join!(cache, controller);
}

async fn reconcile(pool: Arc<Pool>, context: Arc<Context>) -> kube::Result<Action> {
    if context.workers.wait_until_ready().await.is_err() {
        return Ok(Action::await_change());
    }
    let known: Vec<_> = (context.workers.state().into_iter())
        .filter(|map| {
            map.owner_references()
                .iter()
                .any(|owner| Some(&owner.uid) == pool.meta().uid.as_ref())
        })
        .map(|map| map.name_any())
        .collect();
    let mut worker = ConfigMap::default();
    worker.metadata.owner_references = pool.controller_owner_ref(&()).map(|owner| vec![owner]);
    match context.bookkeeping {
        Bookkeeping::Count if known.len() < pool.spec.workers => {
            worker.metadata.generate_name = Some(format!("{}-", pool.name_any()));
        }
        Bookkeeping::Count => return Ok(Action::await_change()),
        Bookkeeping::Names => {
            let mut names =
                (0..pool.spec.workers).map(|number| format!("{}-{number}", pool.name_any()));
            let Some(missing) = names.find(|name| !known.contains(name)) else {
                return Ok(Action::await_change());
            };
            worker.metadata.name = Some(missing);
        }
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    match maps.create(&PostParams::default(), &worker).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        made => drop(made?),
    }
    // One after the other; in a second the cache has this one, one should think.
    Ok(Action::requeue(Duration::from_secs(1)))
}

fn on_error(_: Arc<Pool>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(1))
}
