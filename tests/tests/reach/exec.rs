//! These tests run commands in containers, with each way in which a command can end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use okt::Failure;
use okt::reach::{Exec, Output, Reach, ReachError};
use okt_tests::in_time;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::node::{Answer, CLOSE, Node, STATUS, STDERR, STDIN, STDOUT, Socket, V4, V5};

fn exec(node: &Node) -> Exec {
    Reach::outside(node.client()).exec("team", "db-0", ["psql", "--password=secret"])
}

/// Runs a command against a script.
async fn ran<F>(
    protocol: &'static str,
    script: impl Fn(Socket) -> F + Send + Sync + 'static,
    with: impl FnOnce(Exec) -> Exec,
) -> Result<Output, ReachError>
where
    F: Future<Output = ()> + Send + 'static,
{
    let node = Node::start(Answer::speak(protocol, script)).await;
    running(&node).await;
    in_time("the command", with(exec(&node)).run()).await
}

/// Runs a command that the server refuses, with a pod of one container in this state.
async fn refused(answer: Answer, state: Option<Value>, container: Option<&str>) -> ReachError {
    let node = Node::start(answer).await;
    if let Some(state) = state {
        let status = json!({ "phase": "Running", "containerStatuses": [{ "name": "postgres",
            "image": "x", "imageID": "x", "ready": false, "restartCount": 0, "state": state }] });
        node.create::<Pod>(pod("db-0", status)).await;
    }
    let exec = exec(&node);
    let exec = match container {
        Some(container) => exec.container(container),
        None => exec,
    };
    in_time("a refusal", exec.run())
        .await
        .expect_err("a refusal")
}

/// Creates the pod with a running container.
async fn running(node: &Node) {
    let status = json!({ "phase": "Running", "containerStatuses": [{ "name": "postgres",
        "image": "x", "imageID": "x", "ready": true, "restartCount": 0, "state": { "running": {} } }] });
    node.create::<Pod>(pod("db-0", status)).await;
}

pub(super) fn pod(name: &str, status: Value) -> Value {
    let mut pod = json!({ "metadata": { "name": name, "namespace": "team" },
        "spec": { "containers": [{ "name": "postgres", "image": "x" }] } });
    pod["status"] = status;
    pod
}

#[tokio::test]
async fn a_successful_command_returns_its_output_in_both_protocols() {
    for protocol in [V4, V5] {
        let script = async |mut socket: Socket| {
            // An empty message opens each channel.
            for channel in [STDOUT, STDERR, STATUS] {
                socket.send(channel, "").await;
            }
            socket.send(STDOUT, "one ").await;
            socket.send(STDERR, "notice").await;
            socket.send(STDOUT, "two\n").await;
            socket.exit(0).await;
        };
        let output = ran(protocol, script, |exec| exec)
            .await
            .expect("it ends well");
        assert_eq!(output.stdout_text(), "one two\n");
        assert_eq!(output.stderr_text(), "notice");
    }
}

#[tokio::test]
async fn the_request_of_a_command_holds_its_arguments_and_streams() {
    let script = async |socket: Socket| socket.exit(0).await;
    let node = Node::start(Answer::speak(V5, script)).await;
    let reach = Reach::outside(node.client());
    let command = ["sh", "-c", "echo 'a&b=c' +%"];
    let plain = reach.exec("team", "db-0", command);
    plain.clone().run().await.expect("it ends well");
    let full = plain.container("postgres").stdin("");
    full.run().await.expect("it ends well");
    let path = "/api/v1/namespaces/team/pods/db-0/exec";
    let command = "command=sh&command=-c&command=echo+%27a%26b%3Dc%27+%2B%25";
    let streams = "stdout=true&stderr=true";
    assert_eq!(
        node.asked(),
        [
            format!("{path}?&{streams}&{command}"),
            format!("{path}?&stdin=true&{streams}&container=postgres&{command}"),
        ]
    );
}

#[tokio::test]
async fn another_exit_code_is_an_error_that_says_what_was_printed_only_where_it_may() {
    let script = async |mut socket: Socket| {
        socket.send(STDOUT, "rows").await;
        socket.send(STDERR, "first\n").await;
        socket.send(STDERR, "FATAL: no such table\n").await;
        socket.exit(3).await;
    };
    for protocol in [V4, V5] {
        let error = ran(protocol, script, |exec| exec)
            .await
            .expect_err("it fails");
        let ReachError::CommandFailed {
            code: 3, output, ..
        } = &error
        else {
            panic!("{error:?}");
        };
        assert_eq!(output.stdout_text(), "rows");
        let message = "`psql` in team/db-0: exit code 3 (4 bytes on its standard output, 27 on its standard error)";
        assert_eq!(error.to_string(), message);
        assert!(!format!("{error:?}").contains("FATAL"), "{error:?}");
        let failure = Failure::from(error.clone());
        assert_eq!(failure.message(), message);
        assert_eq!(
            (failure.reason(), failure.is_permanent()),
            ("CommandFailed", false)
        );
        let failure = error.with_output();
        assert_eq!(
            failure.message(),
            format!("{message}: first\nFATAL: no such table")
        );
        assert_eq!(
            (failure.reason(), failure.is_permanent()),
            ("CommandFailed", false)
        );
    }
}

/// Reads the input to its end, and sends it back.
async fn cat(mut socket: Socket) {
    let mut input = Vec::new();
    loop {
        match socket.heard().await {
            Some((STDIN, bytes)) => input.extend(bytes),
            Some((CLOSE, which)) if which == [STDIN] => break,
            // Before v5 the end of the input is the end of the connection.
            _ => return,
        }
    }
    for piece in input.chunks(30_000) {
        socket.send(STDOUT, piece).await;
    }
    socket.exit(0).await;
}

#[tokio::test]
async fn a_command_reads_its_input_to_its_end() {
    for length in [0, 1, 3_000_000] {
        let input: Vec<u8> = (0..=250).cycle().take(length).collect();
        let given = input.clone();
        let exec = |exec: Exec| exec.stdin(given).limit(length);
        let output = ran(V5, cat, exec).await.expect("it ends well");
        assert!(output.stdout == input, "{length} bytes");
    }
}

#[tokio::test]
async fn a_command_may_print_while_it_reads() {
    let script = async |mut socket: Socket| {
        while let Some((STDIN, bytes)) = socket.heard().await {
            socket.send(STDOUT, bytes).await;
        }
        socket.exit(0).await;
    };
    let input = vec![b'x'; 30_000_000];
    let limit = Duration::from_mins(10);
    let exec = |exec: Exec| exec.stdin(input).limit(30_000_000).timeout(limit);
    let output = ran(V5, script, exec).await.expect("it ends well");
    assert_eq!(output.stdout.len(), 30_000_000);
}

#[tokio::test]
async fn a_protocol_without_an_end_of_input_is_an_error_and_not_a_wait() {
    let error = ran(V4, cat, |exec| exec.stdin("select 1;"))
        .await
        .expect_err("no end");
    assert!(
        matches!(error, ReachError::ConnectionLost { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn unread_input_does_not_delay_the_end() {
    let script = async |mut socket: Socket| {
        socket.send(STDOUT, "done").await;
        socket.exit(0).await;
    };
    let output = ran(V5, script, |exec| exec.stdin(vec![0; 50_000])).await;
    assert_eq!(output.expect("it ends well").stdout_text(), "done");
}

#[tokio::test]
async fn a_connection_that_ends_before_the_command_is_an_error_whatever_was_printed() {
    let closes = async |mut socket: Socket| {
        socket.send(STDOUT, "half").await;
        socket.close().await;
    };
    // Ends without a close message.
    let breaks = async |mut socket: Socket| {
        socket.send(STDOUT, "half").await;
    };
    let babbles = async |mut socket: Socket| {
        socket.send(STDOUT, "half").await;
        socket.send(STATUS, "no JSON").await;
        socket.gone().await;
    };
    for protocol in [V4, V5] {
        for error in [
            ran(protocol, closes, |exec| exec).await,
            ran(protocol, breaks, |exec| exec).await,
            ran(protocol, babbles, |exec| exec).await,
        ] {
            let error = error.expect_err("it did not end");
            assert!(
                matches!(error, ReachError::ConnectionLost { .. }),
                "{error:?}"
            );
            assert!(error.retry_helps());
        }
    }
}

#[tokio::test]
async fn a_command_that_may_have_started_is_not_reported_as_not_started() {
    let closes = || Answer::speak(V5, async |socket: Socket| socket.close().await);
    let ended = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
    let early = "`psql` in team/db-0: the connection ended before the command did";
    for (state, why) in [
        (None, "the pod is gone"),
        (
            Some(ended),
            "container `postgres` has ended: OOMKilled: exit code 137",
        ),
    ] {
        let error = refused(closes(), state, None).await;
        assert!(matches!(error, ReachError::ConnectionLost { .. }));
        assert_eq!(error.to_string(), format!("{early}: {why}"));
    }
    let late = Answer::speak(V5, async |socket: Socket| {
        let status = json!({ "status": "Failure", "message": "no answer", "code": 500 });
        socket.end(status).await;
    });
    let error = refused(late, None, None).await;
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: the pod is gone: no answer"
    );
    assert!(matches!(error, ReachError::TargetNotRunning { .. }));
}

#[tokio::test]
async fn an_endless_output_is_read_up_to_its_limit_and_the_connection_ends() {
    let gone = Arc::new(Notify::new());
    let ended = Arc::clone(&gone);
    let script = move |mut socket: Socket| {
        let ended = Arc::clone(&ended);
        async move {
            let piece = vec![b'y'; 10_000];
            while socket.send(STDOUT, &piece).await {}
            ended.notify_one();
        }
    };
    let node = Node::start(Answer::speak(V5, script)).await;
    let limited = exec(&node).limit(100_000);
    let error = in_time("the limit", limited.run())
        .await
        .expect_err("too long");
    let message = "`psql` in team/db-0: more than 100000 bytes on its standard output";
    assert_eq!(error.to_string(), message);
    assert!(Failure::from(error).is_permanent());
    in_time("the end of the connection", gone.notified()).await;
}

#[tokio::test]
async fn the_end_of_an_endless_standard_error_is_kept() {
    let script = async |mut socket: Socket| {
        for _ in 0..200 {
            socket.send(STDERR, vec![b'x'; 10_000]).await;
        }
        socket.send(STDERR, "the end").await;
        socket.exit(0).await;
    };
    let output = ran(V5, script, |exec| exec).await.expect("it ends well");
    assert_eq!(output.stderr.len(), 64 * 1024);
    assert!(output.stderr.ends_with(b"the end"));
}

#[tokio::test]
async fn a_hanging_command_times_out_and_its_connection_ends() {
    let gone = Arc::new(Notify::new());
    let ended = Arc::clone(&gone);
    let script = move |socket: Socket| {
        let ended = Arc::clone(&ended);
        async move {
            socket.gone().await;
            ended.notify_one();
        }
    };
    let node = Node::start(Answer::speak(V5, script)).await;
    let begun = Instant::now();
    let short = exec(&node).timeout(Duration::from_millis(300));
    let error = in_time("the limit", short.run())
        .await
        .expect_err("it hangs");
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: not done within 0.3 s"
    );
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(error.retry_helps());
    in_time("the end of the connection", gone.notified()).await;
}

#[tokio::test]
async fn a_refusal_is_reported_with_the_message_of_the_api_server() {
    let forbidden = Answer::refuse(403, "pods \"db-0\" is forbidden: cannot create pods/exec");
    let error = refused(forbidden, None, None).await;
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: forbidden: pods \"db-0\" is forbidden: cannot create pods/exec"
    );
    assert!(error.retry_helps());
    let running = || Some(json!({ "running": {} }));
    let error = refused(Answer::refuse(500, "node is away"), running(), None).await;
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: refused: node is away"
    );
    for answer in [
        Answer::Refuse(http::StatusCode::OK, String::new()),
        Answer::WrongKey,
    ] {
        let error = refused(answer, running(), None).await;
        assert!(matches!(error, ReachError::Refused { .. }), "{error:?}");
    }
    let page = Answer::Refuse(http::StatusCode::BAD_GATEWAY, "<h1>no</h1>".to_owned());
    let error = refused(page, running(), None).await;
    assert!(error.to_string().contains("<h1>no</h1>"), "{error}");
}

#[tokio::test]
async fn the_reason_why_a_container_does_not_run_comes_from_its_pod() {
    let no = || Answer::refuse(500, "unable to upgrade connection: container not found");
    let gone = refused(Answer::refuse(404, "pods \"db-0\" not found"), None, None).await;
    assert_eq!(
        gone.to_string(),
        "`psql` in team/db-0: there is no such pod"
    );
    let crashes = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let error = refused(no(), Some(crashes), None).await;
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: container `postgres` is waiting: CrashLoopBackOff"
    );
    assert!(matches!(error, ReachError::TargetNotRunning { .. }));
    let running = json!({ "running": {} });
    let error = refused(no(), Some(running.clone()), Some("mysql")).await;
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: the pod has no container `mysql`, only postgres"
    );
    // The API server itself reports this on the status channel, after the connection is established.
    let late = Answer::speak(V5, async |socket: Socket| {
        let message = "container not found (\"postgres\")";
        let status = json!({ "status": "Failure", "reason": "InternalError", "message": message, "code": 500 });
        socket.end(status).await;
    });
    let ended = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
    let error = refused(late.clone(), Some(ended), None).await;
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: container `postgres` has ended: OOMKilled: exit code 137"
    );
    let error = refused(late, Some(running), None).await;
    assert_eq!(
        error.to_string(),
        "`psql` in team/db-0: refused: container not found (\"postgres\")"
    );
}

#[tokio::test]
async fn an_invalid_command_sends_no_request() {
    let script = async |socket: Socket| socket.exit(0).await;
    let node = Node::start(Answer::speak(V5, script)).await;
    let reach = Reach::outside(node.client());
    let long = "x".repeat(100_000);
    for exec in [
        reach.exec("team", "../../secrets/it", ["ls"]),
        reach.exec("team/pods/other", "db-0", ["ls"]),
        reach.exec("team", "", ["ls"]),
        reach.exec::<String>("team", "db-0", []),
        reach.exec("team", "db-0", [""]),
        reach.exec("team", "db-0", ["echo", &long]),
    ] {
        let error = exec.run().await.expect_err("it is not sent");
        assert!(matches!(error, ReachError::Unaskable { .. }), "{error:?}");
        assert!(!error.retry_helps());
    }
    assert!(node.asked().is_empty());
    assert!(node.api().requests().is_empty());
}

#[tokio::test]
async fn an_unreachable_server_is_a_retryable_error() {
    let node = Node::start(Answer::WrongKey).await;
    let exec = exec(&node);
    drop(node);
    let error = in_time("a refusal", exec.run())
        .await
        .expect_err("the server is gone");
    assert!(
        matches!(error, ReachError::ConnectionLost { .. }),
        "{error:?}"
    );
    assert!(error.retry_helps());
}
