//! A user of a cluster, who creates objects, changes their desired state and waits for the results.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use okt::{Lifecycle, LifecycleObject, Position};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::screen::{self, Wait};

/// Any error that ends a demo early.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// How often a wait checks its condition.
const POLL: Duration = Duration::from_millis(25);

/// A user of a cluster, and of one kind of object.
#[derive(Clone, Debug)]
pub struct Desk<K> {
    /// The API of the objects.
    pub api: Api<K>,
    /// The longest wait for anything.
    pub patience: Duration,
}

impl<K: LifecycleObject> Desk<K> {
    /// Creates an object with this spec.
    ///
    /// # Errors
    ///
    /// When the cluster refuses it, or does not answer.
    pub async fn create(&self, name: &str, spec: Value) -> Result<(), Trouble> {
        let object: K = serde_json::from_value(json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "name": name },
            "spec": spec,
        }))?;
        self.api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Changes an object as `kubectl patch --type merge` does.
    ///
    /// # Errors
    ///
    /// When the cluster refuses it, or does not answer.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<(), Trouble> {
        let params = PatchParams::default();
        self.api.patch(name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Changes the lifecycle field of an object.
    ///
    /// # Errors
    ///
    /// When the cluster refuses it, or does not answer.
    pub async fn ask_for(&self, name: &str, lifecycle: Value) -> Result<(), Trouble> {
        self.patch(name, json!({ "spec": { "lifecycle": lifecycle } }))
            .await
    }

    /// Deletes an object, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// When the cluster refuses it, or the object stays.
    pub async fn delete(&self, name: &str) -> Result<(), Trouble> {
        self.api.delete(name, &DeleteParams::default()).await?;
        self.until_gone(name).await
    }

    /// Returns an object as it is now.
    ///
    /// # Errors
    ///
    /// When there is none, or the cluster does not answer.
    pub async fn get(&self, name: &str) -> Result<K, Trouble> {
        Ok(self.api.get(name).await?)
    }

    /// Waits until a condition holds for an object.
    ///
    /// # Errors
    ///
    /// When the condition does not hold in time, or the cluster does not answer.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        so: impl Fn(&K) -> bool,
    ) -> Result<K, Trouble> {
        self.wait(&format!("{name} {what}"), async || {
            let object = self.api.get_opt(name).await?;
            Ok(object.filter(|object| so(object)))
        })
        .await
    }

    /// Waits until an object is in a state.
    ///
    /// # Errors
    ///
    /// As [`until`](Self::until).
    pub async fn until_in(&self, name: &str, state: K::State) -> Result<K, Trouble> {
        let what = format!("is in {}", state.name());
        self.until(name, &what, |object| at(object) == Some(state))
            .await
    }

    /// Waits until an object is ready in a state.
    ///
    /// # Errors
    ///
    /// As [`until`](Self::until).
    pub async fn until_ready(&self, name: &str, state: K::State) -> Result<K, Trouble> {
        let what = format!("is ready in {}", state.name());
        self.until(name, &what, |object| {
            at(object) == Some(state)
                && condition(object, "Ready").is_some_and(|c| {
                    c.status == "True" && c.observed_generation == object.meta().generation
                })
        })
        .await
    }

    /// Waits until an object is gone.
    ///
    /// # Errors
    ///
    /// As [`until`](Self::until).
    pub async fn until_gone(&self, name: &str) -> Result<(), Trouble> {
        self.wait(&format!("{name} is gone"), async || {
            Ok(self.api.get_opt(name).await?.is_none().then_some(()))
        })
        .await
    }

    /// Waits until `ask` returns a value; prints the wait when it takes long.
    ///
    /// # Errors
    ///
    /// When no value comes in time, or asking fails.
    pub async fn wait<T, F>(&self, what: &str, ask: impl Fn() -> F) -> Result<T, Trouble>
    where
        F: Future<Output = Result<Option<T>, Trouble>>,
    {
        let mut wait = Wait::new(what);
        loop {
            if let Some(found) = ask().await? {
                return Ok(found);
            }
            if wait.elapsed() > self.patience {
                let seconds = self.patience.as_secs();
                return Err(format!("waited {seconds} s in vain until {what}").into());
            }
            wait.tick();
            tokio::time::sleep(POLL).await;
        }
    }

    /// Prints every transition from the recorded histories, so that none between two events is missed.
    pub async fn print_transitions(self) {
        let told = Mutex::new(BTreeMap::new());
        let events = watcher(self.api, watcher::Config::default())
            .default_backoff()
            .applied_objects();
        let telling = events.try_for_each(|object| {
            let name = object.name_any();
            if let Some(position) = position(&object) {
                let mut told = told.lock();
                let last = told.entry(object.uid().unwrap_or_default()).or_insert(0);
                for step in &position.history {
                    if step.transition > *last {
                        *last = step.transition;
                        let trail = &position.trail;
                        screen::transition(&name, &step.from, &step.to, &step.cause, trail);
                    }
                }
            }
            std::future::ready(Ok(()))
        });
        if let Err(error) = telling.await {
            screen::trouble(&format!("cannot watch the objects: {error}"));
        }
    }
}

/// Returns the position of an object.
pub fn position<K: LifecycleObject>(object: &K) -> Option<&Position<K::State>> {
    object.status_of()?.lifecycle.as_ref()
}

/// Returns the state of an object.
pub fn at<K: LifecycleObject>(object: &K) -> Option<K::State> {
    position(object)?.state.known()
}

/// Returns a condition of an object.
pub fn condition<'a, K: LifecycleObject>(object: &'a K, name: &str) -> Option<&'a Condition> {
    let conditions = &object.status_of()?.conditions;
    conditions.iter().find(|condition| condition.type_ == name)
}
