//! A Kubernetes API inside the test process, for operators written with kube.
//!
//! [`ApiServer`] answers from memory as a kube-apiserver does: custom resources with their
//! schemas, defaults and CEL rules, the kinds that operators own, server-side apply with
//! `managedFields`, finalizers and owner references, watches that resume. A test gives
//! [`ApiServer::client`] to the operator and plays the user with a second client. There is no
//! socket, no start-up and no clean-up, and everything works under paused tokio time.
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
//! // Create the CRD first, as in a cluster; it is established at once.
//! let crds = Api::all(client.clone());
//! crds.create(&PostParams::default(), &Kettle::crd()).await?;
//!
//! let kettles: Api<Kettle> = Api::default_namespaced(client);
//! let kettle = Kettle::new("red", KettleSpec { litres: 2 });
//! let made = kettles.create(&PostParams::default(), &kettle).await?;
//!
//! // As an operator does, apply a status on the version that it acted upon.
//! let status = json!({
//!     "apiVersion": "demo.okt.dev/v1",
//!     "kind": "Kettle",
//!     "metadata": { "resourceVersion": made.resource_version() },
//!     "status": { "phase": "Boiling" },
//! });
//! let operator = PatchParams::apply("operator").force();
//! kettles.patch_status("red", &operator, &Patch::Apply(&status)).await?;
//!
//! // A second apply on the same version conflicts.
//! let late = kettles.patch_status("red", &operator, &Patch::Apply(&status)).await;
//! assert!(matches!(late, Err(kube::Error::Api(status)) if status.is_conflict()));
//! # Ok(())
//! # }
//! ```
//!
//! # Fault injection
//!
//! [`ApiServer::inject`] plans a [`Fault`]: it strikes once or often, some requests or all.
//! [`ApiServer::misbehave`] starts a [`Chaos`]: many faults, drawn from a [`Seed`]. A [`Replica`] is
//! an API server that can be behind. [`ApiServer::requests`], [`versions`](ApiServer::versions),
//! [`events`](ApiServer::events) and [`strikes`](ApiServer::strikes) return what happened.
//!
//! # Webhooks
//!
//! Conversion webhooks of CRDs and the webhooks of `ValidatingWebhookConfiguration` and
//! `MutatingWebhookConfiguration` are called as a real server calls them. A test answers for the
//! Service that they name ([`ApiServer::set_service`]), or serves them over TLS (feature `tls`).
//!
//! # From request to response
//!
//! ```text
//! kube::Client ──┐                                   ┌─ read ── selector ── table
//!                ├─ endpoint ── server ── resource ──┼─ write ─ patch | apply ─ schema ─ cel ─ rules ─┐
//! HTTP (serve) ──┘   (view)       │  │               ├─ delete ───────────────────────────────────────┤
//!                            faults  discovery        └─ watch ◄── view ◄──────────────────────── store
//! ```
//!
//! # Differences from a real server
//!
//! Codes, reasons and messages are those of Kubernetes 1.36: a conformance suite in OKT's repository
//! checks the same behaviours here and on a real server. A request that is not served
//! gets a 501 with a `Status` whose message says why; nothing is silently wrong. Known differences:
//!
//! - Garbage collection, emptying a namespace and removing the objects of a CRD happen within the
//!   request that causes them, not some time later. No other controller runs: a Deployment creates
//!   no Pods, and a Pod is deleted at once.
//! - Built-in kinds are stored as they are: only metadata is validated, and unknown fields are kept.
//!   An update is refused if it changes a field that is immutable (e.g. of the spec of a Pod, the
//!   template of a Job, a selector, the address of a Service); the message lists these fields under
//!   their JSON names, and a real server prints a difference of its own types. A Pod whose pull
//!   policy is left out accepts any tag, although the default policy depends on the tag.
//!   The only defaults are the type of Secrets, the protocol of ports, and the type, affinity,
//!   traffic policies and target ports of Services (no address, families, node ports or health
//!   checks are allocated). Deployments and other workloads get no defaults (e.g. replicas,
//!   strategy, pull policies, restart policy); their tables show what a real server would have.
//!   Lists are merged by key where an operator is likely to share them (conditions, ports,
//!   containers, environment, volumes, mounts); other lists are atomic. Server-side apply knows the
//!   parts of the types that operators set (metadata and specs of templates, probes, resources,
//!   security contexts, sources of volumes and variables); fields in rarer parts are owned as
//!   entries of a map, with an entry for the map itself.
//! - The types of CEL rules are checked when a CRD is created, as on a real server, but only the first
//!   mistake of an expression is reported, without its line and column. Their cost is neither
//!   estimated nor limited: a real server refuses a CRD whose rules may cost too much. An expression with more than 40 nested
//!   operators or brackets is not served (a real server takes 250). The literal arguments of
//!   `format()` are not checked beforehand. Evaluation errors (e.g. a missing key) have the
//!   messages of the `cel` crate. An update that ratcheting admits, because the rule did not hold
//!   before either, gets no warning.
//! - A CRD has its conditions at once, not some time later; of its status, only `storedVersions`
//!   can be written. A change of its spec ends the watches of its kind at once, not a second
//!   later. A CRD that is deleted in the foreground gets the finalizer and is nevertheless removed
//!   with its objects. `kubectl explain` knows the fields below `spec` and `status`, and not all of
//!   the rest. kubectl checks custom resources in a List itself, and built-in kinds not at all.
//! - Features that are off by default in Kubernetes are off here too; [`FeatureGate`] lists those
//!   that can be turned on. A shard selector that is no CEL expression gets the words of this crate's
//!   parser after `Syntax error:`, and a dot in front of a field is dropped. In a list of Events a
//!   real server, which does not cache them, has a smaller `remainingItemCount`.
//! - A kind in several versions without a conversion webhook is converted by name alone, with the
//!   consequences that this has on a real server: fields that the storage version does not have are
//!   lost.
//! - A watch cache is never behind unless a test makes it so. A list without a version is answered
//!   from the store at once, where a real server first waits up to 3 seconds for its cache; a
//!   streamed list without a version likewise begins with the content of the store.
//! - The message for a body that cannot be read (e.g. truncated JSON) is that of this crate's
//!   parsers; the code and the reason are those of a real server.
//! - Requests are not limited: 429 comes only from a [`Fault`], as a `Status` (the priority and
//!   fairness of a real server answers it as plain text).
//! - Uids and generated names are the same in each run, and unique within one server only.
//! - There is no authentication, authorization or quota, and there are no admission policies: every
//!   client may do everything.
//! - A webhook is configured as soon as its configuration is stored, not a moment later. What the
//!   server does by itself (the garbage collector, an emptied namespace) asks no webhook. A write
//!   that is refused because of its `resourceVersion` asks no mutating webhook. Webhooks of a scale
//!   get the whole object, and converters for managed fields an object without the fields of the
//!   server. A deletion of a collection is refused as a whole. Match conditions know `object`,
//!   `oldObject` and `request`, and are not compiled beforehand. An object is converted once for
//!   each version, and again when it changes; a real server converts some again for each request.
//!   Without a `caBundle` no certificate is trusted. Some errors of connections have other words.
//!
//! Answered with 501: CRDs that lack a version in which objects are still stored (a real server then
//! fails to read them) · server-side apply of the scale of a custom resource (a real server fails
//! with 500), and of a scale that sets more than its name and replicas · other subresources of
//! built-in kinds (logs, exec, eviction, tokens)
//! · built-in resources and groups that are not in the list of the README · bodies in protobuf
//! (`kubectl create` of built-in kinds) · CEL macros with two variables (e.g. `all(k, v, ..)`),
//! `sortBy` · objects nested deeper than 100 levels · columns of a CRD whose JSON path has `..`,
//! slices, unions or other filters than `==` and `!=` · the old `/watch/` paths.

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `api` | the double of the Kubernetes API |
// | `kubernetes` | a real API server for a test; `../kubernetes` is the Go program that it is, with its controllers and kubectl |
// | `handlers`, `controllers` | arguments for handlers, made by hand; stand-ins for the controllers of a cluster |
// | `lock` | compares an operator's graphs with its lock file |
// | `rehearsal` | runs a lifecycle once undisturbed, and then once with each possible fault |
// | `versions` | random objects of every version of a kind, converted to every other version and back |

mod api;
#[cfg(feature = "lifecycle")]
pub mod controllers;
#[cfg(feature = "lifecycle")]
pub mod handlers;
#[cfg(feature = "kubernetes")]
mod kubernetes;
#[cfg(feature = "lifecycle")]
pub mod lock;

#[cfg(feature = "lifecycle")]
pub mod rehearsal;
#[cfg(feature = "lifecycle")]
pub mod versions;

pub use api::{
    ApiServer, Backup, Chaos, Endpoint, EventKind, EventRecord, Fault, FeatureGate, Injected, Mark,
    OnEvent, OnRequest, Replica, RequestRecord, Seed, Served, Strike, Verb, Version, Versions,
    What,
};
#[cfg(feature = "lifecycle")]
pub use handlers::{action, context, pass};
#[cfg(feature = "kubernetes")]
pub use kubernetes::{Kubernetes, KubernetesError, KubernetesOptions};
/// Checks of the conditions of any operator.
pub use okt_view::conditions;
#[cfg(feature = "lifecycle")]
pub use rehearsal::Rehearsal;

/// Compiles the examples of the README with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
