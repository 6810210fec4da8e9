//! A client that changes nothing: the API server only tries each write, and the write is recorded.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, UPGRADE};
use http::{Method, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// Where the API server answers questions that are sent by POST, and stores nothing.
const QUESTIONS: [&str; 2] = [
    "/apis/authentication.k8s.io/",
    "/apis/authorization.k8s.io/",
];

/// A write that the API server has accepted, and not stored.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub(super) method: Method,
    /// The object before; none if there was none.
    pub(super) before: Option<Value>,
    /// The object as it would be.
    pub(super) after: Value,
}

/// The writes of a client that changes nothing, in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Record(Arc<Mutex<Vec<Tried>>>);

impl Record {
    /// Returns the writes since the last call.
    pub(super) fn take(&self) -> Vec<Tried> {
        std::mem::take(&mut self.0.lock())
    }

    fn add(&self, tried: Tried) {
        let mut all = self.0.lock();
        all.push(tried);
    }
}

/// Returns a client that reads as this one does, and whose writes the API server only tries (`dryRun=All`).
///
/// Commands in containers and forwarded ports are refused: nobody knows what these would do.
pub(crate) fn dry_run(client: &Client) -> (Client, Record) {
    let namespace = client.default_namespace().to_owned();
    let record = Record::default();
    let (client, noted) = (client.clone(), record.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, record) = (client.clone(), noted.clone());
        async move { send(&client, &record, request).await }
    });
    (Client::new(service, namespace), record)
}

async fn send(
    client: &Client,
    record: &Record,
    mut request: Request<Body>,
) -> Result<Response<Body>, kube::Error> {
    if request.headers().contains_key(UPGRADE) {
        return Ok(refusal());
    }
    let path = request.uri().path().to_owned();
    let is_question = QUESTIONS.iter().any(|prefix| path.starts_with(prefix));
    if matches!(*request.method(), Method::GET | Method::HEAD) || is_question {
        return client.send(request).await;
    }
    let method = request.method().clone();
    let before = match method {
        Method::POST => None,
        _ => read(client, &path).await?,
    };
    *request.uri_mut() = tried(request.uri())?;
    if method == Method::DELETE {
        request = tried_deletion(request).await?;
    }
    let (parts, stream) = client.send(request).await?.into_parts();
    let body = stream.collect_bytes().await?;
    if parts.status.is_success() {
        let after = serde_json::from_slice(&body).unwrap_or_default();
        record.add(Tried {
            method,
            before,
            after,
        });
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// Reads the object that a write is about.
async fn read(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    let request = Request::get(path)
        .body(Body::empty())
        .map_err(kube::Error::HttpError)?;
    let (parts, stream) = client.send(request).await?.into_parts();
    let body = stream.collect_bytes().await?;
    Ok(parts
        .status
        .is_success()
        .then(|| serde_json::from_slice(&body).unwrap_or_default()))
}

/// Returns the address at which the API server only tries a write.
fn tried(uri: &Uri) -> Result<Uri, kube::Error> {
    let separator = if uri.query().is_some() { '&' } else { '?' };
    let with: Result<Uri, _> = format!("{uri}{separator}dryRun=All").parse();
    with.map_err(|error| kube::Error::HttpError(error.into()))
}

/// Returns a deletion that the API server only tries: of one with a body it ignores the parameters.
async fn tried_deletion(request: Request<Body>) -> Result<Request<Body>, kube::Error> {
    let (parts, stream) = request.into_parts();
    let body = stream.collect_bytes().await?;
    if body.is_empty() {
        return Ok(Request::from_parts(parts, Body::empty()));
    }
    let mut options: Map<String, Value> =
        serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
    options.insert("dryRun".to_owned(), json!(["All"]));
    let body = Value::Object(options).to_string().into_bytes();
    Ok(Request::from_parts(parts, Body::from(body)))
}

fn refusal() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "a preview changes nothing: it runs no commands and forwards no ports",
    });
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = StatusCode::FORBIDDEN;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_deletion_is_tried_also_where_its_body_hides_the_parameters() {
        let request = |body: &str| {
            let request =
                Request::delete("/api/v1/pods/a").body(Body::from(body.as_bytes().to_vec()));
            request.expect("a request")
        };
        let sent = async |body| {
            let tried = tried_deletion(request(body)).await?;
            let body = tried.into_body().collect_bytes().await?;
            Ok::<_, kube::Error>(String::from_utf8_lossy(&body).into_owned())
        };
        let options = sent(r#"{"propagationPolicy":"Foreground","dryRun":[]}"#)
            .await
            .expect("options");
        assert_eq!(
            options,
            r#"{"dryRun":["All"],"propagationPolicy":"Foreground"}"#
        );
        assert_eq!(sent("").await.expect("none"), "");
        assert!(
            sent("no JSON").await.is_err(),
            "nothing is sent that is not understood"
        );
    }

    #[test]
    fn every_write_is_tried_whatever_its_parameters() {
        for (asked, sent) in [
            ("/api/v1/pods/a", "/api/v1/pods/a?dryRun=All"),
            (
                "/api/v1/pods/a?force=true&",
                "/api/v1/pods/a?force=true&&dryRun=All",
            ),
        ] {
            let tried = tried(&asked.parse().expect("an address")).expect("an address");
            assert_eq!(tried.to_string(), sent);
        }
    }
}
