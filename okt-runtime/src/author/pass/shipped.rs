//! The passes that come with OKT: the Stepper, and one of a single step.

use okt_macros::lifecycle_graph;

/// A pass that reads the existing resources, declares the desired ones, and applies them; failures and deletion have
/// steps of their own.
///
/// Implement [`StepperHandler`], and return `Some(PassGraph::of::<Stepper>())` from
/// [`Application::pass`](crate::Application::pass).
/// In `Mutator` [put](crate::Pass::put) the resources that should exist; in `Updater` [commit](crate::Pass::commit)
/// them.
///
/// ```
/// # use kube::CustomResource;
/// # use okt::{Application, Failure, LifecycleSpec, Pass, PassGraph, PassStatus, Step, Stepper, StepperHandler};
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// # #[kube(group = "demo.okt.dev", version = "v1", kind = "Note", namespaced, status = "PassStatus")]
/// # #[lifecycle(none)]
/// # struct NoteSpec {}
/// # struct Notes;
/// use okt::stepper::*;
///
/// impl StepperHandler for Notes {
///     type Context = Pass<Note>;
///     type Error = Failure;
///
///     async fn cr_checker(&self, cx: &Pass<Note>) -> Result<Step<AfterCRChecker>, Failure> {
///         Ok(Step::done(AfterCRChecker::Next))
///     }
///     async fn updater(&self, cx: &Pass<Note>) -> Result<Step<AfterUpdater>, Failure> {
///         cx.commit().await?;
///         Ok(Step::done(AfterUpdater::Next))
///     }
///     async fn error_manager(&self, cx: &Pass<Note>) -> Result<Step<AfterErrorManager>, Failure> {
///         let _ = cx.results().failure;
///         Ok(Step::done(AfterErrorManager::Next))
///     }
///     // and the others
/// #   async fn objects_getter(&self, _: &Pass<Note>) -> Result<Step<AfterObjectsGetter>, Failure> { Ok(Step::done(AfterObjectsGetter::Next)) }
/// #   async fn mutator(&self, _: &Pass<Note>) -> Result<Step<AfterMutator>, Failure> { Ok(Step::done(AfterMutator::Next)) }
/// #   async fn success_manager(&self, _: &Pass<Note>) -> Result<Step<AfterSuccessManager>, Failure> { Ok(Step::done(AfterSuccessManager::Next)) }
/// #   async fn cr_finalizer(&self, _: &Pass<Note>) -> Result<Step<AfterCRFinalizer>, Failure> { Ok(Step::done(AfterCRFinalizer::Next)) }
/// #   async fn giveup_manager(&self, _: &Pass<Note>) -> Result<Step<AfterGiveupManager>, Failure> { Ok(Step::done(AfterGiveupManager::Next)) }
/// }
/// # impl Application for Notes {
/// #     type Resource = Note;
/// #     fn pass() -> Option<PassGraph<Self>> { Some(PassGraph::of::<Stepper>()) }
/// # }
/// # assert_eq!(Notes::pass().expect("a pass").graph().name, "Stepper");
/// ```
#[lifecycle_graph(pass, crate(crate))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepper {
    /// Checks the object.
    #[entry]
    #[condition(Valid)]
    #[trigger(CRFinalizer, on_delete)]
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(ObjectsGetter)]
    CRChecker,
    /// Reads the existing resources.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(Mutator)]
    ObjectsGetter,
    /// Declares the desired resources.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(Updater)]
    Mutator,
    /// Applies the desired resources.
    #[condition(UpToDate)]
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(SuccessManager)]
    Updater,
    /// Runs after success.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(End)]
    SuccessManager,
    /// Runs when the object is being deleted.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(End)]
    CRFinalizer,
    /// Runs after a failure; [`results`](crate::Pass::results) returns it.
    #[trigger(GiveupManager, on_give_up)]
    #[child(End)]
    ErrorManager,
    /// Runs when a retry does not help.
    #[child(End)]
    GiveupManager,
    /// The end of the pass.
    #[leaf(idle)]
    End,
}

/// A pass of one step, for an operator that does everything in one function.
///
/// Implement [`FreeStyleHandler`], and return `Some(PassGraph::of::<FreeStyle>())` from
/// [`Application::pass`](crate::Application::pass).
/// It has no path for deletion: Kubernetes deletes its owned resources with the object.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{CustomResource, ResourceExt};
/// use okt::{
///     Application, Failure, FreeStyle, FreeStyleHandler, LifecycleSpec, Pass, PassGraph, PassStatus, Step, Watches,
///     free_style,
/// };
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
///
/// #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[kube(group = "demo.okt.dev", version = "v1", kind = "Note", namespaced, status = "PassStatus")]
/// #[lifecycle(none)]
/// struct NoteSpec {
///     text: String,
/// }
///
/// struct Notes;
///
/// impl FreeStyleHandler for Notes {
///     type Context = Pass<Note>;
///     type Error = Failure;
///
///     async fn reconcile(&self, cx: &Pass<Note>) -> Result<Step<free_style::AfterReconcile>, Failure> {
///         let note = cx.object();
///         let mut map = ConfigMap::default();
///         map.metadata.name = Some(note.name_any());
///         map.data = Some([("text".to_owned(), note.spec.text.clone())].into());
///         cx.put(map);
///         Ok(Step::done(free_style::AfterReconcile::Next))
///     }
/// }
///
/// impl Application for Notes {
///     type Resource = Note;
///
///     fn watches(watches: Watches<Note>) -> Watches<Note> {
///         watches.owns::<ConfigMap>()
///     }
///
///     fn pass() -> Option<PassGraph<Self>> {
///         Some(PassGraph::of::<FreeStyle>())
///     }
/// }
/// # assert_eq!(Notes::pass().expect("a pass").graph().name, "FreeStyle");
/// ```
#[lifecycle_graph(pass, crate(crate))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeStyle {
    /// Does everything.
    #[entry]
    #[child(End)]
    Reconcile,
    /// The end of the pass.
    #[leaf(idle)]
    End,
}
