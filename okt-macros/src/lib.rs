//! `#[lifecycle_graph]`: turns a state enum into a lifecycle that the compiler has checked.
//!
//! You declare the lifecycle of an application as an enum; attributes declare the marks and edges of its states.
//! Every mistake is a compile error on its own token, and one build reports all of them.
//!
//! ```
//! use okt_core::{Dispatch, Event, Lifecycle};
//! use okt_macros::lifecycle_graph;
//!
//! /// The life of a server.
//! #[lifecycle_graph(crate(okt_core))]
//! #[derive(Clone, Copy, Debug, PartialEq, Eq)]
//! pub enum Server {
//!     /// The server creates its data directory.
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
//!     /// The server disconnects its clients.
//!     #[child(Gone)]
//!     Stopping,
//!
//!     /// The server needs a person.
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
//! | `#[rest]` | a state | an object may stay here; `rest(hold)`: no observation and no older desired state leads out, `rest(idle)`: there is no work |
//! | `#[leaf]` | at least one state | the application is gone or finished; `leaf(idle)`: there is nothing to clean up |
//! | `#[visit]` | a passing state | a spec may request a visit of this state; no route leads through it |
//! | `#[visit(args = RestoreArgs, result = RestoreResult)]` | a passing state | a visit whose work takes arguments and gives a result, both of any type; without `result` it gives none. Only a request, an object of its own, leads there |
//! | `#[no_transit]` | a state | no route leads through it |
//! | `#[child(To)]` | a state, repeatable | a regular edge; declaration order is priority, the last one is Next |
//! | `#[trigger(To)]` | a state, repeatable | an edge for an event of the application; it precedes every child. Raised by name, or by the first of its causes: `after = "30m"`, `on_error` or `on_error(attempts = 3)`, `on_delete`, `on_change` or `on_change(version, disk.size, major())` for parts of the spec, `on_abort` for a visit with arguments whose request is deleted; in a pass `on_error`, `on_give_up`, `on_delete` |
//! | `#[deadline(To, after = "1h", over(A, B))]` | the enum, repeatable | a trigger to `To` in each of these states, raised when the object has been in them for this time, in whichever; a state is under one deadline |
//! | `#[window(maintenance, states(A, B), needs = "1h")]` | the enum, repeatable | a gate: an object enters these states from outside only at times of a calendar that your code gives, and only while `needs` of them is left; `passes(triggers)`, `passes(deletion)` admit that such a trigger or the way out leads in without waiting |
//! | `#[approval(major, states(A, B))]` | the enum, repeatable | a gate: an object enters these states from outside only once a person has approved the planned move, where your code asks for it; `passes` as above |
//! | `#[limit(rollout, states(A, B))]` | the enum, repeatable | a gate: at most as many objects as your code says are in these states at a time; the others wait outside; `passes` as above |
//! | `#[condition(Type)]` | a state, repeatable | a condition in the object's status while it is in this state; options `status`, `reason`, `message`. Write a type with a domain as a text: `"okt.dev/Type"` |
//! | `#[no_route(To, .., reason = "..")]` | a resting state, repeatable | from here the operator refuses these desired states, with this reason |
//! | `#[was("Old")]` | a state, repeatable | a former name, under which objects may be stored |
//!
//! `#[serde(rename)]` and `rename_all` change the wire name of a state, as they change it for serde; the enum need not
//! derive serde's traits for that.
//! Doc comments of the enum and its states become part of the graph.
//!
//! # Options
//!
//! | option | meaning |
//! |---|---|
//! | `pass` | the whole graph runs within one reconciliation; see OKT019 |
//! | `crate(path)` | the crate that generated code names, by default `::okt` |
//! | `spec(DatabaseSpec)` | the type of the spec, whose parts triggers name in `on_change(..)` |
//! | `module = "life"` | the name of the generated module, by default the enum's name in snake case |
//! | `handler = "Lives"` | the name of the generated trait, by default the enum's name plus `Handler` |
//!
//! With `crate(okt_core)` (or a path that ends in `okt_core`) the dependency tree contains no Kubernetes crate. The
//! derive behind the attribute is then `okt_macros::LifecycleGraph`. Any other crate must have the derive, and
//! everything else that generated code names, in a module `__private`, as `okt` does.
//!
//! # Generated code
//!
//! For an enum `Server`, all of it constant, in the visibility of the enum:
//!
//! - `impl Lifecycle for Server`: the graph with its routes, and the conversion between states and names;
//! - `impl SpecParts<ServerSpec> for Server`: the parts of the spec that triggers name, of any spec if they name none;
//! - the module `server`: for each state with a handler its successors (`AfterRunning`: `Stay` if it is resting,
//!   `Next` if it has a child, `Wait`, and each declared target but visits with arguments), and in `server::conditions`
//!   the condition types, and `Gate`, the enum of the gates, if there are any. After a visit with a result, `Next` and the children carry it
//!   (`AfterRestoring::Running(result)`), and the method answers `AfterRestoring<RestoreResult>`;
//! - the trait `ServerHandler`: one async method per state that is not idle, in snake case (`r#loop` for a keyword). The
//!   method of a visit with arguments takes them too, and its context implements `Visited`;
//! - `impl Serves<RestoreArgs> for Server`: the visit that takes these arguments;
//! - `impl Dispatch<H> for Server`: calls the method of a state.
//!
//! The successors of a pass have no `Stay` and no `Wait`; its methods answer with a `Step` over them, and its
//! dispatcher is a `PassDispatch`.
//!
//! # Rules
//!
//! One build reports all mistakes of a graph, in source order, each on its own token. `cargo okt explain OKT005` prints
//! the page about a rule.

use proc_macro::TokenStream;

/// Turns an enum into a lifecycle graph; the [crate's documentation](crate) lists the attributes.
///
/// # Rules
///
/// Every rule has a code, with which its message begins. `cargo okt explain OKT005` prints the page about a rule: an
/// example, the reason and the ways to mend it.
#[proc_macro_attribute]
pub fn lifecycle_graph(args: TokenStream, item: TokenStream) -> TokenStream {
    okt_syntax::lifecycle_graph(&args.into(), &item.into()).into()
}

/// The derive that `#[lifecycle_graph]` adds to the enum; do not write it by hand.
#[doc(hidden)]
#[proc_macro_derive(
    LifecycleGraph,
    attributes(
        __lifecycle_graph,
        approval,
        child,
        condition,
        deadline,
        entry,
        leaf,
        limit,
        no_route,
        no_transit,
        rest,
        serde,
        trigger,
        visit,
        was,
        window
    )
)]
pub fn derive_lifecycle_graph(input: TokenStream) -> TokenStream {
    okt_syntax::derive_lifecycle_graph(input.into()).into()
}

/// Implements `LifecycleSpec` for a spec with a lifecycle field.
///
/// The lifecycle field is the field of type `Desired<State>`, by any path; a spec has exactly one.
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
/// `#[lifecycle(previous(v1alpha1::Server))]` names the version before this one, and derives how specs come from there and
/// go back: with `was(size)`, `holds(stoves)` and `new` on fields, and `removed(color)` on the struct; or with `by_hand`,
/// and both `From` of your own. `docs/versions.md` has all of it.
///
/// `#[lifecycle(immutable)]` on a field says that it stays as it is once it is set: `manifests --policy=rules`
/// prints a policy by which the API server refuses a change. `#[lifecycle(default = "..")]` has an expression (CEL) of its
/// value where it is left out, for `manifests --policy=defaults`.
///
/// Mark a spec without such a field `#[lifecycle(none)]`: its operator runs a pass and stores no position.
/// `#[lifecycle(crate(path))]` names the crate of the trait, by default `::okt`.
#[proc_macro_derive(LifecycleSpec, attributes(lifecycle))]
pub fn derive_lifecycle_spec(input: TokenStream) -> TokenStream {
    okt_syntax::derive_lifecycle_spec(input.into()).into()
}

/// Makes a struct the arguments of a kind of requests: objects that ask another one for a visit.
///
/// ```ignore
/// /// The backup that a database is restored from.
/// #[derive(Request, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[request(kind = "Restore", of = Database, ttl = "7d")]
/// pub struct RestoreArgs {
///     pub backup: String,
/// }
/// ```
///
/// It generates `impl Request for RestoreArgs`, and the type `Restore`, whose objects are the requests.
/// The state that serves them is the one with `#[visit(args = RestoreArgs)]`.
///
/// | option | meaning |
/// |---|---|
/// | `kind = "Restore"` | the name of the kind |
/// | `of = Database` | the resource whose objects serve the requests |
/// | `state = DatabaseState::Restoring` | the state that serves them, for readers: it is checked |
/// | `ttl = "7d"` | how long a finished request is kept; seven days by default |
/// | `schedule` | adds the kind `RestoreSchedule`, which makes requests at times of a calendar |
/// | `crate = path` | the crate that the code names, by default `::okt` |
#[proc_macro_derive(Request, attributes(request))]
pub fn derive_request(input: TokenStream) -> TokenStream {
    okt_syntax::derive_request(input.into()).into()
}

/// Lets the derives of serde, schemars and kube find their crates in `okt`.
///
/// Those derives name `::serde`, `::schemars` and `::kube`, so they need these crates in your Cargo.toml. Write this
/// attribute above the derives of a type, and `okt` alone is enough: it adds `#[serde(crate = ..)]`,
/// `#[schemars(crate = ..)]` and `#[kube(crates(..))]` for the derives that it finds.
///
/// `#[crates(path)]` names the crate `okt` by another path.
#[proc_macro_attribute]
pub fn crates(args: TokenStream, item: TokenStream) -> TokenStream {
    okt_syntax::crates(args.into(), &item.into()).into()
}
