//! The parts of a spec whose change raises a trigger: their hashes, and which of them have changed.

use std::collections::BTreeMap;

use okt_core::{Graph, Lifecycle, Parts, SpecPart, SpecParts, Taken};

use crate::digest;
use crate::object::{LifecycleObject, position_of};
use crate::read;
use crate::status::Position;

/// The parts for which a release computes another hash than an earlier one has recorded for the same spec: the position
/// of each, and its hash by this release.
pub type OtherHashes = Vec<(usize, u64)>;

/// Returns the parts of a spec that have changed since an edge for their change was taken.
///
/// As with the revision, only somebody's change of the spec counts (`metadata.generation`): a release in which a part has
/// one more field changes nothing. `of_this_release` keeps the hashes of such a release from one call to the next.
pub fn changed<K: LifecycleObject>(object: &K, of_this_release: &mut OtherHashes) -> Parts {
    let graph = K::State::GRAPH;
    let Some(position) = position_of(object).filter(|_| !graph.parts.is_empty()) else {
        return Parts::NONE;
    };
    let is_seen = read::recorded_revision(position)
        .is_some_and(|(generation, _)| object.meta().generation == Some(generation));
    if is_seen {
        of_this_release.clear();
    }
    let hashes = hashes(object);
    let mut changed = Parts::NONE;
    for (index, (name, hash)) in graph.parts.iter().zip(hashes).enumerate() {
        let is_changed = match position.parts.get(*name).map(String::as_str) {
            Some("") => true,
            Some(text) if digest::number(text) == Some(hash) => false,
            Some(_) if is_seen => {
                of_this_release.push((index, hash));
                false
            }
            Some(_) => !of_this_release.contains(&(index, hash)),
            // A release that begins to name a part takes it as it finds it.
            None => false,
        };
        if is_changed {
            changed = changed.with(index);
        }
    }
    changed
}

/// Returns what a status records of the parts of a spec. `old` is the position before, `changed` are the parts that have
/// changed by then, and `taken` what a transition takes of them; none if the revision on record stays an earlier one.
pub fn recorded<K: LifecycleObject>(
    object: &K,
    old: Option<&Position<K::State>>,
    changed: Parts,
    taken: Option<Taken>,
) -> BTreeMap<String, String> {
    let graph = K::State::GRAPH;
    if graph.parts.is_empty() {
        return BTreeMap::new();
    }
    let (Some(taken), Some(_)) = (taken, old) else {
        return old.map_or_else(|| all(object), |old| old.parts.clone());
    };
    let mut recorded = all(object);
    for (index, name) in graph.parts.iter().enumerate() {
        if changed.has(index) && !taken.parts.has(index) {
            recorded.insert((*name).to_owned(), String::new());
        }
    }
    recorded
}

/// Returns the parts that a graph names and whose change waits for an edge, as a status records them.
pub fn waiting<'g, S>(graph: &Graph<'g>, position: &Position<S>) -> Vec<&'g str> {
    let waits = |name: &&&str| position.parts.get(**name).is_some_and(String::is_empty);
    graph.parts.iter().filter(waits).copied().collect()
}

fn all<K: LifecycleObject>(object: &K) -> BTreeMap<String, String> {
    let names = K::State::GRAPH.parts.iter();
    let texts = hashes(object).into_iter().map(digest::text);
    names.map(|name| (*name).to_owned()).zip(texts).collect()
}

/// Returns the hash of each part, in the order of the graph.
fn hashes<K: LifecycleObject>(object: &K) -> Vec<u64> {
    let mut hashes = Vec::new();
    let mut see = |part: &dyn SpecPart| hashes.push(digest::revision_hash(&part.json()));
    <K::State as SpecParts<K::Spec>>::parts(object.spec_of(), &mut see);
    hashes
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_map_without_an_order_is_the_same_part_whatever_was_inserted_first() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let one: HashMap<&str, u32> = names.into_iter().zip(0..8).collect();
        let mut other: HashMap<&str, u32> = HashMap::with_capacity(1000);
        other.extend(names.into_iter().zip(0..8).rev());
        assert_eq!(one.json(), other.json());
    }
}
