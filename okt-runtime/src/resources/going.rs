//! The objects to delete, in waves: the highest wave goes first, and the next one when all of that wave is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::declared::Resources;
use super::kept::Kept;
use super::names::Key;
use super::site::{Site, listed};

/// The objects that an object owns.
pub(super) type Owned = BTreeMap<Key, Arc<Kept>>;

/// The finalizer of an object whose dependents Kubernetes orphans.
const ORPHANS: &str = "orphan";

/// The objects to delete, in waves.
pub(super) struct DeletionPlan<'a> {
    /// The objects of the highest wave, which go now.
    pub(super) first: Vec<(&'a Key, &'a Arc<Kept>)>,
    /// The number of objects in lower waves.
    later: usize,
    /// Whether any object declares a wave, so that OKT waits for the deletion.
    pub(super) is_awaited: bool,
}

impl<'a> DeletionPlan<'a> {
    /// Selects the objects that an object in use no longer declares.
    pub(super) fn surplus(
        site: &Site<'_>,
        resources: &Resources,
        wanted: &BTreeSet<Key>,
        owned: &'a Owned,
    ) -> Self {
        let kept = site.kept(resources);
        let is_surplus = |key: &Key, there: &Kept| {
            !wanted.contains(key)
                && !kept.contains(key)
                && (there.may_go(site.kind(key)) || there.is_deleting())
        };
        Self::of(owned.iter().filter(|(key, there)| is_surplus(key, there)))
    }

    /// Selects the objects that Kubernetes does not delete with their owner: unowned ones and ones with a wave, except
    /// kept ones.
    pub(super) fn with_owner(site: &Site<'_>, resources: &Resources, owned: &'a Owned) -> Self {
        let kept = site.kept(resources);
        let orphans = site
            .owner
            .meta
            .finalizers
            .iter()
            .flatten()
            .any(|it| it == ORPHANS);
        let has_to_go = |key: &Key, there: &Kept| {
            let in_waves = there.wave.is_some() && there.reference.is_some() && !orphans;
            // Who may write it may have removed the mark.
            let is_unowned = there.is_unowned || there.reference.is_none();
            in_waves || (is_unowned && there.may_go(site.kind(key)))
        };
        let going = owned
            .iter()
            .filter(|(key, there)| !kept.contains(*key) && has_to_go(key, there));
        Self::of(going)
    }

    fn of(all: impl Iterator<Item = (&'a Key, &'a Arc<Kept>)>) -> Self {
        let all: Vec<_> = all.collect();
        let wave = |it: &(&Key, &Arc<Kept>)| it.1.wave.unwrap_or(0);
        let highest = all.iter().map(wave).max();
        let is_awaited = all.iter().any(|it| it.1.wave.is_some());
        let (first, later): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|it| Some(wave(it)) == highest);
        Self {
            first,
            later: later.len(),
            is_awaited,
        }
    }

    /// Describes the objects that are not gone yet; none if all are gone.
    pub(super) fn left(&self, site: &Site<'_>) -> Option<String> {
        if self.first.is_empty() {
            return None;
        }
        let mut names: Vec<String> = self
            .first
            .iter()
            .map(|(key, _)| format!("{} is not gone yet", site.describe(key)))
            .collect();
        names.sort();
        let mut text = listed(&names);
        match self.later {
            0 => {}
            1 => text.push_str("; 1 object goes after that"),
            later => text.push_str(&format!("; {later} objects go after that")),
        }
        Some(text)
    }
}

impl Site<'_> {
    /// Returns whether the operator has to delete any resource before its owner is gone, except kept ones.
    pub(crate) fn leaves_something(&self, resources: &Resources) -> bool {
        let owned = self.owned();
        let going = DeletionPlan::with_owner(self, resources, &owned);
        !going.first.is_empty() || self.has_unseen()
    }
}
