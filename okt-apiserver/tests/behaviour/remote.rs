//! Tests the API of tests in other languages: faults and recordings over HTTP.

use futures::StreamExt;
use kube::Client;
use kube::api::{ListParams, WatchParams};
use serde_json::{Value, json};

use crate::support::{create, refusal, server, try_create, widgets};

/// Sends a request and returns the code and the body.
async fn ask(client: &Client, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("/okt/v1/{path}"));
    let request = request.body(body.as_bytes().to_vec().into()).unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap();
    (
        code,
        serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
    )
}

#[tokio::test]
async fn a_fault_strikes_as_its_rule_says_and_is_shown_with_its_strikes() {
    let (server, client) = server().await;
    let rule = r#"{"fault":"tooManyRequests","seconds":3,"verbs":["create"],"resource":"widgets.demo.okt.dev","times":1}"#;
    let (code, made) = ask(&client, "POST", "faults", rule).await;
    assert_eq!(
        (code, &made["id"], &made["struck"]),
        (201, &json!(1), &json!(0))
    );

    let operator = server.client_named("operator");
    let status = refusal(try_create(&operator, "a", json!({})).await);
    assert_eq!(status.code, 429);
    assert_eq!(status.details.unwrap().retry_after_seconds, 3);
    create(&operator, "a", json!({})).await;

    let (_, shown) = ask(&client, "GET", "faults/1", "").await;
    assert_eq!(shown["struck"], 1, "{shown}");
    assert_eq!(
        shown["strikes"],
        json!(["create widgets default/a of operator: 429 TooManyRequests"])
    );
    let (_, recorded) = ask(&client, "GET", "requests", "").await;
    let faults = recorded["items"].as_array().unwrap().iter();
    let struck: Vec<_> = faults
        .filter(|request| request["faults"] != json!([]))
        .collect();
    assert_eq!(struck.len(), 1, "{recorded}");
    assert_eq!(struck[0]["status"], 429);
    let next = &recorded["next"];
    let (_, later) = ask(&client, "GET", &format!("requests?since={next}"), "").await;
    assert_eq!(
        later["items"],
        json!([]),
        "no request of this API is recorded"
    );
    let (_, versions) = ask(&client, "GET", "versions?resource=widgets&name=a", "").await;
    assert_eq!(versions["items"][0]["type"], "ADDED");
}

#[tokio::test]
async fn a_partition_cuts_off_one_client_until_it_ends() {
    let (server, client) = server().await;
    create(&client, "a", json!({})).await;
    let operator = widgets(&server.client_named("operator"));
    let mut watch = operator
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    watch.next().await.unwrap().unwrap();
    let (_, made) = ask(
        &client,
        "POST",
        "faults",
        r#"{"fault":"partition","client":"operator"}"#,
    )
    .await;
    assert!(operator.list(&ListParams::default()).await.is_err());
    create(&client, "b", json!({})).await;
    let path = format!("faults/{}", made["id"]);
    let (code, ended) = ask(&client, "DELETE", &path, "").await;
    assert_eq!(code, 200);
    assert!(ended["struck"].as_u64() >= Some(1), "{ended}");
    watch.next().await.unwrap().unwrap();
    assert_eq!(
        operator
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    assert_eq!(ask(&client, "GET", &path, "").await.0, 404);
}

#[tokio::test]
async fn a_wrong_rule_is_400_and_says_what_is_wrong() {
    let (_server, client) = server().await;
    for (path, rule, why) in [
        ("faults", "{", "EOF"),
        (
            "faults",
            r#"{"fault":"flood"}"#,
            "unknown variant `flood`, expected one of `conflict`",
        ),
        (
            "faults",
            r#"{"fault":"conflict","tims":1}"#,
            "unknown field `tims`",
        ),
        ("faults", r#"{"fault":"delay"}"#, "needs `seconds`"),
        (
            "faults",
            r#"{"fault":"delay","seconds":-1}"#,
            "-1 is no time in seconds",
        ),
        (
            "faults",
            r#"{"fault":"answer","code":200}"#,
            "a `code` between 400 and 599",
        ),
        (
            "faults",
            r#"{"fault":"conflict","verbs":["get","fly"]}"#,
            "no verb \"fly\"",
        ),
        (
            "faults",
            r#"{"fault":"conflict","resource":"Widget"}"#,
            "named by its plural",
        ),
        (
            "faults",
            r#"{"fault":"dropEvent","event":"GONE"}"#,
            "no event \"GONE\"",
        ),
        (
            "faults",
            r#"{"fault":"dropEvent","verbs":["get"]}"#,
            "faults of requests",
        ),
        (
            "faults",
            r#"{"fault":"conflict","every":0}"#,
            "counts from 1",
        ),
        (
            "faults",
            r#"{"fault":"partition"}"#,
            "needs the name of its `client`",
        ),
        ("chaos", r#"{"client":"operator"}"#, "missing field `seed`"),
    ] {
        let (code, status) = ask(&client, "POST", path, rule).await;
        let message = status["message"].as_str().unwrap_or_default();
        assert!(
            code == 400 && message.contains(why),
            "{rule}: {code} {message}"
        );
    }
    assert_eq!(ask(&client, "PATCH", "faults", "").await.0, 405);
    assert_eq!(ask(&client, "GET", "fault", "").await.0, 404);
    assert_eq!(
        ask(&client, "GET", "versions?resource=Widget", "").await.0,
        400
    );
}

#[tokio::test]
async fn a_chaos_and_lagging_watches_end_with_all_faults() {
    let (server, client) = server().await;
    let (code, _) = ask(
        &client,
        "POST",
        "chaos",
        r#"{"seed":7,"client":"operator","atMost":3,"seconds":60}"#,
    )
    .await;
    assert_eq!(code, 201);
    assert_eq!(
        ask(&client, "PUT", "watches", r#"{"lagSeconds":0.1}"#)
            .await
            .0,
        200
    );
    assert_eq!(ask(&client, "DELETE", "watches", "").await.0, 200);
    assert_eq!(ask(&client, "POST", "compact", "").await.0, 200);
    let (_, all) = ask(&client, "GET", "faults", "").await;
    assert_eq!(all["items"].as_array().unwrap().len(), 1);
    assert_eq!(ask(&client, "DELETE", "faults", "").await.0, 200);
    assert_eq!(
        ask(&client, "GET", "faults", "").await.1["items"],
        json!([])
    );
    let operator = widgets(&server.client_named("operator"));
    for _ in 0..50 {
        operator.list(&ListParams::default()).await.unwrap();
    }
}
