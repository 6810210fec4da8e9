//! One object, and the place where what it owns is: requests about it, and words for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::{DeleteParams, Preconditions};
use kube::core::Request;
use kube::{Api, Client, Resource};
use okt_core::reasons::resources as reasons;

use super::cluster::Cluster;
use super::declared::Resources;
use super::index::Key;
use super::kept::Kept;
use super::kind::Kind;
use crate::failure::Failure;
use crate::patience::answer;
use crate::texts::{chain, said_by_api};
use crate::wire::object::LifecycleObject;

/// The reason of a failure of an operator that does not lead.
pub(crate) const NOT_LEADING: &str = "NotLeading";

/// How many things are named in a message.
const NAMED: usize = 3;

/// One object, and the place where what it owns is.
pub(crate) struct Site<'a, K> {
    pub(crate) client: &'a Client,
    pub(crate) cluster: &'a Cluster<K>,
    pub(crate) object: &'a K,
    /// Asked before each write: the lead may be lost between two of them.
    pub(crate) may_write: &'a (dyn Fn() -> bool + Send + Sync),
}

impl<K: LifecycleObject> Site<'_, K> {
    pub(crate) fn uid(&self) -> &str {
        self.object.meta().uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn kind(&self, key: &Key) -> &Kind {
        &self.cluster.watches.owned[key.0]
    }

    /// What was made for the object.
    pub(crate) fn owned(&self) -> BTreeMap<Key, Arc<Kept>> {
        self.cluster.owned(self.object.meta())
    }

    /// What is neither made nor changed nor deleted.
    pub(crate) fn kept(&self, resources: &Resources) -> BTreeSet<Key> {
        let kept = resources.kept.iter();
        kept.filter_map(|(api, (namespace, name))| {
            let number = self.cluster.number_of(api)?;
            let kind = &self.cluster.watches.owned[number];
            let (namespace, name) =
                (self.cluster).placed(self.object, kind, namespace.as_deref(), name)?;
            Some((number, namespace, name))
        })
        .collect()
    }

    /// Deletes an object, and what it owns before it.
    pub(crate) async fn delete(&self, key: &Key, there: &Kept) -> Result<(), Failure> {
        self.check_leader()?;
        let what = self.told(key);
        let params = DeleteParams::foreground().preconditions(Preconditions {
            uid: there.meta().uid.clone(),
            resource_version: None,
        });
        match answer(self.send_deletion(key, &params)).await {
            Ok(()) => {
                let why = match &self.object.meta().deletion_timestamp {
                    Some(_) => "it goes before its object",
                    None => "it is no longer declared",
                };
                tracing::info!(resource = what, "deleted: {why}");
                Ok(())
            }
            // Most likely it is gone, and the event is under way; if not, it is told again.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(self.failure_of(key, &error)),
        }
    }

    /// Checks that this operator may still write.
    ///
    /// # Errors
    ///
    /// Where another one leads, or none: whoever comes next goes on.
    pub(crate) fn check_leader(&self) -> Result<(), Failure> {
        if (self.may_write)() {
            return Ok(());
        }
        let why = "this operator may not act now; the next one goes on";
        Err(Failure::retry(NOT_LEADING, why))
    }

    /// Asks for a deletion; the answer, which is the object or a status, is not read.
    async fn send_deletion(&self, key: &Key, params: &DeleteParams) -> Result<(), kube::Error> {
        let api = self.api(key);
        let request = Request::new(api.resource_url()).delete(&key.2, params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.client.request_text(request).await.map(drop)
    }

    pub(crate) fn api(&self, key: &Key) -> Api<Kept> {
        let api = &self.kind(key).api;
        match &key.1 {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, api),
            None => Api::all_with(self.client.clone(), api),
        }
    }

    /// What a request about an object that failed comes to.
    pub(crate) fn failure_of(&self, key: &Key, error: &kube::Error) -> Failure {
        failure_of(&self.told(key), self.kind(key).is_secret(), error)
    }

    /// An object, in words.
    pub(crate) fn told(&self, key: &Key) -> String {
        let kind = self.kind(key);
        match &key.1 {
            Some(namespace) if Some(namespace) != self.object.meta().namespace.as_ref() => {
                format!("{kind} {namespace}/{}", key.2)
            }
            Some(_) | None => format!("{kind} {}", key.2),
        }
    }
}

/// The first few, and how many more there are.
pub(crate) fn listed(all: &[String]) -> String {
    let named = &all[..all.len().min(NAMED)];
    let mut text = named.join("; ");
    if all.len() > NAMED {
        text.push_str(&format!("; and {} more", all.len() - NAMED));
    }
    text
}

/// What a request about an object that failed comes to.
///
/// A server and its webhooks quote what they refuse: of a secret object only the code and the reason are said.
fn failure_of(what: &str, is_secret: bool, error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else {
        return Failure::retry(reasons::UNANSWERED, format!("{what}: {}", chain(error)));
    };
    let message = if is_secret {
        tracing::debug!(resource = what, "refused: {}", status.message);
        format!("{what}: {} {}", status.code, status.reason)
    } else {
        format!("{what}: {}", said_by_api(error))
    };
    match status.code {
        400 | 422 => Failure::permanent(reasons::REFUSED, message),
        403 => Failure::retry(reasons::FORBIDDEN, message),
        404 => Failure::retry(reasons::NOT_FOUND, message),
        409 => Failure::retry(reasons::CONFLICT, message),
        _ => Failure::retry(reasons::FAILED, message),
    }
}
