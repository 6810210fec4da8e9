//! `preview`: what the second release of an operator says about the objects that the first one left.

use std::process::Output;

use expect_test::expect_file;
use okt_testing::{Fault, RequestRecord, Verb};
use okt_tests::lamps::first::{LampState, Lamps};
use okt_tests::{MillState, Mills, Rig, Served, assert_contains};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

/// Runs the second release against the API of a rig.
async fn run(rig: &Rig<Lamps>, args: &[&str]) -> Output {
    run_program(env!("CARGO_BIN_EXE_lamps"), rig, args).await
}

async fn run_program<A: Served>(program: &str, rig: &Rig<A>, args: &[&str]) -> Output {
    output_of(&mut Command::new(program), rig, args).await
}

async fn output_of<A: Served>(program: &mut Command, rig: &Rig<A>, args: &[&str]) -> Output {
    let served = rig.server.serve().await.expect("it listens");
    let folder = TempDir::new().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, served.kubeconfig()).expect("a file");
    let program = program.args(args).env("KUBECONFIG", kubeconfig);
    program.output().await.expect("it runs")
}

/// Returns a rig with a lamp in each state that the releases differ in; its operator is gone.
async fn lamps() -> Rig<Lamps> {
    let rig = Rig::<Lamps>::of().await;
    for (name, state) in [
        ("hall", LampState::Lit),
        ("attic", LampState::Dimmed),
        ("cellar", LampState::Checked),
        ("garden", LampState::Dark),
    ] {
        let watts = (name == "hall").then_some(60);
        rig.create_with(name, json!({ "watts": watts })).await;
        rig.ask_for(name, json!({ "state": format!("{state:?}") }))
            .await;
        rig.until_in(name, state).await;
    }
    // No route leads from there, in the first release.
    rig.ask_for("garden", json!({ "state": "Lit" })).await;
    rig.until_reason("garden", "Ready", "NoRoute").await;
    rig.kill().await;
    rig
}

/// Asserts that all requests of a preview are among those that the roles of its operator permit, and change nothing.
fn has_changed_nothing(rig: &Rig<Lamps>) {
    let requests = rig.server.requests();
    // The roles of an operator have no `get`.
    let gets = requests.iter().filter(|request| request.verb == Verb::Get);
    let of_operator = |request: &&RequestRecord| {
        ["customresourcedefinitions", "lamps"].contains(&request.resource.as_str())
    };
    assert_eq!(gets.filter(of_operator).count(), 0);
    let tried = requests.iter().filter(|request| request.dry_run).count();
    assert_eq!(tried, 9, "each change was tried");
    let written: Vec<_> = requests
        .iter()
        .filter(|request| request.is_write())
        // The API server answers it, and stores nothing.
        .filter(|request| request.resource != "subjectaccessreviews")
        .collect();
    assert!(written.is_empty(), "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_renamed_one_that_is_gone_and_a_template_are_all_said_and_nothing_is_written()
 {
    let rig = lamps().await;
    rig.server.clear_requests();
    let output = run(&rig, &["preview"]).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    expect_file!["lamps.preview.txt"].assert_eq(&text);
    assert_eq!(output.status.code(), Some(4), "a lamp has no place");
    has_changed_nothing(&rig);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_is_named() {
    let rig = lamps().await;
    let no_such = Fault::answer(404, "NotFound", "no such kind");
    let _fault = rig
        .server
        .inject(no_such.on(Verb::List).resource("configmaps"));
    let output = run(&rig, &["preview"]).await;
    let text = String::from_utf8_lossy(&output.stdout);
    assert_contains(&text, "ConfigMap objects cannot be listed: 404");
}

#[tokio::test(start_paused = true)]
async fn the_lack_of_a_policy_of_approvals_is_said_and_the_manifests_have_it_if_asked() {
    let rig = Rig::<Mills>::of().await;
    rig.kill().await;
    let none = Fault::answer(404, "NotFound", "no such policy");
    let policies = none.on(Verb::Get).resource("validatingadmissionpolicies");
    let _fault = rig.server.inject(policies);
    let mills = env!("CARGO_BIN_EXE_mills");
    let preview = run_program(mills, &rig, &["preview"]).await;
    assert_contains(
        &String::from_utf8_lossy(&preview.stdout),
        "whoever may edit an object may approve its plans: `manifests --policy` prints the policy mills-approvals.demo.okt.dev",
    );
    let image = ["manifests", "--image", "registry.example/mills:1"];
    let printed = run_program(mills, &rig, &image).await;
    let printed = String::from_utf8(printed.stdout).expect("text");
    assert_contains(&printed, "name: mills.demo.okt.dev:approve");
    assert!(!printed.contains("ValidatingAdmissionPolicy"));
    let with_policy = run_program(mills, &rig, &[&image[..], &["--policy"]].concat()).await;
    let with_policy = String::from_utf8(with_policy.stdout).expect("text");
    for kind in [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ] {
        assert_contains(&with_policy, &format!("kind: {kind}\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_changes_in_some_states_only_is_named_as_one_that_waits() {
    let first = |mills: &Mills| *mills.release.lock() = Some("1".to_owned());
    let rig = Rig::<Mills>::prepared("old", first).await;
    rig.until_ready("old", MillState::Running).await;
    rig.kill().await;
    let mut second = Command::new(env!("CARGO_BIN_EXE_mills"));
    let preview = output_of(second.env("MILL_RELEASE", "2"), &rig, &["preview"]).await;
    assert_contains(
        &String::from_utf8_lossy(&preview.stdout),
        "  ConfigMap default/old of Mill default/old would be changed, once its object is in a state for it (`changes_in`)\n",
    );
}
