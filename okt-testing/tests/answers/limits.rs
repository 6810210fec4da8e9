//! Compares the errors for the limits of names, labels and sizes with those of a real API server
//! (kube-apiserver 1.36.1).

use okt_testing::ApiServer;
use serde_json::{Value, json};

use crate::support::{CRDS, crd, post, send};

/// Creates an object and returns the code and the refusal.
async fn create(plural: &str, kind: &str, object: Value) -> (u16, String) {
    let mut body = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": "one" } });
    for (key, value) in object.as_object().expect("an object") {
        match (key.as_str(), value) {
            ("metadata", Value::Object(fields)) => {
                for (key, value) in fields {
                    body["metadata"][key] = value.clone();
                }
            }
            _ => body[key] = value.clone(),
        }
    }
    let path = match plural {
        "namespaces" => "/api/v1/namespaces".to_owned(),
        _ => format!("/api/v1/namespaces/default/{plural}"),
    };
    post(&ApiServer::new(), &path, &body).await
}

#[tokio::test]
async fn labels_are_refused_with_the_messages_of_a_real_server() {
    let syntax = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let long = "a".repeat(64);
    let prefix = format!("{}/b", "a".repeat(254));
    for (key, value, expected) in [
        ("a b", "c", format!("\"a b\": name part {syntax}")),
        (
            &long,
            "c",
            format!("\"{long}\": name part must be no more than 63 bytes"),
        ),
        (
            "a",
            &long,
            format!("\"{long}\": must be no more than 63 bytes"),
        ),
        (
            &prefix,
            "c",
            format!("\"{prefix}\": prefix part must be no more than 253 bytes"),
        ),
        (
            "a/b/c",
            "d",
            format!(
                "\"a/b/c\": a valid label key {syntax} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ),
        ),
    ] {
        let object = json!({ "metadata": { "labels": { key: value } } });
        let answer = create("configmaps", "ConfigMap", object).await;
        let expected = format!("metadata.labels: Invalid value: {expected}");
        assert_eq!(answer, (422, expected));
    }
    let object = json!({ "metadata": { "labels": { "a/": "d" } } });
    let (code, answer) = create("configmaps", "ConfigMap", object).await;
    assert_eq!(code, 422);
    assert!(
        answer
            .starts_with("[metadata.labels: Invalid value: \"a/\": name part must be non-empty, ")
    );
}

#[tokio::test]
async fn names_have_a_maximum_length() {
    let long = "a".repeat(254);
    let object = json!({ "metadata": { "name": long } });
    let expected =
        format!("metadata.name: Invalid value: \"{long}\": must be no more than 253 characters");
    assert_eq!(
        create("configmaps", "ConfigMap", object).await,
        (422, expected)
    );
    let name = "a".repeat(64);
    let object = json!({ "metadata": { "name": name } });
    let (code, answer) = create("services", "Service", object).await;
    let expected =
        format!("metadata.name: Invalid value: \"{name}\": must be no more than 63 characters");
    assert_eq!((code, answer), (422, expected));
}

#[tokio::test]
async fn a_finalizer_of_a_built_in_kind_needs_a_domain() {
    let object = json!({ "metadata": { "finalizers": ["nope"] } });
    let expected = "metadata.finalizers[0]: Invalid value: \"nope\": name is neither a standard finalizer name nor is it fully qualified";
    let answer = create("configmaps", "ConfigMap", object).await;
    assert_eq!(answer, (422, expected.to_owned()));
}

#[tokio::test]
async fn annotations_and_data_have_a_maximum_size() {
    let of = |size: usize| json!({ "metadata": { "annotations": { "k": "x".repeat(size) } } });
    assert_eq!(create("configmaps", "ConfigMap", of(262_143)).await.0, 201);
    let expected = "metadata.annotations: Too long: may not be more than 262144 bytes";
    let answer = create("configmaps", "ConfigMap", of(262_144)).await;
    assert_eq!(answer, (422, expected.to_owned()));

    let of = |size: usize| json!({ "data": { "k": "x".repeat(size) } });
    assert_eq!(
        create("configmaps", "ConfigMap", of(1_048_576)).await.0,
        201
    );
    let expected = "[]: Too long: may not be more than 1048576 bytes";
    let answer = create("configmaps", "ConfigMap", of(1_048_577)).await;
    assert_eq!(answer, (422, expected.to_owned()));
    let expected = "data: Too long: may not be more than 1048576 bytes";
    let answer = create("secrets", "Secret", of(1_500_000)).await;
    assert_eq!(answer, (422, expected.to_owned()));
}

#[tokio::test]
async fn a_body_too_large_for_etcd_is_500_and_a_larger_one_is_413() {
    // The server does not validate the content of this kind.
    let of = |size: usize| json!({ "spec": { "externalName": "x".repeat(size) } });
    assert_eq!(create("services", "Service", of(1_500_000)).await.0, 201);
    let expected = "etcdserver: request is too large";
    let answer = create("services", "Service", of(1_600_000)).await;
    assert_eq!(answer, (500, expected.to_owned()));
    let (code, answer) = create("services", "Service", of(2_500_000)).await;
    assert_eq!(code, 500);
    assert!(answer.starts_with(
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max ("
    ));
    let expected = "Request entity too large: limit is 3145728";
    let answer = create("services", "Service", of(4 * 1024 * 1024)).await;
    assert_eq!(answer, (413, expected.to_owned()));
}

#[tokio::test]
async fn the_beginning_of_a_generated_name_is_checked_too() {
    let syntax = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let long = "x".repeat(300);
    for (start, expected) in [
        (
            "-a",
            format!(
                "[metadata.generateName: Invalid value: \"-a\": {syntax}, metadata.name: Invalid value: \"-a"
            ),
        ),
        (
            "a_",
            format!(
                "[metadata.generateName: Invalid value: \"a_\": {syntax}, metadata.name: Invalid value: \"a_"
            ),
        ),
        // A server tolerates a final dash, and with it the character before.
        ("A-", "metadata.name: Invalid value: \"A-".to_owned()),
        (
            &long,
            format!(
                "metadata.generateName: Invalid value: \"{long}\": must be no more than 253 characters"
            ),
        ),
    ] {
        let object = json!({ "metadata": { "generateName": start, "name": null } });
        let (code, answer) = create("configmaps", "ConfigMap", object).await;
        assert_eq!(code, 422);
        assert!(answer.starts_with(&expected), "{answer}");
    }
    let object = json!({ "metadata": { "generateName": "A-" } });
    assert_eq!(
        create("configmaps", "ConfigMap", object).await.0,
        201,
        "it has a name"
    );

    let map = json!({ "metadata": { "generateName": "x".repeat(60) } });
    let path = "/api/v1/namespaces/default/configmaps";
    let made = send(&ApiServer::new(), "POST", path, &map)
        .await
        .expect("an object");
    let name = made["metadata"]["name"].as_str().expect("a name");
    assert_eq!(name.len(), 63, "{name}");
    let role = json!({ "metadata": { "name": "a%b/c" } });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let expected = "[metadata.name: Invalid value: \"a%b/c\": may not contain '/', metadata.name: Invalid value: \"a%b/c\": may not contain '%']";
    let answer = post(&ApiServer::new(), path, &role).await;
    assert_eq!(answer, (422, expected.to_owned()));
}

#[tokio::test]
async fn only_the_first_error_of_a_text_is_reported() {
    let text = json!({ "type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a+$" });
    let schema = json!({ "type": "object", "properties": { "s": text } });
    let server = ApiServer::new();
    assert_eq!(post(&server, CRDS, &crd(&schema)).await.0, 201);
    for (text, expected) in [
        ("bbbb", "s: Too long: may not be more than 3 bytes"),
        (
            "b",
            "s: Invalid value: \"b\": s in body should be at least 2 chars long",
        ),
        (
            "bbb",
            "s: Invalid value: \"bbb\": s in body should match '^a+$'",
        ),
    ] {
        let thing = json!({
            "apiVersion": "rules.okt.dev/v1", "kind": "Thing", "metadata": { "name": "a" }, "s": text,
        });
        let path = "/apis/rules.okt.dev/v1/namespaces/default/things";
        let answer = post(&server, path, &thing).await;
        assert_eq!(answer, (422, expected.to_owned()));
    }
}
