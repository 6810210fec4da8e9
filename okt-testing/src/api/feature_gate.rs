//! [`FeatureGate`]: a feature of Kubernetes that is off by default.

use std::fmt;

/// A feature of Kubernetes that is off by default.
///
/// `KubernetesOptions::feature_gate` (of the feature `kubernetes`) turns it on in a real API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FeatureGate {
    /// Lists and watches of a part of the objects, by a hash (KEP-5866; alpha in Kubernetes 1.36).
    ShardedListAndWatch,
}

impl FeatureGate {
    /// Returns the name as in the flag `--feature-gates` (e.g. `ShardedListAndWatch`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ShardedListAndWatch => "ShardedListAndWatch",
        }
    }
}

impl fmt::Display for FeatureGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
