//! Tests of operators that are written with OKT: one handler as a function, the whole operator with the API of
//! [`ApiServer`], and rehearsals of a life with every fault.
//!
//! docs/testing.md of OKT's repository begins with the cheapest test.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `agents` | agents in the test process |
// | `handlers` | arguments for handlers, made by hand |
// | `lock` | compares an operator's graphs with its lock file |
// | `rehearsal` | runs a lifecycle once undisturbed, and then once with each possible fault |
// | `versions` | random objects of every version of a kind, converted to every other version and back |

#[cfg(feature = "sidecar")]
mod agents;
pub mod handlers;
pub mod lock;
pub mod rehearsal;
pub mod versions;

#[cfg(feature = "sidecar")]
pub use self::agents::TestAgents;
pub use self::handlers::{action, context, pass};
pub use self::rehearsal::Rehearsal;
#[doc(no_inline)]
pub use okt_apiserver::*;
/// Checks of the conditions of any operator.
pub use okt_view::conditions;
