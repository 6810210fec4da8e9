//! The requests for an object: the one that it serves, and those that wait, each with what it waits for.

use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use okt_core::Mark;
use okt_core::record::Phase;
use okt_core::request::RequestOutcome;
use okt_wire::keys::FINISHED_LABEL;
use okt_wire::request::RequestStatus;
use serde::Serialize;
use serde_json::Value;

use super::kind::{Kind, RequestError, RequestResource};
use super::object::{Goal, View};
use super::text::clean;

/// One request, read without its Rust types.
#[derive(Clone, Debug)]
pub struct RequestView {
    /// Its kind (e.g. `Restore`).
    pub kind: String,
    /// Its metadata.
    pub meta: ObjectMeta,
    /// The name of the object that is to serve it.
    pub target: String,
    /// The state that is to serve it.
    pub state: String,
    /// The arguments.
    pub args: Value,
    /// Its status; none before the operator has seen it.
    pub status: Option<RequestStatus<Value>>,
    /// The name of its CRD.
    crd: String,
}

impl RequestView {
    /// Reads a request; what cannot be read is left out.
    pub fn of(resource: &RequestResource, object: DynamicObject) -> Self {
        let DynamicObject {
            metadata, mut data, ..
        } = object;
        clean(&mut data);
        let mut take = |path: &str| data.pointer_mut(path).map(Value::take).unwrap_or_default();
        Self {
            kind: resource.kind.resource.kind.clone(),
            meta: metadata,
            target: take("/spec/target/name")
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            state: resource.state.clone(),
            args: take("/spec/args"),
            status: serde_json::from_value(take("/status")).ok(),
            crd: resource.kind.id(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.meta.name.as_deref().unwrap_or_default()
    }

    /// Returns the name for people (e.g. `restore/restore-x7k2`).
    pub fn title(&self) -> String {
        request_title(&self.kind, self.name())
    }

    /// Returns what names this request in a command, wherever it is typed.
    pub fn arguments(&self) -> String {
        let id = format!("{}/{}", self.crd, self.name());
        match &self.meta.namespace {
            Some(namespace) => format!("-n {namespace} {id}"),
            None => id,
        }
    }

    /// Returns the outcome so far; none before the operator has seen it.
    pub fn outcome(&self) -> Option<RequestOutcome> {
        let recorded = self.status.as_ref().and_then(|status| status.outcome);
        recorded.or_else(|| {
            // The label outlives the status where a backup is restored.
            let label = self.meta.labels.as_ref()?.get(FINISHED_LABEL)?;
            serde_json::from_value(label.as_str().into()).ok()
        })
    }

    /// Returns the outcome if nothing will change any more.
    pub fn ended(&self) -> Option<RequestOutcome> {
        self.outcome().filter(|outcome| outcome.is_final())
    }

    /// Returns the outcome with its reason, its message and its result (e.g. `Failed, DiskFull: no space left`).
    pub fn told(&self) -> String {
        let outcome = self
            .outcome()
            .map_or("not known yet", RequestOutcome::as_str);
        let status = self.status.iter();
        let result = status.clone().find_map(|status| status.result.as_ref());
        let mut conditions = status.flat_map(|status| &status.conditions);
        let told = conditions.find(|it| it.status == "True");
        let [reason, message] = told.map_or([""; 2], |it| [&it.reason, &it.message]);
        let mut text = outcome.to_owned();
        for (separator, word) in [(", ", reason), (": ", message)] {
            if !word.is_empty() && word != outcome {
                text += &format!("{separator}{word}");
            }
        }
        if let Some(result) = result {
            text += &format!(", with the result {result}");
        }
        text
    }
}

/// Returns the name of a request for people (e.g. `restore/restore-x7k2`).
pub fn request_title(kind: &str, name: &str) -> String {
    format!("{}/{name}", kind.to_lowercase())
}

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Turn {
    /// The object serves it.
    Running,
    /// It begins next, when what keeps it is over.
    Next,
    /// It begins after another one.
    Later,
    /// It cannot begin where the object is, and others pass it.
    Passed,
}

/// A request that has no outcome yet.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct QueuedRequest {
    /// The kind (e.g. `Restore`).
    pub kind: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The arguments.
    pub args: Value,
    /// Whose turn it is.
    pub turn: Turn,
    /// Which state serves it, or why it has not begun.
    pub why: String,
}

impl QueuedRequest {
    /// Returns what follows the name of the request in a sentence (e.g. `waits: orders is paused`).
    pub fn verb(&self) -> String {
        match self.turn {
            Turn::Running => format!("runs: {}", self.why),
            Turn::Next | Turn::Later | Turn::Passed => format!("waits: {}", self.why),
        }
    }

    /// Returns the sentence with the name for people (e.g. `restore/restore-x7k2 waits: orders is paused`).
    pub fn line(&self) -> String {
        format!("{} {}", request_title(&self.kind, &self.name), self.verb())
    }
}

/// The requests for an object that have no outcome yet.
#[derive(Clone, Debug, Default)]
pub struct ObjectRequests {
    /// The requests in the order in which they are served.
    pub queue: Vec<QueuedRequest>,
    /// Whether the request that the object serves was deleted.
    pub is_served_gone: bool,
}

impl ObjectRequests {
    /// Lists the requests for an object; `view` is none if the object does not exist.
    ///
    /// # Errors
    ///
    /// If requests of a kind cannot be listed.
    pub async fn read(
        client: &Client,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        view: Option<&View<'_>>,
    ) -> Result<Self, RequestError> {
        let lists = kind.requests.iter().map(|resource| async move {
            let open = ListParams::default().labels(&format!("!{FINISHED_LABEL}"));
            let listed = resource.kind.list(client, namespace, open).await;
            let failed = |error| RequestError::new(format!("list {}", resource.kind.id()), &error);
            let views = listed.map_err(failed)?.into_iter();
            Ok(views
                .map(|it| RequestView::of(resource, it))
                .collect::<Vec<_>>())
        });
        let requests = try_join_all(lists).await?.concat();
        Ok(Self::of(kind, name, view, requests))
    }

    fn of(
        kind: &Kind,
        name: &str,
        view: Option<&View<'_>>,
        mut requests: Vec<RequestView>,
    ) -> Self {
        requests.retain(|it| {
            it.target == name && it.ended().is_none() && it.meta.deletion_timestamp.is_none()
        });
        requests.sort_by_cached_key(|it| (created(&it.meta), it.name().to_owned()));
        let served = view.and_then(View::served);
        let mut ahead = served.map(|it| request_title(&it.kind, &it.name));
        let is_known = |uid: &str| {
            requests
                .iter()
                .any(|it| it.meta.uid.as_deref() == Some(uid))
        };
        let is_served_gone = served.is_some_and(|served| {
            let mut kinds = kind.requests.iter();
            kinds.any(|it| it.kind.resource.kind == served.kind) && !is_known(&served.uid)
        });
        let mut queued = |request: RequestView| {
            let (turn, why) = turn(view, ahead.as_deref(), &request);
            if turn == Turn::Next {
                ahead = Some(request.title());
            }
            QueuedRequest {
                name: request.name().to_owned(),
                uid: request.meta.uid.clone().unwrap_or_default(),
                created: created(&request.meta),
                kind: request.kind,
                args: request.args,
                turn,
                why,
            }
        };
        Self {
            queue: requests.into_iter().map(&mut queued).collect(),
            is_served_gone,
        }
    }
}

fn created(meta: &ObjectMeta) -> Option<Timestamp> {
    meta.creation_timestamp.as_ref().map(|time| time.0)
}

/// Returns whose turn it is, and why; `ahead` is the request that begins, or has begun, before this one.
///
/// The order of the reasons is that in which an operator looks for them.
fn turn(view: Option<&View<'_>>, ahead: Option<&str>, request: &RequestView) -> (Turn, String) {
    let (target, state) = (&request.target, &request.state);
    let next = |what: &str| (Turn::Next, format!("{target} {what}"));
    let Some(view) = view else {
        return next("does not exist");
    };
    let recorded = view.position().and_then(|it| it.request.as_ref());
    if let Some(recorded) = recorded.filter(|it| Some(&it.uid) == request.meta.uid.as_ref()) {
        let why = match recorded.outcome {
            RequestOutcome::Running if view.state() == Some(state) => format!("{state} serves it"),
            RequestOutcome::Running => format!("{target} is on its way to {state}"),
            outcome => format!(
                "its work is over, and the operator is to record the outcome {}",
                outcome.as_str()
            ),
        };
        return (Turn::Running, why);
    }
    match ahead {
        _ if view.is_deleting() => next("is being deleted"),
        Some(ahead) => (Turn::Later, format!("{ahead} is served first")),
        None if view.is_paused() => next("is paused"),
        None => at_rest(view, request),
    }
}

/// Like `turn`, of a request that is the first that may begin.
fn at_rest(view: &View<'_>, request: &RequestView) -> (Turn, String) {
    let (target, state) = (&request.target, &request.state);
    let Some(((graph, at), position)) = view.place().zip(view.position()) else {
        let why = match view.state() {
            Some(state) => format!("the graph of the CRD does not have {state}, where {target} is"),
            None => format!("{target} is in no state yet"),
        };
        return (Turn::Next, why);
    };
    let here = graph.name_of(at);
    let is = |mark| graph.get(at).is_some_and(|it| it.is(mark));
    if !is(Mark::Rest) {
        let why = format!("{target} is in {here}, which is no resting state");
        return (Turn::Next, why);
    }
    if let Some(Goal::Visit(to)) = view.goal() {
        let why = format!("the visit to {} goes first", graph.name_of(to));
        return (Turn::Next, why);
    }
    let seen = request.status.as_ref().and_then(|it| it.transition);
    let is_old = seen.is_some_and(|seen| seen != position.transition);
    match graph.named(state) {
        None => (
            Turn::Passed,
            format!("the graph of the CRD does not have {state}"),
        ),
        Some(to) if graph.hop(at, to).is_none() => (
            Turn::Passed,
            format!("no route leads from {here} to {state}"),
        ),
        Some(_) if is(Mark::Hold) && is_old => {
            let why =
                format!("it is older than the arrival in {here}, which holds: make a new one");
            (Turn::Passed, why)
        }
        Some(_) => {
            let is_busy = view.action().is_some_and(|it| it.phase == Phase::Pending);
            let why = match request.outcome() {
                _ if is_busy => format!("it is next, and the work of {here} is under way"),
                Some(_) => "it is next".to_owned(),
                None => "the operator has not seen it yet".to_owned(),
            };
            (Turn::Next, why)
        }
    }
}

/// A request, and what it waits for.
#[derive(Clone, Debug)]
pub struct RequestReport<'k> {
    /// The request.
    pub request: RequestView,
    /// The object that is to serve it; none if it does not exist.
    pub object: Option<View<'k>>,
    /// Its place in the queue; none if it has an outcome, or is being deleted.
    pub queued: Option<QueuedRequest>,
}

impl<'k> RequestReport<'k> {
    /// Reads a request and its object; none if there is no such request. `kind` is that of the object.
    ///
    /// # Errors
    ///
    /// If one of the two cannot be read, or other requests cannot be listed.
    pub async fn read(
        client: &Client,
        kind: &'k Kind,
        resource: &RequestResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Self>, RequestError> {
        let read = async |kind: &Kind, name: &str| {
            let found = kind.objects(client, Some(namespace)).get_opt(name).await;
            found.map_err(|error| RequestError::new(format!("get {}/{name}", kind.id()), &error))
        };
        let Some(found) = read(&resource.kind, name).await? else {
            return Ok(None);
        };
        let request = RequestView::of(resource, found);
        let found = read(kind, &request.target).await?;
        let object = found.map(|object| View::of(kind, object));
        let (name, view) = (&request.target, object.as_ref());
        let requests = ObjectRequests::read(client, kind, Some(namespace), name, view).await?;
        let mut queue = requests.queue.into_iter();
        let queued = queue.find(|it| Some(&it.uid) == request.meta.uid.as_ref());
        Ok(Some(Self {
            request,
            object,
            queued,
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the kind of databases, whose state `Restoring` serves requests.
    fn databases() -> Kind {
        let graph = json!({ "format": 1, "name": "Database", "kind": "lifecycle", "states": [
            { "name": "Running", "roles": ["entry", "rest"], "children": ["Restoring", "Backup", "Frozen", "End"],
              "triggers": [{ "to": "Failed", "cause": "on error", "attempts": 3 }] },
            { "name": "Restoring", "roles": ["visit", "args"], "children": ["Running"] },
            { "name": "Backup", "roles": ["visit"], "children": ["Running"] },
            { "name": "Frozen", "roles": ["rest", "idle"], "children": ["End"] },
            { "name": "Failed", "roles": ["rest", "hold", "idle"], "children": ["Running", "End"] },
            { "name": "End", "roles": ["leaf", "idle"] },
        ] });
        let crd = |kind: &str, annotations: Value| {
            let plural = format!("{}s", kind.to_lowercase());
            let crd = json!({
                "metadata": { "name": format!("{plural}.demo.okt.dev"), "annotations": annotations },
                "spec": {
                    "group": "demo.okt.dev", "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
                    "versions": [{ "name": "v1", "served": true, "storage": true }],
                },
            });
            serde_json::from_value(crd).expect("a definition")
        };
        let of = |kind: &str| json!({ "okt.dev/request-of": kind, "okt.dev/request-state": "Restoring" });
        let crds = [
            crd("Restore", of("databases.demo.okt.dev")),
            crd("Database", json!({ "okt.dev/graph": graph.to_string() })),
            crd("Dance", of("dancers.demo.okt.dev")),
        ];
        let mut kinds = Kind::of_crds(&crds);
        assert_eq!(kinds.len(), 1, "requests are no kind with a graph");
        kinds.remove(0)
    }

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).expect("an object")
    }

    /// Returns a request for `orders`; `status` is its own.
    fn request(kind: &Kind, name: &str, second: u8, status: &Value) -> RequestView {
        let object = object(json!({
            "metadata": {
                "name": name, "namespace": "shop", "uid": name,
                "creationTimestamp": format!("2026-11-27T12:00:0{second}Z"),
            },
            "spec": { "target": { "name": "orders" }, "args": {} },
            "status": status,
        }));
        RequestView::of(&kind.requests[0], object)
    }

    /// Returns the lines of these requests; `orders` has the lifecycle of the status of their object, and what else it has.
    fn lines(kind: &Kind, orders: &Value, requests: Vec<RequestView>) -> Vec<String> {
        let mut metadata = orders["metadata"].clone();
        metadata["name"] = "orders".into();
        let object = object(json!({
            "metadata": metadata, "spec": { "lifecycle": { "visit": orders["visit"] } },
            "status": { "lifecycle": orders["at"] },
        }));
        let view = View::of(kind, object);
        assert_eq!(view.unreadable, None);
        let requests = ObjectRequests::of(kind, "orders", Some(&view), requests);
        requests.queue.iter().map(QueuedRequest::line).collect()
    }

    #[test]
    fn each_request_is_listed_with_the_reason_for_which_an_operator_lets_it_wait() {
        let kind = &databases();
        let new = || vec![request(kind, "a", 0, &json!(null))];
        let queued = |seen: u64| {
            let status = json!({ "outcome": "Queued", "transition": seen });
            vec![request(kind, "a", 0, &status)]
        };
        let with = |state: &str, name: &str, value: Value| json!({ "at": { "state": state, "transition": 7 }, name: value });
        let at = |state: &str| with(state, "metadata", json!({}));
        let paused = json!({ "annotations": { "okt.dev/paused": "true" } });
        let deleted = json!({ "deletionTimestamp": "2026-11-27T12:00:00Z" });
        let visit = json!({ "state": "Backup", "request": "a" });
        let old = "it is older than the arrival in Failed, which holds: make a new one";
        let no_route = "no route leads from Frozen to Restoring";
        let cases = [
            (at("Running"), new(), "the operator has not seen it yet"),
            (at("Running"), queued(3), "it is next"),
            (json!({}), new(), "orders is in no state yet"),
            (
                at("Backup"),
                new(),
                "orders is in Backup, which is no resting state",
            ),
            (at("Frozen"), new(), no_route),
            (at("Failed"), queued(7), "it is next"),
            (at("Failed"), queued(6), old),
            (
                with("Running", "metadata", paused),
                new(),
                "orders is paused",
            ),
            (
                with("Running", "metadata", deleted),
                new(),
                "orders is being deleted",
            ),
            (
                with("Running", "visit", visit.clone()),
                new(),
                "the visit to Backup goes first",
            ),
            // No route leads to the visit.
            (with("Frozen", "visit", visit), new(), no_route),
        ];
        for (orders, requests, why) in cases {
            let lines = lines(kind, &orders, requests);
            assert_eq!(lines, [format!("restore/a waits: {why}")]);
        }
        let missing = ObjectRequests::of(kind, "orders", None, new());
        assert_eq!(
            missing.queue[0].line(),
            "restore/a waits: orders does not exist"
        );
    }

    #[test]
    fn older_requests_go_first_and_those_that_cannot_begin_here_are_passed() {
        let kind = &databases();
        let old = json!({ "outcome": "Queued", "transition": 1 });
        let all = || {
            vec![
                request(kind, "d", 2, &json!(null)),
                request(kind, "b", 1, &json!(null)),
                request(kind, "c", 1, &json!(null)),
                request(kind, "a", 0, &old),
                request(kind, "over", 0, &json!({ "outcome": "Reached" })),
            ]
        };
        let at = json!({ "state": "Failed", "transition": 7 });
        assert_eq!(
            lines(kind, &json!({ "at": at }), all()),
            [
                "restore/a waits: it is older than the arrival in Failed, which holds: make a new one",
                "restore/b waits: the operator has not seen it yet",
                "restore/c waits: restore/b is served first",
                "restore/d waits: restore/b is served first",
            ]
        );
        let served = json!({
            "kind": "Restore", "name": "c", "uid": "c", "state": "Restoring", "transition": 6,
            "args": { "value": {} }, "outcome": "Running",
        });
        let at = json!({ "state": "Restoring", "transition": 7, "request": served });
        assert_eq!(
            lines(kind, &json!({ "at": at }), all()),
            [
                "restore/a waits: restore/c is served first",
                "restore/b waits: restore/c is served first",
                "restore/c runs: Restoring serves it",
                "restore/d waits: restore/c is served first",
            ]
        );
        let object = object(json!({ "metadata": {}, "status": { "lifecycle": at } }));
        let view = View::of(kind, object);
        assert_eq!(view.goal(), Some(Goal::Visit(okt_core::StateId::at(1))));
        let is_gone = |requests| {
            let requests = ObjectRequests::of(kind, "orders", Some(&view), requests);
            requests.is_served_gone
        };
        let made_anew = || {
            let mut anew = request(kind, "c", 1, &json!(null));
            anew.meta.uid = Some("another".to_owned());
            vec![anew]
        };
        assert!(!is_gone(all()) && is_gone(made_anew()));
    }
}
