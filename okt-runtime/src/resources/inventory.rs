//! The inventory of an object, `status.recordedResources`: what it owns and no owner reference shows, what it is to
//! keep, what has finished, and the kinds of all it owns.
//!
//! Each entry is a text: the uid of a resource, if it is known, its path in the API, and marks, each after a `%`, which no
//! path of an object contains. The path of a kind has no name:
//!
//! ```text
//! /apis/apps/v1/statefulsets
//! 0b6d…/api/v1/namespaces/demo/configmaps/settings
//! 5c1e…/apis/batch/v1/namespaces/demo/jobs/migration%complete:60b725f10c9c85c7
//! ```
//!
//! An earlier release wrote hashes; they are read, and replaced when the object of one is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kube::Resource;
use kube::core::ApiResource;
use okt_core::machine::StatusDiff;
use okt_wire::digest::hex;
use sha2::{Digest, Sha256};

use super::kept::Kept;
use super::kind::ResourceKind;
use super::names::Key;
use super::ready::End;

/// The number of hexadecimal digits of an entry of an earlier release.
const HASH_LENGTH: usize = 24;

/// The mark of an object that OKT is to keep.
const KEPT: &str = "keep";

/// The mark of an object beside its owner that has no owner reference: another one without is an orphan.
const UNOWNED: &str = "unowned";

/// The kind, the namespace and the name of an object as one text, the same in each version of its kind.
pub(super) type Identity = String;

/// The recorded objects of an owner.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inventory {
    entries: BTreeMap<Identity, InventoryEntry>,
    /// The kinds of owned objects, by group and plural: a later release may not declare them any more.
    kinds: BTreeMap<(String, String), ResourceKind>,
    /// Entries of an earlier release.
    hashes: BTreeSet<String>,
}

/// A recorded object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InventoryEntry {
    pub(super) kind: ResourceKind,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// Its uid, once it was created: anyone who may write the object can change all else.
    pub(super) uid: Option<String>,
    /// Whether it is beside its owner and has no owner reference.
    pub(super) is_unowned: bool,
    /// Whether the application declares that it is kept.
    pub(super) is_kept: bool,
    pub(super) finished: Option<Finished>,
}

/// The end of what an object does once: it is not made again when the object is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finished {
    pub(super) end: End,
    /// The hash of the declaration that it was made from.
    pub(super) content: String,
}

impl Inventory {
    /// Reads the entries of a status; ignores what is none.
    pub fn of(recorded: &[String]) -> Self {
        let mut inventory = Self::default();
        for text in recorded {
            match Parsed::of(text) {
                Some(Parsed::Object(entry)) => inventory.put(entry),
                Some(Parsed::Kind(kind)) => inventory.put_kind(kind),
                None => {
                    inventory.hashes.insert(text.clone());
                }
            }
        }
        inventory
    }

    /// Returns what proves the owner of an object; none if there is nothing.
    pub(super) fn proof(recorded: &[String]) -> Option<Self> {
        let mut inventory = Self::of(recorded);
        inventory.kinds.clear();
        (inventory != Self::default()).then_some(inventory)
    }

    /// Compares a stored inventory with the one to write. A new kind is no difference: it is written with whatever else is
    /// news. One of which nothing is left is no hurry, nor is a uid, which only proves what is recorded already.
    pub(crate) fn compare(stored: &[String], next: &[String]) -> StatusDiff {
        if stored == next {
            return StatusDiff::None;
        }
        let (stored, next) = (Self::of(stored), Self::of(next));
        let is_left = |kind: &(String, String)| next.kinds.contains_key(kind);
        if (&stored.entries, &stored.hashes) == (&next.entries, &next.hashes) {
            return if stored.kinds.keys().all(is_left) {
                StatusDiff::None
            } else {
                StatusDiff::Side
            };
        }
        let unproved = |inventory: Self| {
            let entries = inventory.entries.into_iter();
            let entries =
                entries.map(|(identity, entry)| (identity, InventoryEntry { uid: None, ..entry }));
            (entries.collect::<BTreeMap<_, _>>(), inventory.hashes)
        };
        if unproved(stored) == unproved(next) {
            StatusDiff::Side
        } else {
            StatusDiff::Main
        }
    }

    /// Returns the entries as texts.
    pub(super) fn texts(&self) -> BTreeSet<String> {
        let named = self.entries.values().map(InventoryEntry::to_string);
        let kinds = self
            .kinds
            .values()
            .map(|kind| Kept::url_path(&kind.api, None));
        named
            .chain(kinds)
            .chain(self.hashes.iter().cloned())
            .collect()
    }

    /// Returns the number of recorded objects.
    pub(super) fn len(&self) -> usize {
        self.entries.len().saturating_add(self.hashes.len())
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &InventoryEntry> {
        self.entries.values()
    }

    /// Returns the entries of earlier releases that are of none of these objects.
    pub(super) fn hashes_of_others<'a>(
        &self,
        known: impl Iterator<Item = (&'a ResourceKind, &'a Key)>,
    ) -> BTreeSet<String> {
        let mut others = self.hashes.clone();
        if !others.is_empty() {
            for (kind, key) in known {
                others.remove(&hash(kind, key));
            }
        }
        others
    }

    pub(super) fn put(&mut self, entry: InventoryEntry) {
        self.entries.insert(entry.identity(), entry);
    }

    pub(super) fn put_kind(&mut self, kind: ResourceKind) {
        let api = &kind.api;
        let key = (api.group.clone(), api.plural.clone());
        self.kinds.insert(key, kind);
    }

    /// Returns whether an object of a kind is recorded.
    pub(super) fn has_any_of(&self, kind: &ResourceKind) -> bool {
        self.entries.values().any(|entry| entry.kind.is_same(kind))
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &ResourceKind> {
        self.kinds.values()
    }

    pub(super) fn put_hashes(&mut self, hashes: BTreeSet<String>) {
        self.hashes.extend(hashes);
    }

    pub(super) fn remove(&mut self, kind: &ResourceKind, key: &Key) -> Option<InventoryEntry> {
        self.entries
            .remove(&identity(kind, key.1.as_deref(), &key.2))
    }

    pub(super) fn has_entry(&self, entry: &InventoryEntry) -> bool {
        self.entries.contains_key(&entry.identity())
    }

    /// Returns the length of all entries together.
    pub(super) fn bytes(&self) -> usize {
        self.texts().iter().map(String::len).sum()
    }

    pub(super) fn get(&self, kind: &ResourceKind, key: &Key) -> Option<&InventoryEntry> {
        self.entries.get(&identity(kind, key.1.as_deref(), &key.2))
    }

    /// Returns whether it has an entry for an object, also one of an earlier release.
    pub(super) fn has(&self, kind: &ResourceKind, key: &Key) -> bool {
        self.get(kind, key).is_some()
            || (!self.hashes.is_empty() && self.hashes.contains(&hash(kind, key)))
    }

    /// Returns whether an object belongs to the owner although no owner reference shows it: one beside the owner has to be
    /// recorded as unowned.
    pub(super) fn proves(&self, kind: &ResourceKind, key: &Key, is_beside: bool) -> bool {
        match self.get(kind, key) {
            Some(entry) => entry.is_unowned || !is_beside,
            None => self.has(kind, key),
        }
    }

    /// Returns whether each object of another inventory has an entry.
    pub fn includes(&self, other: &Self) -> bool {
        other.entries.keys().all(|it| self.entries.contains_key(it))
    }
}

impl InventoryEntry {
    /// Returns the entry of an object that is not known to exist.
    pub(super) fn of(kind: &ResourceKind, key: &Key) -> Self {
        Self {
            kind: kind.clone(),
            namespace: key.1.clone(),
            name: key.2.clone(),
            uid: None,
            is_unowned: false,
            is_kept: false,
            finished: None,
        }
    }

    fn identity(&self) -> Identity {
        identity(&self.kind, self.namespace.as_deref(), &self.name)
    }
}

/// What a text of a status names.
enum Parsed {
    Object(InventoryEntry),
    Kind(ResourceKind),
}

impl Parsed {
    fn of(text: &str) -> Option<Self> {
        let mut parts = text.split('%');
        let (uid, path) = parts.next()?.split_once('/')?;
        let mut segments = path.split('/');
        let (group, version) = match segments.next()? {
            "api" => ("", segments.next()?),
            "apis" => (segments.next()?, segments.next()?),
            _ => return None,
        };
        let rest: Vec<&str> = segments.collect();
        let (namespace, plural, name) = match rest[..] {
            ["namespaces", namespace, plural, name] => (Some(namespace), plural, Some(name)),
            [plural, name] => (None, plural, Some(name)),
            [plural] => (None, plural, None),
            _ => return None,
        };
        let api_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let kind = ResourceKind {
            api: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version,
                // The path does not contain the kind.
                kind: plural.to_owned(),
                plural: plural.to_owned(),
            },
            namespaced: namespace.is_some(),
        };
        let Some(name) = name else {
            return Some(Self::Kind(kind));
        };
        let mut entry = InventoryEntry {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            uid: (!uid.is_empty()).then(|| uid.to_owned()),
            is_unowned: false,
            is_kept: false,
            finished: None,
        };
        for mark in parts {
            match mark.split_once(':') {
                None if mark == KEPT => entry.is_kept = true,
                None if mark == UNOWNED => entry.is_unowned = true,
                Some((end, content)) => entry.finished = Finished::parsed(end, content),
                None => {}
            }
        }
        Some(Self::Object(entry))
    }
}

impl fmt::Display for InventoryEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uid = self.uid.as_deref().unwrap_or_default();
        let kinds = Kept::url_path(&self.kind.api, self.namespace.as_deref());
        write!(f, "{uid}{kinds}/{}", self.name)?;
        if self.is_unowned {
            write!(f, "%{UNOWNED}")?;
        }
        if self.is_kept {
            write!(f, "%{KEPT}")?;
        }
        if let Some(Finished { end, content }) = &self.finished {
            write!(f, "%{}:{content}", end.name())?;
        }
        Ok(())
    }
}

impl Finished {
    fn parsed(end: &str, content: &str) -> Option<Self> {
        let end = [End::Complete, End::Failed]
            .into_iter()
            .find(|it| it.name() == end)?;
        Some(Self {
            end,
            content: content.to_owned(),
        })
    }
}

fn identity(kind: &ResourceKind, namespace: Option<&str>, name: &str) -> Identity {
    let namespace = namespace.unwrap_or_default();
    format!("{}/{}/{namespace}/{name}", kind.api.group, kind.api.plural)
}

/// Returns the entry that an earlier release wrote for an object.
fn hash(kind: &ResourceKind, key: &Key) -> String {
    let (_, namespace, name) = key;
    let namespace = namespace.as_deref().unwrap_or_default();
    let text = format!("{}/{}/{namespace}/{name}", kind.api.group, kind.api.kind);
    hex(&Sha256::digest(text))[..HASH_LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    use super::*;

    fn key(namespace: Option<&str>, name: &str) -> Key {
        (0, namespace.map(str::to_owned), name.to_owned())
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let (map, job, namespace) = (
            ResourceKind::of::<ConfigMap>(),
            ResourceKind::of::<Job>(),
            ResourceKind::of::<Namespace>(),
        );
        let mut done = InventoryEntry::of(&job, &key(Some("demo"), "migration"));
        done.uid = Some("5c1e".to_owned());
        done.is_kept = true;
        done.finished = Some(Finished {
            end: End::Failed,
            content: "60b7".to_owned(),
        });
        let written = [
            (
                InventoryEntry::of(&map, &key(Some("demo"), "settings")),
                "/api/v1/namespaces/demo/configmaps/settings",
            ),
            (
                InventoryEntry::of(&namespace, &key(None, "demo")),
                "/api/v1/namespaces/demo",
            ),
            (
                done,
                "5c1e/apis/batch/v1/namespaces/demo/jobs/migration%keep%failed:60b7",
            ),
        ];
        for (entry, text) in written {
            assert_eq!(entry.to_string(), text);
            let inventory = Inventory::of(&[text.to_owned()]);
            assert_eq!(inventory.texts(), BTreeSet::from([text.to_owned()]));
            let read = inventory.entries().next().expect("an entry");
            assert_eq!(read.identity(), entry.identity());
            assert_eq!((&read.uid, read.is_kept), (&entry.uid, entry.is_kept));
            assert_eq!(read.finished, entry.finished);
        }
    }

    #[test]
    fn an_object_is_known_by_its_entry_in_any_version_and_by_the_hash_of_an_earlier_release() {
        let job = ResourceKind::of::<Job>();
        let migration = key(Some("demo"), "migration");
        let old = "/apis/batch/v1beta1/namespaces/demo/jobs/migration".to_owned();
        for recorded in [old, hash(&job, &migration)] {
            let inventory = Inventory::of(&[recorded]);
            assert!(inventory.has(&job, &migration));
            assert!(!inventory.has(&job, &key(Some("demo"), "other")));
            assert!(!inventory.has(&job, &key(Some("other"), "migration")));
        }
    }

    #[test]
    fn a_new_kind_is_no_news_and_a_uid_is_no_hurry() {
        let compare = |stored: &[&str], next: &[&str]| {
            let owned =
                |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
            Inventory::compare(&owned(stored), &owned(next))
        };
        let (kind, map, known) = (
            "/apis/apps/v1/statefulsets",
            "/api/v1/namespaces/a/configmaps/b",
            "5c1e/api/v1/namespaces/a/configmaps/b",
        );
        assert_eq!(compare(&[map], &[map, kind]), StatusDiff::None);
        assert_eq!(compare(&[map, kind], &[map]), StatusDiff::Side);
        assert_eq!(compare(&[map], &[known, kind]), StatusDiff::Side);
        for next in [
            &[][..],
            &["/api/v1/namespaces/a/configmaps/b%keep"],
            &["hash", map],
        ] {
            assert_eq!(compare(&[map], next), StatusDiff::Main, "{next:?}");
        }
    }

    #[test]
    fn any_text_is_read_and_written_again() {
        let valid = "5c1e/apis/batch/v1/namespaces/demo/jobs/migration%keep%failed:60b7";
        okt_fuzz::check(3000, |dice| {
            let text = String::from_utf8_lossy(&dice.bytes(valid.as_bytes())).into_owned();
            let texts = Inventory::of(&[text]).texts();
            let again: Vec<String> = texts.iter().cloned().collect();
            assert_eq!(Inventory::of(&again).texts(), texts);
        });
    }
}
