//! Tests the API on a socket; the output of kubectl is tested in `tests/tests/kubectl`.

use futures::StreamExt;
use kube::api::{ListParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use okt_apiserver::Served;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{create, get, server, widgets};

async fn over_http(served: &Served) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_socket_serves_the_same_store() {
    let (server, client) = server().await;
    let served = server.serve().await.unwrap();
    let remote = over_http(&served).await;
    assert_eq!(remote.default_namespace(), "default");
    let version = remote.apiserver_version().await.unwrap();
    assert_eq!(
        (version.major.as_str(), version.minor.as_str()),
        ("1", "36")
    );
    create(&client, "a", json!({})).await;
    assert_eq!(get(&remote, "a").await, get(&client, "a").await);
    let api = widgets(&remote);
    let mut watch = Box::pin(api.watch(&WatchParams::default(), "0").await.unwrap());
    watch.next().await.unwrap().unwrap();
    create(&client, "b", json!({})).await;
    watch.next().await.unwrap().unwrap();
    served.shutdown().await;
    assert!(
        api.list(&ListParams::default()).await.is_err(),
        "nobody listens"
    );
    get(&client, "b").await;
}

#[tokio::test]
async fn a_kubeconfig_is_written_into_a_new_folder_or_the_error_names_the_file() {
    let (server, _client) = server().await;
    let served = server.serve().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target/kubeconfig");
    served.write_kubeconfig(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), served.kubeconfig());
    let below = path.join("a");
    let error = served.write_kubeconfig(&below).unwrap_err().to_string();
    let expected = format!("cannot write the kubeconfig {}: ", below.display());
    assert!(error.starts_with(&expected), "{error}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_reported_as_too_large() {
    let (server, _client) = server().await;
    let served = server.serve().await.unwrap();
    let mark = server.mark();
    let mut socket = TcpStream::connect(served.address()).await.unwrap();
    let head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut answer = String::new();
    // The connection may end in any way; the test only requires that there is no response.
    let _ = socket.read_to_string(&mut answer).await;
    assert!(!answer.contains("413"), "{answer}");
    assert_eq!(server.requests_since(mark), []);
}
