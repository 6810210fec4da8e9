//! Takes stock: what the status of an object should record, and what becomes of recorded objects that the cache does not
//! show, because somebody has changed what shows their owner, or because this release does not declare their kind.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Resource;
use okt_reach::Failure;
use okt_wire::limits::{RECORDED_BYTES, RECORDED_LIMIT};
use tokio::time::Instant;

use super::apply::{Applying, Wanted};
use super::cluster::name_of;
use super::declared::Resources;
use super::going::Owned;
use super::inventory::{Finished, Inventory, InventoryEntry};
use super::kept::Kept;
use super::kind::ResourceKind;
use super::names::{Key, ResourcePlace};
use super::site::{Site, unreadable};

/// How long objects wait that the status has no room for.
const ROOM: Duration = Duration::from_mins(1);

/// How long a recorded object that stays is not looked up again.
const LOOKED: Duration = Duration::from_mins(10);

/// What became of a recorded object that is not declared and that the cache does not show.
enum Unseen {
    /// There is no such object any more.
    Gone,
    /// It stays: the application keeps it, or it holds data.
    Stays,
    /// It is deleted, or is going to be.
    Goes,
}

impl Wanted {
    /// Returns how many objects the status records, if it has no room for more.
    pub(super) fn is_full(&self) -> Option<usize> {
        let number = self.recorded.len().saturating_add(self.once.len());
        (number >= RECORDED_LIMIT).then_some(number)
    }
}

impl Applying<'_> {
    /// Reports what the status should record. If `is_whole` is true, all declarations are known, and recorded objects
    /// are deleted that are no longer declared and that the cache does not show.
    pub(super) async fn take_stock(
        &mut self,
        resources: &Resources,
        wanted: &Wanted,
        is_whole: bool,
    ) {
        // Those, too, that were made a moment ago.
        let owned = self.owned();
        let kept = self.kept(resources);
        let mut stock = Inventory::default();
        for (key, there) in &owned {
            let finished = self.end_of(key, Some(there), wanted);
            let is_kept = kept.contains(key);
            if !self.is_shown(key, there) || is_kept || finished.is_some() {
                stock.put(InventoryEntry {
                    uid: there.meta().uid.clone(),
                    is_unowned: self.is_unowned(key, Some(there), wanted),
                    is_kept,
                    finished,
                    ..InventoryEntry::of(self.kind(key), key)
                });
            }
        }
        for key in wanted.recorded.iter().chain(wanted.once.keys()) {
            let kind = self.kind(key);
            if stock.get(kind, key).is_some() {
                continue;
            }
            let recorded = self.inventory.get(kind, key);
            let entry = InventoryEntry {
                uid: recorded.and_then(|entry| entry.uid.clone()),
                is_unowned: self.is_unowned(key, None, wanted),
                finished: self.end_of(key, owned.get(key).map(AsRef::as_ref), wanted),
                ..InventoryEntry::of(kind, key)
            };
            if wanted.recorded.contains(key) || entry.finished.is_some() {
                stock.put(entry);
            }
        }
        for entry in self.unseen(&owned) {
            if stock.has_entry(&entry) {
                continue;
            }
            if !is_whole || !matches!(self.settle(&entry, &kept).await, Unseen::Gone) {
                stock.put(entry);
            }
        }
        let known_keys = owned.keys().chain(&wanted.recorded);
        let known = known_keys.map(|key| (self.kind(key), key));
        stock.put_hashes(self.inventory.hashes_of_others(known));
        for key in owned.keys().chain(&wanted.all) {
            stock.put_kind(self.kind(key).clone());
        }
        self.settle_kinds(&mut stock, is_whole).await;
        if is_whole {
            let once: Vec<&Key> = wanted.once.keys().collect();
            self.cluster.keep_ended(self.uid(), &once);
        }
        self.make_room(&mut stock, &owned, wanted);
        self.report.to_record = stock.texts();
    }

    /// Deletes the owned objects of kinds that an earlier release declared and this one does not. If `is_whole` is not
    /// set, the kinds stay on record.
    async fn settle_kinds(&mut self, stock: &mut Inventory, is_whole: bool) {
        let recorded: Vec<ResourceKind> = self.inventory.kinds().cloned().collect();
        for kind in recorded {
            let mut declared = self.cluster.watches.owned.iter();
            let is_left = match declared.position(|it| it.is_same(&kind)) {
                // The cache shows all of it.
                Some(number) => self.cluster.unlisted(number).is_some() || stock.has_any_of(&kind),
                // Nothing of it is deleted.
                None if kind.holds_data() => false,
                None => is_whole && !self.settle_kind(&kind).await,
            };
            if is_left || !is_whole {
                stock.put_kind(kind);
            }
        }
    }

    /// Returns whether nothing is left to do about a kind that this release does not declare.
    async fn settle_kind(&mut self, kind: &ResourceKind) -> bool {
        let text = kind.api.plural.clone();
        if self.was_looked_up(&text) {
            return false;
        }
        match self.try_to_settle_kind(kind).await {
            Ok(true) => true,
            Ok(false) => {
                self.look_again(&text);
                false
            }
            Err(failure) => {
                self.look_up_failed(&text, failure);
                false
            }
        }
    }

    /// Returns whether something was looked up a moment ago, and reports when that is due again.
    fn was_looked_up(&mut self, text: &String) -> bool {
        let Some((wait, failure)) = self.lookups.wait(text, &self.pace) else {
            return false;
        };
        match failure {
            Some(failure) => self.report.retries(None, failure.clone(), wait),
            None => self.report.due_in(wait),
        }
        true
    }

    fn look_again(&mut self, text: &String) {
        let wait = self.lookups.succeeded(text, &self.pace);
        self.report.due_in(wait);
    }

    fn look_up_failed(&mut self, text: &String, failure: Failure) {
        self.report.operations.failed += 1;
        let wait = self.lookups.failed(text, &self.pace, failure.clone(), None);
        self.report.retries(None, failure, wait);
    }

    /// # Errors
    ///
    /// If a request fails; a retry may help.
    async fn try_to_settle_kind(&mut self, kind: &ResourceKind) -> Result<bool, Failure> {
        let mut left = false;
        let found = self.read_owned(kind).await.map_err(undeclared)?;
        // Anyone can write a label, and a copy of an object has it, too.
        let is_own = |there: &Kept| {
            let (namespace, name) = name_of(there);
            let mut entries = self.inventory.entries();
            let is_kept = entries.any(|entry| {
                let same = entry.kind.is_same(kind) && entry.namespace == namespace;
                entry.is_kept && same && entry.name == name
            });
            there.is_applied
                && there.reference.is_some()
                && namespace == self.owner.meta.namespace
                && !is_kept
                && there.may_go(kind)
        };
        let own: Vec<Kept> = found.into_iter().filter(is_own).collect();
        let highest = own.iter().map(|there| there.wave.unwrap_or(0)).max();
        for there in own {
            let (namespace, name) = name_of(&there);
            left = true;
            if !there.is_deleting() && Some(there.wave.unwrap_or(0)) == highest {
                let place = ResourcePlace {
                    kind,
                    namespace: namespace.as_deref(),
                    name: &name,
                };
                let why = "its kind is no longer declared";
                let deleted = self.delete(place, &there, &there.propagation, why).await;
                deleted.map_err(undeclared)?;
                self.report.operations.deleted += 1;
            }
        }
        Ok(!left)
    }

    /// Leaves out objects that are to be created, if the status has no room for them: they wait until others are gone.
    fn make_room(&mut self, stock: &mut Inventory, owned: &Owned, wanted: &Wanted) {
        let recorded = wanted.recorded.iter().rev();
        let mut unmade = recorded.filter(|key| !owned.contains_key(*key));
        let mut bytes = stock.bytes();
        while (stock.len() > RECORDED_LIMIT || bytes > RECORDED_BYTES)
            && let Some(key) = unmade.next()
        {
            let kind = self.kind(key);
            if self.inventory.has(kind, key) {
                continue;
            }
            let Some(left_out) = stock.remove(kind, key) else {
                continue;
            };
            bytes = bytes.saturating_sub(left_out.to_string().len());
            self.report.due_in(ROOM);
        }
    }

    /// Returns whether an object beside its owner has no owner reference, by its declaration or as it was declared last.
    fn is_unowned(&self, key: &Key, there: Option<&Kept>, wanted: &Wanted) -> bool {
        let recorded = self.inventory.get(self.kind(key), key);
        self.is_beside(key)
            && (wanted.recorded.contains(key)
                || there.is_some_and(|there| there.is_unowned)
                || recorded.is_some_and(|entry| entry.is_unowned))
    }

    /// Returns how a declared object ended that is done once: the one that exists, or the one that did.
    fn end_of(&self, key: &Key, there: Option<&Kept>, wanted: &Wanted) -> Option<Finished> {
        let content = wanted.once.get(key)?;
        if let Some(there) = there {
            return Some(Finished {
                end: there.end(self.kind(key))?,
                // It may have been made before its declaration changed.
                content: there.content.as_ref().unwrap_or(content).clone(),
            });
        }
        self.end_of_gone(key, content)
    }

    /// Returns how an object ended that was made from a declaration of this content and is gone: by the record, or as
    /// it was last seen.
    pub(super) fn end_of_gone(&self, key: &Key, content: &str) -> Option<Finished> {
        let entry = self.inventory.get(self.kind(key), key);
        let recorded = entry.and_then(|entry| entry.finished.clone());
        let seen = self.cluster.ended(self.uid(), key);
        [recorded, seen]
            .into_iter()
            .flatten()
            .find(|it| it.content == content)
    }

    /// Returns the recorded objects that the cache does not show.
    fn unseen(&self, owned: &Owned) -> Vec<InventoryEntry> {
        let entries = self.inventory.entries();
        let unseen = entries.filter(|entry| self.is_unseen(entry, owned));
        unseen.cloned().collect()
    }

    /// Deletes the recorded objects that the cache does not show, except kept ones and data: their owner is being
    /// deleted.
    pub(super) async fn clear_unseen(&mut self, resources: &Resources, owned: &Owned) {
        let kept = self.kept(resources);
        for entry in self.unseen(owned) {
            match self.settle(&entry, &kept).await {
                Unseen::Goes => {
                    let what = self.describe_place(self.place_of(&entry));
                    let left = format!("{what} is not gone yet");
                    self.report.awaited.push((None, left));
                }
                Unseen::Gone => {
                    // The next time, nobody has to be asked.
                    self.deleted.extend(entry.uid);
                }
                Unseen::Stays => {}
            }
        }
    }

    /// Looks a recorded object up by its name, and deletes it if it is still that of the owner.
    async fn settle(&mut self, entry: &InventoryEntry, kept: &BTreeSet<Key>) -> Unseen {
        if entry
            .uid
            .as_ref()
            .is_some_and(|uid| self.deleted.contains(uid))
        {
            return Unseen::Gone;
        }
        let stays = match self.key_of(entry) {
            Some(key) => kept.contains(&key),
            // Nothing shows any more whether it is to be kept, and data are not deleted.
            None => entry.is_kept || entry.kind.holds_data(),
        };
        let text = entry.to_string();
        let seen = self.stays.get(&text);
        if stays || seen.is_some_and(|seen| seen.elapsed() < LOOKED) {
            return Unseen::Stays;
        }
        if self.was_looked_up(&text) {
            return Unseen::Goes;
        }
        match self.try_to_settle(entry).await {
            Ok(unseen) => {
                match unseen {
                    Unseen::Goes => self.look_again(&text),
                    Unseen::Stays => {
                        self.stays.insert(text, Instant::now());
                    }
                    Unseen::Gone => {}
                }
                unseen
            }
            Err(failure) => {
                self.look_up_failed(&text, failure);
                Unseen::Goes
            }
        }
    }

    /// # Errors
    ///
    /// If a request fails; a retry may help.
    async fn try_to_settle(&mut self, entry: &InventoryEntry) -> Result<Unseen, Failure> {
        let place = self.place_of(entry);
        let what = self.describe_place(place);
        let found = self
            .read(place)
            .await
            .map_err(|it| self.unreached(entry, it))?;
        let Some(found) = found else {
            return Ok(Unseen::Gone);
        };
        let object = found.value().map_err(|why| unreadable(&what, &why))?;
        let is_orphan = !entry.is_unowned
            && entry.namespace == self.owner.meta.namespace
            && !self.refers_to_owner(&object);
        if is_orphan || !self.is_recorded_as(entry, &found, &object) {
            return Ok(Unseen::Gone);
        }
        if found.is_deleting() {
            return Ok(Unseen::Goes);
        }
        if !found.may_go(place.kind) {
            return Ok(Unseen::Stays);
        }
        let why = self.why_it_goes();
        let deleted = self.delete(place, &found, &found.propagation, why).await;
        deleted.map_err(|it| self.unreached(entry, it))?;
        self.report.operations.deleted += 1;
        Ok(Unseen::Goes)
    }

    fn unreached(&self, entry: &InventoryEntry, failure: Failure) -> Failure {
        match self.key_of(entry) {
            Some(_) => failure,
            None => undeclared(failure),
        }
    }
}

/// Adds the way out to a failure that is about a kind that this release does not declare.
fn undeclared(failure: Failure) -> Failure {
    failure.saying(
        "an earlier release owned this kind: declare it with `owns` until nothing of it is left",
    )
}

impl Site<'_> {
    /// Returns whether the status records an object that the cache does not show.
    pub(crate) fn has_unseen(&self) -> bool {
        let owned = self.owned();
        let inventory = self.inventory();
        let mut entries = inventory.entries();
        entries.any(|entry| self.is_unseen(entry, &owned))
    }

    fn is_unseen(&self, entry: &InventoryEntry, owned: &Owned) -> bool {
        let key = self.key_of(entry);
        key.is_none_or(|key| !owned.contains_key(&key))
    }

    /// Returns the objects that were to be kept when they were declared last, as the status records it.
    pub(crate) fn kept_on_record(&self) -> Resources {
        let inventory = self.inventory();
        let entries = inventory.entries().filter(|entry| entry.is_kept);
        let kept = entries.filter_map(|entry| {
            let (number, namespace, name) = self.key_of(entry)?;
            let kind = &self.cluster.watches.owned[number];
            Some((kind.api.clone(), (namespace, name)))
        });
        Resources {
            kept: kept.collect(),
            ..Resources::default()
        }
    }

    /// Returns where a recorded object is; its kind is the declared one, if this release declares it.
    fn place_of<'k>(&'k self, entry: &'k InventoryEntry) -> ResourcePlace<'k> {
        let mut kinds = self.cluster.watches.owned.iter();
        ResourcePlace {
            kind: kinds
                .find(|kind| kind.is_same(&entry.kind))
                .unwrap_or(&entry.kind),
            namespace: entry.namespace.as_deref(),
            name: &entry.name,
        }
    }

    /// Returns the key of a recorded object; none if this release does not declare its kind.
    pub(super) fn key_of(&self, entry: &InventoryEntry) -> Option<Key> {
        let kinds = &self.cluster.watches.owned;
        let number = kinds.iter().position(|kind| kind.is_same(&entry.kind))?;
        Some((number, entry.namespace.clone(), entry.name.clone()))
    }
}
