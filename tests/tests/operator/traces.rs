//! Traces: a life with a restart in its middle is one trace, as a receiver of OTLP gets it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use okt::reach::Reach;
use okt::{Operator, Traces};
use okt_tests::{DatabaseState::*, Databases, Reply, Rig, in_time};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing_subscriber::prelude::*;

/// A collector: it takes spans by OTLP over HTTP, as protobuf.
struct Collector {
    url: String,
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<ExportTraceServiceRequest>>>::default();
        let into = Arc::clone(&requests);
        let take = async move |headers: HeaderMap, body: Bytes| {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            let request = ExportTraceServiceRequest::decode(body).expect("OTLP");
            into.lock().push(request);
            StatusCode::OK
        };
        let router = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            url: format!("http://{address}"),
            requests,
        }
    }

    /// Returns the names of the services that sent spans.
    fn services(&self) -> Vec<String> {
        let requests = self.requests.lock();
        let processes = requests.iter().flat_map(|request| &request.resource_spans);
        let attributes = processes.flat_map(|it| it.resource.iter().flat_map(|it| &it.attributes));
        let names = attributes.filter(|it| it.key == "service.name");
        let mut names: Vec<_> = names
            .map(
                |it| match it.value.as_ref().and_then(|it| it.value.clone()) {
                    Some(any_value::Value::StringValue(name)) => name,
                    other => panic!("{other:?}"),
                },
            )
            .collect();
        names.dedup();
        names
    }

    /// Returns the spans of a trace, the first first.
    fn trace(&self, id: &[u8]) -> Vec<Span> {
        let requests = self.requests.lock();
        let mut spans: Vec<Span> = (requests.iter())
            .flat_map(|request| &request.resource_spans)
            .flat_map(|of_process| &of_process.scope_spans)
            .flat_map(|of_scope| &of_scope.spans)
            .filter(|span| span.trace_id == id)
            .cloned()
            .collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }
}

fn start(client: &Client, app: &Databases) -> JoinHandle<()> {
    let operator = Operator::new(client.clone(), app.clone());
    tokio::spawn(async move {
        operator.run(std::future::pending()).await.expect("it runs");
    })
}

async fn kill(operator: JoinHandle<()>) {
    operator.abort();
    let _ = operator.await;
}

/// Lives until Running, with a restart while Start is at work; returns the uid and what the collector has. `meanwhile`
/// happens while no operator runs.
async fn life(meanwhile: impl AsyncFnOnce(&Rig<Databases>)) -> (String, Collector) {
    let (rig, collector) = (Rig::without_operator().await, Collector::open().await);
    // Over HTTP, so that the requests are spans too.
    let served = rig.server.serve().await.expect("a socket");
    let file = tempfile::NamedTempFile::new().expect("a file");
    served.write_kubeconfig(file.path()).expect("a file");
    let kubeconfig = Kubeconfig::read_from(file.path()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("a config")).expect("a client");
    let http = Reach::inside(client.clone()).http();
    let traces = Traces::to(&collector.url, "databases", &http).expect("a URL");
    // All tasks of this test run in this thread.
    let subscriber = tracing_subscriber::registry().with(traces.layer());
    let taking = tracing::subscriber::set_default(subscriber);
    // Another exporter in the same process gets nothing of this.
    let elsewhere = Collector::open().await;
    let other = Traces::to(&elsewhere.url, "other", &http).expect("a URL");

    let operator = start(&client, &rig.app);
    rig.app.next_time(Start, Reply::Hang);
    let db = rig.create_in("db", Start).await;
    let runs = async {
        while rig.app.ran().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    in_time("the action runs", runs).await;
    kill(operator).await;
    meanwhile(&rig).await;
    let operator = start(&client, &rig.app);
    rig.until_ready("db", Running).await;
    kill(operator).await;
    drop(taking);
    traces.end().await;
    other.end().await;
    assert_eq!(elsewhere.services(), [""; 0]);
    (db.metadata.uid.expect("a uid"), collector)
}

/// Returns the spans of the trace of a generation, after a check that they are one story: the first span has no parent,
/// every other one has its parent in the trace.
fn story(collector: &Collector, uid: &str, generation: i64) -> Vec<Span> {
    let spans = collector.trace(&Sha256::digest(format!("{uid}/{generation}"))[..16]);
    let ids: BTreeSet<&[u8]> = spans.iter().map(|span| &span.span_id[..]).collect();
    assert_eq!(ids.len(), spans.len());
    let mut first = spans.iter().filter(|span| span.parent_span_id.is_empty());
    let first = (first.next(), first.next());
    let (Some(first), None) = first else {
        panic!("not one first span: {first:?}");
    };
    assert_eq!(first.name, format!("Database db, generation {generation}"));
    for span in &spans {
        let parent = &span.parent_span_id[..];
        let is_in_it = parent.is_empty() || ids.contains(parent);
        assert!(is_in_it, "{} has no parent", span.name);
    }
    spans
}

/// Counts the spans by name.
fn names(spans: &[Span]) -> BTreeMap<&str, usize> {
    let mut names = BTreeMap::new();
    for span in spans {
        *names.entry(span.name.as_str()).or_insert(0) += 1;
    }
    names
}

#[tokio::test]
async fn a_life_with_a_restart_in_its_middle_is_one_trace() {
    let (uid, collector) = life(async |_| {}).await;
    let spans = story(&collector, &uid, 1);
    let names = names(&spans);
    // Into Start and Running; the action of Start before and after the restart, and that of Running.
    assert_eq!(names["transition"], 2, "{names:?}");
    assert_eq!(names["action"], 3, "{names:?}");
    // The write of each transition is a request.
    assert_eq!(names["patch_status"], 2, "{names:?}");
    assert!(
        spans.iter().all(|span| span.events.is_empty()),
        "no lines of the log"
    );
    assert_eq!(collector.services(), ["databases"]);
    let attribute = |span: &Span, key: &str| span.attributes.iter().any(|it| it.key == key);
    for span in spans
        .iter()
        .filter(|span| ["transition", "action"].contains(&&*span.name))
    {
        for key in ["kind", "namespace", "name", "uid"] {
            assert!(attribute(span, key), "{} lacks {key}", span.name);
        }
    }
}

#[tokio::test]
async fn an_attempt_after_a_change_of_the_spec_stays_in_the_trace_of_its_transition() {
    let changed = async |rig: &Rig<Databases>| {
        let spec = json!({ "spec": { "storage": "2Gi" } });
        rig.patch("db", spec).await;
    };
    let (uid, collector) = life(changed).await;
    let (before, after) = (story(&collector, &uid, 1), story(&collector, &uid, 2));
    // Into Start, with two attempts of its action.
    assert_eq!(names(&before)["transition"], 1);
    assert_eq!(names(&before)["action"], 2);
    // Into Running, with its action.
    assert_eq!(names(&after)["transition"], 1);
    assert_eq!(names(&after)["action"], 1);
}
