//! A Kubernetes API inside the test process, for operators written with kube.

mod api_server;
mod record;
mod serve;

mod server;

mod discovery;
mod path;
mod read;
mod selector;
mod table;
mod watch;

mod apply;
mod delete;
mod patch;
mod rules;
mod write;

mod cel;
mod schema;

mod builtin;
mod crd;
mod event;
mod kind;

mod clock;
mod object;
mod refusal;
mod store;

pub use api_server::ApiServer;
pub use record::{RequestRecord, Verb};
pub use serve::Served;
