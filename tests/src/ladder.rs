//! The application of ladders: a resource without a lifecycle, whose operator runs the scripted steps of
//! the Stepper.
#![expect(
    unreachable_pub,
    reason = "`KubeSchema` makes a private copy of the spec"
)]

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{CustomResource, KubeSchema};
use okt::stepper::{
    AfterCRChecker, AfterCRFinalizer, AfterErrorManager, AfterGiveupManager, AfterMutator,
    AfterObjectsGetter, AfterSuccessManager, AfterUpdater,
};
use okt::{
    Application, Failure, LifecycleSpec, Pass, PassGraph, PassStatus, Stepper, StepperHandler,
    Watches,
};
use serde::{Deserialize, Serialize};

use crate::cluster::Served;
use crate::script::{Script, steps};

/// The spec of a ladder.
#[derive(
    CustomResource, LifecycleSpec, KubeSchema, Clone, Debug, Default, Serialize, Deserialize,
)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Ladder",
    namespaced,
    status = "PassStatus"
)]
#[lifecycle(none)]
#[x_kube(validation = ("self.rungs != 13", "13 rungs bring bad luck"))]
pub struct LadderSpec {
    /// The number of rungs.
    #[serde(default)]
    #[schemars(range(max = 1000))]
    pub rungs: u32,
}

/// The operator of ladders; clones share their script.
#[derive(Clone, Default)]
pub struct Ladders {
    /// The results of its steps.
    pub script: Script,
}

impl StepperHandler for Ladders {
    type Context = Pass<Ladder>;
    type Error = Failure;

    steps! { Ladder:
        cr_checker "CRChecker" AfterCRChecker,
        objects_getter "ObjectsGetter" AfterObjectsGetter,
        mutator "Mutator" AfterMutator,
        updater "Updater" AfterUpdater,
        success_manager "SuccessManager" AfterSuccessManager,
        cr_finalizer "CRFinalizer" AfterCRFinalizer,
        error_manager "ErrorManager" AfterErrorManager,
        giveup_manager "GiveupManager" AfterGiveupManager,
    }
}

impl Application for Ladders {
    type Resource = Ladder;

    fn watches(watches: Watches<Ladder>) -> Watches<Ladder> {
        watches
            .owns::<ConfigMap>()
            .owns::<Deployment>()
            .owns::<ClusterRole>()
    }

    fn pass() -> Option<PassGraph<Self>> {
        Some(PassGraph::of::<Stepper>())
    }
}

impl Served for Ladders {}
