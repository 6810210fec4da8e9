//! [`Suite`]: creates the CRD and the namespaces of the behaviours, and deletes them.

use core::{any::Any, fmt};
use std::{
    hash::{BuildHasher, RandomState},
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
};
use tokio::time::timeout;

use super::{
    Behaviour,
    claim::Failure,
    world::{LABEL, World},
};

/// The time limit for one behaviour.
const LIMIT: Duration = Duration::from_mins(3);
/// The number of objects that are deleted at the same time.
const DELETES: usize = 16;

/// A server that is ready for the checks: the CRD that behaviours share is served.
pub struct Suite {
    /// The namespaces and the CRD of the suite, with its label.
    common: World,
    namespaces: AtomicUsize,
}

impl Suite {
    /// Creates the CRD, and waits until it is served.
    ///
    /// # Errors
    /// The server does not accept the CRD, or does not serve it within two minutes. A retry starts
    /// from the beginning, with another group.
    pub async fn start(client: Client) -> Result<Self, Failure> {
        // Several suites may run on one server at the same time.
        let number = RandomState::new().hash_one(0);
        let common = World::new(client, &format!("{:08x}", number >> 32));
        let suite = Self {
            common,
            namespaces: AtomicUsize::new(0),
        };
        match suite.common.create_kind(suite.common.crd()).await {
            Ok(()) => Ok(suite),
            Err(failure) => {
                // Report the first failure.
                let _ = suite.finish().await;
                Err(failure)
            }
        }
    }

    /// Checks one behaviour, in a namespace of its own.
    ///
    /// # Errors
    /// The server behaves differently, takes longer than three minutes, or cannot be reached.
    pub async fn check(&self, behaviour: &Behaviour) -> Result<(), Failure> {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        let world = self.common.in_namespace(number);
        world.create_namespace(&world.namespace).await?;
        let check = AssertUnwindSafe((behaviour.check)(&world)).catch_unwind();
        match timeout(LIMIT, check).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(Failure::new(format!("it panicked: {}", said(&*panic)))),
            Err(_) => {
                let seconds = LIMIT.as_secs();
                Err(Failure::new(format!("not done within {seconds} s")))
            }
        }
    }

    /// Deletes everything that the suite created, without waiting.
    ///
    /// # Errors
    /// The server refuses a deletion, or cannot be reached. Namespaces and CRDs that stay have the
    /// label `conformance.okt.dev/suite`.
    pub async fn finish(&self) -> Result<(), Failure> {
        let client = self.common.client();
        let own = ListParams::default().labels(&format!("{LABEL}={}", self.common.id));
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let namespaces: Api<Namespace> = Api::all(client);
        // Remove all finalizers first, otherwise the deletions never finish.
        for crd in crds.list(&own).await? {
            self.common.release(&crd).await?;
            delete(&crds, &crd.name_any()).await?;
        }
        let names = namespaces.list(&own).await?;
        let names = names.iter().map(ResourceExt::name_any);
        let mut deletions = stream::iter(names)
            .map(|name| {
                let (namespaces, common) = (namespaces.clone(), &self.common);
                async move {
                    common.release_maps(&name).await?;
                    delete(&namespaces, &name).await
                }
            })
            .buffer_unordered(DELETES);
        while let Some(outcome) = deletions.next().await {
            outcome?;
        }
        Ok(())
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.common.id;
        f.debug_struct("Suite")
            .field("id", id)
            .finish_non_exhaustive()
    }
}

/// Deletes an object that may be gone already.
async fn delete<K>(api: &Api<K>, name: &str) -> Result<(), Failure>
where
    K: Clone + core::fmt::Debug + serde::de::DeserializeOwned,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}

/// Returns the text of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "without a text",
    }
}
