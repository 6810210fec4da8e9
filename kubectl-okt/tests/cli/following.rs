//! The commands that follow objects until they are interrupted.

use std::process::Stdio;
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use okt_tests::until;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::page::databases;
use crate::world::{World, long_ago};

/// As long as tests wait for real processes.
const PATIENCE: Duration = Duration::from_mins(10);

/// A command that runs, and the lines that it prints.
pub(crate) struct Following {
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) program: Child,
}

impl Following {
    pub(crate) fn of(world: &World, arguments: &[&str]) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_kubectl-okt"))
            .arg("--kubeconfig")
            .arg(world.kubeconfig())
            .args(arguments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let out = program.stdout.take().expect("it is piped");
        Self {
            lines: BufReader::new(out).lines(),
            program,
        }
    }

    /// Returns the next line, without the spaces between columns.
    pub(crate) async fn next(&mut self) -> String {
        let read = timeout(PATIENCE, self.lines.next_line()).await;
        let next = read.expect("a line in time").expect("text");
        let line = next.expect("it goes on");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

async fn change(world: &World, name: &str, status: Value) {
    let plain = PatchParams::default();
    let patch = Patch::Merge(json!({ "status": status }));
    let patched = world.databases().patch_status(name, &plain, &patch).await;
    patched.expect("a status");
}

#[tokio::test]
async fn a_list_that_is_followed_has_a_line_for_each_change_that_is_seen_in_it() {
    let world = World::start().await;
    databases(&world).await;
    let mut list = Following::of(&world, &["list", "-w"]);
    assert_eq!(
        list.next().await,
        "KIND NAME STATE FOR DESIRED READY REASON"
    );
    let mut first = Vec::new();
    for _ in 0..6 {
        first.push(list.next().await);
    }
    assert!(
        first.contains(&"Database orders Running 9d Running True Ready".to_owned()),
        "{first:?}"
    );
    // A change that no column shows is no line.
    change(
        &world,
        "orders",
        json!({ "observedGeneration": 1, "lifecycle": { "trail": ">Start>" } }),
    )
    .await;
    let since = jiff::Timestamp::now().to_string();
    let moved = json!({ "lifecycle": { "state": "Servicing", "since": since, "transition": 3 } });
    change(&world, "orders", moved).await;
    let line = list.next().await;
    assert!(line.starts_with("Database orders Servicing "), "{line}");
    let gone = world
        .databases()
        .delete("cart", &DeleteParams::default())
        .await;
    gone.expect("it goes");
    let line = list.next().await;
    assert_eq!(line, "Database cart Running 9d Running True deleted");
}

#[tokio::test]
async fn an_object_that_is_of_the_list_again_is_a_line() {
    let world = World::start().await;
    databases(&world).await;
    let mut list = Following::of(&world, &["list", "-w", "--problems"]);
    for _ in 0..3 {
        list.next().await;
    }
    let state = |name: &str, number: u64| json!({ "lifecycle": { "state": name, "since": long_ago(), "transition": number } });
    let stalled = |status: &str| {
        json!([
            { "type": "Ready", "status": "False", "reason": "OnHold", "message": "a person is needed", "observedGeneration": 1, "lastTransitionTime": "2026-11-21T09:00:00Z" },
            { "type": "Stalled", "status": status, "reason": "OnHold", "message": "a person is needed", "observedGeneration": 1, "lastTransitionTime": "2026-11-21T09:00:00Z" },
        ])
    };
    for (number, name, status) in [(3, "Running", "False"), (4, "Failed", "True")] {
        let mut moved = state(name, number);
        moved["conditions"] = stalled(status);
        change(&world, "billing", moved).await;
    }
    let line = list.next().await;
    assert!(line.starts_with("Database billing Failed "), "{line}");
    // What was never listed is not reported when it is gone.
    for name in ["cart", "new"] {
        let (api, now) = (world.databases(), DeleteParams::default());
        api.delete(name, &now).await.expect("it goes");
    }
    let line = list.next().await;
    assert!(line.starts_with("Database new "), "{line}");
    assert!(line.ends_with(" deleted"), "{line}");
}

#[tokio::test]
async fn a_list_whose_reader_is_gone_ends_and_a_full_disk_is_an_error() {
    let world = World::start().await;
    databases(&world).await;
    let mut list = Following::of(&world, &["list", "-w"]);
    list.next().await;
    let Following { lines, mut program } = list;
    drop(lines);
    let moved = |number: u64| {
        let state = if number % 2 == 1 {
            "Servicing"
        } else {
            "Running"
        };
        json!({ "lifecycle": { "state": state, "since": long_ago(), "transition": number } })
    };
    for number in 3.. {
        change(&world, "orders", moved(number)).await;
        if let Some(ended) = program.try_wait().expect("it can be waited for") {
            assert!(ended.success(), "{ended}");
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let full = std::fs::File::options().write(true).open("/dev/full");
    let list = Command::new(env!("CARGO_BIN_EXE_kubectl-okt"))
        .arg("--kubeconfig")
        .arg(world.kubeconfig())
        .arg("list")
        .stdout(full.expect("a full disk"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = list.wait_with_output().await.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        printed.starts_with("error: cannot print: No space left"),
        "{printed}"
    );
}

#[tokio::test]
async fn conditions_that_are_followed_are_compared_with_the_version_before() {
    let world = World::start().await;
    databases(&world).await;
    let mut printed = Following::of(&world, &["conditions", "databases", "orders", "-w"]);
    let watches = || {
        let requests = world.server.requests();
        requests
            .iter()
            .any(|request| request.to_string().starts_with("watch databases"))
    };
    // It has read the first version.
    until("it watches", async || watches()).await;
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Ready", "message": "it runs",
        "observedGeneration": 1, "lastTransitionTime": "2026-11-22T09:00:00Z",
    });
    change(&world, "orders", json!({ "conditions": [condition] })).await;
    assert_eq!(printed.next().await, "Database default/orders");
    let line = printed.next().await;
    assert_eq!(line, "D02 Ready: has a new time without a new status");
}
