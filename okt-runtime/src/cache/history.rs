//! Detects that the history of the API server has gone back, as it does when a backup of etcd is restored.
//!
//! Versions of objects then repeat. The versions that this process remembers are no longer valid, and a watch that
//! continues from a version of the lost history receives nothing until that version comes again (kube-apiserver 1.36).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::api::ListParams;
use kube::core::ApiResource;
use kube::{Api, Client};
use okt_wire::api_timeout::{answer, retry_after};
use okt_wire::scope::api;
use okt_wire::texts::chain;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::cache::arrived::Arrived;

/// How often the history is checked although nothing seems wrong: one list of one object.
const ROUTINE: Duration = Duration::from_mins(10);

/// The least time between two checks, of which the first failed.
const PAUSE: Duration = Duration::from_secs(10);

/// The newest version that the API server has shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    newest: AtomicU64,
    check: Notify,
}

impl History {
    /// Notes the version of an object that the API server has sent.
    pub(crate) fn saw(&self, version: Option<&str>) {
        if let Some(version) = number(version) {
            self.newest.fetch_max(version, Ordering::AcqRel);
        }
    }

    /// Returns the newest version so far.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Notes the version in the answer to a write. `newest` is the newest version before the write: an older answer
    /// cannot be.
    pub(crate) fn wrote(&self, version: Option<&str>, newest: u64) {
        match number(version) {
            Some(version) if version < newest => self.request_check(),
            Some(_) | None => self.saw(version),
        }
    }

    /// Requests a check, because something does not fit the known history.
    pub(crate) fn request_check(&self) {
        self.check.notify_one();
    }

    /// Waits until the history of the API server has gone back.
    ///
    /// Boxed, so that everything in it is compiled here, and not once more for each application.
    pub(crate) fn went_back<'a>(
        &'a self,
        client: &'a Client,
        kind: &ApiResource,
        namespace: Option<&'a str>,
    ) -> BoxFuture<'a, ()> {
        self.watch(api::<Arrived>(client, namespace, kind)).boxed()
    }

    async fn watch(&self, api: Api<Arrived>) {
        loop {
            tokio::select! {
                () = sleep(ROUTINE) => {}
                () = self.check.notified() => {}
            }
            let newest = self.newest();
            // The version of a list is the newest of the server.
            let list = match answer(api.list_metadata(&ListParams::default().limit(1))).await {
                Ok(list) => list,
                Err(error) => {
                    tracing::warn!(
                        "cannot read the resource version of the API server: {}",
                        chain(&error)
                    );
                    sleep(retry_after(&error).unwrap_or(PAUSE)).await;
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
                    "the resource version of the API server went back, as after a restored backup; all objects are listed again"
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
