//! Deletion in waves: the highest goes first, and the next one when all of it is gone.

use std::sync::Arc;

use super::index::Key;
use super::kept::Kept;
use super::site::{Site, listed};
use crate::wire::object::LifecycleObject;

/// What has to go, in waves.
pub(crate) struct Going<'a> {
    /// What goes now.
    pub(crate) first: Vec<(&'a Key, &'a Arc<Kept>)>,
    /// How much goes when that is gone.
    later: usize,
    /// Whether somebody wants it to be waited for.
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

    /// What is waited for, in words; none where nobody wants that.
    pub(crate) fn awaited<K: LifecycleObject>(&self, site: &Site<'_, K>) -> Option<String> {
        self.left(site).filter(|_| self.is_awaited)
    }

    /// What is not gone yet, in words; none where nothing is left.
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
