//! The service that has the resources.
//!
//! It stands for the client of yours: replace what its methods do by requests, and map each error to a `Failure` with a
//! reason. `okt::Failure::retry` is for an error that a retry may mend, `okt::Failure::permanent` for any other.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use okt::Failure;

/// A service in memory, which forgets its resources when the program ends; clones share it.
#[derive(Clone, Default)]
pub struct Service(Arc<Mutex<BTreeMap<String, String>>>);

impl Service {
    /// Returns the message that a resource holds; `None` if there is no such resource.
    pub fn find(&self, id: &str) -> Ready<Result<Option<String>, Failure>> {
        ready(Ok(self.resources().get(id).cloned()))
    }

    /// Creates a resource, or changes the message that it holds.
    pub fn put(&self, id: String, message: String) -> Ready<Result<(), Failure>> {
        self.resources().insert(id, message);
        ready(Ok(()))
    }

    /// Deletes a resource, if there is one.
    pub fn remove(&self, id: &str) -> Ready<Result<(), Failure>> {
        self.resources().remove(id);
        ready(Ok(()))
    }

    fn resources(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
