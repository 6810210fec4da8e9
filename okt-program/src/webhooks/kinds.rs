//! About which kinds the API server asks, and what.

use okt_runtime::{Admission, Application};
use okt_wire::versions::KindVersions;

use super::admission::KindAdmission;
use crate::install::webhooks::KindWebhooks;

/// A kind about whose objects the API server asks.
pub(crate) struct HookedKind {
    /// The name of its definition.
    pub(crate) crd: &'static str,
    /// Its versions, if objects are converted between them.
    pub(crate) versions: Option<KindVersions>,
    /// How its objects are checked and completed, if they are.
    pub(crate) admission: Option<KindAdmission>,
}

impl HookedKind {
    /// Returns the kind of an application.
    pub(crate) fn of<A: Application>() -> Self {
        let webhooks = KindWebhooks::of::<A>();
        Self {
            crd: webhooks.crd,
            versions: webhooks.converts.then(KindVersions::of::<A::Resource>),
            admission: KindAdmission::of(A::admission(Admission::default())),
        }
    }

    /// Returns whether the API server asks at all.
    pub(crate) fn is_asked(&self) -> bool {
        self.versions.is_some() || self.admission.is_some()
    }
}
