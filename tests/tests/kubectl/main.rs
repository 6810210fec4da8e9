//! Tests that a real kubectl shows the same output on the test double as on a real API server.
//!
//! Each theme is a recorded session, `<theme>.txt`: the typed commands after `$`, and their output. `OKT_BLESS=1 cargo
//! test -p okt-tests --test kubectl` records the sessions again from the real server. Both servers are compared with
//! the record.

mod normal;
mod session;

use std::path::Path;
use std::{env, fs};

use okt_testing::{ApiServer, Kubernetes};

use crate::session::{Session, Shell};

/// Plays a session on a real server and on the double.
async fn play(theme: &str) {
    let what = format!("what kubectl shows ({theme})");
    let Some(kubernetes) = Kubernetes::start_or_skip(&what).await.unwrap() else {
        return;
    };
    let Some(kubectl) = kubernetes.kubectl() else {
        eprintln!("skipped: {what}: there is no kubectl");
        return;
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kubectl/{theme}.txt"));
    let record = Session::parse(&fs::read_to_string(&file).unwrap());
    let program = Shell::new(&kubectl);

    let shell = program.on(kubernetes.kubeconfig());
    let real = run(record.clone(), shell).await;
    kubernetes.stop().await;
    let record = if env::var_os("OKT_BLESS").is_some() {
        fs::write(&file, real.to_string()).unwrap();
        real
    } else {
        record.assert_same(&real, "a real server");
        record
    };

    let double = ApiServer::new().serve().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    double.write_kubeconfig(&kubeconfig).unwrap();
    let shown = run(record.clone(), program.on(&kubeconfig)).await;
    record.assert_same(&shown, "the double");
}

async fn run(session: Session, shell: Shell) -> Session {
    // kubectl blocks, and the double answers it from this runtime.
    tokio::task::spawn_blocking(move || shell.play(&session))
        .await
        .unwrap()
}

/// One test for each session.
macro_rules! sessions {
    ($($theme:ident: $claim:ident,)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "needs a real API server; run with --include-ignored"]
        async fn $claim() {
            play(stringify!($theme)).await;
        }
    )+};
}

sessions! {
    crd: a_crd_becomes_a_resource_that_explains_itself,
    get: objects_are_shown_in_all_formats,
    describe: an_object_is_described,
    status: a_status_is_patched_waited_for_and_watched,
    delete: a_deletion_waits_for_finalizers_and_takes_dependents,
    apply: apply_creates_and_changes_objects_and_keeps_unchanged_ones,
    conflict: server_side_apply_reports_the_owner_of_a_field,
    change: objects_are_changed_by_verb,
    refused: errors_are_worded_as_by_a_server,
    builtin: kinds_that_operators_own_are_shown_with_their_columns,
    create: kinds_that_operators_own_are_created_by_verb,
}
