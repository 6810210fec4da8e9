//! [`World`]: the namespace and the kind of a behavior, and requests for them.

use core::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::api::{ApiResource, DynamicObject, WatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::reply::Reply;

/// The label of the namespaces and CRDs of a suite.
pub(crate) const LABEL: &str = "conformance.okt.dev/suite";
/// A CRD with a status, a scale, selectable fields, columns, defaults and rules.
const CRD: &str = include_str!("../../../okt-apiserver/tests/behaviour/widget.crd.json");
/// The group in this file.
const GROUP: &str = "demo.okt.dev";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// A uid that no object has.
pub(crate) const OTHER_UID: &str = "00000000-0000-4000-8000-999999999999";

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
/// The media type of a table for kubectl.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// The interval of polling a server.
const POLL: Duration = Duration::from_millis(50);
/// How long a server may take for asynchronous work, e.g. garbage collection.
const PATIENCE: Duration = Duration::from_mins(10);

/// A namespace, and a kind to use in it.
#[derive(Clone)]
pub(crate) struct World {
    client: Client,
    /// The id of the suite, which is the value of its label.
    pub(crate) id: String,
    pub(crate) namespace: String,
    /// The group of the widgets.
    pub(crate) group: String,
    /// The version of the widgets in requests.
    pub(crate) version: &'static str,
    /// The number of groups of the suite.
    groups: Arc<AtomicUsize>,
}

impl World {
    pub(crate) fn new(client: Client, id: &str) -> Self {
        Self {
            client,
            id: id.to_owned(),
            namespace: "default".to_owned(),
            group: format!("{id}.okt.dev"),
            version: "v1",
            groups: Arc::default(),
        }
    }

    pub(crate) fn in_namespace(&self, number: usize) -> Self {
        Self {
            namespace: format!("okt-{}-{number}", self.id),
            ..self.clone()
        }
    }

    /// Returns the same world with a group that no other behavior uses; there is no CRD yet.
    pub(crate) fn own_group(&self) -> Self {
        let number = self.groups.fetch_add(1, Ordering::Relaxed);
        Self {
            group: format!("g{number}.{}.okt.dev", self.id),
            ..self.clone()
        }
    }

    /// Returns the same world with widgets that no other behavior uses.
    pub(crate) async fn own_kind(&self) -> Self {
        let own = self.own_group();
        own.create_kind(&own.crd()).await;
        own
    }

    /// Returns the same world with another version of the widgets.
    pub(crate) fn in_version(&self, version: &'static str) -> Self {
        Self {
            version,
            ..self.clone()
        }
    }

    // Kinds.

    /// Returns the CRD of the widgets of this world.
    pub(crate) fn crd(&self) -> Value {
        let mut crd: Value =
            serde_json::from_str(&CRD.replace(GROUP, &self.group)).expect("the file is JSON");
        crd["metadata"]["labels"] = json!({ LABEL: self.id });
        crd
    }

    pub(crate) fn crd_path(&self) -> String {
        format!("{CRDS}/widgets.{}", self.group)
    }

    pub(crate) async fn create_crd(&self, crd: &Value) -> Reply {
        self.post(CRDS, crd).await
    }

    /// Applies the CRD of the widgets, by force.
    pub(crate) async fn apply_crd(&self, crd: &Value) -> Reply {
        let path = format!("{}?fieldManager=test&force=true", self.crd_path());
        self.patch(&path, APPLY, crd).await
    }

    /// Creates a CRD and waits until it is established and served, in whatever order.
    pub(crate) async fn create_kind(&self, crd: &Value) {
        self.create_crd(crd).await.ok();
        self.established().await;
        self.served().await;
    }

    pub(crate) async fn established(&self) {
        eventually("the CRD is established", async || {
            let crd = self.get(&self.crd_path()).await.ok();
            is_condition(&crd, "Established", "True").then_some(())
        })
        .await;
    }

    /// Waits until the widgets are served, and returns a list of all.
    pub(crate) async fn served(&self) -> Value {
        let path = format!("/apis/{}/widgets", self.api_version());
        eventually("the kind is served", async || {
            let list = self.get(&path).await;
            (!matches!(list.code, 404 | 429 | 503)).then(|| list.ok())
        })
        .await
    }

    // Paths and clients.

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Returns the path of a kind in the namespace, e.g. of `apps/v1` and `deployments`.
    pub(crate) fn path_of(&self, api_version: &str, plural: &str) -> String {
        let root = if api_version.contains('/') {
            "apis"
        } else {
            "api"
        };
        let namespace = &self.namespace;
        format!("/{root}/{api_version}/namespaces/{namespace}/{plural}")
    }

    /// Returns the path of the widgets.
    pub(crate) fn path(&self) -> String {
        self.path_of(&self.api_version(), "widgets")
    }

    /// Returns the path of a widget; a query or a subresource may follow the name.
    pub(crate) fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    pub(crate) fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, self.version, "Widget");
        ApiResource::from_gvk_with_plural(&kind, "widgets")
    }

    /// Returns the widgets for code that uses kube.
    pub(crate) fn widgets(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), &self.namespace, &self.resource())
    }

    // Requests.

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &(impl Display + ?Sized),
    ) -> Reply {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.to_string().into_bytes().into());
        let answer = self.client.send(request.expect("a request")).await;
        let (head, body) = answer.expect("an answer").into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        Reply {
            request: format!("{method} {path}"),
            group: self.group.clone(),
            code: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).expect("a text"),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn get_as(&self, path: &str, media: &str) -> Reply {
        self.send("GET", path, &[("accept", media)], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &(impl Display + ?Sized)) -> Reply {
        self.send("POST", path, &[("content-type", JSON)], body)
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &(impl Display + ?Sized)) -> Reply {
        self.send("PUT", path, &[("content-type", JSON)], body)
            .await
    }

    pub(crate) async fn patch(
        &self,
        path: &str,
        media: &str,
        body: &(impl Display + ?Sized),
    ) -> Reply {
        let headers = [("content-type", media)];
        self.send("PATCH", path, &headers, body).await
    }

    /// Sends a JSON merge patch.
    pub(crate) async fn merge_at(&self, path: &str, patch: &Value) -> Reply {
        self.patch(path, MERGE, patch).await
    }

    /// Applies a configuration to its object, as a manager.
    pub(crate) async fn apply_at(&self, path: &str, manager: &str, config: &Value) -> Reply {
        let path = format!("{path}?fieldManager={manager}");
        self.patch(&path, APPLY, config).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &(impl Display + ?Sized)) -> Reply {
        let headers = [("content-type", JSON)];
        self.send("DELETE", path, &headers, options).await
    }

    // Requests for widgets.

    /// Returns a widget with this spec.
    pub(crate) fn widget(&self, name: &str, spec: Value) -> Value {
        let mut widget = json!({
            "apiVersion": self.api_version(),
            "kind": "Widget",
            "metadata": { "name": name },
        });
        widget["spec"] = spec;
        widget
    }

    pub(crate) async fn create(&self, name: &str, spec: Value) -> Reply {
        self.post(&self.path(), &self.widget(name, spec)).await
    }

    /// Creates a widget with the finalizer `okt.dev/a`.
    pub(crate) async fn create_held(&self, name: &str) -> Value {
        let mut held = self.widget(name, json!({}));
        held["metadata"]["finalizers"] = json!(["okt.dev/a"]);
        self.post(&self.path(), &held).await.ok()
    }

    /// Returns a widget that must be there.
    pub(crate) async fn read(&self, name: &str) -> Value {
        self.get(&self.at(name)).await.ok()
    }

    pub(crate) async fn is_gone(&self, name: &str) -> bool {
        self.get(&self.at(name)).await.code == 404
    }

    pub(crate) async fn replace(&self, object: &Value) -> Reply {
        let name = object["metadata"]["name"].as_str().expect("a name");
        self.put(&self.at(name), object).await
    }

    pub(crate) async fn merge(&self, name: &str, patch: Value) -> Reply {
        self.merge_at(&self.at(name), &patch).await
    }

    /// Changes fields of a spec.
    pub(crate) async fn set(&self, name: &str, spec: Value) -> Reply {
        self.merge(name, json!({ "spec": spec })).await
    }

    /// Changes metadata.
    pub(crate) async fn mark(&self, name: &str, metadata: Value) -> Reply {
        self.merge(name, json!({ "metadata": metadata })).await
    }

    pub(crate) async fn set_status(&self, name: &str, status: Value) -> Reply {
        let path = format!("{}/status", self.at(name));
        self.merge_at(&path, &json!({ "status": status })).await
    }

    pub(crate) async fn json_patch(&self, name: &str, steps: Value) -> Reply {
        self.patch(&self.at(name), JSON_PATCH, &steps).await
    }

    pub(crate) async fn apply(&self, manager: &str, name: &str, spec: Value) -> Reply {
        let widget = self.widget(name, spec);
        self.apply_at(&self.at(name), manager, &widget).await
    }

    pub(crate) async fn force(&self, manager: &str, name: &str, spec: Value) -> Reply {
        let manager = format!("{manager}&force=true");
        self.apply(&manager, name, spec).await
    }

    pub(crate) async fn apply_status(&self, manager: &str, name: &str, status: Value) -> Reply {
        let config = json!({
            "apiVersion": self.api_version(),
            "kind": "Widget",
            "status": status,
        });
        let path = format!("{}/status", self.at(name));
        self.apply_at(&path, manager, &config).await
    }

    pub(crate) async fn remove(&self, name: &str) -> Reply {
        self.delete(&self.at(name)).await
    }

    /// Waits until the server's cache has all writes so far.
    ///
    /// A watch or a list with version 0 may return any version, on a busy server an old one. For a list without a
    /// version the server first brings its cache up to date.
    pub(crate) async fn caught_up(&self) {
        self.get(&self.path()).await.ok();
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let metadata = json!({ "name": name, "labels": { LABEL: self.id } });
        let namespace = json!({ "metadata": metadata });
        self.post("/api/v1/namespaces", &namespace).await.ok();
    }
}

/// Polls until there is a result, for asynchronous work of the server.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(POLL).await;
    }
}

/// Returns the parameters of a watch without bookmarks, which come whenever the server likes.
pub(crate) fn events_only() -> WatchParams {
    WatchParams::default().disable_bookmarks()
}

pub(crate) fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .and_then(|text| text.parse().ok())
        .expect("a version")
}

pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("a uid")
}

/// Returns the names of the items of a list.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list");
    let names = items.iter().map(|item| &item["metadata"]["name"]);
    names.filter_map(Value::as_str).collect()
}

/// Returns a condition of a CRD; null if there is none.
pub(crate) fn condition(crd: &Value, kind: &str) -> Value {
    let conditions = crd["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

pub(crate) fn is_condition(crd: &Value, kind: &str, status: &str) -> bool {
    condition(crd, kind)["status"] == status
}

/// Returns the managed fields in short form: manager, operation, subresource.
pub(crate) fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let short = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let words = ["manager", "operation", "subresource"].map(text);
        words.join(" ").trim_end().to_owned()
    };
    entries.into_iter().flatten().map(short).collect()
}

/// Returns the fields that a manager owns, e.g. `f:spec/f:color`.
pub(crate) fn owned(object: &Value, manager: &str) -> Vec<String> {
    fn collect(fields: &Value, path: &str, found: &mut Vec<String>) {
        for (key, below) in fields.as_object().into_iter().flatten() {
            let path = format!("{path}{key}");
            match below.as_object() {
                Some(fields) if fields.is_empty() => found.push(path),
                _ => collect(below, &format!("{path}/"), found),
            }
        }
    }
    let mut found = Vec::new();
    let entries = object["metadata"]["managedFields"].as_array();
    let mut entries = entries.into_iter().flatten();
    if let Some(entry) = entries.find(|entry| entry["manager"] == manager) {
        collect(&entry["fieldsV1"], "", &mut found);
    }
    found
}

/// Returns a merge patch that removes all finalizers.
pub(crate) fn released() -> Value {
    json!({ "metadata": { "finalizers": null } })
}
