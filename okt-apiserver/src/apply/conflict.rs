//! Resolves conflicts between managers that set the same field.

use std::collections::BTreeMap;

use super::fields::{FieldStep, show};
use super::shares::{FieldShare, Manager, Shares, describe};
use super::versions::Changes;
use crate::causes::RefusalCause;
use crate::refusal::Refusal;

/// Moves the ownership of the fields that this manager sets away from the others, or refuses with a conflict unless
/// `force` is set.
pub(super) fn settle(
    shares: &mut Shares,
    manager: &Manager,
    changes: &Changes,
    force: bool,
) -> Result<(), Refusal> {
    let mut conflicts = Vec::new();
    for (other, share) in shares.iter() {
        if other != manager {
            let common = share.fields.intersection(&changes.seen_by(share).set);
            conflicts.extend(common.paths().into_iter().map(|path| (other, share, path)));
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(conflict(&conflicts));
    }
    for (other, share) in shares.iter_mut() {
        if other != manager {
            changes.take_from(share);
        }
    }
    shares.retain(|_, share| !share.fields.is_empty());
    Ok(())
}

fn conflict(conflicts: &[(&Manager, &FieldShare, Vec<FieldStep>)]) -> Refusal {
    let causes: Vec<_> = conflicts
        .iter()
        .map(|(manager, share, path)| RefusalCause {
            field: show(path),
            reason: "FieldManagerConflict",
            message: format!("conflict with {}", describe(manager, share)),
        })
        .collect();
    let message = match conflicts {
        [(manager, share, path)] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            describe(manager, share),
            show(path)
        ),
        many => {
            let mut by_manager = BTreeMap::<String, Vec<String>>::new();
            for (manager, share, path) in many {
                by_manager
                    .entry(describe(manager, share))
                    .or_default()
                    .push(show(path));
            }
            let mut lines = Vec::new();
            for (manager, paths) in by_manager {
                lines.push(format!("conflicts with {manager}:"));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!(
                "Apply failed with {} conflicts: {}",
                many.len(),
                lines.join("\n")
            )
        }
    };
    Refusal::apply_conflict(message, &causes)
}
