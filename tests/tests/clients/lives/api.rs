//! The double and its API for tests, reached over HTTP only, as a test in any language reaches them.

use std::path::{Path, PathBuf};

use http_body_util::BodyExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use okt_testing::{ApiServer, Served, controllers};
use serde_json::{Value, json};

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "default";

/// A double with the controllers of a cluster, and a client that is the user and the test.
pub(super) struct Api {
    user: Client,
    kubeconfig: PathBuf,
    /// The API is served until these are dropped.
    _served: [Served; 2],
    _folder: tempfile::TempDir,
}

/// A kind that the life of a website has objects of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Website,
    Deployment,
    Service,
    ConfigMap,
}

impl Kind {
    /// Returns the plural with its group, as the limits of a fault name it.
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Website => "websites.web.example.com",
            Self::Deployment => "deployments.apps",
            Self::Service => "services",
            Self::ConfigMap => "configmaps",
        }
    }

    /// Returns the plural alone, as a recorded request names it.
    pub(super) fn plural(self) -> &'static str {
        let resource = self.resource();
        resource.split('.').next().unwrap_or(resource)
    }

    fn path(self) -> String {
        let version = match self {
            Self::Website => "apis/web.example.com/v1",
            Self::Deployment => "apis/apps/v1",
            Self::Service | Self::ConfigMap => "api/v1",
        };
        format!("/{version}/namespaces/{NAMESPACE}/{}", self.plural())
    }
}

impl Api {
    /// Starts the double, with TLS for the operator and without for the test.
    pub(super) async fn start() -> Self {
        let server = ApiServer::new();
        let served = server.serve_tls_on(0).await.expect("a port");
        let plain = server.serve().await.expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        served
            .write_kubeconfig(&kubeconfig)
            .expect("the kubeconfig is written");
        for controller in [controllers::kubelet(), controllers::deployment_controller()] {
            tokio::spawn(controller.run(server.client_named("controllers")));
        }
        let parsed = Kubeconfig::from_yaml(&plain.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
            .await
            .expect("a configuration");
        let api = Self {
            user: Client::try_from(config).expect("a client"),
            kubeconfig,
            _served: [served, plain],
            _folder: folder,
        };
        api.install().await;
        api
    }

    /// Creates the CRD of websites.
    async fn install(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = root.join("clients/kubebuilder/config/web.example.com_websites.yaml");
        let text = std::fs::read_to_string(file).expect("the CRD is there");
        let definition: Value = serde_saphyr::from_str(&text).expect("the CRD is YAML");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, answer) = self.ask("POST", path, &definition).await;
        assert_eq!(code, 201, "{answer}");
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Sends a request and returns the code and the body.
    pub(super) async fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("User-Agent", "user")
            .header("Content-Type", content);
        let text = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = request.body(text.into()).expect("a request");
        let response = self.user.send(request).await.expect("the double answers");
        let code = response.status().as_u16();
        let answer = response.into_body().collect().await.expect("a body");
        (
            code,
            serde_json::from_slice(&answer.to_bytes()).unwrap_or_default(),
        )
    }

    /// Sends a request of the API for tests, and returns the body.
    pub(super) async fn okt(&self, method: &str, path: &str, body: &Value) -> Value {
        let (code, answer) = self.ask(method, &format!("/okt/v1/{path}"), body).await;
        assert!((200..300).contains(&code), "{method} {path}: {answer}");
        answer
    }

    /// Returns an object, or `None` if there is none.
    pub(super) async fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        let path = format!("{}/{name}", kind.path());
        match self.ask("GET", &path, &Value::Null).await {
            (200, object) => Some(object),
            (404, _) => None,
            (code, answer) => panic!("GET {path}: {code} {answer}"),
        }
    }

    /// Creates a website.
    pub(super) async fn create_website(&self, name: &str, spec: &Value) {
        let website = json!({
            "apiVersion": "web.example.com/v1",
            "kind": "Website",
            "metadata": { "name": name },
            "spec": spec,
        });
        let (code, answer) = self.ask("POST", &Kind::Website.path(), &website).await;
        assert_eq!(code, 201, "{answer}");
    }

    /// Changes the spec of a website.
    pub(super) async fn patch_website(&self, name: &str, spec: &Value) {
        let path = format!("{}/{name}", Kind::Website.path());
        let (code, answer) = self.ask("PATCH", &path, &json!({ "spec": spec })).await;
        assert_eq!(code, 200, "{answer}");
    }

    /// Deletes an object and returns its UID.
    pub(super) async fn delete(&self, kind: Kind, name: &str) -> Value {
        let object = self.get(kind, name).await.expect("the object is there");
        let path = format!("{}/{name}", kind.path());
        let (code, answer) = self.ask("DELETE", &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        object["metadata"]["uid"].clone()
    }

    /// Returns the number of the next recorded request.
    pub(super) async fn mark(&self) -> u64 {
        let recorded = self.okt("GET", "requests?since=0", &Value::Null).await;
        recorded["next"].as_u64().expect("a number")
    }

    /// Returns the recorded requests from a mark on.
    pub(super) async fn requests(&self, since: u64) -> Vec<Value> {
        let path = format!("requests?since={since}");
        items(self.okt("GET", &path, &Value::Null).await)
    }

    /// Returns all states of the objects of a kind and a name, oldest first.
    pub(super) async fn versions(&self, kind: Kind, name: &str) -> Vec<Value> {
        let resource = kind.resource();
        let path = format!("versions?resource={resource}&namespace={NAMESPACE}&name={name}");
        items(self.okt("GET", &path, &Value::Null).await)
    }

    /// Returns all states of all objects.
    pub(super) async fn all_versions(&self) -> Vec<Value> {
        items(self.okt("GET", "versions", &Value::Null).await)
    }
}

fn items(mut list: Value) -> Vec<Value> {
    match list["items"].take() {
        Value::Array(items) => items,
        other => panic!("no list: {other}"),
    }
}
