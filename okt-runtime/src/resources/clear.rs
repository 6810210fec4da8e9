//! Deletes the resources that the operator itself has to delete before it removes the finalizer of an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::declared::Resources;
use super::efforts::{Efforts, Pace};
use super::index::Key;
use super::kept::Kept;
use super::kind::Kind;
use super::site::Site;
use super::waves::Going;
use crate::failure::Failure;
use crate::wire::object::LifecycleObject;

/// The remaining resources that Kubernetes does not delete with their owner.
pub(crate) enum Left {
    Nothing,
    /// The operator deleted some a moment ago.
    JustDeleted,
    /// These are left, as text.
    These(String),
}

/// The finalizer of an object whose dependents Kubernetes orphans.
const ORPHANS: &str = "orphan";

/// Returns whether the operator has to delete any resource: an unowned one or one with a wave, except kept ones.
pub(crate) fn leaves_something<K: LifecycleObject>(
    site: &Site<'_, K>,
    resources: &Resources,
) -> bool {
    let owned = site.owned();
    !has_to_go(site, resources, &owned).first.is_empty()
}

/// Deletes unowned resources and resources with a wave, except kept ones.
pub(crate) async fn clear<K: LifecycleObject>(
    site: &Site<'_, K>,
    resources: &Resources,
    efforts: &mut Efforts,
    pace: &Pace,
) -> Result<Left, Failure> {
    let owned = site.owned();
    let going = has_to_go(site, resources, &owned);
    let mut deleted = false;
    for (key, there) in &going.first {
        let subject = Some((*key).clone());
        // An object that was deleted a moment ago is not deleted again at once.
        if !there.is_deleting() && efforts.wait(&subject, pace).is_none() {
            site.delete(key, there).await?;
            efforts.made(subject, pace, None);
            deleted = true;
        }
    }
    Ok(match going.left(site) {
        None => Left::Nothing,
        Some(_) if deleted => Left::JustDeleted,
        Some(left) => Left::These(left),
    })
}

fn has_to_go<'a, K: LifecycleObject>(
    site: &Site<'_, K>,
    resources: &Resources,
    owned: &'a BTreeMap<Key, Arc<Kept>>,
) -> Going<'a> {
    let kept = site.kept(resources);
    let orphans = (site.object.meta().finalizers.iter().flatten()).any(|it| it == ORPHANS);
    let has_to_go = |there: &Kept, kind: &Kind| {
        let in_waves = there.wave.is_some() && there.reference.is_some() && !orphans;
        in_waves || (there.is_unowned && there.may_go(kind))
    };
    let going = owned
        .iter()
        .filter(|(key, there)| !kept.contains(*key) && has_to_go(there, site.kind(key)));
    Going::of(going)
}
