//! Requests about resources of any kind.
//!
//! The functions return boxed futures, so that everything in them is compiled here, and not once more for each
//! application.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams};
use kube::core::Request;
use kube::runtime::watcher;
use kube::{Api, Client};
use okt_wire::api_timeout::answer;
use okt_wire::scope::api;
use okt_wire::watch::{Connection, change_objects, retried};
use serde_json::Value;

use super::kept::{Bare, Kept};
use super::kind::ResourceKind;
use super::names::ResourcePlace;

/// The answer to a request, with the error of the API server.
type Answer<'a, T> = BoxFuture<'a, Result<T, kube::Error>>;

/// Reads an object; none if it does not exist.
pub(super) fn read<'a>(client: &'a Client, place: ResourcePlace<'a>) -> Answer<'a, Option<Kept>> {
    async move { answer(api_at(client, place).get_opt(place.name)).await }.boxed()
}

/// Reads all of an object.
pub(super) fn read_whole<'a>(client: &'a Client, place: ResourcePlace<'a>) -> Answer<'a, Value> {
    let read = async move {
        let request = Request::new(api_at(client, place).resource_url())
            .get(place.name, &GetParams::default())
            .map_err(kube::Error::BuildRequest)?;
        client.request::<Value>(request).await
    };
    answer(read).boxed()
}

/// Lists objects of the kind and in the namespace of a place, whatever its name.
pub(super) fn list<'a>(
    client: &'a Client,
    place: ResourcePlace<'a>,
    params: ListParams,
) -> Answer<'a, Vec<Kept>> {
    async move {
        let found = answer(api_at(client, place).list(&params)).await?;
        Ok(found.items)
    }
    .boxed()
}

/// Changes an object; returns it as the API server stores it.
pub(super) fn patch<'a>(
    client: &'a Client,
    place: ResourcePlace<'a>,
    params: PatchParams,
    patch: Patch<Value>,
) -> Answer<'a, Kept> {
    async move { answer(api_at(client, place).patch(place.name, &params, &patch)).await }.boxed()
}

/// Deletes an object; ignores the body of the answer, which is the object or a status.
pub(super) fn delete<'a>(
    client: &'a Client,
    place: ResourcePlace<'a>,
    params: DeleteParams,
) -> Answer<'a, ()> {
    let delete = async move {
        let request = Request::new(api_at(client, place).resource_url())
            .delete(place.name, &params)
            .map_err(kube::Error::BuildRequest)?;
        client.request_text(request).await.map(drop)
    };
    answer(delete).boxed()
}

/// Returns the events of a kind, in one namespace or in all; with `is_bare` it watches the metadata alone.
pub(super) fn events(
    connection: &Connection,
    namespace: Option<&str>,
    kind: &ResourceKind,
    config: watcher::Config,
    is_bare: bool,
) -> BoxStream<'static, watcher::Result<watcher::Event<Kept>>> {
    let client = connection.for_watch(&kind.api.kind);
    let namespace = namespace.filter(|_| kind.namespaced);
    if is_bare {
        let bare_events = retried(watcher(api(&client, namespace, &kind.api), config));
        let events = bare_events.map(|event| change_objects(event?, |Bare(kept)| Ok(kept)));
        events.boxed()
    } else {
        retried(watcher(api(&client, namespace, &kind.api), config)).boxed()
    }
}

fn api_at(client: &Client, place: ResourcePlace<'_>) -> Api<Kept> {
    api(client, place.namespace, &place.kind.api)
}
