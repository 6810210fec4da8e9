//! Brings the cluster to what an application declares for a state: applies, repairs, deletes, and waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource};
use okt_core::backoff::Backoff;
use serde_json::Value;
use tokio::time::Instant;

use super::cluster::{Cluster, Key, Name, named_from};
use super::declared::{Declared, Resources};
use super::drift::{covers, owned_fields};
use super::kept::Kept;
use super::kind::Kind;
use super::ready::unready;
use super::stamp::{Applied, OWNER_LABEL, PRUNE_ANNOTATION, Place};
use crate::failure::{Failure, chain};
use crate::object::LifecycleObject;
use crate::patience::answer;

/// How long it must be quiet until a repair counts as the first one again.
const QUIET: Duration = Duration::from_mins(10);

/// How many things are named in a message.
const NAMED: usize = 3;

/// How what an object should have in the cluster stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Settlement {
    /// Everything is as it was declared, and ready where that was asked for.
    #[default]
    AsDeclared,
    /// Something is not ready, or not gone, yet: what, and why.
    Awaited(String),
    /// Something could not be done.
    Failed(Failure),
}

/// What is remembered of an object's resources beside what the cluster shows.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    made: BTreeMap<Key, Repair>,
    /// What could not be brought to be owned whole: the fields that are, by object.
    accepted: BTreeMap<Key, Value>,
}

#[derive(Debug)]
struct Repair {
    times: u32,
    last: Instant,
}

impl Repairs {
    pub(crate) fn is_empty(&self) -> bool {
        self.made.is_empty() && self.accepted.is_empty()
    }

    /// Forgets what is long ago.
    fn rest(&mut self) {
        self.made.retain(|_, repair| repair.last.elapsed() < QUIET);
    }

    /// How long a repair has to wait: who changes the same again and again is not fought at full speed.
    fn wait(&self, key: &Key, backoff: &Backoff, seed: u64) -> Option<Duration> {
        let repair = self.made.get(key)?;
        let wait = backoff.wait(repair.times, seed);
        wait.checked_sub(repair.last.elapsed())
            .filter(|left| !left.is_zero())
    }

    fn made(&mut self, key: Key) {
        let repair = self.made.entry(key).or_insert(Repair {
            times: 0,
            last: Instant::now(),
        });
        repair.times = repair.times.saturating_add(1);
        repair.last = Instant::now();
    }
}

/// What may be done in this turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leave {
    /// Nothing is made for an object that is being deleted.
    pub(crate) creates: bool,
    /// Nothing is deleted after a jump: the record may have been wrong about where the application is.
    pub(crate) prunes: bool,
}

/// One object, and what it should have in the cluster.
pub(crate) struct Settling<'a, K> {
    pub(crate) client: &'a Client,
    pub(crate) cluster: &'a Cluster<K>,
    pub(crate) object: &'a K,
    pub(crate) repairs: &'a mut Repairs,
    pub(crate) leave: Leave,
    pub(crate) backoff: Backoff,
    pub(crate) seed: u64,
}

/// What has come of one turn, and when something of it is due.
pub(crate) struct Settled {
    pub(crate) settlement: Settlement,
    pub(crate) due: Option<Duration>,
}

/// What is left of what Kubernetes does not delete with an object.
pub(crate) enum Left {
    Nothing,
    /// It was told to go a moment ago.
    JustDeleted,
    /// These, in words.
    These(String),
}

/// What has come of one declared object.
enum Outcome {
    Fine,
    Awaited(String),
    /// Somebody changes it again and again.
    Held(Duration),
}

impl<K: LifecycleObject> Settling<'_, K> {
    /// Does what is to be done; one object that fails keeps none of the others from it.
    pub(crate) async fn settle(&mut self, resources: &Resources) -> Settled {
        self.repairs.rest();
        let uid = self.object.meta().uid.clone().unwrap_or_default();
        let owned = self.cluster.owned(&uid);
        let mut wanted = BTreeSet::new();
        let mut failures = Vec::new();
        let mut awaited = Vec::new();
        let mut due: Option<Duration> = None;
        for declared in &resources.declared {
            let applied = match self.stamp(declared, &mut wanted) {
                Ok(applied) => applied,
                Err(failure) => {
                    failures.push(failure);
                    continue;
                }
            };
            let there = owned.get(&key_of(&applied));
            match self.bring_about(declared, &applied, there).await {
                Ok(Outcome::Fine) => {}
                Ok(Outcome::Awaited(what)) => awaited.push(what),
                Ok(Outcome::Held(wait)) => {
                    due = Some(due.map_or(wait, |due: Duration| due.min(wait)));
                    let what = self.told(&key_of(&applied));
                    awaited.push(format!("{what}: somebody changes it again and again"));
                }
                Err(failure) => failures.push(failure),
            }
        }
        // What could not be told apart from the rest is not known to be wanted no more.
        if self.leave.prunes && failures.is_empty() {
            let kept: BTreeSet<Key> = resources
                .kept
                .iter()
                .filter_map(|it| self.key(it))
                .collect();
            let surplus = owned
                .iter()
                .filter(|(key, _)| !wanted.contains(*key) && !kept.contains(*key));
            for (key, there) in surplus {
                if let Err(failure) = self.prune(key, there).await {
                    failures.push(failure);
                }
            }
        }
        let settlement = match (failures.into_iter().next(), awaited.is_empty()) {
            (Some(failure), _) => Settlement::Failed(failure),
            (None, true) => Settlement::AsDeclared,
            (None, false) => Settlement::Awaited(listed(&awaited)),
        };
        Settled { settlement, due }
    }

    /// Deletes what Kubernetes will not delete with the object.
    pub(crate) async fn clear(&self) -> Result<Left, Failure> {
        let uid = self.object.meta().uid.clone().unwrap_or_default();
        let mut left = Vec::new();
        let mut deleted = false;
        for (key, there) in self.cluster.owned(&uid) {
            let object = there.value();
            if is_owned_by(&object, &uid) || !self.may_go(&key, &object) {
                continue;
            }
            left.push(format!("{} is not gone yet", self.told(&key)));
            if !there.is_deleting() {
                self.delete(&key, &there).await?;
                deleted = true;
            }
        }
        Ok(match (left.is_empty(), deleted) {
            (true, _) => Left::Nothing,
            (false, true) => Left::JustDeleted,
            (false, false) => Left::These(listed(&left)),
        })
    }

    fn stamp(&self, declared: &Declared, wanted: &mut BTreeSet<Key>) -> Result<Applied, Failure> {
        let place = Place {
            object: self.object,
            kinds: &self.cluster.watches.owned,
            identity: &self.cluster.identity,
            namespace: self.cluster.namespace.as_deref(),
        };
        let applied = place.stamped(declared)?;
        let key = key_of(&applied);
        if wanted.insert(key.clone()) {
            Ok(applied)
        } else {
            let why = format!("{} is declared twice", self.told(&key));
            Err(Failure::permanent("BadResource", why))
        }
    }

    /// Which object is kept.
    fn key(&self, (kind, name): &(Kind, String)) -> Option<Key> {
        let number = self.cluster.number_of(kind)?;
        let own = self.object.meta().namespace.as_deref();
        let (namespace, name): Name = named_from(kind, own, name);
        Some((number, namespace, name))
    }

    async fn bring_about(
        &mut self,
        declared: &Declared,
        applied: &Applied,
        there: Option<&Arc<Kept>>,
    ) -> Result<Outcome, Failure> {
        let key = key_of(applied);
        let what = self.told(&key);
        let Some(there) = there else {
            if !self.leave.creates {
                return Ok(Outcome::Fine);
            }
            self.must_be_free(&key, &what).await?;
            let made = self.apply(applied, &what).await?;
            return Ok(standing(declared, &what, &made));
        };
        if there.is_deleting() {
            // Its name is free when it is gone, and that is an event.
            return Ok(Outcome::Awaited(format!("{what} is being deleted")));
        }
        let object = there.value();
        if declared.once || self.is_as_applied(&key, there, &object, applied) {
            return Ok(standing(declared, &what, &object));
        }
        let is_news = there.applied.as_deref() != Some(&applied.hash);
        if !is_news {
            if let Some(wait) = self.repairs.wait(&key, &self.backoff, self.seed) {
                return Ok(Outcome::Held(wait));
            }
            tracing::info!(resource = what, "somebody has changed it: it is repaired");
            self.repairs.made(key.clone());
        }
        let made = self.apply(applied, &what).await?;
        Ok(standing(declared, &what, &made))
    }

    fn is_as_applied(&self, key: &Key, there: &Kept, object: &Value, applied: &Applied) -> bool {
        let owned = owned_fields(object, &self.cluster.identity.manager);
        there.applied.as_deref() == Some(&applied.hash)
            && owned.is_some_and(|owned| {
                covers(owned, &applied.body) || self.repairs.accepted.get(key) == Some(owned)
            })
    }

    /// What has this name already must be the object's own, or nobody's: it would be changed, and deleted with it.
    async fn must_be_free(&self, key: &Key, what: &str) -> Result<(), Failure> {
        let found = answer(self.api(key).get_metadata_opt(&key.2)).await;
        let Some(found) = found.map_err(|error| told(what, &error))? else {
            return Ok(());
        };
        let meta = found.metadata;
        let uid = self.object.meta().uid.as_ref();
        let labelled = (meta.labels.as_ref()).and_then(|labels| labels.get(OWNER_LABEL));
        // A label may have been rubbed out; who is its owner cannot.
        let owners = meta.owner_references.iter().flatten();
        if labelled == uid || owners.into_iter().any(|owner| Some(&owner.uid) == uid) {
            return Ok(());
        }
        Err(Failure::retry(
            "NotOwned",
            format!("{what} exists and was not made for this object: delete or rename one of them"),
        ))
    }

    async fn apply(&mut self, applied: &Applied, what: &str) -> Result<Value, Failure> {
        let key = key_of(applied);
        let manager = &self.cluster.identity.manager;
        let params = PatchParams::apply(manager).force();
        let body = Patch::Apply(&applied.body);
        let api = self.api(&key);
        let made = answer(api.patch(&key.2, &params, &body)).await;
        let made = made.map_err(|error| told(what, &error))?;
        let object = made.value();
        let owned = owned_fields(&object, manager);
        // A server may drop what it does not know; to say it again would change nothing, again and again.
        match owned.filter(|owned| !covers(owned, &applied.body)) {
            Some(owned) => self.repairs.accepted.insert(key.clone(), owned.clone()),
            None => self.repairs.accepted.remove(&key),
        };
        self.cluster.take_in(key.0, made);
        Ok(object)
    }

    async fn prune(&self, key: &Key, there: &Kept) -> Result<(), Failure> {
        if there.is_deleting() || !self.may_go(key, &there.value()) {
            return Ok(());
        }
        self.delete(key, there).await
    }

    fn may_go(&self, key: &Key, object: &Value) -> bool {
        !self.cluster.watches.owned[key.0].holds_data()
            || object["metadata"]["annotations"]
                .get(PRUNE_ANNOTATION)
                .is_some()
    }

    async fn delete(&self, key: &Key, there: &Kept) -> Result<(), Failure> {
        let what = self.told(key);
        let params = DeleteParams::foreground().preconditions(Preconditions {
            uid: there.meta().uid.clone(),
            resource_version: None,
        });
        let api = self.api(key);
        match answer(api.delete(&key.2, &params)).await {
            Ok(_) => {
                tracing::info!(resource = what, "deleted: it is no longer declared");
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.cluster.take_out(key);
                Ok(())
            }
            Err(error) => Err(told(&what, &error)),
        }
    }

    fn api(&self, key: &Key) -> Api<Kept> {
        let api = &self.cluster.watches.owned[key.0].api;
        match &key.1 {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, api),
            None => Api::all_with(self.client.clone(), api),
        }
    }

    /// An object, in words.
    fn told(&self, key: &Key) -> String {
        let kind = &self.cluster.watches.owned[key.0];
        match &key.1 {
            Some(namespace) if Some(namespace) != self.object.meta().namespace.as_ref() => {
                format!("{kind} {namespace}/{}", key.2)
            }
            Some(_) | None => format!("{kind} {}", key.2),
        }
    }
}

fn standing(declared: &Declared, what: &str, object: &Value) -> Outcome {
    match unready(object).filter(|_| declared.ready) {
        Some(why) => Outcome::Awaited(format!("{what}: {why}")),
        None => Outcome::Fine,
    }
}

fn key_of(applied: &Applied) -> Key {
    (
        applied.kind,
        applied.namespace.clone(),
        applied.name.clone(),
    )
}

/// Whether Kubernetes deletes an object with the one of this uid.
fn is_owned_by(object: &Value, uid: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid))
}

/// The first few, and how many more there are.
fn listed(all: &[String]) -> String {
    let named = &all[..all.len().min(NAMED)];
    let mut text = named.join("; ");
    if all.len() > NAMED {
        text.push_str(&format!("; and {} more", all.len() - NAMED));
    }
    text
}

/// What a request that failed comes to.
fn told(what: &str, error: &kube::Error) -> Failure {
    let message = format!("{what}: {}", chain(error));
    let kube::Error::Api(status) = error else {
        return Failure::retry("ResourceFailed", message);
    };
    match status.code {
        400 | 422 => Failure::permanent("ResourceRefused", message),
        403 => Failure::retry("ResourceForbidden", message),
        404 => Failure::retry("ResourceNotFound", message),
        409 => Failure::retry("ResourceConflict", message),
        _ => Failure::retry("ResourceFailed", message),
    }
}
