//! Tents of a camp, whose kind has been through three versions: `v1alpha1`, `v1beta1` and `v1`.
//!
//! Fields were renamed, moved, split, added and removed, and a state has another name. Objects of all versions stay
//! usable: each version names the one before it, and the operator acts on `v1`, in which objects are stored.

pub mod v1;
pub mod v1alpha1;
pub mod v1beta1;

use std::time::Duration;

/// How long it takes to pitch a tent.
const WORK: Duration = Duration::from_millis(500);

/// Does a piece of work, which the log names.
async fn work(action: &str, what: &str) {
    tracing::info!(action, "a tent is {what}");
    tokio::time::sleep(WORK).await;
}
