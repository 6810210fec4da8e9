//! A client whose lists and watches have only the objects of some ranges, if the API server can filter them.

use http::uri::PathAndQuery;
use http::{Request, Uri};
use kube::Client;
use kube::client::Body;

use super::ranges::Ranges;

/// Returns a client that adds the selector of these ranges to each request: for lists and watches.
///
/// kube 5.0 has no parameter for it. An API server without the feature gate ignores it.
pub fn only(client: &Client, ranges: Ranges) -> Client {
    let namespace = client.default_namespace().to_owned();
    let selector: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("shardSelector", &ranges.shard_selector())
        .finish();
    let client = client.clone();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        if let Some(uri) = with(request.uri(), &selector) {
            *request.uri_mut() = uri;
        }
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, namespace)
}

/// Returns an address with one more parameter.
fn with(uri: &Uri, parameter: &str) -> Option<Uri> {
    let joined = match uri.query() {
        Some(query) => format!("{}?{query}&{parameter}", uri.path()),
        None => format!("{}?{parameter}", uri.path()),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(joined.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_joins_those_that_are_there() {
        let with = |uri: &str| {
            let uri: Uri = uri.parse().expect("an address");
            with(&uri, "a=b").expect("an address").to_string()
        };
        assert_eq!(with("/apis/x?watch=true"), "/apis/x?watch=true&a=b");
        assert_eq!(
            with("https://host:6443/apis/x"),
            "https://host:6443/apis/x?a=b"
        );
    }
}
