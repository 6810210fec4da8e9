//! The passes that come with OKT: the Stepper, and one of a single step.

use okt_macros::lifecycle_graph;

/// A pass that reads what there is, changes what it holds of it, and writes it; failures and deletion have steps of
/// their own.
///
/// An application implements [`StepperHandler`], and says so in [`Application::pass`](crate::Application::pass):
/// `Some(PassGraph::of::<Stepper>())`.
/// In `Mutator` it [puts](crate::Pass::put) what should exist, in `Updater` it [commits](crate::Pass::commit).
///
/// ```
/// # use kube::CustomResource;
/// # use okt_runtime::{Application, Failure, LifecycleSpec, Pass, PassGraph, PassStatus, Step, Stepper, StepperHandler};
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// # #[kube(group = "demo.okt.dev", version = "v1", kind = "Note", namespaced, status = "PassStatus")]
/// # #[lifecycle(none)]
/// # struct NoteSpec {}
/// # struct Notes;
/// use okt_runtime::stepper::*;
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
    /// Is the object sound?
    #[entry]
    #[condition(Valid)]
    #[trigger(CRFinalizer, on_delete)]
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(ObjectsGetter)]
    CRChecker,
    /// What there is.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(Mutator)]
    ObjectsGetter,
    /// What there should be.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(Updater)]
    Mutator,
    /// What there should be is brought about.
    #[condition(UpToDate)]
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(SuccessManager)]
    Updater,
    /// Everything went well.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(End)]
    SuccessManager,
    /// The object is being deleted.
    #[trigger(ErrorManager, on_error)]
    #[trigger(GiveupManager, on_give_up)]
    #[child(End)]
    CRFinalizer,
    /// Something failed; [`results`](crate::Pass::results) say what.
    #[trigger(GiveupManager, on_give_up)]
    #[child(End)]
    ErrorManager,
    /// Trying again is of no use.
    #[child(End)]
    GiveupManager,
    /// The walk is over.
    #[leaf(idle)]
    End,
}

/// A pass of one step, for an operator that does everything in one function.
///
/// An application implements [`FreeStyleHandler`], and says so in [`Application::pass`](crate::Application::pass):
/// `Some(PassGraph::of::<FreeStyle>())`.
/// It has no way for deletion: what it owns goes with the object.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{CustomResource, ResourceExt};
/// use okt_runtime::{
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
    /// Everything.
    #[entry]
    #[child(End)]
    Reconcile,
    /// The walk is over.
    #[leaf(idle)]
    End,
}
