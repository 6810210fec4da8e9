//! The map in a real browser: `tests/page/map.mjs` looks at it.

use std::path::Path;
use std::process::Stdio;

use okt_tests::in_time;
use serde_json::json;
use tokio::process::Command;

use crate::world::{World, long_ago, status};

/// Puts databases into states of long ago.
pub(crate) async fn databases(world: &World) {
    for name in ["orders", "cart", "users"] {
        database(world, name, "Running", READY, false).await;
    }
    database(world, "archive", "ReadOnly", READY, false).await;
    let held = ("False", "OnHold", "Failed holds: it waits for a person");
    database(world, "billing", "Failed", held, true).await;
    world.database("new", json!({}), json!(null)).await;
}

/// Puts a database into a state of long ago.
async fn database(world: &World, name: &str, state: &str, ready: (&str, &str, &str), stuck: bool) {
    let lifecycle = json!({
        "state": state, "since": long_ago(), "transition": 2, "jumps": 1, "trail": format!(">Start>{state}"),
        "failure": { "reason": "ReplicaGone", "message": "the second replica does not answer" },
    });
    let status = status(lifecycle, ready, stuck);
    world.database(name, json!({}), status).await;
}

const READY: (&str, &str, &str) = ("True", "Ready", "it runs");

/// Looks at the map of a cluster in Chromium.
async fn look(world: &World) {
    let modules = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../page");
    assert!(
        modules.join("node_modules/puppeteer-core").is_dir(),
        "kubectl-okt/tests/page/install.sh installs what is missing"
    );
    let mut node = Command::new("node");
    node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/map.mjs"))
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("KUBECTL_OKT", env!("CARGO_BIN_EXE_kubectl-okt"))
        .env("KUBECONFIG", world.kubeconfig())
        .env(
            "TOKEN_FILE",
            world.file("token", "0123456789abcdef0123456789abcdef\n"),
        )
        .env("PAGE_MODULES", modules)
        .stdout(Stdio::inherit())
        .kill_on_drop(true);
    let ended = in_time("the claims are tried", node.status()).await;
    let ended = ended.expect("node starts");
    assert!(ended.success(), "{ended}");
}

#[tokio::test]
#[ignore = "needs Chromium and Node; run with --include-ignored"]
async fn a_browser_shows_where_the_objects_are_and_how_they_move() {
    let world = World::start().await;
    databases(&world).await;
    // Instead of the claims, frames a second are counted.
    if std::env::var_os("OKT_FRAMES").is_some() {
        for number in 0..5000 {
            database(&world, &format!("many-{number}"), "Running", READY, false).await;
        }
    }
    look(&world).await;
}
