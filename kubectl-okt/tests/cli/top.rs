//! `top` in a real terminal, which tmux is.

use std::process::Stdio;

use kube::api::{Patch, PatchParams};
use okt_apiserver::Fault;
use okt_tests::until;
use serde_json::json;
use tokio::process::Command;

use crate::page::databases;
use crate::world::World;

/// A terminal in which the program runs; dropping it ends both.
struct Terminal {
    socket: String,
}

impl Terminal {
    async fn open(world: &World) -> Self {
        let socket = world.file("tmux", "");
        std::fs::remove_file(&socket).expect("it was made");
        let terminal = Self { socket };
        let kubeconfig = world.kubeconfig();
        let program = format!(
            "{} --kubeconfig {} top -A",
            env!("CARGO_BIN_EXE_kubectl-okt"),
            kubeconfig.display()
        );
        let size = ["-x", "120", "-y", "30"];
        let session = ["new-session", "-d", "-s", "top"];
        terminal
            .tmux(&[&session[..], &size, &[&program]].concat())
            .await;
        terminal
    }

    /// Runs a command of tmux and returns what it prints; none if it fails, because the program has ended.
    async fn tmux(&self, arguments: &[&str]) -> Option<String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-S", &self.socket]).args(arguments);
        let ended = tmux.stderr(Stdio::null()).output().await;
        let output = ended.expect("kubectl-okt/tests/page/install.sh installs tmux");
        let is_found = output.status.success();
        is_found.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn press(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "top", key]).await;
    }

    /// Waits until the screen has these words, and returns it.
    async fn until(&self, words: &str) -> String {
        let mut last = String::new();
        until(words, async || {
            if let Some(screen) = self.screen().await
                && screen != last
            {
                println!("{screen}");
                last = screen;
            }
            last.contains(words)
        })
        .await;
        last
    }

    /// Returns what is on the screen; none once the program has ended.
    async fn screen(&self) -> Option<String> {
        self.tmux(&["capture-pane", "-p", "-t", "top"]).await
    }

    /// Waits until the program has ended.
    async fn ends(&self) {
        until("it has ended", async || self.screen().await.is_none()).await;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already if the test went well.
        let _ = std::process::Command::new("tmux")
            .args(["-S", &self.socket, "kill-server"])
            .stderr(Stdio::null())
            .status();
    }
}

#[tokio::test]
#[ignore = "needs tmux; run with --include-ignored"]
async fn the_objects_move_on_a_real_terminal_and_keys_work_as_the_foot_lists_them() {
    let world = World::start().await;
    databases(&world).await;
    let terminal = Terminal::open(&world).await;
    // A screen may be read while it is written.
    for words in ["6 objects", "Running  3  ●●●", "Failed  1  ✕"] {
        terminal.until(words).await;
    }
    let screen = terminal.until("OnHold").await;
    let first = screen
        .lines()
        .find(|line| line.contains("✕ ") && line.contains("OnHold"));
    assert!(
        first.is_some_and(|line| line.contains("✕ billing")),
        "{screen}"
    );
    // It moves.
    let moved = json!({ "status": { "lifecycle": {
        "state": "Servicing", "since": jiff::Timestamp::now().to_string(), "transition": 3,
    } } });
    let (api, plain) = (world.databases(), PatchParams::default());
    let patched = api
        .patch_status("orders", &plain, &Patch::Merge(&moved))
        .await;
    patched.expect("it moves");
    terminal.until("Servicing  1  ●").await;
    terminal.press("Enter").await;
    terminal.until("is a holding state").await;
    terminal.press("Escape").await;
    terminal.until("6 objects").await;
    terminal.press("/").await;
    terminal.press("cart").await;
    terminal.press("Enter").await;
    terminal.until("1 with “cart”").await;
    // Escape and another key at once would be one key.
    terminal.press("Escape").await;
    terminal.until("6 objects").await;
    terminal.press("p").await;
    terminal.until("2 to look at").await;
    terminal.press("Escape").await;
    terminal.until("6 objects").await;
    terminal.press("Left").await;
    terminal.press("Down").await;
    terminal.press("Down").await;
    terminal.until("2 in Running").await;
    terminal.press("q").await;
    terminal.ends().await;
}

#[tokio::test]
#[ignore = "needs tmux; run with --include-ignored"]
async fn a_cluster_that_does_not_answer_freezes_no_key() {
    let world = World::start().await;
    databases(&world).await;
    let terminal = Terminal::open(&world).await;
    terminal.until("6 objects").await;
    let silent = world.server.inject(Fault::no_answer().resource("leases"));
    terminal.press("Enter").await;
    terminal
        .until("reading why Database default/billing is where it is")
        .await;
    terminal.press("Tab").await;
    silent.end();
    terminal.press("q").await;
    terminal.ends().await;
}

#[tokio::test]
async fn without_a_terminal_it_names_what_to_use_instead() {
    let world = World::start().await;
    let printed = world.refuses(1, &["top"]).await;
    assert_eq!(
        printed,
        "error: top draws on a terminal; for a pipe there is `kubectl okt list -w`\n"
    );
}
