//! A plain kube controller, without OKT, that creates the desired number of workers of a pool.
//!
//! It has two variants: a common wrong one, and a correct one.

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

/// The desired number of workers; a worker is a `ConfigMap` here, and a machine in production.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "demo.okt.dev", version = "v1", kind = "Pool", namespaced)]
pub(crate) struct PoolSpec {
    pub(crate) workers: usize,
}

/// How the controller decides which workers to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bookkeeping {
    /// It counts the workers in its cache, and creates one more if there are too few. This is wrong:
    /// the cache may not contain the worker that it created a moment ago.
    Count,
    /// It derives the name of each worker from the pool, and creates those that its cache does not
    /// contain. It cannot create the same worker twice.
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
    // Create the next one in a second, in the belief that the cache contains this one by then.
    Ok(Action::requeue(Duration::from_secs(1)))
}

fn on_error(_: Arc<Pool>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(1))
}
