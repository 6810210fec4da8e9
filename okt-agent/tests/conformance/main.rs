//! The conformance test of agents: the real agent keeps every rule, and a wrong one is caught by the check for its
//! flaw.

mod flawed;
mod real;
mod served;

use std::time::Duration;

use okt_agent::client::Endpoint;
use okt_agent::conformance::{Finding, Report, Subject, Verdict};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use self::flawed::{FLAWS, Flaw, flawed};
use self::real::{Machine, states};
use self::served::{ListenerKind, Served};

/// Returns the agent, with this flaw if there is one, and a way to kill it.
async fn subject(flaw: Option<Flaw>) -> Subject {
    let machine = Machine::new(flaw == Some(Flaw::ForgetsAll)).await;
    let service = machine.service();
    let client = flawed(flaw, service);
    Subject::behind(client, states()).restart(move || {
        let machine = machine.clone();
        async move {
            machine.restart().await;
            Ok(())
        }
    })
}

#[tokio::test]
async fn the_real_agent_keeps_every_rule() {
    let report = subject(None).await.check().await;
    assert!(report.is_kept(), "{report}");
    let is_skipped = |finding: &&Finding| matches!(finding.verdict, Verdict::Skipped(_));
    let findings = report.findings.iter().filter(is_skipped);
    let skipped: Vec<&str> = findings.map(|finding| finding.check).collect();
    assert_eq!(skipped, ["token", "slow"], "these need a listener");
    assert!(report.findings.len() > 40, "{}", report.findings.len());
}

/// Returns the same agent on its own listeners.
async fn listening(kind: ListenerKind) -> Subject {
    let agent = Served::at(kind).await;
    let subject = Subject::new(agent.endpoint(), states()).expect("an endpoint");
    subject.restart(move || {
        let agent = agent.clone();
        async move {
            agent.restart().await;
            Ok(())
        }
    })
}

#[tokio::test]
async fn the_real_agent_keeps_every_rule_over_tcp() {
    let report = listening(ListenerKind::Tcp).await.check().await;
    assert_eq!(kept(&report), report.findings.len(), "{report}");
}

#[tokio::test]
async fn the_real_agent_is_checked_with_tls_and_over_a_socket() {
    for kind in [ListenerKind::Tls, ListenerKind::Unix] {
        let checks = ["status", "begins-once", "cancels", "restart-keeps-results"];
        let report = listening(kind).await.only(checks).check().await;
        assert_eq!(kept(&report), checks.len(), "{kind:?}: {report}");
    }
}

#[tokio::test]
async fn each_flaw_is_caught_by_its_check() {
    for (flaw, check) in FLAWS {
        let report = subject(Some(*flaw)).await.only([*check]).check().await;
        assert_eq!(broken(&report), [*check], "{flaw:?}:\n{report}");
        println!("{flaw:?}: {report}");
    }
}

#[tokio::test]
async fn an_agent_that_forgets_everything_when_killed_is_caught_by_every_restart_check() {
    let names = ["guesses-nothing", "keeps-results", "keeps-fences"];
    let checks = names.map(|name| format!("restart-{name}"));
    let subject = subject(Some(Flaw::ForgetsAll)).await.only(checks.clone());
    let report = subject.check().await;
    assert_eq!(broken(&report), checks, "{report}");
}

#[tokio::test]
async fn an_agent_that_asks_for_no_token_is_caught() {
    let (endpoint, _serving) = serve().await;
    let subject = Subject::new(endpoint.token("secret"), states()).expect("an endpoint");
    let report = subject.only(["token"]).check().await;
    assert_eq!(broken(&report), ["token"], "{report}");
}

#[tokio::test]
async fn an_agent_that_keeps_half_open_connections_is_caught() {
    // A server without any timeout.
    let (endpoint, _serving) = serve().await;
    let subject = Subject::new(endpoint, states()).expect("an endpoint");
    let report = subject.only(["slow"]).check().await;
    assert_eq!(broken(&report), ["slow"], "{report}");
}

#[tokio::test]
async fn an_endpoint_without_a_listener_fails_the_test() {
    let nowhere = Endpoint::parse("http://127.0.0.1:1").expect("a URL");
    let endpoint = nowhere.timeout(Duration::from_secs(5));
    let subject = Subject::new(endpoint, states()).expect("an endpoint");
    let report = subject.check().await;
    assert_eq!(broken(&report), ["answers"], "{report}");
}

fn kept(report: &Report) -> usize {
    let kept = report.findings.iter().map(|finding| &finding.verdict);
    kept.filter(|verdict| **verdict == Verdict::Kept).count()
}

fn broken(report: &Report) -> Vec<&'static str> {
    report.broken().map(|finding| finding.check).collect()
}

/// Serves an agent on loopback until the guard is dropped.
async fn serve() -> (Endpoint, AbortOnDropHandle<()>) {
    let machine = Machine::new(false).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        let served = axum::serve(listener, machine.service()).await;
        served.expect("it serves until it is dropped");
    });
    let endpoint = Endpoint::parse(&url).expect("a URL");
    (endpoint, AbortOnDropHandle::new(serving))
}
