//! Whether the history of the API server has gone back, as it does where a backup of etcd is restored.
//!
//! Versions of objects repeat then. What this process remembers of them is no longer true, and a watch that goes on from
//! a version of the lost history is sent nothing until that version comes again (kube-apiserver 1.36).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::api::ListParams;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::cache::cached::Cached;
use crate::cache::guarded::api;
use crate::patience::answer;
use crate::texts::chain;
use crate::wire::object::LifecycleObject;

/// How often it is asked, although nothing seems to be wrong: one list of one object.
const ROUTINE: Duration = Duration::from_mins(10);

/// The newest version that the API server has shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    newest: AtomicU64,
    doubted: Notify,
}

impl History {
    /// The API server has shown an object at this version, or answered a write with it.
    pub(crate) fn saw(&self, version: Option<&str>) {
        if let Some(version) = number(version) {
            self.newest.fetch_max(version, Ordering::AcqRel);
        }
    }

    /// Returns the newest version so far.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// A write was answered with this version, before which there was `newest`: one that is older cannot be.
    pub(crate) fn wrote(&self, version: Option<&str>, newest: u64) {
        match number(version) {
            Some(version) if version < newest => self.doubt(),
            Some(_) | None => self.saw(version),
        }
    }

    /// Something does not fit to the history that was seen.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Waits until the history of the API server has gone back.
    pub(crate) async fn went_back<K: LifecycleObject>(
        &self,
        client: &kube::Client,
        namespace: Option<&str>,
    ) {
        let api = api::<Cached<K>>(client, namespace);
        loop {
            tokio::select! {
                () = sleep(ROUTINE) => {}
                () = self.doubted.notified() => {}
            }
            let newest = self.newest();
            // The version of a list is the newest that there is.
            let list = match answer(api.list(&ListParams::default().limit(1))).await {
                Ok(list) => list,
                Err(error) => {
                    tracing::warn!("cannot ask how new the API server is: {}", chain(&error));
                    continue;
                }
            };
            let Some(version) = number(list.metadata.resource_version.as_deref()) else {
                continue;
            };
            if version < newest {
                tracing::error!(
                    newest,
                    version,
                    "the history of the API server went back: a backup was restored; all objects are read anew"
                );
                self.newest.store(version, Ordering::Release);
                return;
            }
        }
    }
}

fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
}
