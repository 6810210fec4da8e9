//! What the operator itself has to delete before an object may be forgotten.

use super::declared::Resources;
use super::site::{Site, listed};
use crate::failure::Failure;
use crate::object::LifecycleObject;

/// What is left of what Kubernetes does not delete with an object.
pub(crate) enum Left {
    Nothing,
    /// It was told to go a moment ago.
    JustDeleted,
    /// These, in words.
    These(String),
}

/// Deletes what Kubernetes will not delete with the object, but for what is kept.
pub(crate) async fn clear<K: LifecycleObject>(
    site: &Site<'_, K>,
    resources: Option<&Resources>,
) -> Result<Left, Failure> {
    let kept = resources.map(|it| site.kept(it)).unwrap_or_default();
    let mut left = Vec::new();
    let mut deleted = false;
    for (key, there) in site.cluster.owned(site.uid()) {
        if !there.is_unowned || kept.contains(&key) || !there.may_go(site.kind(&key)) {
            continue;
        }
        left.push(format!("{} is not gone yet", site.told(&key)));
        if !there.is_deleting() {
            site.delete(&key, &there).await?;
            deleted = true;
        }
    }
    Ok(match (left.is_empty(), deleted) {
        (true, _) => Left::Nothing,
        (false, true) => Left::JustDeleted,
        (false, false) => Left::These(listed(&left)),
    })
}
