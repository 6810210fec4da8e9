//! Brings the cluster to what an application declares for a state: applies, repairs, deletes, and waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource};
use okt_core::StateId;
use okt_core::backoff::Backoff;
use serde_json::Value;
use tokio::time::Instant;

use super::cluster::{Cluster, Key, Name, named_from};
use super::declared::{Declared, Resources};
use super::drift::{covers, owned_fields};
use super::kept::Kept;
use super::kind::Kind;
use super::ready::{Unready, unready};
use super::stamp::{Applied, PRUNE_ALLOWED, PRUNE_ANNOTATION, Place, UNOWNED_ANNOTATION, named};
use crate::failure::{Failure, chain};
use crate::object::LifecycleObject;
use crate::patience::answer;
use crate::read;

/// How long nothing was done at least, until it is done again without a wait.
const QUIET: Duration = Duration::from_secs(30);

/// The reason of a failure to which the server had nothing to say.
const NO_ANSWER: &str = "ResourceUnanswered";

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
pub(crate) struct Efforts {
    made: BTreeMap<Key, Effort>,
    /// What could not be brought to be owned whole: a hash of the fields that are, by object.
    accepted: BTreeMap<Key, u64>,
}

/// What makes one declaration another: a spec, a state.
pub(crate) type Occasion = (Option<i64>, StateId);

/// How often something was tried of late.
#[derive(Debug)]
struct Effort {
    occasion: Occasion,
    times: u32,
    last: Instant,
    /// What has gone wrong at last.
    failure: Option<Failure>,
}

impl Efforts {
    pub(crate) fn is_empty(&self) -> bool {
        self.made.is_empty() && self.accepted.is_empty()
    }

    /// Forgets what is long ago, and what is declared no more.
    fn rest(&mut self, backoff: &Backoff, seed: u64) {
        self.made.retain(|_, effort| {
            let quiet = backoff.wait(effort.times, seed) * 2;
            effort.last.elapsed() < quiet.max(QUIET)
        });
    }

    /// How long the next effort has to wait, and why: who changes the same again and again is not fought at full
    /// speed, and who refuses is not asked at it.
    fn wait(
        &self,
        key: &Key,
        occasion: Occasion,
        backoff: &Backoff,
        seed: u64,
    ) -> Option<(Duration, Option<Failure>)> {
        let effort = (self.made.get(key)).filter(|effort| effort.occasion == occasion)?;
        let wait = match &effort.failure {
            Some(failure) if failure.is_permanent() => backoff.longest(),
            Some(_) | None => backoff.wait(effort.times, seed),
        };
        let left = wait.checked_sub(effort.last.elapsed())?;
        (!left.is_zero()).then(|| (left, effort.failure.clone()))
    }

    fn made(&mut self, key: &Key, occasion: Occasion, failure: Option<Failure>) {
        let before = self.made.get(key).filter(|it| it.occasion == occasion);
        let times = before.map_or(0, |it| it.times).saturating_add(1);
        let effort = Effort {
            occasion,
            times,
            last: Instant::now(),
            failure,
        };
        self.made.insert(key.clone(), effort);
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
    pub(crate) efforts: &'a mut Efforts,
    pub(crate) leave: Leave,
    pub(crate) occasion: Occasion,
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
    /// It will not become ready by itself.
    Stuck(String),
    /// It was applied a moment ago, and has to be again.
    Held(Duration),
}

/// What has come of all of them.
#[derive(Default)]
struct Outcomes {
    failures: Vec<Failure>,
    awaited: Vec<String>,
    due: Option<Duration>,
}

impl Outcomes {
    fn due_in(&mut self, wait: Duration) {
        self.due = Some(self.due.map_or(wait, |due| due.min(wait)));
    }

    fn failed(&mut self, failure: Failure, wait: Duration) {
        self.failures.push(failure);
        self.due_in(wait);
    }

    fn settled(self) -> Settled {
        let settlement = match (self.failures.into_iter().next(), self.awaited.is_empty()) {
            (Some(failure), _) => Settlement::Failed(failure),
            (None, true) => Settlement::AsDeclared,
            (None, false) => Settlement::Awaited(listed(&self.awaited)),
        };
        Settled {
            settlement,
            due: self.due,
        }
    }
}

impl<K: LifecycleObject> Settling<'_, K> {
    /// Does what is to be done; one object that fails keeps none of the others from it.
    pub(crate) async fn settle(mut self, resources: &Resources) -> Settled {
        self.efforts.rest(&self.backoff, self.seed);
        let uid = self.object.meta().uid.clone().unwrap_or_default();
        let owned = self.cluster.owned(&uid);
        let mut wanted = BTreeSet::new();
        let mut outcomes = Outcomes::default();
        let mut all_told = true;
        for declared in &resources.declared {
            let applied = match self.stamp(declared, &mut wanted) {
                Ok(applied) => applied,
                Err(failure) => {
                    outcomes.failures.push(failure);
                    all_told = false;
                    continue;
                }
            };
            let key = key_of(&applied);
            if let Some((wait, Some(failure))) = self.wait(&key) {
                outcomes.failed(failure, wait);
                continue;
            }
            let there = owned.get(&key).cloned();
            match self.bring_about(declared, &applied, there).await {
                Ok(Outcome::Fine) => {}
                Ok(Outcome::Awaited(what)) => outcomes.awaited.push(what),
                Ok(Outcome::Stuck(what)) => {
                    let failure = Failure::permanent("ResourceNotReady", what);
                    outcomes.failures.push(failure);
                }
                Ok(Outcome::Held(wait)) => {
                    outcomes.due_in(wait);
                    let what = self.told(&key);
                    let what =
                        format!("{what} was changed again, and is applied anew after a wait");
                    outcomes.awaited.push(what);
                }
                Err(failure) => {
                    let no_answer = failure.reason() == NO_ANSWER;
                    let wait = self.failed(&key, &failure);
                    outcomes.failed(failure, wait);
                    // The next one would wait as long for nothing.
                    if no_answer {
                        return outcomes.settled();
                    }
                }
            }
        }
        (self.efforts.accepted).retain(|key, _| wanted.contains(key));
        // Where something could not be declared, it is not known what is wanted no more.
        if self.leave.prunes && all_told {
            let kept = self.keys(resources);
            let surplus = owned
                .iter()
                .filter(|(key, _)| !wanted.contains(*key) && !kept.contains(*key));
            for (key, there) in surplus {
                if let Some((wait, Some(failure))) = self.wait(key) {
                    outcomes.failed(failure, wait);
                } else if let Err(failure) = self.prune(key, there).await {
                    let wait = self.failed(key, &failure);
                    outcomes.failed(failure, wait);
                }
            }
        }
        outcomes.settled()
    }

    /// Deletes what Kubernetes will not delete with the object, but for what is kept.
    pub(crate) async fn clear(&self, resources: Option<&Resources>) -> Result<Left, Failure> {
        let uid = self.object.meta().uid.clone().unwrap_or_default();
        let kept = resources.map(|it| self.keys(it)).unwrap_or_default();
        let mut left = Vec::new();
        let mut deleted = false;
        for (key, there) in self.cluster.owned(&uid) {
            let object = there.value();
            if !is_unowned(&object) || kept.contains(&key) || !self.may_go(&key, &object) {
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

    /// Notes that something could not be done; how long it waits until it is tried again.
    fn failed(&mut self, key: &Key, failure: &Failure) -> Duration {
        (self.efforts).made(key, self.occasion, Some(failure.clone()));
        self.wait(key).map_or(Duration::ZERO, |(wait, _)| wait)
    }

    fn wait(&self, key: &Key) -> Option<(Duration, Option<Failure>)> {
        (self.efforts).wait(key, self.occasion, &self.backoff, self.seed)
    }

    fn keys(&self, resources: &Resources) -> BTreeSet<Key> {
        resources
            .kept
            .iter()
            .filter_map(|it| self.key(it))
            .collect()
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
        there: Option<Arc<Kept>>,
    ) -> Result<Outcome, Failure> {
        let key = key_of(applied);
        let what = self.told(&key);
        if let Some(why) = self.cluster.unlisted(key.0) {
            let why = format!("{what}: its kind cannot be listed: {why}");
            return Err(Failure::retry("ResourceNotWatched", why));
        }
        let there = match there {
            Some(there) => Some(there),
            None => self.found(&key, &what, declared).await?,
        };
        let Some(there) = there else {
            return self.create(declared, applied, &what).await;
        };
        if there.is_deleting() {
            // Its name is free when it is gone, and that is an event.
            return Ok(Outcome::Awaited(format!("{what} is being deleted")));
        }
        let object = there.value();
        if declared.once || self.is_as_applied(&key, &there, &object, applied) {
            return Ok(self.standing(declared, &key, &object));
        }
        // A hash that was rubbed out is no news.
        let is_news = (there.applied.as_ref()).is_some_and(|hash| *hash != applied.hash);
        if !is_news && !self.leave.creates {
            // Whoever deletes an object may want what it owns to be left as it is.
            return Ok(Outcome::Fine);
        }
        if let Some((wait, _)) = self.wait(&key) {
            return Ok(Outcome::Held(wait));
        }
        if !is_news {
            tracing::info!(resource = what, "somebody has changed it: it is repaired");
        }
        let made = self
            .apply(applied, there.meta().uid.as_deref(), &what)
            .await?;
        Ok(self.standing(declared, &key, &made))
    }

    async fn create(
        &mut self,
        declared: &Declared,
        applied: &Applied,
        what: &str,
    ) -> Result<Outcome, Failure> {
        let key = key_of(applied);
        if !self.leave.creates {
            return Ok(Outcome::Fine);
        }
        if let Some((wait, _)) = self.wait(&key) {
            return Ok(Outcome::Held(wait));
        }
        let made = self.apply(applied, None, what).await?;
        Ok(self.standing(declared, &key, &made))
    }

    fn standing(&self, declared: &Declared, key: &Key, object: &Value) -> Outcome {
        let what = self.told(key);
        let kind = &self.cluster.watches.owned[key.0];
        match unready(kind, object).filter(|_| declared.ready) {
            Some(Unready::Pending(why)) => Outcome::Awaited(format!("{what}: {why}")),
            Some(Unready::Failed(why)) => Outcome::Stuck(format!("{what}: {why}")),
            None => Outcome::Fine,
        }
    }

    fn is_as_applied(&self, key: &Key, there: &Kept, object: &Value, applied: &Applied) -> bool {
        let owned = owned_fields(object, &self.cluster.identity.manager);
        there.applied.as_deref() == Some(&applied.hash)
            && owned.is_some_and(|owned| {
                covers(owned, &applied.body)
                    || self.efforts.accepted.get(key) == Some(&read::revision(owned))
            })
    }

    /// What has this name although the cache does not show it: the object's own, whose label was rubbed out, or
    /// somebody else's, which would be changed, and deleted with the object.
    async fn found(
        &self,
        key: &Key,
        what: &str,
        declared: &Declared,
    ) -> Result<Option<Arc<Kept>>, Failure> {
        if !self.leave.creates {
            return Ok(None);
        }
        let found = answer(self.api(key).get_opt(&key.2)).await;
        let Some(found) = found.map_err(|error| told(what, &error))? else {
            return Ok(None);
        };
        let object = found.value();
        let manager = &self.cluster.identity.manager;
        let uid = self.object.meta().uid.as_deref().unwrap_or_default();
        let is_ours = match &found.owner {
            Some(owner) => owner == uid,
            None => {
                found.owner_name.as_deref() == Some(&*named(self.object.meta()))
                    && owned_fields(&object, manager).is_some()
            }
        };
        if is_ours || is_owned_by(&object, uid) || declared.adopts {
            Ok(Some(Arc::new(found)))
        } else if found.is_deleting() {
            Err(Failure::retry(
                "NotOwned",
                format!("{what} is being deleted, and was not made for this object"),
            ))
        } else {
            Err(Failure::retry(
                "NotOwned",
                format!(
                    "{what} exists and was not made for this object: delete or rename one of them"
                ),
            ))
        }
    }

    /// Applies an object: the one that was seen, or where none was, a new one.
    async fn apply(
        &mut self,
        applied: &Applied,
        seen: Option<&str>,
        what: &str,
    ) -> Result<Value, Failure> {
        let key = key_of(applied);
        let manager = &self.cluster.identity.manager;
        let params = PatchParams::apply(manager);
        let mut body = applied.body.clone();
        let params = match seen {
            Some(uid) => {
                // Another one that has its name by now is somebody else's.
                body["metadata"]["uid"] = uid.into();
                params.force()
            }
            None => params,
        };
        let api = self.api(&key);
        let made = answer(api.patch(&key.2, &params, &Patch::Apply(&body))).await;
        let made = made.map_err(|error| told(what, &error))?;
        self.efforts.made(&key, self.occasion, None);
        let object = made.value();
        let owned = owned_fields(&object, manager);
        // A server may drop what it does not know; to say it again would change nothing, again and again.
        match owned.filter(|owned| !covers(owned, &applied.body)) {
            Some(owned) => (self.efforts.accepted).insert(key.clone(), read::revision(owned)),
            None => self.efforts.accepted.remove(&key),
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
            || object["metadata"]["annotations"][PRUNE_ANNOTATION] == PRUNE_ALLOWED
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

/// Whether the operator has to delete it, as it was declared.
fn is_unowned(object: &Value) -> bool {
    object["metadata"]["annotations"]
        .get(UNOWNED_ANNOTATION)
        .is_some()
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
        return Failure::retry(NO_ANSWER, message);
    };
    match status.code {
        400 | 422 => Failure::permanent("ResourceRefused", message),
        403 => Failure::retry("ResourceForbidden", message),
        404 => Failure::retry("ResourceNotFound", message),
        409 => Failure::retry("ResourceConflict", message),
        _ => Failure::retry("ResourceFailed", message),
    }
}
