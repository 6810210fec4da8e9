//! A Kubernetes API inside the test process, for operators written with kube.
//!
//! [`ApiServer`] answers what a kube-apiserver answers, from memory: custom resources with their
//! schemas, defaults and CEL rules, the kinds that operators own, server-side apply with
//! `managedFields`, finalizers and owners, watches that resume. A test gives
//! [`ApiServer::client`] to the operator and plays the user with a second one; there is no socket,
//! no start-up and no clean-up, and all of it works under paused tokio time.
//!
//! ```
//! use kube::{
//!     Api, CustomResource, CustomResourceExt, ResourceExt,
//!     api::{Patch, PatchParams, PostParams},
//! };
//! use okt_testing::ApiServer;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//!
//! #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! #[kube(group = "demo.okt.dev", version = "v1", kind = "Kettle", namespaced, status = "KettleStatus")]
//! struct KettleSpec {
//!     litres: u8,
//! }
//!
//! #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! struct KettleStatus {
//!     phase: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::new();
//! let client = server.client();
//!
//! // The CRD first, as in a cluster; it is established at once.
//! let crds = Api::all(client.clone());
//! crds.create(&PostParams::default(), &Kettle::crd()).await?;
//!
//! let kettles: Api<Kettle> = Api::default_namespaced(client);
//! let kettle = Kettle::new("red", KettleSpec { litres: 2 });
//! let made = kettles.create(&PostParams::default(), &kettle).await?;
//!
//! // What an operator does: apply a status, on the version that it acted upon.
//! let status = json!({
//!     "apiVersion": "demo.okt.dev/v1",
//!     "kind": "Kettle",
//!     "metadata": { "resourceVersion": made.resource_version() },
//!     "status": { "phase": "Boiling" },
//! });
//! let operator = PatchParams::apply("operator").force();
//! kettles.patch_status("red", &operator, &Patch::Apply(&status)).await?;
//!
//! // The same again comes too late.
//! let late = kettles.patch_status("red", &operator, &Patch::Apply(&status)).await;
//! assert!(matches!(late, Err(kube::Error::Api(status)) if status.is_conflict()));
//! # Ok(())
//! # }
//! ```
//!
//! # Misbehaviour
//!
//! A [`Fault`] goes wrong once or often, for some or for all: [`ApiServer::inject`] plans it. A
//! [`Chaos`] lets many of them happen by a [`Seed`]: [`ApiServer::misbehave`]. A [`Replica`] is an
//! API server that can be behind. [`ApiServer::requests`], [`versions`](ApiServer::versions),
//! [`events`](ApiServer::events) and [`strikes`](ApiServer::strikes) tell what happened.
//!
//! # From request to answer
//!
//! ```text
//! kube::Client ──┐                                   ┌─ read ── selector ── table
//!                ├─ endpoint ── server ── resource ──┼─ write ─ patch | apply ─ schema ─ cel ─ rules ─┐
//! HTTP (serve) ──┘   (sight)      │  │               ├─ delete ───────────────────────────────────────┤
//!                            faults  discovery        └─ watch ◄── sight ◄─────────────────────── store
//! ```
//!
//! # Faithful where operators look
//!
//! Codes, reasons and sentences are those of Kubernetes 1.36: the suite `conformance` (a feature of
//! this crate) checks the same behaviours here and on a real server. What is not served answers
//! 501 with a `Status` whose message says what; nothing is silently wrong. This is known to differ:
//!
//! - Collecting garbage, emptying namespaces and removing the objects of a CRD are done within the
//!   request that causes them, not some time later. No other controller runs: a Deployment makes
//!   no Pods, and a Pod is deleted at once.
//! - Built-in kinds are stored as they are: no validation but of metadata, unknown fields are kept,
//!   and there are no defaults but the type of Secrets, the protocol of ports, and of Services the
//!   type, affinity, traffic policies and target ports (an address is not allocated, and so are no
//!   families, node ports or health checks). Of Deployments and other workloads nothing is filled in
//!   (e.g. replicas, strategy, pull policies, restart policy); their tables show what a real server
//!   would have. Their lists are merged by key where an operator is likely to share them
//!   (conditions, ports, containers, environment, volumes, mounts); other lists are atomic. Of
//!   their types those parts are known that operators set (metadata and specs of templates, probes,
//!   resources, security contexts, sources of volumes and variables); what is in rarer parts is
//!   owned as entries of a map, with an entry for the map itself.
//! - CEL rules are checked for types and for their estimated cost when a CRD is made, as on a
//!   server, but the first mistake of an expression is named alone and without its line and column.
//!   What a rule costs while it runs is not limited; an expression with more than 40
//!   operators or brackets in each other is not served (a server takes 250); the literal
//!   arguments of `format()` are not looked at beforehand. Why an evaluation fails (e.g. a missing
//!   key) is said in the words of the `cel` crate. What a rule tolerates, because it did not hold
//!   before either, is tolerated without the warning.
//! - A CRD has its conditions at once, not some time later; of its status, only `storedVersions`
//!   is to be written. A change of its spec ends the watches of its kind at once, not a second
//!   later. Deleted in the foreground it is marked so, and goes with its objects all the same.
//!   `kubectl explain` knows the fields below `spec` and `status`, and not all of the rest.
//! - A kind in several versions is converted by name alone (`strategy: None`), with all that comes
//!   of it on a real server: what the stored version does not know is lost.
//! - A watch cache is never behind unless a test says so. A list without a version is answered
//!   from the store at once, where a real server first waits up to 3 seconds for its cache; a
//!   streamed list without a version likewise begins with what the store has.
//! - Why a body cannot be read (e.g. JSON that breaks off) is said in the words of the readers of
//!   this crate; the code and the reason are those of a server.
//! - Requests are not limited: 429 comes only from a [`Fault`], as a `Status` (the fairness of a
//!   real server answers it as plain text).
//! - Uids and generated names are the same in each run, and unique within one server only.
//! - Everybody may do everything: there is no authentication, authorization or quota, and there
//!   are no webhooks or admission policies.
//!
//! Answered with 501: CRDs with conversion webhooks, and those without a version in which objects
//! are still stored (a real server then fails to read them) · server-side apply of the scale of a
//! custom resource (a real server fails with 500), and of a scale that says more than its name and
//! replicas · other subresources of built-in kinds (logs, exec, eviction, tokens)
//! · built-in resources and groups that are not in the list of the README · bodies in protobuf
//! (`kubectl create` of built-in kinds) · CEL macros with two variables (e.g. `all(k, v, ..)`),
//! `sortBy` · objects nested deeper than 100 levels · columns of a CRD whose JSON path has `..`,
//! slices, unions or other filters than `==` and `!=` · the old `/watch/` paths.

pub mod conditions;
#[cfg(feature = "conformance")]
pub mod conformance;

#[cfg(feature = "lifecycle")]
pub mod rehearsal;

mod api_server;
mod endpoint;
mod faults;
mod record;
mod replica;
mod serve;
mod versions;

mod server;

mod discovery;
mod options;
mod path;
mod read;
mod selector;
mod table;
mod watch;

mod apply;
mod delete;
mod patch;
mod rules;
mod twins;
mod write;

mod cel;
mod schema;

mod builtin;
mod crd;
mod event;
mod kind;
mod priority;

#[cfg(feature = "kubernetes")]
mod kubernetes;

mod clock;
mod convert;
mod object;
mod refusal;
mod sight;
mod store;
mod stored;

pub use api_server::{ApiServer, Backup};
pub use endpoint::Endpoint;
pub use faults::{Chaos, EventKind, Fault, Injected, OnEvent, OnRequest, Seed, Strike, What};
#[cfg(feature = "kubernetes")]
pub use kubernetes::{Kubernetes, KubernetesError};
pub use record::{RequestRecord, Verb};
#[cfg(feature = "lifecycle")]
pub use rehearsal::Rehearsal;
pub use replica::Replica;
pub use serve::Served;
pub use versions::{EventRecord, Mark, Version, Versions};

/// The examples of the README are compiled with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
