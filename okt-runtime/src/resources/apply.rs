//! Applies the resources that an application declares for a state, prunes the others, and deletes those of an object
//! that is being deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use okt_core::StateId;
use okt_core::reasons::resources as reasons;
use okt_reach::Failure;
use okt_telemetry::event::Event;
use okt_wire::digest;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::attempts::{Attempts, Pace};
use super::declared::{Declared, Resources};
use super::drift::{covers, owned_fields, takers};
use super::going::{DeletionPlan, Owned};
use super::inventory::{Finished, Inventory};
use super::kept::Kept;
use super::managers::{owns_at, put_at, settled};
use super::names::Key;
use super::plan::{Creation, Presence, ResourcePlan, plan};
use super::ready::{End, Lack, behind_old_pods};
use super::report::ApplyReport;
use super::site::{NOT_LEADING, Precondition, Site, listed, unreadable};
use super::stamp::{Applied, Stamper};

/// How long a rollout may wait for Pods of an earlier revision: as long as a Deployment may make no progress.
const STUCK: Duration = Duration::from_mins(10);

/// Objects that OKT cannot own completely, each with a hash of the fields that it does own.
pub(crate) type Accepted = BTreeMap<Key, u64>;

/// The kinds of writes that this reconciliation may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllowedWrites {
    /// Whether OKT may create and repair: not for an object that is being deleted.
    pub creates: bool,
    /// Whether OKT may prune: not after a jump, because the record may have been wrong about the application's state.
    pub prunes: bool,
    /// The state, if the content of some objects may change in some states only.
    pub state: Option<StateId>,
}

/// One run of applying or deleting the resources of an object.
pub(super) struct Applying<'a> {
    pub(super) site: Site<'a>,
    pub(super) attempts: &'a mut Attempts,
    pub(super) accepted: &'a mut Accepted,
    /// What the status of the object records.
    pub(super) inventory: Inventory,
    /// The attempts on recorded objects that the cache does not show, by their entries.
    pub(super) lookups: &'a mut Attempts<String>,
    /// Recorded objects that stay although they are not declared, and when they were looked up.
    pub(super) stays: &'a mut BTreeMap<String, Instant>,
    /// The uids of objects that were deleted.
    pub(super) deleted: &'a mut BTreeSet<String>,
    /// Rollouts that wait for Pods of an earlier revision, each with the new revision, and since when.
    pub(super) behind: &'a mut BTreeMap<Key, (String, Instant)>,
    pub(super) pace: Pace,
    pub(super) report: ApplyReport,
    /// Whether this run has seen that the owner exists.
    pub(super) has_seen_owner: bool,
}

impl<'a> Deref for Applying<'a> {
    type Target = Site<'a>;

    fn deref(&self) -> &Site<'a> {
        &self.site
    }
}

/// What others have undone of what OKT had applied.
enum Undone {
    Changed {
        /// The managers that own what OKT had owned, if there are any.
        by: Option<String>,
    },
    Deleted,
}

/// The declared objects.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) all: BTreeSet<Key>,
    /// Those that the status has to record.
    pub(super) recorded: BTreeSet<Key>,
    /// Those that do something once, each with a hash of its declaration.
    pub(super) once: BTreeMap<Key, String>,
}

impl Applying<'_> {
    /// Applies all declarations and prunes; a failure of one object does not stop the others.
    pub(super) async fn apply(
        mut self,
        resources: &Resources,
        leave: AllowedWrites,
    ) -> ApplyReport {
        self.attempts.forget_old(&self.pace);
        self.lookups.forget_old(&self.pace);
        if let Some(why) = self.cluster.unseen_reference(self.owner) {
            // What is declared may be wrong without it.
            let failure = Failure::retry(reasons::NOT_WATCHED, why);
            self.report.failures.push((None, failure));
            return self.report;
        }
        let owned = self.owned();
        let mut wanted = Wanted::default();
        // If a declaration failed, OKT does not know which objects are no longer declared.
        let mut is_whole = leave.prunes;
        for (index, declared) in resources.declared.iter().enumerate() {
            if declared.in_deletion {
                self.report.needed.insert(index);
            }
            let applied = match self.stamp(declared, &mut wanted) {
                Ok(applied) => applied,
                Err(failure) => {
                    self.report.failures.push((Some(index), failure));
                    is_whole = false;
                    continue;
                }
            };
            let there = owned.get(&applied.key);
            let content = applied.content.as_ref().filter(|_| there.is_none());
            let finished = content.and_then(|content| self.end_of_gone(&applied.key, content));
            if declared.ready && there.is_none() && finished.is_none() {
                self.report.needed.insert(index);
            }
            let uid = there.and_then(|it| it.meta().uid.as_deref());
            self.attempts.forget_if_replaced(&applied.key, uid);
            if self.has_failed_lately(Some(index), &applied.key) {
                continue;
            }
            match finished {
                Some(Finished {
                    end: End::Failed, ..
                }) if declared.recreate => {}
                Some(finished) => {
                    self.report_finished(index, declared, &applied.key, finished.end);
                    continue;
                }
                None => {}
            }
            let brought = self.bring_about(index, declared, &applied, there.cloned(), leave);
            let Err(failure) = brought.await else {
                continue;
            };
            if !self.goes_on_after(Some(index), &applied.key, uid, failure) {
                is_whole = false;
                break;
            }
        }
        if is_whole {
            self.prune(resources, &owned, &wanted).await;
            self.cluster.keep_vanished(self.uid(), &wanted.all);
        }
        if self.owner.meta.deletion_timestamp.is_some() {
            self.report.keep_needed();
        }
        self.take_stock(resources, &wanted, is_whole).await;
        self.report
    }

    /// Deletes the resources that Kubernetes does not delete with their owner, except kept ones.
    pub(super) async fn clear(mut self, resources: &Resources) -> ApplyReport {
        let owned = self.owned();
        let going = DeletionPlan::with_owner(&self.site, resources, &owned);
        self.delete_first(&going).await;
        self.await_going(&going);
        if going.first.is_empty() {
            self.clear_unseen(resources, &owned).await;
        }
        self.report
    }

    /// Deletes owned objects that are no longer declared.
    async fn prune(&mut self, resources: &Resources, owned: &Owned, wanted: &Wanted) {
        self.accepted.retain(|key, _| wanted.all.contains(key));
        let going = DeletionPlan::surplus(&self.site, resources, &wanted.all, owned);
        self.delete_first(&going).await;
        if going.is_awaited {
            self.await_going(&going);
        }
    }

    /// Deletes the objects of the first wave; a failure of one does not stop the others.
    async fn delete_first(&mut self, going: &DeletionPlan<'_>) {
        for (key, there) in &going.first {
            if there.is_deleting() || self.has_failed_lately(None, key) {
                continue;
            }
            // It was deleted or applied a moment ago.
            if let Some((wait, _)) = self.attempts.wait(key, &self.pace) {
                self.report.due_in(wait);
                continue;
            }
            let why = self.why_it_goes();
            let place = self.place(key);
            match self.delete(place, there, &there.propagation, why).await {
                Ok(()) => {
                    self.deleted.extend(there.meta().uid.clone());
                    self.report.operations.deleted += 1;
                    let wait = self.attempts.succeeded(key, &self.pace);
                    self.report.due_in(wait);
                }
                Err(failure) => {
                    let uid = there.meta().uid.as_deref();
                    if !self.goes_on_after(None, key, uid, failure) {
                        return;
                    }
                }
            }
        }
    }

    pub(super) fn why_it_goes(&self) -> &'static str {
        match &self.owner.meta.deletion_timestamp {
            Some(_) => "it goes before its object",
            None => "it is no longer declared",
        }
    }

    fn await_going(&mut self, going: &DeletionPlan<'_>) {
        let left = going.left(&self.site);
        self.report.awaited.extend(left.map(|left| (None, left)));
    }

    /// Notes the failure of the last attempt for an object, if its backoff still lasts.
    fn has_failed_lately(&mut self, index: Option<usize>, key: &Key) -> bool {
        let Some((wait, Some(failure))) = self.attempts.wait(key, &self.pace) else {
            return false;
        };
        self.report.retries(index, failure.clone(), wait);
        true
    }

    /// Notes a failed attempt, and returns whether a request about another object may succeed. `uid` is that of the
    /// object that existed.
    fn goes_on_after(
        &mut self,
        index: Option<usize>,
        key: &Key,
        uid: Option<&str>,
        failure: Failure,
    ) -> bool {
        let reason = failure.reason();
        // The next leader continues.
        if reason == NOT_LEADING {
            self.report.failures.push((index, failure));
            return false;
        }
        // The next request would wait as long in vain.
        let goes_on = reason != reasons::UNANSWERED;
        self.report.operations.failed += 1;
        let wait = self.attempts.failed(key, &self.pace, failure.clone(), uid);
        self.report.retries(index, failure, wait);
        goes_on
    }

    fn stamp(&self, declared: &Declared, wanted: &mut Wanted) -> Result<Applied, Failure> {
        let stamper = Stamper {
            owner: self.owner,
            kinds: &self.cluster.watches.owned,
            identity: &self.cluster.identity,
            namespace: self.cluster.namespace.as_deref(),
        };
        let applied = stamper
            .stamped(declared)
            .map_err(|failure| match &declared.file {
                Some(file) => {
                    let message = format!("{file}: {}", failure.message());
                    Failure::permanent(failure.reason(), message)
                }
                None => failure,
            })?;
        let key = &applied.key;
        let what = self.describe(key);
        let wrong = |why: String| Err(Failure::permanent(reasons::BAD_RESOURCE, why));
        if !wanted.all.insert(key.clone()) {
            return wrong(format!("{what} is declared twice"));
        }
        if self.has_to_record(declared, key) {
            if let Some(limit) = wanted.is_full() {
                return wrong(format!(
                    "{what} has no owner reference, as {limit} others: a status records no more of them"
                ));
            }
            wanted.recorded.insert(key.clone());
        }
        if let Some(content) = &applied.content {
            if let Some(limit) = wanted.is_full() {
                return wrong(format!(
                    "{what} is done once, as {limit} others: a status records no more of them"
                ));
            }
            wanted.once.insert(key.clone(), content.clone());
        }
        if declared.ready && self.cluster.is_bare(key.0) {
            return wrong(format!(
                "{what} has to be ready, of which only the metadata is watched: declare its kind with `owns`"
            ));
        }
        Ok(applied)
    }

    /// Plans what to do about one declared object, does it, and reports what is still missing.
    ///
    /// # Errors
    ///
    /// If a request fails; a retry may help unless the failure is permanent.
    async fn bring_about(
        &mut self,
        index: usize,
        declared: &Declared,
        applied: &Applied,
        mut there: Option<Arc<Kept>>,
        leave: AllowedWrites,
    ) -> Result<(), Failure> {
        let key = &applied.key;
        let what = self.describe(key);
        let is_going = self.owner.meta.deletion_timestamp.is_some();
        let creates = leave.creates || (is_going && declared.in_deletion);
        let may_change = is_going || declared.may_change_in(leave.state);
        if let Some(why) = self.cluster.unlisted(key.0) {
            self.cluster.wait_for_list(key.0, self.owner);
            let why = format!("{what}: its kind cannot be listed: {why}");
            return Err(Failure::retry(reasons::NOT_WATCHED, why));
        }
        if is_going && !creates && declared.ready && there.is_none() {
            let why = format!(
                "{what} has to be ready and is not there, and nothing is made while its object is being deleted: declare it with `during_deletion`, or let the deletion leave the state by `on_delete`"
            );
            return Err(Failure::permanent(reasons::BAD_RESOURCE, why));
        }
        let creation = if !creates {
            Creation::Forbidden
        } else if self.has_to_record(declared, key) && !self.inventory.has(self.kind(key), key) {
            Creation::AfterRecord
        } else {
            Creation::Allowed
        };
        // A failed Pod or Job may be a result that the work of the state is about to read.
        if creates
            && declared.recreate
            && let Some(there) = &there
            && let Some(why) = self.failed(key, there)?
        {
            return self
                .replace((index, declared), key, there, reasons::NOT_READY, &why)
                .await;
        }
        let awaited = loop {
            let presence = self.presence(declared, applied, there.as_deref());
            let wait = self.attempts.wait(key, &self.pace).map(|(wait, _)| wait);
            let plan = plan(presence, creation, may_change, wait);
            if plan == ResourcePlan::Hold {
                self.report.outdated.push(index);
            }
            match (plan, &there) {
                (ResourcePlan::Check | ResourcePlan::Hold, Some(there)) if declared.ready => {
                    let object = there.value().map_err(|why| unreadable(&what, &why))?;
                    self.check(index, declared, key, &object);
                    return Ok(());
                }
                (ResourcePlan::Check | ResourcePlan::Hold | ResourcePlan::LeaveAlone, _) => {
                    self.report.made.insert(index);
                    return Ok(());
                }
                (ResourcePlan::AwaitDeletion, _) => break format!("{what} is being deleted"),
                (ResourcePlan::Record, _) => {
                    self.report.due_in(Duration::ZERO);
                    break format!("{what} is recorded in the status before it is created");
                }
                (ResourcePlan::Wait(wait), _) => {
                    self.report.due_in(wait);
                    let by = self.attempts.changed_by(key);
                    let by = by.map_or_else(String::new, |by| format!(", last by {by}"));
                    break format!(
                        "{what} was changed again{by}; it is applied again after a backoff"
                    );
                }
                (ResourcePlan::Apply, existing) => {
                    let existing = existing.as_deref();
                    if existing.is_none() && self.has_to_record(declared, key) {
                        self.check_owner().await?;
                    }
                    let undone = self.undone(presence, applied, existing).await;
                    let made = self
                        .apply_or_replace((index, declared), applied, existing, creates)
                        .await;
                    if let (Ok(()), Some(undone)) = (&made, undone) {
                        self.report_repair(key, undone);
                    }
                    match made {
                        // A response was lost or a label was removed: the object may belong to the owner.
                        Err(failure)
                            if existing.is_none() && failure.reason() == reasons::CONFLICT =>
                        {
                            there = Some(Arc::new(self.found(key, declared).await?));
                        }
                        made => return made,
                    }
                }
            }
        };
        self.report.awaited.push((Some(index), awaited));
        Ok(())
    }

    /// Returns who has taken fields of a declared object, e.g. `kubectl-edit`; none if no manager owns them, or the object
    /// cannot be read.
    async fn takers(&self, applied: &Applied) -> Option<String> {
        // The cache keeps the fields of the operator alone.
        let object = self.read_whole(&applied.key).await.ok()?;
        let manager = &self.cluster.identity.manager;
        let takers = takers(&object, manager, &applied.body);
        (!takers.is_empty()).then(|| listed(&takers))
    }

    /// Checks once that the owner exists: what is known of it may be older than its end, after which nothing would delete
    /// what is created for it.
    ///
    /// # Errors
    ///
    /// If it does not; a retry helps once the watch has delivered the end.
    async fn check_owner(&mut self) -> Result<(), Failure> {
        self.has_seen_owner =
            self.has_seen_owner || self.is_there(&self.owner_name(), self.uid()).await?;
        if self.has_seen_owner {
            return Ok(());
        }
        let why = "nothing is created for an object that does not exist any more";
        Err(Failure::retry(reasons::CONFLICT, why))
    }

    /// Returns what others have undone of what OKT had applied; none if they have not.
    async fn undone(
        &self,
        presence: Presence,
        applied: &Applied,
        existing: Option<&Kept>,
    ) -> Option<Undone> {
        let key = &applied.key;
        match presence {
            // Nobody has changed what OKT had not applied before.
            Presence::Changed if existing.is_some_and(|there| there.is_applied) => {
                let by = self.takers(applied).await;
                Some(Undone::Changed { by })
            }
            Presence::Absent => {
                let uid = self.cluster.vanished(self.uid(), key)?;
                (!self.deleted.contains(&uid)).then_some(Undone::Deleted)
            }
            Presence::Changed | Presence::AsDeclared | Presence::Outdated | Presence::Deleting => {
                None
            }
        }
    }

    /// Reports that an object is again as declared, unless OKT cannot own all of it: then nobody has changed it.
    fn report_repair(&mut self, key: &Key, undone: Undone) {
        if self.accepted.contains_key(key) {
            return;
        }
        let what = self.describe(key);
        // Kubernetes merges events that differ in their notes alone.
        let (reason, note, by) = match undone {
            Undone::Changed { by } => {
                let who = by.as_deref().unwrap_or("another client");
                let note = format!("{what} was changed by {who}: it is applied again");
                ("ResourceChanged", note, by)
            }
            Undone::Deleted => {
                let note = format!("{what} was deleted: it is created again");
                ("ResourceDeleted", note, None)
            }
        };
        self.attempts.note_change(key, by);
        tracing::info!("{note}");
        let kind = self.kind(key);
        let related = ObjectReference {
            api_version: Some(kind.api.api_version.clone()),
            kind: Some(kind.api.kind.clone()),
            namespace: key.1.clone(),
            name: Some(key.2.clone()),
            ..ObjectReference::default()
        };
        let event = Event::normal(reason, "Apply", note).related(related);
        self.report.repairs.push(event);
    }

    /// Applies or marks an object; one whose fields cannot change is deleted instead, where OKT may create it again.
    ///
    /// # Errors
    ///
    /// Those of [`apply_one`](Self::apply_one) and [`replace`](Self::replace).
    async fn apply_or_replace(
        &mut self,
        (index, declared): (usize, &Declared),
        applied: &Applied,
        existing: Option<&Kept>,
        creates: bool,
    ) -> Result<(), Failure> {
        let key = &applied.key;
        let recreates = creates && (declared.recreate || self.kind(key).has_fixed_spec());
        let made = match existing {
            Some(there) if declared.once => self.mark(applied, there).await,
            _ => self.apply_one(declared, applied, existing).await,
        };
        match (made, existing) {
            (Ok(object), _) => {
                self.check(index, declared, key, &object);
                Ok(())
            }
            (Err(failure), Some(there)) if recreates && failure.reason() == reasons::IMMUTABLE => {
                let why = failure.message();
                self.replace((index, declared), key, there, reasons::IMMUTABLE, why)
                    .await
            }
            (Err(failure), _) => Err(failure),
        }
    }

    /// Returns why an object has failed and does not recover; none if it has not, or is being deleted already.
    fn failed(&self, key: &Key, there: &Kept) -> Result<Option<String>, Failure> {
        if there.is_deleting() || self.cluster.is_bare(key.0) {
            return Ok(None);
        }
        let what = self.describe(key);
        let object = there.value().map_err(|why| unreadable(&what, &why))?;
        Ok(match self.cluster.lack(key.0, &object) {
            Some(Lack::Failed(why)) => Some(format!("{what}: {why}")),
            Some(Lack::Pending(_)) | None => None,
        })
    }

    /// Deletes an object, so that the next reconciliations create it again; awaits that if it was applied a moment ago.
    ///
    /// # Errors
    ///
    /// Also when it is deleted: with the reason for it, so that the next attempt waits longer.
    async fn replace(
        &mut self,
        (index, declared): (usize, &Declared),
        key: &Key,
        there: &Kept,
        reason: &'static str,
        why: &str,
    ) -> Result<(), Failure> {
        // It was created or changed a moment ago.
        if let Some((wait, _)) = self.attempts.wait(key, &self.pace) {
            self.report.due_in(wait);
            let later = format!("{why}; it is deleted and created again after a backoff");
            self.report.awaited.push((Some(index), later));
            return Ok(());
        }
        // The object may have another policy, or none, from an earlier release.
        let policy = declared.propagation.as_ref().unwrap_or(&there.propagation);
        let place = self.place(key);
        self.delete(place, there, policy, "it is created again")
            .await?;
        self.deleted.extend(there.meta().uid.clone());
        self.report.operations.deleted += 1;
        let why = format!("{why}; it is deleted and created again");
        Err(Failure::retry(reason, why))
    }

    fn presence(&self, declared: &Declared, applied: &Applied, there: Option<&Kept>) -> Presence {
        let Some(there) = there else {
            return Presence::Absent;
        };
        if there.is_deleting() {
            return Presence::Deleting;
        }
        let is_marked = there.is_applied && there.owner.as_deref() == Some(self.uid());
        if (declared.once && is_marked) || self.is_as_applied(applied, there) {
            return Presence::AsDeclared;
        }
        match &there.applied {
            Some(hash) if *hash != applied.hash => Presence::Outdated,
            // A removed hash does not mean that the declaration changed.
            Some(_) | None => Presence::Changed,
        }
    }

    fn is_as_applied(&self, applied: &Applied, there: &Kept) -> bool {
        let manager = &self.cluster.identity.manager;
        there.applied.as_deref() == Some(&applied.hash)
            && (there.is_whole(manager, &applied.body)
                || self.accepted.get(&applied.key).is_some_and(|accepted| {
                    let object = there.value().unwrap_or_default();
                    owned_fields(&object, manager).map(digest::revision) == Some(*accepted)
                }))
    }

    /// Reports an object that has done what it was made for and is gone.
    fn report_finished(&mut self, index: usize, declared: &Declared, key: &Key, end: End) {
        self.report.made.insert(index);
        if declared.ready && end == End::Failed {
            let what = self.describe(key);
            let why = format!(
                "{what} has failed and is gone: it is made again when its declaration changes"
            );
            let failure = Failure::permanent(reasons::NOT_READY, why);
            self.report.failures.push((Some(index), failure));
        }
    }

    /// Reports an object that exists, and whether it is ready, if it has to be.
    fn check(&mut self, index: usize, declared: &Declared, key: &Key, object: &Value) {
        self.report.made.insert(index);
        if !declared.ready {
            return;
        }
        let what = self.describe(key);
        let lack = self.cluster.lack(key.0, object);
        match self.lasting(key, lack, object) {
            Some(Lack::Pending(why)) => {
                let why = format!("{what}: {why}");
                self.report.awaited.push((Some(index), why));
            }
            Some(Lack::Failed(why)) => {
                let failure = Failure::permanent(reasons::NOT_READY, format!("{what}: {why}"));
                self.report.failures.push((Some(index), failure));
            }
            None => {}
        }
    }

    /// Returns what is lacking, which has failed if it has lasted for too long.
    fn lasting(&mut self, key: &Key, lack: Option<Lack>, object: &Value) -> Option<Lack> {
        let is_behind = self.kind(key).is("apps/v1", "StatefulSet")
            && matches!(lack, Some(Lack::Pending(_)))
            && behind_old_pods(object).is_some();
        if !is_behind {
            self.behind.remove(key);
            return lack;
        }
        let revision = object["status"]["updateRevision"]
            .as_str()
            .unwrap_or_default();
        let begun = self.behind.get(key).filter(|(seen, _)| seen == revision);
        let since = begun.map_or_else(Instant::now, |(_, since)| *since);
        self.behind
            .insert(key.clone(), (revision.to_owned(), since));
        match STUCK
            .checked_sub(since.elapsed())
            .filter(|it| !it.is_zero())
        {
            Some(left) => {
                self.report.due_in(left);
                lack
            }
            None => lack.map(|lack| match lack {
                Lack::Pending(why) | Lack::Failed(why) => Lack::Failed(why),
            }),
        }
    }

    /// Reads the object of this name, which the cache does not show as owned.
    ///
    /// # Errors
    ///
    /// If it is not owned and may not be adopted; a retry helps once it is gone.
    async fn found(&self, key: &Key, declared: &Declared) -> Result<Kept, Failure> {
        let what = self.describe(key);
        let refused = |reason, why: &str| Err(Failure::retry(reason, format!("{what} {why}")));
        let Some(found) = self.read(self.place(key)).await? else {
            return refused(reasons::CONFLICT, "was there a moment ago");
        };
        let object = found.value().map_err(|why| unreadable(&what, &why))?;
        if self.is_own(&self.inventory, key, &found, &object) {
            return Ok(found);
        }
        if self.is_inherited(&self.inventory, key, &found, &object) {
            tracing::info!(
                resource = what,
                "made for an earlier object of this name: taken over"
            );
            return Ok(found);
        }
        if let Some(other) = self.other_owner(&found, &object).await? {
            let why = format!("exists and belongs to {other}: delete or rename one of them");
            return refused(reasons::NOT_OWNED, &why);
        }
        if declared.adopts {
            Ok(found)
        } else if found.is_deleting() {
            refused(
                reasons::NOT_OWNED,
                "is being deleted, and was not made for this object",
            )
        } else {
            refused(
                reasons::NOT_OWNED,
                "exists and was not made for this object: delete or rename one of them",
            )
        }
    }

    /// Applies an object: to the one that is there, or creates it. Returns it as the API server stores it.
    ///
    /// # Errors
    ///
    /// [`reasons::CONFLICT`] if another object exists than `there`.
    async fn apply_one(
        &mut self,
        declared: &Declared,
        applied: &Applied,
        there: Option<&Kept>,
    ) -> Result<Value, Failure> {
        let key = &applied.key;
        let mut body = applied.body.clone();
        let precondition = if let Some(there) = there {
            self.settle_managers(declared, applied, there).await?;
            Precondition::Uid(there.meta().uid.as_deref().unwrap_or_default())
        } else {
            for (pointer, value) in &applied.initial {
                put_at(&mut body, pointer, value.clone());
            }
            Precondition::Absent
        };
        let made = self.send_apply(key, body, precondition).await?;
        let object = self.taken(key, made)?;
        let owned = owned_fields(&object, &self.cluster.identity.manager);
        // A server may drop fields that it does not know; applying them again would change nothing, each time.
        match owned.filter(|owned| !covers(owned, &applied.body)) {
            Some(owned) => self.accepted.insert(key.clone(), digest::revision(owned)),
            None => self.accepted.remove(key),
        };
        Ok(object)
    }

    /// Marks an object that exists as owned, and leaves the rest of it as it is.
    ///
    /// # Errors
    ///
    /// As [`apply_one`](Self::apply_one).
    async fn mark(&mut self, applied: &Applied, there: &Kept) -> Result<Value, Failure> {
        let key = &applied.key;
        let uid = there.meta().uid.as_deref().unwrap_or_default();
        let mut body = json!({ "metadata": applied.body["metadata"] });
        let made = if there.is_applied {
            // An apply without the rest would remove it.
            body["metadata"]["uid"] = uid.into();
            let before = there.value().unwrap_or_default();
            let others = before["metadata"]["ownerReferences"].as_array().cloned();
            let own = body["metadata"]["ownerReferences"].as_array_mut();
            if let (Some(own), Some(mut others)) = (own, others) {
                others.retain(|other| other["uid"] != self.uid());
                own.extend(others);
            }
            self.send_patch(key, body).await?
        } else {
            for name in ["apiVersion", "kind"] {
                body[name] = applied.body[name].clone();
            }
            self.send_apply(key, body, Precondition::Uid(uid)).await?
        };
        self.taken(key, made)
    }

    /// Makes the fields of the managers that a declaration names those of the operator, and gives up those that it only
    /// sets at first: an apply then removes, or leaves, what it should.
    async fn settle_managers(
        &self,
        declared: &Declared,
        applied: &Applied,
        there: &Kept,
    ) -> Result<(), Failure> {
        let manager = &self.cluster.identity.manager;
        let gives_up = || {
            let object = there.value().unwrap_or_default();
            let owned = owned_fields(&object, manager);
            owned.is_some_and(|owned| declared.initial.iter().any(|it| owns_at(owned, it)))
        };
        if declared.takes_over.is_empty() && (declared.initial.is_empty() || !gives_up()) {
            return Ok(());
        }
        let key = &applied.key;
        let object = self.read_whole(key).await?;
        let (all, version) = (
            &object["metadata"]["managedFields"],
            &object["metadata"]["resourceVersion"],
        );
        let Some(settled) = settled(all, manager, &declared.takes_over, &declared.initial) else {
            return Ok(());
        };
        let metadata = json!({ "managedFields": settled, "resourceVersion": version });
        let patch = json!({ "metadata": metadata });
        self.send_patch(key, patch).await.map(drop)
    }

    /// Notes that an object was applied, and takes it in as the API server has stored it.
    fn taken(&mut self, key: &Key, made: Kept) -> Result<Value, Failure> {
        self.attempts.succeeded(key, &self.pace);
        self.report.operations.applied += 1;
        let object = made
            .value()
            .map_err(|why| unreadable(&self.describe(key), &why))?;
        self.cluster.take_in(key.0, made);
        Ok(object)
    }
}
