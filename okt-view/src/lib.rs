//! What anybody who may read a cluster can know of the objects of all OKT operators: their kinds, where they are on
//! their graphs, and why.
//!
//! It knows no operator in advance: the graph is an annotation of each CRD, and the position is in the status. `kubectl
//! okt` is made of it. [`conditions`] checks whether the conditions of any operator follow the rules of Kubernetes.
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

// Times come from objects: sums saturate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `text`, `untyped`, `stranger` | texts for people; states whose Rust types are not known; objects of any kind |
// | `kind`, `object`, `summary` | the kinds of all operators; one object on its graph; all objects of a kind, counted |
// | `why` | why an object is where it is: `causes` (pure), `surroundings` |
// | `map` | the page that shows all objects: `board`, `serve` |
// | `conditions` | the rules of conditions |

pub mod conditions;
mod kind;
#[cfg(feature = "map")]
mod map;
mod object;
mod stranger;
mod summary;
mod text;
mod untyped;
mod why;

pub use self::kind::{Kind, RequestError};
#[cfg(feature = "map")]
pub use self::map::{Map, MapError};
pub use self::object::{Deadline, Goal, View, route};
pub use self::summary::Summary;
pub use self::text::{age, clean, plain, way};
pub use self::untyped::Untyped;
pub use self::why::{Cause, Why};
