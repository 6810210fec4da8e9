//! Applies the resources that an application declares for a state: applies, repairs, prunes, and waits.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::api::{Patch, PatchParams};
use okt_core::conditions;
use okt_core::pass::Operations;
use okt_core::reasons::resources as reasons;
use serde_json::Value;
use tokio::time::Instant;

use super::declared::{Declared, Owner, Resources};
use super::drift::{covers, owned_fields};
use super::efforts::{Efforts, Pace};
use super::index::{Key, mark};
use super::kept::Kept;
use super::ready::{Lack, lack};
use super::site::{NOT_LEADING, Site, listed};
use super::stamp::{Applied, Place, named};
use super::waves::Going;
use crate::failure::Failure;
use crate::patience::answer;
use crate::wire::limits::RECORDED_LIMIT;
use crate::wire::object::LifecycleObject;
use crate::wire::read;

/// Objects that OKT cannot own completely, each with a hash of the fields that it does own.
pub(crate) type Accepted = BTreeMap<Key, u64>;

/// The status of the resources of an object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum OwnedStatus {
    /// All resources are as declared, and ready if the declaration requires it.
    #[default]
    AsDeclared,
    /// A resource is not ready yet, or not gone yet: which one, and why.
    Awaited(String),
    /// A request or a declaration failed.
    Failed(Failure),
}

impl OwnedStatus {
    /// Converts the status for the conditions.
    pub(crate) fn words(&self) -> conditions::OwnedWords<'_> {
        match self {
            Self::AsDeclared => conditions::OwnedWords::AsDeclared,
            Self::Awaited(what) => conditions::OwnedWords::Awaited(what),
            Self::Failed(failure) => conditions::OwnedWords::Failed {
                reason: failure.reason(),
                message: failure.message(),
                permanent: failure.is_permanent(),
            },
        }
    }
}

/// The kinds of writes that this reconciliation may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leave {
    /// Whether OKT may create and repair: not for an object that is being deleted.
    pub(crate) creates: bool,
    /// Whether OKT may prune: not after a jump, because the record may have been wrong about the application's state.
    pub(crate) prunes: bool,
}

/// One run of applying the resources of an object.
pub(crate) struct Applying<'a, K> {
    pub(crate) site: Site<'a, K>,
    pub(crate) efforts: &'a mut Efforts,
    pub(crate) accepted: &'a mut Accepted,
    /// Recorded marks of objects that are neither declared nor present, and since when.
    pub(crate) absent: &'a mut BTreeMap<String, Instant>,
    pub(crate) leave: Leave,
    pub(crate) pace: Pace,
    /// The number of objects applied.
    pub(crate) applied: u32,
}

impl<'a, K> Deref for Applying<'a, K> {
    type Target = Site<'a, K>;

    fn deref(&self) -> &Site<'a, K> {
        &self.site
    }
}

/// The declared objects.
#[derive(Default)]
struct Wanted {
    all: BTreeSet<Key>,
    /// Those without a usable owner reference.
    unshown: BTreeSet<Key>,
}

/// The result of applying the resources in one reconciliation.
pub(crate) struct ApplyReport {
    pub(crate) settlement: OwnedStatus,
    pub(crate) due: Option<Duration>,
    /// The indexes of declarations that are not fulfilled, and why.
    pub(crate) short: Vec<(usize, OwnedStatus)>,
    /// The indexes of declarations whose object exists, ready or not.
    pub(crate) made: BTreeSet<usize>,
    /// Counts of the requests made.
    pub(crate) operations: Operations,
    /// The marks that the object's status should record.
    pub(crate) to_record: BTreeSet<String>,
}

/// The result for one declared object.
enum Verdict {
    Fine,
    /// OKT creates it once the status of its owner records it.
    Unrecorded,
    /// It is not ready yet.
    Awaited(String),
    /// An object of its name is still being deleted.
    Going(String),
    /// It cannot become ready without intervention.
    Stuck(String),
    /// It was applied a moment ago and needs another apply, after this wait.
    Held(Duration),
}

/// The results for all declared objects.
#[derive(Default)]
struct Outcomes {
    failures: Vec<Failure>,
    awaited: Vec<String>,
    due: Option<Duration>,
    /// The index of the declaration in progress.
    at: Option<usize>,
    short: Vec<(usize, OwnedStatus)>,
    made: BTreeSet<usize>,
    operations: Operations,
}

impl Outcomes {
    fn due_in(&mut self, wait: Duration) {
        self.due = Some(self.due.map_or(wait, |due| due.min(wait)));
    }

    fn failed(&mut self, failure: Failure, wait: Duration) {
        self.refused(failure);
        self.due_in(wait);
    }

    /// Notes a failure without a retry time.
    fn refused(&mut self, failure: Failure) {
        let short = OwnedStatus::Failed(failure.clone());
        self.short.extend(self.at.map(|at| (at, short)));
        self.failures.push(failure);
    }

    fn made(&mut self, index: usize) {
        self.made.insert(index);
    }

    fn awaited(&mut self, what: String) {
        let short = OwnedStatus::Awaited(what.clone());
        self.short.extend(self.at.map(|at| (at, short)));
        self.awaited.push(what);
    }

    fn report(self) -> ApplyReport {
        let settlement = match (self.failures.into_iter().next(), self.awaited.is_empty()) {
            (Some(failure), _) => OwnedStatus::Failed(failure),
            (None, true) => OwnedStatus::AsDeclared,
            (None, false) => OwnedStatus::Awaited(listed(&self.awaited)),
        };
        ApplyReport {
            settlement,
            due: self.due,
            short: self.short,
            made: self.made,
            operations: self.operations,
            to_record: BTreeSet::new(),
        }
    }
}

impl<'a, K: LifecycleObject> Applying<'a, K> {
    /// Applies all declarations and prunes; a failure of one object does not stop the others.
    pub(crate) async fn apply_all(mut self, resources: &Resources) -> ApplyReport {
        self.efforts.rest(&self.pace);
        let owned = self.owned();
        let mut wanted = Wanted::default();
        let mut outcomes = Outcomes::default();
        let mut all_told = true;
        for (index, declared) in resources.declared.iter().enumerate() {
            outcomes.at = Some(index);
            let applied = match self.stamp(declared, &mut wanted) {
                Ok(applied) => applied,
                Err(failure) => {
                    outcomes.refused(failure);
                    all_told = false;
                    continue;
                }
            };
            let key = key_of(&applied);
            let there = owned.get(&key).cloned();
            let uid = there.as_ref().and_then(|it| it.meta().uid.clone());
            self.efforts.sees(&Some(key.clone()), uid.as_deref());
            if let Some((wait, Some(failure))) = self.wait(&key) {
                outcomes.failed(failure, wait);
                continue;
            }
            let brought = self.bring_about(declared, &applied, there).await;
            outcomes.operations.applied = self.applied;
            match brought {
                Ok(Verdict::Fine) => outcomes.made(index),
                Ok(Verdict::Awaited(what)) => {
                    outcomes.made(index);
                    outcomes.awaited(what);
                }
                Ok(Verdict::Going(what)) => outcomes.awaited(what),
                Ok(Verdict::Unrecorded) => {
                    outcomes.due_in(Duration::ZERO);
                    let what = self.told(&key);
                    let what = format!("{what} is recorded in the status before it is created");
                    outcomes.awaited(what);
                }
                Ok(Verdict::Stuck(what)) => {
                    outcomes.made(index);
                    let failure = Failure::permanent(reasons::NOT_READY, what);
                    outcomes.refused(failure);
                }
                Ok(Verdict::Held(wait)) => {
                    outcomes.due_in(wait);
                    let what = self.told(&key);
                    let what =
                        format!("{what} was changed again; it is applied again after a backoff");
                    outcomes.awaited(what);
                }
                // The next leader continues.
                Err(failure) if failure.reason() == NOT_LEADING => {
                    outcomes.refused(failure);
                    return self.report(outcomes, &owned, &wanted, false);
                }
                Err(failure) => {
                    outcomes.operations.failed += 1;
                    let no_answer = failure.reason() == reasons::UNANSWERED;
                    let wait = self.failed(&key, &failure);
                    self.efforts.saw(&Some(key.clone()), uid.as_deref());
                    outcomes.failed(failure, wait);
                    // The next request would wait as long in vain.
                    if no_answer {
                        return self.report(outcomes, &owned, &wanted, false);
                    }
                }
            }
        }
        outcomes.at = None;
        // If a declaration failed, OKT does not know which objects are no longer declared.
        let is_whole = self.leave.prunes && all_told;
        if is_whole {
            self.prune(resources, &owned, &wanted, &mut outcomes).await;
        }
        self.report(outcomes, &owned, &wanted, is_whole)
    }

    /// Deletes owned objects that are no longer declared.
    async fn prune(
        &mut self,
        resources: &Resources,
        owned: &BTreeMap<Key, Arc<Kept>>,
        wanted: &Wanted,
        outcomes: &mut Outcomes,
    ) {
        self.accepted.retain(|key, _| wanted.all.contains(key));
        let kept = self.kept(resources);
        let surplus = owned.iter().filter(|(key, there)| {
            !wanted.all.contains(*key)
                && !kept.contains(*key)
                && (there.may_go(self.kind(key)) || there.is_deleting())
        });
        let going = Going::of(surplus);
        for (key, there) in &going.first {
            if there.is_deleting() {
                continue;
            }
            match self.wait(key) {
                Some((wait, Some(failure))) => {
                    outcomes.failed(failure, wait);
                    continue;
                }
                // It was deleted a moment ago.
                Some((wait, None)) => {
                    outcomes.due_in(wait);
                    continue;
                }
                None => {}
            }
            match self.delete(key, there).await {
                Ok(()) => {
                    outcomes.operations.deleted += 1;
                    let wait = (self.efforts).made(Some((*key).clone()), &self.pace, None);
                    outcomes.due_in(wait);
                }
                Err(failure) => {
                    outcomes.operations.failed += 1;
                    let wait = self.failed(key, &failure);
                    outcomes.failed(failure, wait);
                }
            }
        }
        outcomes.awaited.extend(going.awaited(&self.site));
    }

    /// Builds the report with the marks to record; `is_whole` says that all declarations are known.
    fn report(
        &mut self,
        mut outcomes: Outcomes,
        owned: &BTreeMap<Key, Arc<Kept>>,
        wanted: &Wanted,
        is_whole: bool,
    ) -> ApplyReport {
        let unshown = owned.iter().filter(|(key, there)| {
            let is_shown = there.reference.is_some() && self.is_beside(key);
            !is_shown
        });
        let unshown = unshown.map(|(key, _)| key).chain(&wanted.unshown);
        let mut to_record: BTreeSet<String> = unshown.map(|key| self.mark(key)).collect();
        for recorded in self.recorded() {
            if to_record.contains(recorded) {
                self.absent.remove(recorded);
                continue;
            }
            let since = *(self.absent.entry(recorded.clone())).or_insert_with(Instant::now);
            // An object that was created a moment ago may not be in the cache yet.
            if !is_whole || since.elapsed() < ABSENT {
                to_record.insert(recorded.clone());
                outcomes.due_in(ABSENT);
            }
        }
        self.absent.retain(|mark, _| to_record.contains(mark));
        let mut report = outcomes.report();
        report.to_record = to_record;
        report
    }

    /// Returns whether an object is in the namespace of its owner, or cluster-scoped like it.
    fn is_beside(&self, key: &Key) -> bool {
        key.1 == self.object.meta().namespace
    }

    /// Returns whether no owner reference proves ownership, so that the status of the owner has to record the object.
    fn is_unshown(&self, declared: &Declared, key: &Key) -> bool {
        declared.owner == Owner::None || !self.is_beside(key)
    }

    fn is_recorded(&self, key: &Key) -> bool {
        self.recorded().contains(&self.mark(key))
    }

    fn mark(&self, key: &Key) -> String {
        mark(self.kind(key), key)
    }

    /// Returns the marks that the status records.
    fn recorded(&self) -> &'a [String] {
        let status = self.site.object.status_of();
        status.map_or(&[], |status| &status.recorded_resources)
    }

    /// Notes a failed attempt, and returns how long to wait before the retry.
    fn failed(&mut self, key: &Key, failure: &Failure) -> Duration {
        (self.efforts).made(Some(key.clone()), &self.pace, Some(failure.clone()))
    }

    fn wait(&self, key: &Key) -> Option<(Duration, Option<Failure>)> {
        let (wait, failure) = self.efforts.wait(&Some(key.clone()), &self.pace)?;
        Some((wait, failure.cloned()))
    }

    fn stamp(&self, declared: &Declared, wanted: &mut Wanted) -> Result<Applied, Failure> {
        let place = Place {
            object: self.object,
            kinds: &self.cluster.watches.owned,
            identity: &self.cluster.identity,
            namespace: self.cluster.namespace.as_deref(),
        };
        let applied = (place.stamped(declared)).map_err(|failure| match &declared.file {
            Some(file) => {
                let message = format!("{file}: {}", failure.message());
                Failure::permanent(failure.reason(), message)
            }
            None => failure,
        })?;
        let key = key_of(&applied);
        let what = self.told(&key);
        let wrong = |why: String| Err(Failure::permanent(reasons::BAD_RESOURCE, why));
        if !wanted.all.insert(key.clone()) {
            return wrong(format!("{what} is declared twice"));
        }
        if self.is_unshown(declared, &key) {
            wanted.unshown.insert(key);
        }
        if wanted.unshown.len() > RECORDED_LIMIT {
            return wrong(format!(
                "{what} has no owner reference, as {RECORDED_LIMIT} others: a status records no more of them"
            ));
        }
        if declared.ready && self.cluster.is_bare(applied.kind) {
            return wrong(format!(
                "{what} has to be ready, of which only the metadata is watched: declare its kind with `owns`"
            ));
        }
        Ok(applied)
    }

    async fn bring_about(
        &mut self,
        declared: &Declared,
        applied: &Applied,
        there: Option<Arc<Kept>>,
    ) -> Result<Verdict, Failure> {
        let key = key_of(applied);
        let what = self.told(&key);
        if let Some(why) = self.cluster.unlisted(key.0) {
            let why = format!("{what}: its kind cannot be listed: {why}");
            return Err(Failure::retry(reasons::NOT_WATCHED, why));
        }
        match there {
            Some(there) => self.maintain(declared, applied, &there).await,
            None => self.create(declared, applied).await,
        }
    }

    /// Brings an existing object to its declaration.
    async fn maintain(
        &mut self,
        declared: &Declared,
        applied: &Applied,
        there: &Kept,
    ) -> Result<Verdict, Failure> {
        let key = key_of(applied);
        let what = self.told(&key);
        if there.is_deleting() {
            // Its deletion is an event, which reconciles the owner again.
            return Ok(Verdict::Going(format!("{what} is being deleted")));
        }
        if declared.once || self.is_as_applied(&key, there, applied) {
            return self.standing(declared, &key, || there.value());
        }
        // A removed hash does not mean that the declaration changed.
        let is_news = (there.applied.as_ref()).is_some_and(|hash| *hash != applied.hash);
        if !is_news && !self.leave.creates {
            // A user who deletes an object may want its resources left as they are.
            return Ok(Verdict::Fine);
        }
        if let Some((wait, _)) = self.wait(&key) {
            return Ok(Verdict::Held(wait));
        }
        if !is_news {
            tracing::info!(
                resource = what,
                "another client has changed it: it is applied again"
            );
        }
        let uid = there.meta().uid.as_deref().unwrap_or_default();
        let made = self.apply_one(applied, Target::Existing(uid)).await?;
        self.standing(declared, &key, || Ok(made))
    }

    /// Creates an object; if one of its name exists, maintains it only if it belongs to the owner or may be adopted.
    async fn create(&mut self, declared: &Declared, applied: &Applied) -> Result<Verdict, Failure> {
        let key = key_of(applied);
        if !self.leave.creates {
            return Ok(Verdict::Fine);
        }
        if self.is_unshown(declared, &key) && !self.is_recorded(&key) {
            return Ok(Verdict::Unrecorded);
        }
        if let Some((wait, _)) = self.wait(&key) {
            return Ok(Verdict::Held(wait));
        }
        match self.apply_one(applied, Target::Absent).await {
            Ok(made) => self.standing(declared, &key, || Ok(made)),
            Err(failure) if failure.reason() == reasons::CONFLICT => {
                let found = self.found(&key, declared).await?;
                // A response was lost or a label was removed: the object belongs to the owner.
                self.maintain(declared, applied, &found).await
            }
            Err(failure) => Err(failure),
        }
    }

    fn standing(
        &self,
        declared: &Declared,
        key: &Key,
        object: impl FnOnce() -> Result<Value, String>,
    ) -> Result<Verdict, Failure> {
        if !declared.ready {
            return Ok(Verdict::Fine);
        }
        let what = self.told(key);
        let object = object().map_err(|why| unreadable(&what, &why))?;
        Ok(match lack(self.kind(key), &object) {
            Some(Lack::Pending(why)) => Verdict::Awaited(format!("{what}: {why}")),
            Some(Lack::Failed(why)) => Verdict::Stuck(format!("{what}: {why}")),
            None => Verdict::Fine,
        })
    }

    fn is_as_applied(&self, key: &Key, there: &Kept, applied: &Applied) -> bool {
        let manager = &self.cluster.identity.manager;
        there.applied.as_deref() == Some(&applied.hash)
            && (there.is_whole(manager, &applied.body)
                || (self.accepted.get(key)).is_some_and(|accepted| {
                    let object = there.value().unwrap_or_default();
                    owned_fields(&object, manager).map(read::revision) == Some(*accepted)
                }))
    }

    /// Reads the object of this name, which the cache does not show as owned.
    ///
    /// # Errors
    ///
    /// If it is not owned and may not be adopted; a retry helps once it is gone.
    async fn found(&self, key: &Key, declared: &Declared) -> Result<Kept, Failure> {
        let what = self.told(key);
        let found = answer(self.api(key).get_opt(&key.2)).await;
        let found = found.map_err(|error| self.failure_of(key, &error))?;
        let found = found.ok_or_else(|| {
            Failure::retry(reasons::CONFLICT, format!("{what} was there a moment ago"))
        })?;
        let object = found.value().map_err(|why| unreadable(&what, &why))?;
        let manager = &self.cluster.identity.manager;
        let uid = self.uid();
        let is_shown = self.is_beside(key) && is_owned_by(&object, uid);
        // It is recorded, and this operator created it for this owner.
        let is_recorded = self.is_recorded(key)
            && owned_fields(&object, manager).is_some()
            && found.owner.as_deref().is_none_or(|owner| owner == uid)
            && found.owner_name.as_deref() == Some(&*named(self.object.meta()));
        if is_shown || is_recorded || declared.adopts {
            Ok(found)
        } else if found.is_deleting() {
            Err(Failure::retry(
                reasons::NOT_OWNED,
                format!("{what} is being deleted, and was not made for this object"),
            ))
        } else {
            Err(Failure::retry(
                reasons::NOT_OWNED,
                format!(
                    "{what} exists and was not made for this object: delete or rename one of them"
                ),
            ))
        }
    }

    /// Applies an object.
    ///
    /// # Errors
    ///
    /// [`reasons::CONFLICT`] if the existing object is not the target.
    async fn apply_one(&mut self, applied: &Applied, target: Target<'_>) -> Result<Value, Failure> {
        self.check_leader()?;
        let key = key_of(applied);
        let what = self.told(&key);
        let manager = &self.cluster.identity.manager;
        let params = PatchParams::apply(manager).force();
        let mut body = applied.body.clone();
        match target {
            Target::Existing(uid) => body["metadata"]["uid"] = uid.into(),
            Target::Absent => body["metadata"]["resourceVersion"] = NO_VERSION.into(),
        }
        let api = self.api(&key);
        let made = answer(api.patch(&key.2, &params, &Patch::Apply(&body))).await;
        let made = made.map_err(|error| self.failure_of(&key, &error))?;
        self.efforts.made(Some(key.clone()), &self.pace, None);
        self.applied += 1;
        let object = made.value().map_err(|why| unreadable(&what, &why))?;
        let owned = owned_fields(&object, manager);
        // A server may drop fields that it does not know; applying them again would change nothing, each time.
        match owned.filter(|owned| !covers(owned, &applied.body)) {
            Some(owned) => self.accepted.insert(key.clone(), read::revision(owned)),
            None => self.accepted.remove(&key),
        };
        self.cluster.take_in(key.0, made);
        Ok(object)
    }
}

/// The object that an apply may change; the server refuses the apply for any other object (409).
#[derive(Clone, Copy)]
enum Target<'a> {
    /// The object of this uid: another object of the same name may have another owner.
    Existing(&'a str),
    /// Nothing: the object is created.
    Absent,
}

/// The `resourceVersion` of an apply that only creates.
///
/// No stored object has it, because the first revision of etcd is that of the empty store. The API server compares
/// versions only if the object exists.
const NO_VERSION: &str = "1";

/// How long the status may record an object that is neither declared nor present.
const ABSENT: Duration = Duration::from_mins(1);

/// The failure for an object that is nested deeper than the parser allows.
fn unreadable(what: &str, why: &str) -> Failure {
    Failure::retry(reasons::UNREADABLE, format!("{what} cannot be read: {why}"))
}

fn key_of(applied: &Applied) -> Key {
    (
        applied.kind,
        applied.namespace.clone(),
        applied.name.clone(),
    )
}

/// Returns whether an object has an owner reference with this uid.
fn is_owned_by(object: &Value, uid: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid))
}
