//! A version of a kind, and the one before it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use okt_core::Graph;
use schemars::Schema;
use serde_json::{Map, Value};

/// A version of a kind, and how to get its definition.
#[derive(Clone, Debug)]
pub struct KindVersion {
    /// The name (e.g. `v1`).
    pub name: String,
    /// The definition that kube derives.
    pub definition: fn() -> CustomResourceDefinition,
    /// The schema of the desired state.
    pub desired: fn() -> Schema,
    /// The graph of the objects, which has no states if they have no lifecycle.
    pub graph: &'static Graph<'static>,
}

impl KindVersion {
    /// Returns whether the API server serves the version.
    pub fn is_served(&self) -> bool {
        let versions = (self.definition)().spec.versions;
        versions.iter().any(|version| version.served)
    }
}

/// The version before another one, as `#[lifecycle(previous = v1alpha1::Shop)]` names it.
pub struct PreviousVersion {
    pub(crate) version: KindVersion,
    pub(crate) up: Step,
    pub(crate) down: Step,
    pub(crate) before: fn() -> Option<Self>,
}

/// Converts the parts of an object, or says why it cannot be read.
pub(crate) type Step = fn(&Value) -> Result<Map<String, Value>, String>;
