//! The commands that read.

use std::path::Path;

use expect_test::expect;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use okt_apiserver::Fault;
use serde_json::{Value, json};

use crate::page::databases;
use crate::world::{World, brokers, has, long_ago, run, status};

async fn world() -> World {
    let world = World::start().await;
    let running = json!({
        "state": "Running", "since": long_ago(), "transition": 3, "jumps": 1,
        "desired": { "state": "Running", "transition": 0, "reached": true },
        "trail": ">Start>Servicing>Running>",
        "history": [
            { "transition": 1, "to": "Start", "at": "2026-11-21T08:58:00Z", "cause": "Created" },
            { "transition": 2, "from": "Start", "to": "Servicing", "at": "2026-11-21T08:59:00Z", "cause": "Jump:Observed" },
            { "transition": 3, "from": "Servicing", "to": "Running", "at": long_ago(), "cause": "Next" },
        ],
    });
    let ready = ("True", "Running", "in Running, as desired");
    world
        .database("good", json!({}), status(running, ready, false))
        .await;
    let held = json!({
        "state": "Failed", "since": long_ago(), "transition": 2, "jumps": 1,
        "failure": { "reason": "DiskFull", "message": "no space left on /data" },
        "desired": { "state": "Running", "transition": 0, "reached": false },
        "trail": ">Start>Failed>", "history": [],
    });
    let why = "Failed holds: set spec.lifecycle.request to a new text to go to Running";
    world
        .database(
            "held",
            json!({ "state": "Running" }),
            status(held, ("False", "Failed", why), true),
        )
        .await;
    world
        .database(
            "new",
            json!({ "visit": { "state": "Servicing", "request": "a" } }),
            Value::Null,
        )
        .await;
    world
}

#[tokio::test]
async fn kubectl_gets_what_may_come_next() {
    let world = World::start().await;
    world.database("orders", json!({}), json!(null)).await;
    for (words, printed) in [
        (
            &["tra"][..],
            "trail\tShow the last transitions of an object: from where to where, when, why, and how long it stayed\n:4\n",
        ),
        (&["get", ""], "databases/orders\n:4\n"),
        (&["get", "databases/o"], "databases/orders\n:4\n"),
        (&["get", "other"], ":4\n"),
        (&["list", "data"], "databases\n:4\n"),
        (&["list", "-o", ""], "json\nyaml\nwide\nname\n:4\n"),
        (&["list", "--prob"], "--problems\n:4\n"),
        (&["go", "databases/orders", "Re"], "ReadOnly\n:4\n"),
        (&["go", "databases/orders", "St"], ":4\n"),
        (&["wait", "databases/orders", "Re"], "ReadOnly\n:4\n"),
        (&["plan", "databases/orders", "Re"], "ReadOnly\n:4\n"),
        (&["list", "--state", "St"], "Start\nStopping\n:4\n"),
        (&["list", "-n", "default", "data"], "databases\n:4\n"),
        (&["list", "--name"], "--namespace\n:4\n"),
        (&["conditions", "-f", ""], ":0\n"),
    ] {
        let words = [&["__complete", "--"], words].concat();
        assert_eq!(world.prints(&words).await, printed, "{words:?}");
    }
}

#[tokio::test]
async fn a_list_shows_where_every_object_is() {
    let world = world().await;
    let list = world.prints(&["list", "-A"]).await;
    expect![[r"
        NAMESPACE   KIND       NAME   STATE     FOR      DESIRED     READY     REASON
        default     Database   good   Running   9d       Running     True      Running
        default     Database   held   Failed    9d       Running     False     Failed
        default     Database   new    <none>    <none>   Servicing   Unknown   NotReported
    "]]
    .assert_eq(&list);
    let problems = world
        .prints(&["list", "databases", "--problems", "-o", "name"])
        .await;
    expect![[r"
        databases.demo.okt.dev/held
        databases.demo.okt.dev/new
    "]]
    .assert_eq(&problems);
}

#[tokio::test]
async fn one_object_is_shown_on_its_graph() {
    let world = world().await;
    expect![[r"
        Database default/held   demo.okt.dev/v1, generation 1

        State:         Failed, for 9d
        Desired:       Running
        Route:         Failed → Running
        Ready:         False, Failed: Failed holds: set spec.lifecycle.request to a new text to go to Running
        Trail:         >Start>Failed>
        Transitions:   2, 1 of them a jump

          Start       entry              → Running                                ⇢ Failed (on 5 errors)
        ◎ Running     rest               → Servicing, ReadOnly, Stopping (Next)   ⇢ Failed (on 3 errors)
          Servicing   visit              → Running                                ⇢ Failed (after 30m)
          ReadOnly    rest, idle         → Stopping
          Stopping                       → End
        ▶ Failed      rest, hold, idle   → Running, Stopping (Next)
          End         leaf, idle
        ▶ here   ┊ on the way   ◎ goal   → children   ⇢ triggers   (Next) where the work ends without another answer
    "]].assert_eq(&world.prints(&["get", "held"]).await);
    expect![[r"
        Database default/new   demo.okt.dev/v1, generation 1 (no operator has seen it)

        State:     none recorded yet
        Desired:   Running (default)
        Visit:     Servicing (request a): not seen by the operator yet
        Ready:     Unknown, NotReported: no operator has reported on the object yet

          Start       entry              → Running                                ⇢ Failed (on 5 errors)
          Running     rest               → Servicing, ReadOnly, Stopping (Next)   ⇢ Failed (on 3 errors)
          Servicing   visit              → Running                                ⇢ Failed (after 30m)
          ReadOnly    rest, idle         → Stopping
          Stopping                       → End
          Failed      rest, hold, idle   → Running, Stopping (Next)
          End         leaf, idle
        ▶ here   ┊ on the way   ◎ goal   → children   ⇢ triggers   (Next) where the work ends without another answer
    "]].assert_eq(&world.prints(&["get", "db/new"]).await);
}

#[tokio::test]
async fn why_explains_what_keeps_an_object_and_what_would_move_it() {
    let world = world().await;
    expect![[r"
        Database default/held is in Failed, for 9d, and is to be in Running.
        The route: Failed → Running

        Failed is a holding state: the object stays until a person decides. What led there: DiskFull: no space left on /data.
          → kubectl okt retry -n default databases.demo.okt.dev/held
          → or choose another state: kubectl okt go -n default databases.demo.okt.dev/held STATE (Running, Servicing, ReadOnly, End)
    "]].assert_eq(&world.prints(&["why", "held"]).await);
    expect![[r"
        Database default/good is in Running, for 9d, and is to be in Running.

        Nothing is wrong: in Running, as desired.
    "]]
    .assert_eq(&world.prints(&["why", "good"]).await);
}

#[tokio::test]
async fn a_plan_is_the_route_with_the_times_that_it_took_before() {
    let world = world().await;
    expect![[r"
        Database default/good is in Running, for 9d.

            STATE      USUALLY   LONGEST   OF   WHAT IT DOES                  OR ELSE
        ▶   Running    ?         ?         0    Clients may connect.          Failed (on 3 errors)
        1   Stopping   ?         ?         0    Clients are asked to leave.
        2   End                                 The server is gone.
    "]]
    .assert_eq(&world.prints(&["plan", "good", "--deletion"]).await);
    expect![[r"
        Database default/good is in Running, for 9d.

            STATE      USUALLY   LONGEST   OF   WHAT IT DOES           OR ELSE
        ▶   Running    ?         ?         0    Clients may connect.   Failed (on 3 errors)
        1   ReadOnly                            Clients may read.
    "]]
    .assert_eq(&world.prints(&["plan", "good", "ReadOnly"]).await);
    expect![[r"
        Database default/good is in Running, for 9d.

            STATE       USUALLY   LONGEST   OF   WHAT IT DOES             OR ELSE
        ▶   Running     ?         ?         0    Clients may connect.     Failed (on 3 errors)
        1   Servicing                            A backup is under way.   Failed (after 30m)
    "]]
    .assert_eq(&world.prints(&["plan", "good", "Servicing"]).await);
    expect![[r"
        error: no route leads from Running to Start: nobody may ask for Start; you may ask for Running, Servicing, ReadOnly, End
    "]].assert_eq(&world.refuses(3, &["plan", "good", "Start"]).await);
}

#[tokio::test]
async fn a_trail_is_the_history_and_the_folded_path() {
    let world = world().await;
    let trail = world.prints(&["trail", "good"]).await;
    let lines: Vec<&str> = trail
        .lines()
        // How long the object stayed in the others depends on the present time.
        .filter(|line| !line.starts_with(['2', '3']))
        .collect();
    expect![[r"
        NO.   FROM        TO          WHY             AT                     STAYED
        1     <none>      Start       Created         2026-11-21 08:58:00Z   60s

        >Start>Servicing>Running>"]]
    .assert_eq(&lines.join("\n"));
    let history = world.prints(&["trail", "good", "-o", "json"]).await;
    let history: Value = serde_json::from_str(&history).expect("JSON");
    assert_eq!(history[1]["cause"], "Jump:Observed");
}

#[tokio::test]
async fn a_graph_is_drawn_in_each_language() {
    let world = world().await;
    let drawn = world.prints(&["graph", "databases"]).await;
    // Without a line at the margin, the indentation would not count.
    expect![[r"
        graph
          Start       entry              → Running                                ⇢ Failed (on 5 errors)
          Running     rest               → Servicing, ReadOnly, Stopping (Next)   ⇢ Failed (on 3 errors)
          Servicing   visit              → Running                                ⇢ Failed (after 30m)
          ReadOnly    rest, idle         → Stopping
          Stopping                       → End
          Failed      rest, hold, idle   → Running, Stopping (Next)
          End         leaf, idle
    "]]
    .assert_eq(&format!("graph\n{drawn}"));
    for (language, start) in [
        ("mermaid", "stateDiagram-v2\n"),
        ("dot", "digraph "),
        ("svg", "<svg"),
        ("json", "{\"format\":1,"),
    ] {
        let drawn = world
            .prints(&["graph", "Database.demo.okt.dev", "-o", language])
            .await;
        assert!(drawn.starts_with(start), "{drawn}");
    }
}

#[tokio::test]
async fn what_cannot_be_meant_is_an_error_and_quotes_no_token() {
    let world = World::start().await;
    databases(&world).await;
    let printed = world.refuses(2, &["list", "--state", "Runing"]).await;
    has(
        &printed,
        "no graph has the state `Runing`; there are End, Failed, ",
    );
    let printed = world.prints(&["list", "-l", "a=b"]).await;
    assert_eq!(printed, "no object is as the options say\n");
    let broken = world.file("broken", "users:\n- user:\n    token: hidden\n  : [\n");
    let output = run(Path::new(&broken), &["list"]).await;
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        printed.contains("cannot find a cluster") && !printed.contains("hidden"),
        "{printed}"
    );
}

#[tokio::test]
async fn a_name_alone_is_no_object_while_one_of_its_kind_cannot_be_read() {
    let world = World::start().await;
    databases(&world).await;
    let crds: Api<CustomResourceDefinition> = Api::all(world.server.client());
    let crd = brokers().replace(r#""v1""#, r#""v1alpha1""#);
    let crd = serde_json::from_str(&crd).expect("a CRD");
    crds.create(&PostParams::default(), &crd)
        .await
        .expect("a kind");
    has(&world.prints(&["get", "orders"]).await, "default/orders");
    // By discovery: the kind is not in the preferred version of its group.
    world.prints(&["conditions", "brokers"]).await;
    let fault = Fault::answer(500, "InternalError", "etcd is away").resource("brokers");
    let fault = world.server.inject(fault);
    let printed = world.refuses(1, &["pause", "orders"]).await;
    has(
        &printed,
        "cannot get brokers.demo.okt.dev/orders: etcd is away",
    );
    has(&world.prints(&["get", "db/orders"]).await, "default/orders");
    fault.end();
    world.refuses(2, &["get", "a", "b/c"]).await;
    world.refuses(2, &["list", "-w", "-o", "json"]).await;
}

#[tokio::test]
async fn a_wrong_name_is_answered_by_the_right_ones() {
    let world = world().await;
    expect![[r"
        error: no OKT operator has the kind `lamps`; there are databases.demo.okt.dev
    "]]
    .assert_eq(&world.refuses(1, &["list", "lamps"]).await);
    expect![[r"
        error: there is no db nobody in the namespace default; `kubectl okt list -A` shows all objects
    "]].assert_eq(&world.refuses(1, &["get", "db/nobody"]).await);
    expect![[r"
        error: `b/c` is no name of an object
    "]]
    .assert_eq(&world.refuses(2, &["get", "a/b/c"]).await);
    expect![[r"
        error: `..` is no name of an object
    "]]
    .assert_eq(&world.refuses(2, &["get", "db/.."]).await);
    expect![[r"
        error: cannot find a cluster: failed to load current context: elsewhere; `kubectl config get-contexts` shows those of your kubeconfig
    "]]
    .assert_eq(&world.refuses(1, &["list", "--context", "elsewhere"]).await);
}

#[tokio::test]
async fn a_hostile_object_controls_no_terminal() {
    let world = World::start().await;
    let lifecycle = json!({ "state": "Running", "transition": 2, "jumps": 1, "trail": ">\u{1b}[2J>", "history": [] });
    let message = "\u{1b}]0;title\u{7}\r\n\u{9b}31m";
    world
        .database(
            "a",
            json!({ "request": "\u{1b}[1m" }),
            status(lifecycle, ("False", "Bad", message), true),
        )
        .await;
    for command in ["get", "why"] {
        let printed = world.prints(&[command, "a"]).await;
        let controls: Vec<char> = printed
            .chars()
            .filter(|c| c.is_control() && *c != '\n')
            .collect();
        assert!(controls.is_empty(), "{controls:?} in {printed}");
    }
}

#[tokio::test]
async fn conditions_of_any_operator_are_checked_live_in_a_file_and_in_a_stream() {
    let world = world().await;
    expect![[r"
        3 objects, no rule broken
    "]]
    .assert_eq(&world.prints(&["conditions", "databases"]).await);
    let object = world.databases().get("good").await.expect("a database");
    let mut before = serde_json::to_value(object).expect("JSON");
    let mut after = before.clone();
    before["status"]["conditions"][0]["status"] = "False".into();
    after["status"]["observedGeneration"] = 0.into();
    let stream = world.file("stream.json", &format!("{before}\n{after}\n"));
    expect![[r"
        Database default/good
          D05 Ready: is False with neither Reconciling nor Stalled
        Database default/good
          D03 observedGeneration: decreases
        error: 2 objects, 2 broken rules
    "]]
    .assert_eq(&world.refuses(3, &["conditions", "-f", &stream]).await);
    let empty = world.file("empty.yaml", "---\n---\n");
    let printed = world.refuses(1, &["conditions", "-f", &empty]).await;
    has(&printed, "there are none in it");
    let printed = world.refuses(1, &["conditions", "lamps"]).await;
    has(&printed, "no kind `lamps`");
}
