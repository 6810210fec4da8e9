//! What anybody who may read a cluster can know of the objects of all OKT operators: their kinds, where they are on
//! their graphs, and why.
//!
//! It knows no operator in advance: the graph is an annotation of each CRD, and the position is in the status. `kubectl
//! okt` is made of it (feature `client`). `conditions` checks whether the conditions of any operator follow the rules of
//! Kubernetes (feature `conditions`).
//!
//! ```no_run
//! use kube::api::ListParams;
//! use okt::view::{Kind, View};
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! for kind in Kind::all(&client).await? {
//!     for object in kind.objects(&client, None).list(&ListParams::default()).await? {
//!         let view = View::of(&kind, object);
//!         println!("{} is in {}", view.title(), view.state().unwrap_or("no state yet"));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
// Times come from objects: sums saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `text`, `untyped`, `stranger` | texts for people; states whose Rust types are not known; objects of any kind |
// | `kind`, `object`, `summary` | the kinds of all operators; one object on its graph; all objects of a kind, counted |
// | `requests`, `limits` | the requests for an object, and what they wait for; who has the places of limits |
// | `why` | why an object is where it is: `causes` (pure), `requests`, `surroundings` |
// | `map` | the page that shows all objects: `board`, `serve` |
// | `conditions` | the rules of conditions |

#[cfg(feature = "conditions")]
pub mod conditions;
#[cfg(feature = "client")]
mod kind;
#[cfg(feature = "client")]
mod limits;
#[cfg(feature = "map")]
mod map;
#[cfg(feature = "client")]
mod object;
#[cfg(feature = "client")]
mod requests;
#[cfg(feature = "client")]
mod stranger;
#[cfg(feature = "client")]
mod summary;
#[cfg(feature = "client")]
mod text;
#[cfg(feature = "client")]
mod untyped;
#[cfg(feature = "client")]
mod why;

#[cfg(feature = "client")]
pub use self::kind::{Kind, RequestError, RequestResource};
#[cfg(feature = "client")]
pub use self::limits::LimitView;
#[cfg(feature = "map")]
pub use self::map::{Map, MapError};
#[cfg(feature = "client")]
pub use self::object::{Deadline, Goal, View, route};
#[cfg(feature = "client")]
pub use self::requests::{
    ObjectRequests, QueuedRequest, RequestReport, RequestView, Turn, request_title,
};
#[cfg(feature = "client")]
pub use self::summary::Summary;
#[cfg(feature = "client")]
pub use self::text::{age, clean, plain, way};
#[cfg(feature = "client")]
pub use self::untyped::Untyped;
#[cfg(feature = "client")]
pub use self::why::{Cause, Why};
