//! Writes that fail: OKT retries after every answer, and one error answer of a server is not final.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use okt_testing::{Fault, OnRequest};
use okt_tests::{DatabaseState, KioskState::*, Kiosks, OPERATOR, Rig};
use serde_json::json;

type Stand = Rig<Kiosks>;

/// Every way in which a write may fail, with a name that an object can have.
fn faults() -> Vec<(String, Fault<OnRequest>)> {
    let codes = [
        400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 415, 422, 423, 424, 429,
        500, 501, 502, 503, 504,
    ];
    let reason = |code| match code {
        404 => "NotFound",
        409 => "Conflict",
        422 => "Invalid",
        _ => "",
    };
    let answers = codes.map(|code| {
        let fault = Fault::answer(code, reason(code), "no");
        (format!("answer-{code}"), fault)
    });
    let others = [
        ("reset", Fault::break_connection()),
        ("reset-after", Fault::break_connection().after_commit()),
        ("silence", Fault::no_answer()),
        ("silence-after", Fault::no_answer().after_commit()),
        ("cut", Fault::cut_body(20)),
    ];
    let others = others.map(|(name, fault)| (name.to_owned(), fault));
    answers.into_iter().chain(others).collect()
}

/// A kind of write that the operator makes.
#[derive(Clone, Copy, Debug)]
enum Write {
    /// The finalizer is added.
    Finalize,
    /// The status is written.
    Status,
    /// The finalizer is dropped.
    Release,
    /// An owned object is created.
    Create,
    /// An owned object is changed.
    Apply,
    /// An owned object is deleted.
    Delete,
}

impl Write {
    /// Limits the fault to this kind of write for the object with this name.
    fn of(self, fault: Fault<OnRequest>, name: &str) -> Fault<OnRequest> {
        let fault = fault.client(OPERATOR).name(name);
        match self {
            Self::Finalize | Self::Release => fault
                .resource("kiosks")
                .matching(|request| request.subresource.is_none()),
            Self::Status => fault.subresource("status"),
            Self::Create | Self::Apply | Self::Delete => fault.resource("configmaps"),
        }
        .on_writes()
    }

    /// Creates the object if it has to exist before the fault.
    async fn prepare(self, rig: &Stand, name: &str) {
        if !matches!(self, Self::Finalize | Self::Status | Self::Create) {
            create(rig, name).await;
        }
    }

    /// Causes the write that the fault hits.
    async fn provoke(self, rig: &Stand, name: &str) {
        match self {
            Self::Finalize | Self::Status | Self::Create => create(rig, name).await,
            Self::Release => rig.delete(name).await,
            Self::Apply => maps(rig, name, json!({ (name): "b" })).await,
            Self::Delete => maps(rig, name, json!({ (name): null })).await,
        }
    }

    /// Waits until the cluster matches the spec.
    async fn converge(self, rig: &Stand, name: &str) {
        let is = |text: Option<&str>| {
            let text = text.map(str::to_owned);
            async move {
                for _ in 0..1000 {
                    if text_of(rig, name).await == text {
                        return;
                    }
                    rig.pass(Duration::from_secs(1)).await;
                }
                panic!("{self:?} {name}: {:?}", text_of(rig, name).await);
            }
        };
        match self {
            Self::Finalize | Self::Status | Self::Create => {
                rig.until_ready(name, Open).await;
                is(Some("a")).await;
            }
            Self::Release => rig.until_gone(name).await,
            Self::Apply => is(Some("b")).await,
            Self::Delete => is(None).await,
        }
    }
}

async fn create(rig: &Stand, name: &str) {
    rig.create_with(name, json!({ "maps": { (name): "a" } }))
        .await;
}

async fn maps(rig: &Stand, name: &str, maps: serde_json::Value) {
    rig.patch(name, json!({ "spec": { "maps": maps } })).await;
}

async fn text_of(rig: &Stand, name: &str) -> Option<String> {
    let maps = rig.of::<ConfigMap>();
    let map = maps.get_opt(name).await.expect("a read")?;
    map.data?.get("text").cloned()
}

/// Injects every fault into one kind of write, each for its own object; asserts that all objects converge.
async fn survive(write: Write, lasting: Option<Duration>) {
    let rig = Stand::of().await;
    let all = faults();
    for (name, _) in &all {
        write.prepare(&rig, name).await;
    }
    for (name, _) in &all {
        if !matches!(write, Write::Finalize | Write::Status | Write::Create) {
            rig.until_ready(name, Open).await;
        }
    }
    rig.pass(Duration::from_mins(1)).await;
    let mut injected = Vec::new();
    for (name, fault) in all.clone() {
        let fault = write.of(fault, &name);
        let fault = if lasting.is_none() {
            fault.times(1)
        } else {
            fault
        };
        injected.push((name, rig.server.inject(fault)));
    }
    for (name, _) in &all {
        write.provoke(&rig, name).await;
    }
    if let Some(time) = lasting {
        rig.pass(time).await;
        for (name, injected) in &injected {
            let tries = injected.struck();
            // OKT does not repeat a write that was carried out, whatever the answer was.
            let fewest = if name.ends_with("after") || name == "cut" {
                1
            } else {
                2
            };
            assert!(
                (fewest..=40).contains(&tries),
                "{write:?} {name}: {tries} tries in {time:?}"
            );
            injected.end();
        }
    }
    let before = tokio::time::Instant::now();
    for (name, injected) in &injected {
        write.converge(&rig, name).await;
        assert!(
            injected.struck() >= 1,
            "{write:?} {name}: nothing was struck"
        );
    }
    let took = before.elapsed();
    assert!(took <= Duration::from_mins(8), "{write:?}: {took:?}");
}

macro_rules! every_failure {
    ($($once:ident, $lasting:ident: $write:ident;)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $once() {
                survive(Write::$write, None).await;
            }

            #[tokio::test(start_paused = true)]
            async fn $lasting() {
                survive(Write::$write, Some(Duration::from_mins(20))).await;
            }
        )*
    };
}

every_failure! {
    a_finalizer_that_could_not_be_added_once_is_added, a_finalizer_that_could_not_be_added_for_long_is_added: Finalize;
    a_status_that_could_not_be_written_once_is_written, a_status_that_could_not_be_written_for_long_is_written: Status;
    a_finalizer_that_could_not_be_dropped_once_is_dropped, a_finalizer_that_could_not_be_dropped_for_long_is_dropped: Release;
    an_object_that_could_not_be_created_once_is_created, an_object_that_could_not_be_created_for_long_is_created: Create;
    an_object_that_could_not_be_applied_once_is_applied, an_object_that_could_not_be_applied_for_long_is_applied: Apply;
    an_object_that_could_not_be_deleted_once_is_deleted, an_object_that_could_not_be_deleted_for_long_is_deleted: Delete;
}

#[tokio::test(start_paused = true)]
async fn a_single_server_error_does_not_stall_an_object() {
    for code in [404, 500, 503, 504] {
        let rig = Rig::new().await;
        rig.create_ready("db", DatabaseState::Running).await;
        let fault = rig.inject(
            Fault::answer(code, "", "etcdserver: leader changed")
                .subresource("status")
                .times(1),
        );
        rig.ask_for("db", json!({ "state": "End" })).await;
        rig.until_ready("db", DatabaseState::End).await;
        assert_eq!(fault.struck(), 1);
        for version in &rig.server.versions() {
            let conditions = &version.object()["status"]["conditions"];
            let mut conditions = conditions.as_array().into_iter().flatten();
            assert!(conditions.all(|c| c["type"] != "Stalled"), "{code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lasting_server_error_is_reported() {
    let rig = Rig::new().await;
    let fault = Fault::answer(500, "InternalError", "etcdserver: no space")
        .client(OPERATOR)
        .resource("databases");
    let fault = fault
        .matching(|request| request.subresource.is_none())
        .on_writes();
    let fault = rig.server.inject(fault);
    rig.create("db", json!({})).await;
    rig.pass(Duration::from_secs(20)).await;
    assert_eq!(rig.shows("db", "Stalled").await, "", "it may pass");
    rig.until_message("db", "Stalled", "WriteFailed", "etcdserver: no space")
        .await;
    fault.end();
    rig.until_ready("db", DatabaseState::Running).await;
    assert_eq!(rig.shows("db", "Stalled").await, "");
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_write_is_reported_at_once_with_its_remedy() {
    let rig = Rig::new().await;
    let fault = Fault::forbidden().client(OPERATOR).resource("databases");
    let fault = fault
        .matching(|request| request.subresource.is_none())
        .on_writes();
    let fault = rig.server.inject(fault);
    rig.create("db", json!({})).await;
    rig.pass(Duration::from_secs(1)).await;
    rig.until_message("db", "Stalled", "Forbidden", "`rbac`")
        .await;
    fault.end();
    rig.until_ready("db", DatabaseState::Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_for_another_cause_than_a_role_or_a_schema_names_that_cause() {
    let quota = r#"databases.demo.okt.dev "db" is forbidden: exceeded quota: q, requested: x=1"#;
    let namespace = r#"databases.demo.okt.dev "db" is forbidden: unable to create new content in namespace default because it is being terminated"#;
    let webhook = r#"admission webhook "check.example.com" denied the request: not on a Friday"#;
    for (code, reason, message, advice) in [
        (
            403,
            "Forbidden",
            quota,
            "raise the quota of the namespace, or ask for less",
        ),
        (403, "Forbidden", namespace, "it ends with the namespace"),
        (
            403,
            "Forbidden",
            webhook,
            "see its configuration and its log",
        ),
        (
            400,
            "BadRequest",
            webhook,
            "see its configuration and its log",
        ),
        (422, "Invalid", webhook, "see its configuration and its log"),
    ] {
        let rig = Rig::new().await;
        let fault = rig.inject(
            Fault::answer(code, reason, message)
                .matching(|request| request.subresource.is_none())
                .resource("databases")
                .on_writes(),
        );
        rig.create("db", json!({})).await;
        let reason = if code == 403 { "Forbidden" } else { "Refused" };
        let stalled = rig.until_reason("db", "Stalled", reason).await;
        assert!(stalled.message.ends_with(advice), "{}", stalled.message);
        for other in ["`rbac`", "CRD"] {
            assert!(!stalled.message.contains(other), "{}", stalled.message);
        }
        fault.end();
        rig.until_ready("db", DatabaseState::Running).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_does_not_block_the_abandonment_of_an_object() {
    let rig = Rig::new().await;
    rig.create_ready("db", DatabaseState::Running).await;
    rig.delete("db").await;
    let fault = rig.inject(Fault::answer(422, "Invalid", "no").subresource("status"));
    rig.pass(Duration::from_mins(20)).await;
    assert!(fault.struck() > 3);
    rig.abandon("db").await;
    rig.pass(Duration::from_secs(1)).await;
    assert!(rig.get("db").await.is_none(), "it is abandoned at once");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_pause_is_written_at_once_after_a_refused_write() {
    let rig = Rig::new().await;
    rig.create_ready("db", DatabaseState::Running).await;
    rig.pause("db").await;
    rig.pass(Duration::from_secs(1)).await;
    let fault = rig.inject(Fault::answer(422, "Invalid", "no").subresource("status"));
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.pass(Duration::from_mins(20)).await;
    fault.end();
    rig.unpause("db").await;
    rig.pass(Duration::from_secs(5)).await;
    rig.until_ready("db", DatabaseState::End).await;
}

#[tokio::test(start_paused = true)]
async fn events_of_others_do_not_bring_a_failed_write_forward() {
    let rig = Rig::new().await;
    rig.create_ready("db", DatabaseState::Running).await;
    let fault = rig.inject(Fault::unavailable().subresource("status"));
    rig.ask_for("db", json!({ "state": "End" })).await;
    for number in 0..720 {
        let label = json!({ "metadata": { "labels": { "n": number.to_string() } } });
        rig.patch("db", label).await;
        rig.pass(Duration::from_secs(5)).await;
    }
    let tries = fault.struck();
    println!("writes of an hour with an event every five seconds: {tries}");
    assert!(tries <= 40, "{tries}");
}

#[tokio::test(start_paused = true)]
async fn conflicts_are_backed_off_like_other_errors() {
    let rig = Rig::new().await;
    rig.create_ready("db", DatabaseState::Running).await;
    let fault = rig.inject(Fault::conflict().subresource("status"));
    rig.ask_for("db", json!({ "state": "End" })).await;
    rig.pass(Duration::from_hours(1)).await;
    let tries = fault.struck();
    println!("conflicts of an hour: {tries}");
    assert!((5..=40).contains(&tries), "{tries}");
    fault.end();
    // A newer version causes a retry at once.
    let label = json!({ "metadata": { "labels": { "n": "1" } } });
    rig.patch("db", label).await;
    rig.pass(Duration::from_secs(5)).await;
    rig.until_ready("db", DatabaseState::End).await;
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_leave_room_for_those_of_okt() {
    let rig = Rig::without_operator().await;
    rig.create("db", json!({})).await;
    let at = "2026-11-21T09:00:00Z";
    let foreign: Vec<_> = (0..32)
        .map(|number| {
            json!({ "type": format!("example.com/C{number}"), "status": "True", "reason": "Mine",
            "message": "", "lastTransitionTime": at })
        })
        .collect();
    let foreign = json!({
        "apiVersion": "demo.okt.dev/v1", "kind": "Database",
        "metadata": { "name": "db" },
        "status": { "conditions": foreign },
    });
    rig.raw()
        .patch_status("db", &PatchParams::apply("other"), &Patch::Apply(foreign))
        .await
        .expect("it is accepted");
    rig.start();
    rig.until_ready("db", DatabaseState::Running).await;
}
