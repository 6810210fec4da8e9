//! A real PostgreSQL with its agent: through its lifecycle, and under random kills of all processes.
//!
//! `OKT_POSTGRES_ROUNDS` sets how many rounds of killing there are, `OKT_SEED` repeats the choices; the timing depends
//! on the machine.
//! Without PostgreSQL these tests report that and pass, except where `CI` is set.

mod record;
mod rounds;
mod scripts;

use std::path::Path;
use std::process::Command;

use okt_examples::postgres::server::programs;
use okt_testing::Kubernetes;

const PROGRAM: &str = env!("CARGO_BIN_EXE_postgres");

/// Returns whether there is a PostgreSQL; in CI there must be one.
pub(crate) fn is_here() -> bool {
    match programs() {
        Ok(_) => true,
        Err(error) if std::env::var_os("CI").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

fn demo(kubeconfig: Option<&Path>) {
    let mut show = Command::new(PROGRAM);
    if let Some(kubeconfig) = kubeconfig {
        show.arg("--kubeconfig").arg(kubeconfig);
    }
    let output = show.output().expect("the program runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}");
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(printed.contains("everything was as it should be"));
}

#[test]
#[ignore = "needs PostgreSQL; run with --include-ignored"]
fn a_real_postgresql_goes_through_its_lifecycle_and_loses_no_commit() {
    if is_here() {
        demo(None);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn it_does_the_same_on_a_real_api_server() {
    if !is_here() {
        return;
    }
    let what = "a PostgreSQL on a real API server";
    let Some(kubernetes) = Kubernetes::start_or_skip(what).await.expect("a server") else {
        return;
    };
    let kubeconfig = kubernetes.kubeconfig().to_owned();
    let shown = tokio::task::spawn_blocking(move || demo(Some(&kubeconfig))).await;
    kubernetes.stop().await;
    shown.expect("the demo succeeds");
}
