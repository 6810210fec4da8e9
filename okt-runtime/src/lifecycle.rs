//! The lifecycle of an object for a controller of your own: OKT's graph, decisions and conditions, without its operator.
//!
//! You keep your `kube::runtime::Controller`, its watches and its `reconcile` function. A [`Reconciliation`] decides, one
//! effect after the other, by the same code as the operator; your function makes the requests and does the work:
//!
//! ```text
//!   object + Memory ──▶ Reconciliation::decide ──▶ Effect ──▶ your request, or the work of a state
//!                               ▲                                        │
//!                               └──── patched, observed, ended ◀─────────┘
//! ```
//!
//! | effect | you | then |
//! |---|---|---|
//! | [`Write`](Effect::Write) | [`send`](Write::send) it | [`patched`](Reconciliation::patched) with the answer |
//! | [`Observe`](Effect::Observe) | observe the application, or not | [`observed`](Reconciliation::observed) |
//! | [`Work`](Effect::Work) | do the work of the state | [`ended`](Reconciliation::ended) with its result |
//! | [`Rest`](Effect::Rest) | return | |
//!
//! ```
//! # use std::sync::Arc;
//! # use kube::api::PostParams;
//! # use kube::runtime::controller::Action;
//! # use kube::{Api, Client, CustomResource, ResourceExt};
//! # use okt::lifecycle::{Effect, Memory, Reconciliation, Work};
//! # use okt::{Desired, Dispatch, Failure, LifecycleSpec, Observation, Status, lifecycle_graph};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! #[lifecycle_graph]
//! #[derive(Clone, Copy, Debug, PartialEq, Eq)]
//! pub enum SignState {
//!     #[entry]
//!     #[child(Up)]
//!     Painting,
//!     #[rest(idle)]
//!     #[child(Gone)]
//!     Up,
//!     #[leaf(idle)]
//!     Gone,
//! }
//! # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "demo.okt.dev", version = "v1", kind = "Sign", namespaced, status = "Status<SignState>")]
//! # pub struct SignSpec {
//! #     #[serde(default)]
//! #     pub lifecycle: Desired<SignState>,
//! # }
//!
//! struct Painter;
//!
//! impl SignStateHandler for Painter {
//!     type Context = Work<Sign>;
//!     type Error = Failure;
//!
//!     async fn painting(&self, work: &Work<Sign>) -> Result<sign_state::AfterPainting, Failure> {
//!         println!("{}: painting {}", work.id(), work.object().name_any());
//!         Ok(sign_state::AfterPainting::Next)
//!     }
//! }
//!
//! struct Ctx {
//!     client: Client,
//!     memory: Memory<Sign>,
//! }
//!
//! async fn reconcile(sign: Arc<Sign>, cx: Arc<Ctx>) -> kube::Result<Action> {
//!     let api: Api<Sign> = Api::namespaced(cx.client.clone(), &sign.namespace().unwrap_or_default());
//!     let mut sign = Reconciliation::of(&cx.memory, sign);
//!     loop {
//!         match sign.decide() {
//!             Effect::Write(write) => sign.patched(write.send(&api, "signs").await?)?,
//!             Effect::Observe => sign.observed(Observation::unobserved()),
//!             Effect::Work(work) => sign.ended(work.state().dispatch(&Painter, &work).await),
//!             Effect::Rest(None) => return Ok(Action::await_change()),
//!             Effect::Rest(Some(time)) => return Ok(Action::requeue(time)),
//!         }
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let client = okt_apiserver::ApiServer::new().client();
//! # Api::all(client.clone()).create(&PostParams::default(), &okt::crd::<Sign>()?).await?;
//! # let api: Api<Sign> = Api::default_namespaced(client.clone());
//! # let sign = Sign::new("welcome", SignSpec { lifecycle: Desired::default() });
//! # let sign = api.create(&PostParams::default(), &sign).await?;
//! # let action = reconcile(Arc::new(sign), Arc::new(Ctx { client, memory: Memory::new() })).await?;
//! # assert_eq!(action, Action::await_change());
//! # let stored = api.get("welcome").await?.status.expect("a status");
//! # assert_eq!(stored.lifecycle.expect("a position").trail, ">Painting>Up>");
//! # Ok(())
//! # }
//! ```
//!
//! `examples/src/bin/own_loop.rs` is a whole controller, and `docs/own-controller.md` compares it with an operator.
//!
//! # Guarantees
//!
//! - The same decisions as the operator makes: only declared edges, the finalizer before everything else, one write per
//!   transition, the position recorded before its work begins.
//! - Every patch names the version of the object that it acts upon, so a decision about an old version is refused (409).
//! - After a crash at any moment the work on record is repeated under its id, and nothing else is.
//! - Retries and `Wait` have their times, and a settled object causes no request, as long as you keep the [`Memory`].
//!
//! # Caveats
//!
//! - Work runs in your `reconcile`: nothing else happens to its object meanwhile, no trigger cancels it, and it counts
//!   for the concurrency of your controller. Limit its time, and answer `Wait` where it takes long.
//! - The CRD must have the graph's fields. Apply the one that [`crd`](crate::crd()) returns, whose rules refuse undeclared
//!   transitions. The operator checks that at its start; here nothing does.
//! - Leader election, owned resources, passes, Kubernetes Events and metrics are your controller's.

mod effect;
mod memory;
mod reconciliation;

pub use okt_core::decide::{By, Ending, Go, Run, StayReason, Verdict, decide};
pub use okt_core::facts::LifecycleFacts;
pub use okt_core::record::{ActionRecord, DesiredRecord, Record, Recorded, VisitRecord};

pub use self::effect::{Effect, Work, Write};
pub use self::memory::Memory;
pub use self::reconciliation::Reconciliation;

pub use crate::reconcile::report::NotRecorded;

use okt_core::Lifecycle;
use okt_wire::read;
use okt_wire::status::Status;

/// Converts a status into the record that decisions are made from: names become ids, and texts are left out.
///
/// A [`Reconciliation`] does that itself. Call it to inspect a status, in a test or in a tool.
/// A revision that another writer left out or damaged reads as 0.
///
/// ```
/// # use okt::lifecycle::{Recorded, recorded};
/// # use okt::{Lifecycle, Status, lifecycle_graph};
/// # #[lifecycle_graph]
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # pub enum SignState { #[entry] #[child(Up)] Painting, #[rest(idle)] #[child(Gone)] Up, #[leaf(idle)] Gone }
/// let stored = r#"{ "lifecycle": { "state": "Up", "transition": 2 } }"#;
/// let status: Status<SignState> = serde_json::from_str(stored)?;
/// let Recorded::At(record) = recorded(Some(&status)) else { panic!("it has a position") };
/// assert_eq!((record.state, record.transition), (SignState::Up.id(), 2));
/// assert_eq!(recorded::<SignState, ()>(None), Recorded::Nothing);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn recorded<S: Lifecycle, Extra>(status: Option<&Status<S, Extra>>) -> Recorded {
    let position = status.and_then(|status| status.lifecycle.as_ref());
    let is_deleting = status.is_some_and(|status| {
        let mut all = status.conditions.iter();
        all.any(|it| it.type_ == "Deleting" && it.status == "True")
    });
    read::record(position, is_deleting, 0)
}
