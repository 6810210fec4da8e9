//! [`ApiServer`]: the handle that a test holds.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::endpoint::Endpoint;
use crate::faults::{Chaos, Fault, Injected, Rule, Strike};
use crate::feature_gate::FeatureGate;
use crate::kind::KindId;
use crate::record::RequestRecord;
use crate::replica::Replica;
use crate::serve::Served;
use crate::state::Shared;
use crate::versions::{EventRecord, Mark, Versions};
use crate::{delete, strategy};

/// A Kubernetes API with a store of its own.
///
/// Cheap to clone: all clones, clients and served sockets share one store.
/// The namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease` exist from the
/// start, with nothing in them.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use okt_apiserver::{ApiServer, Verb};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::new();
/// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
/// let mut map = ConfigMap::default();
/// map.metadata.name = Some("settings".to_owned());
/// maps.create(&Default::default(), &map).await?;
///
/// let written: Vec<_> = server.requests().into_iter().filter(|r| r.is_write()).collect();
/// assert_eq!(written.len(), 1);
/// assert_eq!((written[0].verb, written[0].resource.as_str()), (Verb::Create, "configmaps"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

impl ApiServer {
    /// Returns the handle of a server.
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
        }
    }

    /// Creates an API server with the built-in kinds.
    pub fn new() -> Self {
        let shared = Arc::new(Shared::new());
        let mut store = shared.lock();
        let namespaces = KindId::new("", "namespaces");
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let (uid, now) = (store.new_uid(), store.clock.text());
            let mut namespace = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "uid": uid,
                    "creationTimestamp": now,
                    "labels": { "kubernetes.io/metadata.name": name },
                },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            });
            store.put(&namespaces, &mut namespace);
        }
        let (uid, now) = (store.new_uid(), store.clock.text());
        let mut service = strategy::service_of_api(&uid, &now);
        store.put(&KindId::new("", "services"), &mut service);
        drop(store);
        Self { shared }
    }

    /// Returns a client of this API, without a socket; its default namespace is `default`.
    ///
    /// It does not retry, unlike a client that kube builds from a configuration; for a client that
    /// retries see [`Endpoint`].
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    pub fn client(&self) -> kube::Client {
        self.endpoint().client()
    }

    /// Returns a client with a name, which faults and records use to identify it.
    ///
    /// # Panics
    /// Outside of a tokio runtime: a kube client runs a task.
    ///
    /// # Example
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube::{Api, api::ListParams};
    /// use okt_apiserver::{ApiServer, Fault};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ApiServer::new();
    /// server.inject(Fault::unavailable().client("operator"));
    ///
    /// let operator: Api<Pod> = Api::all(server.client_named("operator"));
    /// assert!(operator.list(&ListParams::default()).await.is_err());
    /// let user: Api<Pod> = Api::all(server.client());
    /// assert!(user.list(&ListParams::default()).await.is_ok());
    /// # }
    /// ```
    pub fn client_named(&self, name: &str) -> kube::Client {
        self.endpoint().named(name).client()
    }

    /// Returns the endpoint of this API, as a service that you can put layers on.
    ///
    /// # Example
    /// See [`Endpoint`].
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.shared, &self.shared.replica_view)
    }

    /// Returns the replica of this name: another API server over the same store, which can be behind.
    ///
    /// The first call with a name creates the replica; the empty name is the server itself.
    ///
    /// # Example
    /// See [`Replica`].
    pub fn replica(&self, name: &str) -> Replica {
        Replica::new(&self.shared, name)
    }

    /// Serves this API over HTTP on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub async fn serve(&self) -> io::Result<Served> {
        self.endpoint().serve().await
    }

    /// Does the same on this port of 127.0.0.1; 0 is a free one.
    ///
    /// # Errors
    /// The port cannot be opened: another program may listen on it.
    pub async fn serve_on(&self, port: u16) -> io::Result<Served> {
        self.endpoint().serve_on(port).await
    }

    /// Serves the API over TLS on this port of 127.0.0.1; 0 is a free one. See [`Endpoint::serve_tls_on`].
    ///
    /// # Errors
    /// The port cannot be opened, or no certificate can be made.
    #[cfg(feature = "tls")]
    pub async fn serve_tls_on(&self, port: u16) -> io::Result<Served> {
        self.endpoint().serve_tls_on(port).await
    }

    /// Plans a fault: from now on it strikes what matches its limits.
    ///
    /// # Example
    /// See [`Fault`].
    ///
    /// # Panics
    /// If the fault says nothing: it counts from 0 ([`nth`](Fault::nth), [`every`](Fault::every)), or its code is no
    /// failure ([`answer`](Fault::answer)).
    #[track_caller]
    pub fn inject<On>(&self, fault: Fault<On>) -> Injected {
        match self.inject_rule(fault.into()) {
            Ok(injected) => injected,
            Err(why) => panic!("{why}"),
        }
    }

    /// Plans a fault that a test in another language asks for.
    ///
    /// # Errors
    /// What is wrong with the rule.
    pub(crate) fn inject_rule(&self, rule: Rule) -> Result<Injected, String> {
        rule.check()?;
        Ok(self.shared.book().plan(rule))
    }

    /// Starts a chaos: from now on faults strike at random, reproducibly for the same seed.
    ///
    /// # Example
    /// See [`Chaos`].
    pub fn misbehave(&self, chaos: Chaos) -> Injected {
        self.shared.book().start_chaos(chaos)
    }

    /// Ends all faults and chaos, and lets all replicas catch up.
    ///
    /// After this a correct operator comes to rest.
    ///
    /// # Example
    /// ```
    /// use okt_apiserver::{ApiServer, Chaos};
    ///
    /// let server = ApiServer::new();
    /// server.replica("b").freeze();
    /// let chaos = server.misbehave(Chaos::seeded(1));
    /// // ... a test, and then:
    /// server.calm();
    /// for strike in server.strikes() {
    ///     println!("{strike}");
    /// }
    /// ```
    pub fn calm(&self) {
        self.shared.book().end();
        for replica_view in self.shared.replica_views() {
            replica_view.release();
            replica_view.set_lag(&self.shared.lock(), Duration::ZERO);
        }
    }

    /// Returns all strikes of faults and chaos so far, in order.
    pub fn strikes(&self) -> Vec<Strike> {
        self.shared.book().strikes()
    }

    /// Returns all requests so far, in the order in which they came.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.requests().since(0).to_vec()
    }

    /// Returns the requests since a mark.
    ///
    /// # Example
    /// See [`mark`](Self::mark).
    pub fn requests_since(&self, mark: Mark) -> Vec<RequestRecord> {
        self.shared.requests().since(mark.request).to_vec()
    }

    /// Discards the recorded requests.
    pub fn clear_requests(&self) {
        self.shared.requests().clear();
    }

    /// Returns a mark: the current position in the recordings.
    ///
    /// # Example
    /// An operator at rest writes nothing:
    /// ```
    /// use okt_apiserver::ApiServer;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let server = ApiServer::new();
    /// // ... an operator comes to rest, and then:
    /// let settled = server.mark();
    /// tokio::time::sleep(std::time::Duration::from_mins(10)).await;
    /// let writes: Vec<_> = (server.requests_since(settled).into_iter())
    ///     .filter(|request| request.is_write())
    ///     .collect();
    /// assert_eq!(writes, []);
    /// # }
    /// ```
    pub fn mark(&self) -> Mark {
        Mark {
            version: self.shared.lock().version(),
            request: self.shared.requests().next(),
            event: self.shared.events().len(),
        }
    }

    /// Returns every state that every object was in.
    ///
    /// # Example
    /// See [`Versions`].
    pub fn versions(&self) -> Versions {
        Versions::of(&self.shared.lock())
    }

    /// Returns every event that was sent to a watch, in order.
    ///
    /// # Example
    /// See [`OnEvent`](crate::OnEvent).
    pub fn events(&self) -> Vec<EventRecord> {
        self.shared.events().clone()
    }

    /// Returns the events since a mark.
    pub fn events_since(&self, mark: Mark) -> Vec<EventRecord> {
        let events = self.shared.events();
        events[mark.event.min(events.len())..].to_vec()
    }

    /// Turns the recording of requests, versions and events on or off; it is on from the start.
    ///
    /// Without a recording the memory of the server does not grow with the writes, which suits a
    /// benchmark. It still grows with each strike of a fault, and with each client and object that
    /// a chaos tracks. A replica can then be behind by no more than a watch can: the last 4096
    /// changes of a kind.
    ///
    /// # Example
    /// ```
    /// let server = okt_apiserver::ApiServer::new();
    /// server.set_recording(false);
    /// // ... a million writes
    /// assert!(server.requests().is_empty());
    /// ```
    pub fn set_recording(&self, on: bool) {
        self.shared.set_recording(on);
    }

    /// Turns a feature gate on or off; all are off from the start, as in Kubernetes.
    ///
    /// A real server gets its gates when it starts. Watches that are running keep their selection;
    /// to let clients meet a server that was restarted with another gate,
    /// [end them](Self::end_watches).
    ///
    /// # Example
    /// See [`FeatureGate`].
    pub fn set_feature_gate(&self, gate: FeatureGate, on: bool) {
        self.shared.set_feature_gate(gate, on);
    }

    /// Decides what clients may do, which is everything otherwise: `allows` gets a review and returns whether it is allowed.
    ///
    /// A request is a `SubjectAccessReview` whose user is the name of the client, and gets 403 if it is not allowed. The
    /// reviews that clients create (`SelfSubjectAccessReview`, `TokenReview` and the like) are answered by it as well, and
    /// every client may create them. `allows` may use the server.
    ///
    /// # Example
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube::{Api, api::ListParams};
    /// use okt_apiserver::ApiServer;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ApiServer::new();
    /// server.set_reviewer(|review| {
    ///     let spec = &review["spec"];
    ///     spec["user"] != "operator" || spec["resourceAttributes"]["resource"] != "secrets"
    /// });
    /// let secrets: Api<Secret> = Api::default_namespaced(server.client_named("operator"));
    /// let error = secrets.list(&ListParams::default()).await.unwrap_err();
    /// assert!(error.to_string().contains("User \"operator\" cannot list resource \"secrets\""));
    ///
    /// let maps: Api<ConfigMap> = Api::default_namespaced(server.client_named("operator"));
    /// assert!(maps.list(&ListParams::default()).await.is_ok());
    /// # }
    /// ```
    pub fn set_reviewer(
        &self,
        allows: impl Fn(&serde_json::Value) -> bool + Send + Sync + 'static,
    ) {
        self.shared.set_reviewer(Arc::new(allows));
    }

    /// Answers what the API sends to a Service: the calls of webhooks whose `clientConfig` names it. The Service itself
    /// need not exist.
    ///
    /// No socket and no certificate is needed, and under paused time a slow webhook takes no real time. An
    /// `axum::Router` is such a service. Other webhooks are called over the network, with the feature `tls`.
    ///
    /// # Example
    /// A webhook that refuses everything:
    /// ```
    /// use http::{Request, Response};
    /// use k8s_openapi::api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::ConfigMap};
    /// use kube::{Api, api::PostParams, client::Body};
    /// use serde_json::{Value, json};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = okt_apiserver::ApiServer::new();
    /// let refuse = tower::service_fn(|request: Request<Body>| async move {
    ///     let body = request.into_body().collect_bytes().await?;
    ///     let review: Value = serde_json::from_slice(&body)?;
    ///     let uid = &review["request"]["uid"];
    ///     let response = json!({ "uid": uid, "allowed": false, "status": { "message": "not today" } });
    ///     let answer = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response });
    ///     Ok::<_, tower::BoxError>(Response::new(answer.to_string()))
    /// });
    /// server.set_service("default", "guard", refuse);
    ///
    /// let configuration: ValidatingWebhookConfiguration = serde_json::from_value(json!({
    ///     "metadata": { "name": "guard" },
    ///     "webhooks": [{
    ///         "name": "guard.example.com",
    ///         "clientConfig": { "service": { "namespace": "default", "name": "guard" } },
    ///         "rules": [{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] }],
    ///         "sideEffects": "None",
    ///         "admissionReviewVersions": ["v1"],
    ///     }],
    /// }))?;
    /// Api::all(server.client()).create(&PostParams::default(), &configuration).await?;
    ///
    /// let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    /// let map = serde_json::from_value(json!({ "metadata": { "name": "settings" } }))?;
    /// let refused = maps.create(&PostParams::default(), &map).await.unwrap_err();
    /// assert!(refused.to_string().contains("\"guard.example.com\" denied the request: not today"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_service<S, B>(&self, namespace: &str, name: &str, service: S)
    where
        S: tower::Service<http::Request<kube::client::Body>, Response = http::Response<B>>,
        S: Clone + Send + Sync + 'static,
        S::Error: Into<tower::BoxError> + Send,
        S::Future: Send,
        B: http_body::Body<Data: Send, Error: Into<tower::BoxError>> + Send + 'static,
    {
        self.shared.services.set(namespace, name, service);
    }

    /// Delays each change by this much for watches and for reads with `resourceVersion=0`;
    /// other reads stay current.
    ///
    /// A cache that is never behind hides the bugs that a stale cache reveals. The delay is
    /// on tokio's clock, so it works under paused time.
    /// [`Replica::set_lag`] does this for one replica, [`Fault::lag`] for single events.
    pub fn set_watch_lag(&self, lag: Duration) {
        self.shared.replica_view.set_lag(&self.shared.lock(), lag);
    }

    /// Compacts the history: a watch or a page from any version before this moment gets 410 Gone.
    pub fn compact(&self) {
        self.shared.lock().compact();
    }

    /// Returns a backup of all that is stored, like a snapshot of etcd.
    ///
    /// # Example
    /// ```
    /// # use k8s_openapi::api::core::v1::Namespace;
    /// # use kube::Api;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), kube::Error> {
    /// let server = okt_apiserver::ApiServer::new();
    /// let namespaces: Api<Namespace> = Api::all(server.client());
    /// let backup = server.backup();
    /// namespaces.delete("kube-node-lease", &Default::default()).await?;
    /// server.restore(&backup);
    /// assert!(namespaces.get("kube-node-lease").await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(&self) -> Backup {
        Backup(Arc::new(self.shared.lock().backup()))
    }

    /// Restores a backup, as with etcd: resource versions go back and repeat, and all watches end.
    ///
    /// Afterwards [`versions`](Self::versions) returns only what happens from here on.
    pub fn restore(&self, backup: &Backup) {
        self.shared.lock().restore(&backup.0);
        delete::clean_up_soon(&self.shared);
        self.end_watches();
    }

    /// Ends all running watches, as a restart of a real server does; clients start new ones.
    pub fn end_watches(&self) {
        for replica_view in self.shared.replica_views() {
            replica_view.end_watches();
        }
    }
}

/// A backup of all that is stored; see [`ApiServer::backup`].
#[derive(Clone, Debug)]
pub struct Backup(Arc<crate::store::Store>);

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}
