//! The agent of an application: it reports the application's state and does its work.
//!
//! An operator that uses this protocol reaches its application over HTTP only, and a crash on either side loses
//! nothing.
//! Each piece of work has an id. The agent records it on disk before it begins, and never repeats it after it
//! succeeded.
//! `docs/sidecar.md` specifies the protocol, and `openapi.yaml` describes it for machines.
//!
//! | subject | item | feature |
//! |---|---|---|
//! | the types of the protocol | [`wire`] | – |
//! | the agent, to embed in an application | `Work`, `Agent` | `agent` |
//! | the client of an agent | `client` | `client` |
//! | a test whether an agent conforms to the protocol | `conformance` | `client` |
//! | directories that only the agent's user can change | `private` | `agent` |
//!
//! The crate `okt-sidecar` is the agent as a program that a file of commands configures.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `wire`, `causes`, `private`, `provider` | the types of the protocol; an error with its causes; directories that only the agent's user can change; the crypto provider and the certificates of TLS |
// | `client`, `work` | the client of an agent, which repeats lost requests; the trait of an application that contains its agent |
// | `agent` | the agent: `rules` (pure), a journal on disk, one action at a time, the service |
// | `conformance` | the rules of the protocol as checks of any agent |

#[cfg(feature = "agent")]
mod agent;
mod causes;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
pub mod conformance;
#[cfg(feature = "agent")]
pub mod private;
#[cfg(any(feature = "agent", feature = "client"))]
mod provider;
pub mod wire;
#[cfg(feature = "agent")]
mod work;

#[cfg(feature = "agent")]
pub use self::agent::{
    Agent, Bound, JournalError, Listen, ServeError, Started, TlsError, TokenError, free,
};
pub use self::causes::with_causes;
#[cfg(feature = "agent")]
pub use self::work::{Done, Fault, Leftover, NOTES_LIMIT, NotRemembered, Offer, Task, Work};
