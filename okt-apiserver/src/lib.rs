//! A Kubernetes API server in memory: inside the test process of an operator written with kube, or over HTTP for
//! any language.
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
//! use okt_apiserver::ApiServer;
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
//! kube::Client ──┐                              ┌─ read ── selector ── table
//!                ├─ endpoint ── server ─────────┼─ write: decode ─ apply ─ admit ─ complete ─ validate ─ commit ─┐
//! HTTP (serve) ──┘   (view)     decode          ├─ delete ───────────────────────────────────────────────────────┤
//!                               authorise       └─ watch ◄── view ◄──────────────────────────────────────── store
//!                               faults
//! ```
//!
//! # Differences from a real server
//!
//! Codes, reasons and messages are those of Kubernetes 1.36: a conformance suite in OKT's repository
//! checks the same behaviours here and on a real server. A request that is not served
//! gets a 501 with a `Status` whose message says why; nothing is silently wrong. Known differences:
//!
//! - Garbage collection, emptying a namespace, removing the objects of a CRD and releasing claims and
//!   volumes that nobody uses happen up to 100 ms after the request that causes them, on tokio's clock, all
//!   at once. No other controller runs: a Deployment creates no Pods, and a Pod on a node that is deleted
//!   stays until a kubelet deletes it with a grace period of 0 ([`controllers::kubelet`] does).
//! - Kinds without a CRD have the types, the defaults and the form of Kubernetes 1.36. Of its rules
//!   they have those that users meet daily: a test compares thousands of random bodies with a real
//!   server, and at most 5 in 1,000 are judged differently. If a body has several mistakes, another one
//!   may be reported first, since a real server reads fields in the order of the text. A message that lists
//!   fields that an update must not change lists them under their JSON names. Addresses of Services are
//!   those of kubeadm (10.96.0.0/12), one after the other.
//!   The cluster has addresses of IPv4 only, so IPv6 and `RequireDualStack` are refused. Pods get no service account
//!   and no warnings, and signatures of requests for certificates are not checked.
//!   Of kinds in several versions only the newest is served (no `autoscaling/v1`).
//! - The types of CEL rules are checked when a CRD is created, as on a real server, but only the first
//!   mistake of an expression is reported, without its line and column. Their cost is neither
//!   estimated nor limited: a real server refuses a CRD whose rules may cost too much. An expression with more than 40 nested
//!   operators or brackets is not served (a real server takes 250). The literal arguments of
//!   `format()` are not checked beforehand. Evaluation errors (e.g. a missing key) have the
//!   messages of the `cel` crate. An update that ratcheting admits, because the rule did not hold
//!   before either, gets no warning.
//! - A CRD has its conditions at once, not some time later; of its status, only `storedVersions`
//!   can be written. A change of its spec ends the watches of its kind at once, not a second
//!   later. `kubectl explain` knows the fields below `spec` and `status`, and not all of
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
//! - The message for a body that cannot be read is that of this crate's parsers, unless its JSON ends too early; the
//!   code and the reason are those of a real server.
//! - Requests are not limited: 429 comes only from a [`Fault`], as a `Status` (the priority and
//!   fairness of a real server answers it as plain text).
//! - Uids and generated names are the same in each run, and unique within one server only.
//! - There is no authentication or quota, RBAC is stored and not applied, and there are no admission
//!   policies: every client may do everything, and reviews of accesses and tokens are answered with yes,
//!   unless a test says otherwise ([`ApiServer::set_reviewer`]). Tokens of service accounts are not signed.
//! - Watches by WebSocket are answered with an empty 200, on which clients fall back to HTTP.
//!   Answers are JSON, also to clients that ask for protobuf.
//! - A webhook is configured as soon as its configuration is stored, not a moment later. What the
//!   server does by itself (the garbage collector, an emptied namespace) asks no webhook. A write
//!   that is refused because of its `resourceVersion` asks no mutating webhook. Webhooks of a scale
//!   get the whole object, and converters for managed fields an object without the fields of the
//!   server. A deletion of a collection is refused as a whole. Match conditions know `object`,
//!   `oldObject` and `request`, and are not compiled beforehand. An object is converted once for
//!   each version, and again when it changes; a real server converts some again for each request.
//!   Without a `caBundle` no certificate is trusted, and an authority's own certificate, which may be that of the
//!   webhook, is not checked for its expiry. Some errors of connections have other words.
//!
//! Answered with 501 (and named in the header `okt-not-served` and in the log): the autoscalers of
//! `autoscaling/v1` and the statuses of components · CRDs that lack a version in which objects are still stored (a real server then
//! fails to read them) · server-side apply of the scale of a custom resource (a real server fails
//! with 500), and of a scale that sets more than its name and replicas · subresources that need a
//! kubelet (logs, exec, attach, port forwarding, proxies) · CEL macros with two variables (e.g. `all(k, v, ..)`),
//! `sortBy` · objects nested deeper than 100 levels · columns of a CRD whose JSON path has `..`,
//! slices, unions or other filters than `==` and `!=` · the old `/watch/` paths.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `object`, `causes`, `clock`, `path`, `priority`, `body`, `duplicate_fields`, `record`, `feature_gate`, `quantity`, `subresource` | values that all others use: objects as JSON, the parts of an error, addresses, records of requests, quantities, endpoints |
// | `refusal`, `client_config` | a request that is refused, as a `Status`; where a webhook is |
// | `access` | what a client wants to do, as RBAC sees it |
// | `controllers` | stand-ins for the controllers of a cluster, clients like any other |
// | `kubernetes` | a real API server for a test; `../kubernetes` is the Go program that it is, with its controllers and kubectl |
// | `table`, `schema`, `types`, `options` | what kinds are made of: columns, schemas with defaults and CEL rules, the Go types of Kubernetes; options of reads |
// | `kind`, `shards`, `patch` | a kind that is served; shares of a list; patches without managed fields |
// | `builtin`, `event`, `stored`, `faults` | the kinds without a CRD; a stored object, and events of watches; what goes wrong, and when |
// | `store` | the objects and their history |
// | `crd`, `strategy`, `calls`, `versions`, `replica_view` | kinds of CRDs; what Kubernetes sets in objects of its own kinds; calls of webhooks; records of objects; what one API server knows |
// | `rules`, `convert`, `conversion`, `state` | rules for all objects; versions of objects; everything that a server remembers |
// | `selector`, `validate`, `endpoint`, `apply` | selectors; rules for kinds without a CRD; the way of one client; server-side apply |
// | `admission`, `read`, `serve`, `replica` | webhooks of admission; gets and lists; HTTP; servers that are behind |
// | `watch`, `api_server`, `delete` | watches; the handle of a test; deletions |
// | `answer`, `write` | responses; what writes have in common |
// | `discovery`, `admin` | which kinds there are; faults and recordings over HTTP |
// | `server` | a request from its first byte to its answer |

pub mod controllers;

mod access;
mod admin;
mod api_server;
mod endpoint;
mod faults;
mod feature_gate;
#[cfg(feature = "kubernetes")]
mod kubernetes;
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
mod quantity;
mod strategy;
mod subresource;
mod types;
mod validate;

mod calls;
mod causes;
mod client_config;
mod clock;
mod conversion;
mod convert;
mod object;
mod refusal;
mod replica_view;
mod state;
mod store;
mod stored;

pub use self::api_server::{ApiServer, Backup};
pub use self::builtin::builtin_kinds;
pub use self::endpoint::Endpoint;
pub use self::faults::{Chaos, EventKind, Fault, Injected, OnEvent, OnRequest, Seed, Strike};
pub use self::feature_gate::FeatureGate;
#[cfg(feature = "kubernetes")]
pub use self::kubernetes::{Kubernetes, KubernetesError, KubernetesOptions, free_ports};
pub use self::record::{RequestRecord, Verb};
pub use self::replica::Replica;
pub use self::serve::Served;
pub use self::versions::{EventRecord, Mark, Version, Versions};

/// Compiles the examples of the README with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
