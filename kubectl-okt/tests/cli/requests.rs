//! Requests: visits with arguments, which objects of their own ask for.

use std::ops::Deref;

use expect_test::{Expect, expect};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use okt_apiserver::Fault;
use serde_json::{Value, json};

use crate::following::Following;
use crate::world::{World, has, long_ago, status};

/// A cluster with databases that serve requests of the kind `Restore` in `Servicing`.
struct Restores(World);

impl Deref for Restores {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

/// Returns the words of a command.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

impl Restores {
    async fn start() -> Self {
        let world = World::start().await;
        let crds: Api<CustomResourceDefinition> = Api::all(world.server.client());
        let databases = crds.get("databases.demo.okt.dev").await.expect("a CRD");
        let mut databases = serde_json::to_value(databases).expect("JSON");
        let annotation = &mut databases["metadata"]["annotations"]["okt.dev/graph"];
        let mut graph: Value =
            serde_json::from_str(annotation.as_str().expect("text")).expect("a graph");
        let states = graph["states"].as_array_mut().expect("states").iter_mut();
        for state in states.filter(|state| state["name"] == "Servicing") {
            state["roles"] = json!(["visit", "args"]);
            state["triggers"] = json!([{ "to": "Failed", "cause": "on abort" }]);
        }
        *annotation = graph.to_string().into();
        let schema = &mut databases["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["status"]["properties"]["lifecycle"]["properties"]["request"] = json!({ "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true });
        let databases = serde_json::from_value(databases).expect("a CRD");
        let now = PostParams::default();
        let replaced = crds.replace("databases.demo.okt.dev", &now, &databases);
        replaced.await.expect("a CRD");
        let text = json!({ "type": "string" });
        let integer = json!({ "type": "integer" });
        let args = json!({
            "type": "object", "required": ["backup"],
            "properties": {
                "backup": text, "dry": { "type": "boolean" }, "tables": { "type": "array", "items": text },
                "options": { "type": "object", "properties": { "threads": integer, "rate": { "type": "number" } } },
                "labels": { "type": "object", "additionalProperties": text },
            },
        });
        let restores = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "restores.demo.okt.dev", "annotations": {
                "okt.dev/request-of": "databases.demo.okt.dev", "okt.dev/request-state": "Servicing",
            } },
            "spec": {
                "group": "demo.okt.dev", "scope": "Namespaced",
                "names": { "kind": "Restore", "plural": "restores", "singular": "restore" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                        "spec": { "type": "object", "properties": {
                            "target": { "type": "object", "properties": { "name": text } },
                            "args": args,
                            "startBefore": { "type": "string", "format": "date-time" },
                            "ttlSecondsAfterFinished": integer,
                        } },
                        "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    } } },
                }],
            },
        });
        let restores = serde_json::from_value(restores).expect("a CRD");
        let created = crds.create(&PostParams::default(), &restores).await;
        created.expect("a CRD");
        Self(world)
    }

    fn requests(&self) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: "demo.okt.dev".to_owned(),
            version: "v1".to_owned(),
            api_version: "demo.okt.dev/v1".to_owned(),
            kind: "Restore".to_owned(),
            plural: "restores".to_owned(),
        };
        Api::default_namespaced_with(self.server.client(), &resource)
    }

    /// Puts `orders` into a state; `request` is the one on record.
    async fn orders_in(&self, state: &str, number: u64, request: Value) {
        let step = |number: u64| json!({ "transition": number, "from": "Running", "to": state, "at": long_ago(), "cause": "Request" });
        let lifecycle = json!({
            "state": state, "since": long_ago(), "transition": number, "jumps": 0, "trail": ">", "request": request,
            "history": (4..=number).map(step).collect::<Vec<_>>(),
        });
        let status = status(lifecycle, ("False", "InProgress", "on its way"), false);
        let api = self.databases();
        if api.get_opt("orders").await.expect("an answer").is_none() {
            return self.database("orders", json!({}), status).await;
        }
        let patch = Patch::Merge(json!({ "status": status }));
        let plain = PatchParams::default();
        let patched = api.patch_status("orders", &plain, &patch);
        patched.await.expect("a status");
    }

    /// Returns the record of a request that `orders` serves.
    async fn served(&self, name: &str) -> Value {
        let request = self.requests().get(name).await.expect("a request");
        json!({
            "kind": "Restore", "name": name, "uid": request.metadata.uid, "state": "Servicing", "transition": 3,
            "args": { "value": request.data["spec"]["args"] }, "outcome": "Running",
        })
    }

    async fn told(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        let patched = self
            .requests()
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        patched.expect("a status");
    }

    async fn request(&self, name: &str) {
        self.prints(&words(&format!(
            "request restore orders --set backup=b --name {name}"
        )))
        .await;
    }

    async fn prints_as(&self, arguments: &[&str], expected: Expect) {
        expected.assert_eq(&self.prints(arguments).await);
    }
}

#[tokio::test]
async fn a_request_has_arguments_of_the_types_of_its_schema() {
    let world = Restores::start().await;
    world.orders_in("Stopping", 3, json!(null)).await;
    let file = world.file("args.yaml", "dry: true\nbackup: other\n");
    let line = "request Restores db/orders --name one --set backup=12 --set options.threads=4 \
                --set options.rate=0.5 --set tables=[a,b] --set labels.team=1=2 --ttl 48h \
                --start-before 2026-11-27T00:00:00Z -f";
    let arguments = [words(line), vec![&file]].concat();
    world.prints_as(&arguments, expect![[r"
        restore/one is created; `kubectl okt why -n default restores.demo.okt.dev/one` says what becomes of it
        restore/one waits: orders is in Stopping, which is no resting state
    "]]).await;
    let made = world.requests().get("one").await.expect("a request");
    assert_eq!(
        made.data["spec"],
        json!({
            "target": { "name": "orders" },
            "args": {
                "backup": "12", "dry": true, "tables": ["a", "b"], "options": { "threads": 4, "rate": 0.5 },
                "labels": { "team": "1=2" },
            },
            "startBefore": "2026-11-27T00:00:00Z",
            "ttlSecondsAfterFinished": 172_800,
        })
    );
    let printed = world
        .prints(&words(
            "request restores.demo.okt.dev orders --set backup=a --dry-run",
        ))
        .await;
    assert!(
        printed.starts_with("restore/restore-") && printed.ends_with(" may be created\n"),
        "{printed}"
    );
    let printed = world
        .prints(&words("request restore orders --set backup=a"))
        .await;
    has(&printed, "waits: restore/one is served first");
    let listed = world.requests().list(&ListParams::default()).await;
    assert_eq!(listed.expect("requests").items.len(), 2);
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_before_anything_is_created() {
    let world = Restores::start().await;
    world.orders_in("Running", 3, json!(null)).await;
    let bad = world.file("bad.yaml", "bakup: a\n");
    let list = world.file("list.yaml", "[a]");
    let mut transcript = String::new();
    for line in [
        "1 dump orders",
        "1 restore nobody",
        "2 restore broker/orders",
        "2 restore orders --set bakup=a",
        "2 restore orders --set options.thread=4",
        "2 restore orders --set backup.name=a",
        "2 restore orders --set options.threads=four",
        "2 restore orders --set options=4",
        "2 restore orders --set dry=maybe",
        "2 restore orders --set backup",
        "1 restore orders -f LIST",
        "1 restore orders --set backup=a -f BAD",
        "1 restore orders --name a",
    ] {
        let (code, arguments) = line.split_once(' ').expect("a code");
        let file = |word| match word {
            "LIST" => &list,
            "BAD" => &bad,
            other => other,
        };
        let arguments = words(arguments).into_iter().map(file);
        let arguments: Vec<&str> = ["request"].into_iter().chain(arguments).collect();
        let code = code.parse().expect("a number");
        let printed = world.refuses(code, &arguments).await;
        let printed = printed.replace(&bad, "BAD").replace(&list, "LIST");
        transcript += &format!("{line}\n  {printed}");
    }
    expect![[r#"
        1 dump orders
          error: no OKT operator has the kind of requests `dump`; there are restores.demo.okt.dev
        1 restore nobody
          error: there is no databases.demo.okt.dev nobody in the namespace default; `kubectl okt list -A` shows all objects
        2 restore broker/orders
          error: databases.demo.okt.dev serves restores.demo.okt.dev, and `broker/orders` is of another type
        2 restore orders --set bakup=a
          error: Restore does not take `bakup=a`: there is no `bakup`; there are backup, dry, labels, options, tables
        2 restore orders --set options.thread=4
          error: Restore does not take `options.thread=4`: there is no `thread`; there are rate, threads
        2 restore orders --set backup.name=a
          error: Restore does not take `backup.name=a`: there is no `name`, nor any other field
        2 restore orders --set options.threads=four
          error: Restore does not take `options.threads=four`: `four` is not an integer
        2 restore orders --set options=4
          error: Restore does not take `options=4`: `4` is not an object such as {a: 1}
        2 restore orders --set dry=maybe
          error: Restore does not take `dry=maybe`: `maybe` is not true or false
        2 restore orders --set backup
          error: `backup` is no argument; write --set PATH=VALUE
        1 restore orders -f LIST
          error: LIST: write the arguments as `name: value`
        1 restore orders --set backup=a -f BAD
          error: cannot create restores.demo.okt.dev: Restore in version "v1" cannot be handled as a Restore: strict decoding error: unknown field "spec.args.bakup"
        1 restore orders --name a
          error: cannot create restores.demo.okt.dev: Restore.demo.okt.dev "a" is invalid: spec.args.backup: Required value
    "#]].assert_eq(&transcript);
    for option in ["--ttl soon", "--start-before soon", "--timeout 1h"] {
        let line = format!("request restore orders --set backup=a {option}");
        world.refuses(2, &words(&line)).await;
    }
    assert_eq!(
        world
            .requests()
            .list(&ListParams::default())
            .await
            .expect("a list")
            .items
            .len(),
        0
    );
    let message = "restores.demo.okt.dev is forbidden: User jane cannot create it";
    let fault = Fault::answer(403, "Forbidden", message)
        .resource("restores")
        .matching(|it| it.verb.as_str() == "create");
    world.server.inject(fault);
    let line = "request restore orders --set backup=a";
    expect![[r"
        error: cannot create restores.demo.okt.dev: you may not: restores.demo.okt.dev is forbidden: User jane cannot create it; ask an administrator for the cluster role `<plural>.<group>:edit`, which the subcommand `rbac` of the operator prints
    "]].assert_eq(&world.refuses(1, &words(line)).await);
    let none = World::start().await;
    expect![[r"
        error: no OKT operator has a kind of requests: no CRD that you may read has the annotation okt.dev/request-of
    "]].assert_eq(&none.refuses(1, &words(line)).await);
}

#[tokio::test]
async fn the_request_that_runs_and_those_that_wait_are_shown() {
    let world = Restores::start().await;
    world.orders_in("Failed", 3, json!(null)).await;
    for name in ["a", "b"] {
        world.request(name).await;
    }
    world
        .prints_as(
            &words("why orders"),
            expect![[r"
        Database default/orders is in Failed, for 9d, and is to be in Running.
        The route: Failed → Running

        InProgress: on its way

        The request restore/a waits: the operator has not seen it yet.
    "]],
        )
        .await;
    let served = world.served("a").await;
    world.orders_in("Failed", 3, served.clone()).await;
    world
        .prints_as(
            &words("plan orders"),
            expect![[r"
        Database default/orders is in Failed, for 9d.

            STATE       USUALLY   LONGEST   OF   WHAT IT DOES             OR ELSE
        ▶   Failed      ?         ?         0    A person has to look.
        1   Running     ?         ?         0    Clients may connect.     Failed (on 3 errors)
        2   Servicing                            A backup is under way.   Failed (on abort)
    "]],
        )
        .await;
    world.orders_in("Running", 4, served.clone()).await;
    world.orders_in("Servicing", 5, served).await;
    world.prints_as(&words("get orders"), expect![[r#"
        Database default/orders   demo.okt.dev/v1, generation 1

        State:         Servicing, for 9d
        Desired:       Running (default)
        Request:       restore/a, for 9d: {"backup":"b"}
        Queue:         restore/b waits: restore/a is served first
        Ready:         False, InProgress: on its way
        Trail:         >
        Transitions:   5

          Start       entry              → Running                                ⇢ Failed (on 5 errors)
          Running     rest               → Servicing, ReadOnly, Stopping (Next)   ⇢ Failed (on 3 errors)
        ▶ Servicing   visit, args        → Running                                ⇢ Failed (on abort)
          ReadOnly    rest, idle         → Stopping
          Stopping                       → End
          Failed      rest, hold, idle   → Running, Stopping (Next)
          End         leaf, idle
        ▶ here   ┊ on the way   ◎ goal   → children   ⇢ triggers   (Next) where the work ends without another answer
    "#]]).await;
    let details = world.prints(&words("get orders -o json")).await;
    let details: Value = serde_json::from_str(&details).expect("JSON");
    let turns = details["requests"].as_array().expect("requests").iter();
    let turns: Vec<&Value> = turns.map(|it| &it["turn"]).collect();
    assert_eq!(turns, ["Running", "Later"]);
    world
        .prints_as(
            &words("list"),
            expect![[r"
        KIND       NAME     STATE       FOR   DESIRED     READY   REASON
        Database   orders   Servicing   9d    Servicing   False   InProgress
    "]],
        )
        .await;
    world
        .prints_as(&words("why restore/b"), expect![[r"
            restore/b asks for Servicing of orders.

            It waits: restore/a is served first.
              → kubectl okt why -n default databases.demo.okt.dev/orders says why orders is where it is
        "]])
        .await;
    let deleted = world.requests().delete("a", &DeleteParams::default()).await;
    deleted.expect("it goes");
    world
        .prints_as(
            &words("why orders"),
            expect![[r"
        Database default/orders is in Servicing, for 9d, and is to be in Servicing, for restore/a.

        InProgress: on its way

        The request restore/a was deleted while the object serves it: the object leaves for Failed.
    "]],
        )
        .await;
}

#[tokio::test]
async fn what_became_of_a_request_is_explained_with_the_remedy() {
    let world = Restores::start().await;
    world.orders_in("Running", 3, json!(null)).await;
    world.request("a").await;
    let failed = |reason: &str, message: &str| {
        json!([{
            "type": "Failed", "status": "True", "reason": reason, "message": message,
            "observedGeneration": 1, "lastTransitionTime": "2026-11-21T09:00:00Z",
        }])
    };
    for (status, expected) in [
        (
            json!({ "outcome": "Failed", "conditions": failed("DiskFull", "no space left") }),
            expect![[r"
                restore/a asks for Servicing of orders.

                Its outcome is Failed, DiskFull: no space left.
                  → mend the cause, then make a new request
            "]],
        ),
        (
            json!({ "outcome": "Expired", "conditions": failed("Expired", "it had not begun") }),
            expect![[r"
                restore/a asks for Servicing of orders.

                Its outcome is Expired: it had not begun.
                  → make a new request, with a later `startBefore` or none
            "]],
        ),
        (
            json!({ "outcome": "Reached", "conditions": null, "result": { "rows": 3 } }),
            expect![[r#"
                restore/a asks for Servicing of orders.

                Its outcome is Reached, with the result {"rows":3}.
            "#]],
        ),
    ] {
        world.told("a", status).await;
        world.prints_as(&words("why restore a"), expected).await;
    }
    expect![[r"
        error: there is no restore/z in the namespace default; a finished request is deleted after some time
    "]].assert_eq(&world.refuses(1, &words("why restore/z")).await);
    world.request("b").await;
    let gone = world
        .databases()
        .delete("orders", &DeleteParams::default())
        .await;
    gone.expect("it goes");
    world
        .prints_as(
            &words("why restore/b"),
            expect![[r"
                restore/b asks for Servicing of orders.

                It waits: orders does not exist.
                  → create orders: after ten minutes without it, the operator gives the request up
                  → or withdraw it: kubectl delete -n default restores.demo.okt.dev/b
            "]],
        )
        .await;
}

#[tokio::test]
async fn a_request_is_followed_until_it_has_an_outcome() {
    let world = Restores::start().await;
    world.orders_in("Running", 3, json!(null)).await;
    let line = "request restore orders --set backup=b --wait --name";
    let follow = |name| Following::of(&world, &[words(line), vec![name]].concat());
    let mut good = follow("good");
    has(&good.next().await, "restore/good is created");
    has(
        &good.next().await,
        "restore/good waits: the operator has not seen it",
    );
    let served = world.served("good").await;
    world.orders_in("Servicing", 4, served).await;
    assert_eq!(good.next().await, "Running → Servicing (Request)");
    assert_eq!(good.next().await, "restore/good runs: Servicing serves it");
    let reached = json!({ "outcome": "Reached", "result": { "rows": 3 } });
    world.told("good", reached).await;
    assert_eq!(good.next().await, "restore/good is done");
    assert_eq!(good.next().await, "rows: 3");
    let ended = good.program.wait().await.expect("it ends");
    assert!(ended.success(), "{ended}");
    for (name, code) in [("bad", 3), ("gone", 1)] {
        let mut followed = follow(name);
        has(&followed.next().await, "is created");
        if code == 3 {
            world.told(name, json!({ "outcome": "Aborted" })).await;
        } else {
            let now = DeleteParams::default();
            world.requests().delete(name, &now).await.expect("it goes");
        }
        let ended = followed.program.wait().await.expect("it ends");
        assert_eq!(ended.code(), Some(code), "{name}");
    }
    let late = [words(line), words("late --timeout 300ms")].concat();
    let printed = world.refuses(4, &late).await;
    has(
        &printed,
        "error: the time to wait is over: restore/late waits: ",
    );
}

#[tokio::test]
async fn other_commands_know_what_is_for_requests() {
    let world = Restores::start().await;
    world.orders_in("Running", 3, json!(null)).await;
    expect![[r"
        error: Servicing is a visit with arguments: `kubectl okt request restore -n default databases.demo.okt.dev/orders` asks for it
    "]].assert_eq(&world.refuses(3, &words("go orders servicing")).await);
    for (words, printed) in [
        (&["request", ""][..], "restore\n:4\n"),
        (&["request", "restore", "data"], "databases/orders\n:4\n"),
        (&["request", "dump", ""], ":4\n"),
    ] {
        let words = [&["__complete", "--"], words].concat();
        assert_eq!(world.prints(&words).await, printed, "{words:?}");
    }
    has(
        &world.refuses(1, &words("get restore/a")).await,
        "`kubectl okt why restore/NAME` explains one",
    );
    let crds: Api<CustomResourceDefinition> = Api::all(world.server.client());
    let crds = crds.list(&ListParams::default()).await.expect("CRDs");
    let release: Vec<Value> = (crds.items.into_iter())
        .map(|crd| {
            let mut crd = serde_json::to_value(crd).expect("JSON");
            crd["kind"] = "CustomResourceDefinition".into();
            crd
        })
        .collect();
    let file = world.file("crds.json", &json!({ "items": release }).to_string());
    let printed = world.prints(&["diff", &file]).await;
    assert_eq!(printed, "no differences in the graphs\n");
}
