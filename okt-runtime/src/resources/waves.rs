//! Deletion in waves: the highest wave goes first, and the next one when all of that wave is gone.

use std::sync::Arc;

use super::index::Key;
use super::kept::Kept;
use super::site::{Site, listed};
use crate::wire::object::LifecycleObject;

/// The objects to delete, in waves.
pub(crate) struct Going<'a> {
    /// The objects of the highest wave, which go now.
    pub(crate) first: Vec<(&'a Key, &'a Arc<Kept>)>,
    /// The number of objects in lower waves.
    later: usize,
    /// Whether any object declares a wave, so that OKT waits for the deletion.
    is_awaited: bool,
}

impl<'a> Going<'a> {
    pub(crate) fn of(all: impl Iterator<Item = (&'a Key, &'a Arc<Kept>)>) -> Self {
        let all: Vec<_> = all.collect();
        let wave = |it: &(&Key, &Arc<Kept>)| it.1.wave.unwrap_or(0);
        let highest = all.iter().map(wave).max();
        let is_awaited = all.iter().any(|it| it.1.wave.is_some());
        let (first, later): (Vec<_>, Vec<_>) =
            (all.into_iter()).partition(|it| Some(wave(it)) == highest);
        Self {
            first,
            later: later.len(),
            is_awaited,
        }
    }

    /// Describes the objects that OKT waits for; none if no object declares a wave.
    pub(crate) fn awaited<K: LifecycleObject>(&self, site: &Site<'_, K>) -> Option<String> {
        self.left(site).filter(|_| self.is_awaited)
    }

    /// Describes the objects that are not gone yet; none if all are gone.
    pub(crate) fn left<K: LifecycleObject>(&self, site: &Site<'_, K>) -> Option<String> {
        if self.first.is_empty() {
            return None;
        }
        let mut names: Vec<String> = self.first.iter().map(|(key, _)| site.told(key)).collect();
        names.sort();
        let names: Vec<String> = (names.into_iter())
            .map(|name| format!("{name} is not gone yet"))
            .collect();
        let mut text = listed(&names);
        match self.later {
            0 => {}
            1 => text.push_str("; 1 object goes after that"),
            later => text.push_str(&format!("; {later} objects go after that")),
        }
        Some(text)
    }
}
