//! This file is the application of ladders: a resource without a lifecycle, whose operator runs the scripted steps of
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
    Application, Failure, LifecycleSpec, Pass, PassGraph, PassStatus, Step, Stepper,
    StepperHandler, Watches,
};
use serde::{Deserialize, Serialize};

use crate::cluster::Served;
use crate::script::Script;

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

    async fn cr_checker(&self, cx: &Pass<Ladder>) -> Result<Step<AfterCRChecker>, Failure> {
        let next = AfterCRChecker::Next;
        self.script.take(cx, "CRChecker", next).await
    }

    async fn objects_getter(&self, cx: &Pass<Ladder>) -> Result<Step<AfterObjectsGetter>, Failure> {
        let next = AfterObjectsGetter::Next;
        self.script.take(cx, "ObjectsGetter", next).await
    }

    async fn mutator(&self, cx: &Pass<Ladder>) -> Result<Step<AfterMutator>, Failure> {
        self.script.take(cx, "Mutator", AfterMutator::Next).await
    }

    async fn updater(&self, cx: &Pass<Ladder>) -> Result<Step<AfterUpdater>, Failure> {
        self.script.take(cx, "Updater", AfterUpdater::Next).await
    }

    async fn success_manager(
        &self,
        cx: &Pass<Ladder>,
    ) -> Result<Step<AfterSuccessManager>, Failure> {
        let next = AfterSuccessManager::Next;
        self.script.take(cx, "SuccessManager", next).await
    }

    async fn cr_finalizer(&self, cx: &Pass<Ladder>) -> Result<Step<AfterCRFinalizer>, Failure> {
        let next = AfterCRFinalizer::Next;
        self.script.take(cx, "CRFinalizer", next).await
    }

    async fn error_manager(&self, cx: &Pass<Ladder>) -> Result<Step<AfterErrorManager>, Failure> {
        let next = AfterErrorManager::Next;
        self.script.take(cx, "ErrorManager", next).await
    }

    async fn giveup_manager(&self, cx: &Pass<Ladder>) -> Result<Step<AfterGiveupManager>, Failure> {
        let next = AfterGiveupManager::Next;
        self.script.take(cx, "GiveupManager", next).await
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
