//! The double of the Kubernetes API, in memory.
//!
//! It uses no other part of this crate. The [crate] documentation has a drawing of the path of a request.

mod api_server;
mod endpoint;
mod faults;
mod feature_gate;
mod record;
mod replica;
mod serve;
mod versions;

mod server;

mod answer;
mod body;
mod discovery;
mod options;
mod path;
mod read;
mod selector;
mod shards;
mod table;
mod watch;

mod admission;
mod apply;
mod delete;
mod duplicate_fields;
mod patch;
mod rules;
mod write;

mod schema;

mod builtin;
mod crd;
mod event;
mod kind;
mod priority;

mod calls;
mod causes;
mod client_config;
mod clock;
mod conversion;
mod convert;
pub(crate) mod object;
mod refusal;
mod replica_view;
mod state;
mod store;
mod stored;

pub use self::api_server::{ApiServer, Backup};
pub use self::endpoint::Endpoint;
pub use self::faults::{Chaos, EventKind, Fault, Injected, OnEvent, OnRequest, Seed, Strike, What};
pub use self::feature_gate::FeatureGate;
pub use self::record::{RequestRecord, Verb};
pub use self::replica::Replica;
pub use self::serve::Served;
pub use self::versions::{EventRecord, Mark, Version, Versions};
