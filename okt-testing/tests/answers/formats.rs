//! Compares the format of answers with that of a real API server (kube-apiserver 1.36.1).

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use okt_testing::ApiServer;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Sends a request that accepts YAML, and returns the code, the content type and the body.
async fn ask(server: &ApiServer, method: &str, path: &str, body: &str) -> (u16, String, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("accept", "application/yaml")
        .header("content-type", "application/yaml")
        .body(Body::from(body.as_bytes().to_vec()))
        .expect("a request");
    let answer = server.client().send(request).await.expect("an answer");
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    (
        head.status.as_u16(),
        head.headers["content-type"]
            .to_str()
            .expect("text")
            .to_owned(),
        String::from_utf8(body.to_vec()).expect("text"),
    )
}

#[tokio::test]
async fn a_client_that_accepts_yaml_gets_it() {
    let server = ApiServer::new();
    let data =
        json!({ "y": "yes", "hex": "0x1", "lines": "a\nb\n", "none": "", "quote": "it's: #x" });
    let map = json!({ "metadata": { "name": "a" }, "data": data });
    let (code, media, _) = ask(&server, "POST", MAPS, &map.to_string()).await;
    assert_eq!((code, media.as_str()), (201, "application/yaml"));
    for (path, code, key, expected) in [
        (format!("{MAPS}/a"), 200, "/data", &data),
        (MAPS.to_owned(), 200, "/items/0/data", &data),
        (
            format!("{MAPS}/nope"),
            404,
            "/message",
            &json!("configmaps \"nope\" not found"),
        ),
        (
            "/api/v1".to_owned(),
            200,
            "/kind",
            &json!("APIResourceList"),
        ),
        (
            format!("{MAPS}?watch=1"),
            406,
            "/message",
            &json!(
                "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
            ),
        ),
    ] {
        let (found, media, text) = ask(&server, "GET", &path, "").await;
        assert_eq!(
            (found, media.as_str()),
            (code, "application/yaml"),
            "{path}"
        );
        assert!(!text.starts_with('{'), "{text}");
        let answer: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(answer.pointer(key), Some(expected), "{text}");
    }
    let (_, media, text) = ask(
        &server,
        "DELETE",
        &format!("{MAPS}/a"),
        "gracePeriodSeconds: 0",
    )
    .await;
    assert_eq!(media, "application/yaml");
    assert!(text.contains("status: Success"), "{text}");
}

#[tokio::test]
async fn json_comes_first_if_it_is_accepted_first() {
    let server = ApiServer::new();
    for (accept, expected) in [
        ("application/json, application/yaml", "application/json"),
        (
            "application/vnd.kubernetes.protobuf,application/yaml,*/*",
            "application/yaml",
        ),
        ("*/*", "application/json"),
    ] {
        let request = Request::get(MAPS)
            .header("accept", accept)
            .body(Body::empty());
        let answer = server.client().send(request.expect("a request")).await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.headers()["content-type"], expected, "{accept}");
    }
}
