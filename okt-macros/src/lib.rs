//! `#[lifecycle_graph]`: a state enum becomes a lifecycle that the compiler has proved.
//!
//! The life of an application is an enum; its attributes say which states there are and where they lead.
//! Every mistake in it is an error on the token that made it, all of them in one build.
//!
//! ```
//! use okt_core::{Dispatch, Event, Lifecycle};
//! use okt_macros::lifecycle_graph;
//!
//! /// The life of a server.
//! #[lifecycle_graph(crate(okt_core))]
//! #[derive(Clone, Copy, Debug, PartialEq, Eq)]
//! pub enum Server {
//!     /// The data directory is being made.
//!     #[entry]
//!     #[trigger(Failed, on_error(attempts = 5))]
//!     #[child(Running)]
//!     Start,
//!
//!     /// Clients may connect.
//!     #[rest]
//!     #[condition(Available)]
//!     #[child(Stopping)]
//!     Running,
//!
//!     /// Clients are being asked to leave.
//!     #[child(Gone)]
//!     Stopping,
//!
//!     /// Somebody has to look.
//!     #[rest(hold, idle)]
//!     #[child(Running)]
//!     #[child(Stopping)]
//!     Failed,
//!
//!     /// The server is gone.
//!     #[leaf(idle)]
//!     Gone,
//! }
//!
//! struct Servers;
//!
//! impl ServerHandler for Servers {
//!     type Context = String;
//!     type Error = std::io::Error;
//!
//!     async fn start(&self, host: &String) -> Result<server::AfterStart, std::io::Error> {
//!         println!("making the data directory on {host}");
//!         Ok(server::AfterStart::Running) // only declared successors exist in this type
//!     }
//!
//!     async fn running(&self, _: &String) -> Result<server::AfterRunning, std::io::Error> {
//!         Ok(server::AfterRunning::Stay)
//!     }
//!
//!     async fn stopping(&self, _: &String) -> Result<server::AfterStopping, std::io::Error> {
//!         Ok(server::AfterStopping::Next)
//!     }
//! }
//!
//! let graph = Server::GRAPH;
//! assert_eq!(graph.next(Server::Running.id(), &[Event::Next]), Some(Server::Stopping.id()));
//! assert_eq!(graph.hop(Server::Failed.id(), Server::Gone.id()), Some(Server::Stopping.id()));
//! let host = "db-0".to_string();
//! let work = Server::Start.dispatch(&Servers, &host); // a future
//! # let work = std::pin::pin!(work);
//! # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
//! # assert!(std::future::Future::poll(work, &mut cx).is_ready());
//! ```
//!
//! # Attributes
//!
//! | attribute | where | meaning |
//! |---|---|---|
//! | `#[entry]` | one state | objects are created here |
//! | `#[rest]` | a state | an object may stay here; `rest(hold)`: no observation and no older wish leads out, `rest(idle)`: there is no work |
//! | `#[leaf]` | at least one state | the application is gone or finished; `leaf(idle)`: nothing is left to be cleared away |
//! | `#[visit]` | a passing state | a spec may ask for it to be gone through once; no route leads through it |
//! | `#[no_transit]` | a state | no route leads through it |
//! | `#[child(To)]` | a state, repeatable | the normal way; declaration order is priority, the last one is Next |
//! | `#[trigger(To)]` | a state, repeatable | something happens to the application; tried before every child. Raised by name, or by one cause: `after = "30m"`, `on_error` or `on_error(attempts = 3)`, `on_delete`, `on_change`; in a pass `on_error`, `on_give_up`, `on_delete` |
//! | `#[condition(Type)]` | a state, repeatable | what the object's status says in this state; options `status`, `reason`, `message`. A type with a domain is a text: `"okt.dev/Type"` |
//! | `#[no_route(To, .., reason = "..")]` | a resting state, repeatable | a wish for these states is refused here, for this reason |
//! | `#[was("Old")]` | a state, repeatable | a former name, in which objects may be stored |
//!
//! `#[serde(rename)]` and `rename_all` change the wire name of a state, as they change it for serde.
//! Doc comments of the enum and its states become part of the graph.
//!
//! # Options
//!
//! | option | meaning |
//! |---|---|
//! | `pass` | the whole graph is walked within one reconciliation; see OKT019 |
//! | `crate(path)` | the crate that generated code names, by default `::okt_runtime` |
//! | `module = "life"` | the name of the generated module, by default the enum's in snake case |
//! | `handler = "Lives"` | the name of the generated trait, by default the enum's with `Handler` behind it |
//!
//! With `crate(okt_core)` (or a path that ends so) nothing of Kubernetes is in the tree; the derive behind the
//! attribute is then this crate's, under its own name. Any other crate must have it, and everything else that
//! generated code names, in a module `__private`, as `okt_runtime` does.
//!
//! # What is generated
//!
//! For an enum `Server`, all of it constant, in the visibility of the enum:
//!
//! - `impl Lifecycle for Server`: the graph with its routes, and the names of states both ways;
//! - the module `server`: for each state with a handler its successors (`AfterRunning`: `Stay` at rest, `Next`
//!   where there is a child, `Wait`, and each declared target), and in `server::conditions` the condition types;
//! - the trait `ServerHandler`: one async method per state that is not idle, in snake case (`r#loop` where that is a keyword);
//! - `impl Dispatch<H> for Server`: from a state to its method.
//!
//! A pass has successors without `Stay` and `Wait`; its methods answer with a `Step` over them, and its dispatcher is a
//! `PassDispatch`.
//!
//! # Rules
//!
//! [`lifecycle_graph`](macro@lifecycle_graph) lists them, with what is wrong, why, and what to do.

mod shim;

mod options;

mod items;

mod attr;

mod serde;

mod model;

mod graph;

mod check;

mod fallback;

mod expand;

mod spec;

mod report;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::model::Model;
use crate::report::Report;

/// Makes an enum a lifecycle graph; the [crate's documentation](crate) has the attributes.
///
#[doc = include_str!("../RULES.md")]
#[proc_macro_attribute]
pub fn lifecycle_graph(args: TokenStream, item: TokenStream) -> TokenStream {
    shim::expand(&args.into(), &item.into()).into()
}

/// What `#[lifecycle_graph]` puts before the enum; not to be written by hand.
#[doc(hidden)]
#[proc_macro_derive(
    LifecycleGraph,
    attributes(
        __lifecycle_graph,
        child,
        condition,
        entry,
        leaf,
        no_route,
        no_transit,
        rest,
        trigger,
        visit,
        was
    )
)]
pub fn derive_lifecycle_graph(input: TokenStream) -> TokenStream {
    expand_with(input.into(), graph_of).into()
}

/// Tells the operator which field of a spec says where the object should be in its life.
///
/// It is the one whose type is `Desired<State>`, by whatever path; a spec has exactly one.
///
/// ```
/// # mod okt { pub struct Desired<S>(pub Option<S>); impl<S> Default for Desired<S> { fn default() -> Self { Self(None) } } pub trait LifecycleSpec { type State; fn lifecycle(&self) -> &Desired<Self::State>; fn forget_lifecycle(&mut self); } }
/// # use okt::{Desired, LifecycleSpec as _}; use okt_macros::LifecycleSpec;
/// # enum ServerState { Running }
/// #[derive(LifecycleSpec)]
/// # #[lifecycle(crate(okt))]
/// struct ServerSpec {
///     lifecycle: Desired<ServerState>,
///     storage: String,
/// }
/// # let spec = ServerSpec { lifecycle: Desired(Some(ServerState::Running)), storage: "1Gi".into() };
/// assert!(matches!(spec.lifecycle().0, Some(ServerState::Running)));
/// ```
///
/// A spec without such a field says `#[lifecycle(none)]`: its operator walks through a pass, and keeps no position.
/// `#[lifecycle(crate(path))]` names the crate of the trait, by default `::okt_runtime`.
#[proc_macro_derive(LifecycleSpec, attributes(lifecycle))]
pub fn derive_lifecycle_spec(input: TokenStream) -> TokenStream {
    expand_with(input.into(), spec::expand).into()
}

/// The stages from a declaration to its code.
fn graph_of(report: &mut Report, input: &DeriveInput) -> proc_macro2::TokenStream {
    let Some(mut model) = Model::read(report, input) else {
        return proc_macro2::TokenStream::new();
    };
    check::check(report, &model);
    if !report.is_clean() || model.has_unknown_targets() {
        model = fallback::mend(model);
    }
    expand::expand(&model)
}

/// Code first, then what is wrong: an editor that completes a name looks at the code.
fn expand_with(
    input: proc_macro2::TokenStream,
    expand: impl FnOnce(&mut Report, &DeriveInput) -> proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let input = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut report = Report::new();
    let code = expand(&mut report, &input);
    let errors = report.finish();
    quote!(#code #errors)
}
