//! The conformance test of agents: the real agent keeps every rule, and a wrong one is caught by the check for its
//! flaw.

mod flawed;
mod real;
mod served;

use std::time::Duration;

use okt_agent::client::Endpoint;
use okt_agent::conformance::{Report, Subject, Verdict};
use tokio::net::TcpListener;

use self::flawed::{FLAWS, Flaw, flawed};
use self::real::{Machine, states};
use self::served::{Door, Served};

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
    let skipped: Vec<&str> = (report.findings.iter())
        .filter(|finding| matches!(finding.verdict, Verdict::Skipped(_)))
        .map(|finding| finding.check)
        .collect();
    assert_eq!(skipped, ["token", "slow"], "these need a listener");
    assert!(report.findings.len() > 40, "{}", report.findings.len());
}

/// Returns the same agent on its own listeners.
async fn listening(door: Door) -> Subject {
    let agent = Served::at(door).await;
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
    let report = listening(Door::Tcp).await.check().await;
    let kept = (report.findings.iter()).filter(|finding| finding.verdict == Verdict::Kept);
    assert_eq!(kept.count(), report.findings.len(), "{report}");
}

#[tokio::test]
async fn the_real_agent_is_checked_with_tls_and_over_a_socket() {
    for door in [Door::Tls, Door::Unix] {
        let checks = ["status", "begins-once", "cancels", "restart-keeps-results"];
        let report = listening(door).await.only(checks).check().await;
        let kept = (report.findings.iter()).filter(|finding| finding.verdict == Verdict::Kept);
        assert_eq!(kept.count(), checks.len(), "{door:?}: {report}");
    }
}

#[tokio::test]
async fn each_flaw_is_caught_by_its_check() {
    for (flaw, check) in FLAWS {
        let report = subject(Some(*flaw)).await.only([*check]).check().await;
        assert_eq!(
            broken(&report),
            [*check],
            "{flaw:?} is not caught:\n{report}"
        );
        println!("{flaw:?}: {report}");
    }
}

#[tokio::test]
async fn an_agent_that_forgets_everything_when_killed_is_caught_by_every_restart_check() {
    let checks = [
        "restart-guesses-nothing",
        "restart-keeps-results",
        "restart-keeps-fences",
    ];
    let subject = subject(Some(Flaw::ForgetsAll)).await.only(checks);
    let report = subject.check().await;
    assert_eq!(broken(&report), checks, "{report}");
}

#[tokio::test]
async fn an_agent_that_asks_for_no_token_is_caught() {
    let (url, _serving) = serve().await;
    let endpoint = Endpoint::parse(&url).expect("a URL").token("secret");
    let subject = Subject::new(endpoint, states()).expect("an endpoint");
    let report = subject.only(["token"]).check().await;
    assert_eq!(broken(&report), ["token"], "{report}");
}

#[tokio::test]
async fn an_agent_that_keeps_half_open_connections_is_caught() {
    // A server without any timeout.
    let (url, _serving) = serve().await;
    let endpoint = Endpoint::parse(&url).expect("a URL");
    let subject = Subject::new(endpoint, states()).expect("an endpoint");
    let report = subject.only(["slow"]).check().await;
    assert_eq!(broken(&report), ["slow"], "{report}");
}

#[tokio::test]
async fn an_endpoint_without_a_listener_fails_the_test() {
    let endpoint = Endpoint::parse("http://127.0.0.1:1").expect("a URL");
    let endpoint = endpoint.timeout(Duration::from_secs(5));
    let subject = Subject::new(endpoint, states()).expect("an endpoint");
    let report = subject.check().await;
    assert_eq!(broken(&report), ["answers"], "{report}");
}

fn broken(report: &Report) -> Vec<&'static str> {
    report.broken().map(|finding| finding.check).collect()
}

/// Serves an agent on loopback until the guard is dropped.
async fn serve() -> (String, tokio_util::task::AbortOnDropHandle<()>) {
    let machine = Machine::new(false).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move {
        let served = axum::serve(listener, machine.service()).await;
        served.expect("it serves until it is dropped");
    });
    (url, tokio_util::task::AbortOnDropHandle::new(serving))
}
