//! The agent beside an application: it says where the application is, and does its work.
//!
//! An operator that keeps an application's life by way of this protocol needs no way into the application but
//! HTTP, and a crash on either side loses nothing: each piece of work has an id, is recorded on disk before it
//! begins, and is never done again once it succeeded.
//! The protocol is specified in `docs/sidecar.md`, and in `openapi.yaml` for machines.
//!
//! | what | where | feature |
//! |---|---|---|
//! | what goes over the wire | [`wire`] | – |
//! | the agent, for an application that answers for itself | `Work`, `Agent` | `agent` |
//! | the agent as a program with a file of commands | `okt-sidecar` | `program` |
//! | what asks an agent | `client` | `client` |
//! | whether an agent keeps the protocol | `conformance` | `client` |

#[cfg(feature = "agent")]
mod agent;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
pub mod conformance;
#[cfg(feature = "agent")]
mod private;
#[cfg(feature = "program")]
pub mod program;
pub mod wire;
#[cfg(feature = "agent")]
mod work;

#[cfg(feature = "agent")]
pub use self::agent::{
    Agent, Bound, JournalError, Listen, ServeError, Started, TlsError, TokenError, free,
};
#[cfg(feature = "agent")]
pub use self::work::{Done, Fault, Leftover, NOTES_LIMIT, NotRemembered, Offer, Task, Work};
