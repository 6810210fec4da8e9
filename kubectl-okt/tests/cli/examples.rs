//! The operators of the examples, seen from another terminal: nothing is configured.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::discovery::ApiResource;
use okt_apiserver::ApiServer;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::world::{Shell, run};

/// As long as tests wait for real processes.
const PATIENCE: Duration = Duration::from_mins(10);

/// Returns a program of the examples, which are built with this one; in CI they must be.
fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_kubectl-okt")).with_file_name(name);
    if path.is_file() {
        return Some(path);
    }
    let why = format!("{} is not built: cargo build --workspace", path.display());
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("skipped: {why}");
    None
}

/// The second terminal.
struct Terminal<'a> {
    kubeconfig: &'a Path,
    /// What is looked at, as `list` names it: kind and name.
    object: (&'a str, &'a str),
}

impl Terminal<'_> {
    async fn prints(&self, arguments: &[&str]) -> String {
        let output = run(self.kubeconfig, arguments).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the row of the object in the list has these words, one after the other.
    async fn until_listed(&self, words: &[&str]) {
        let mut listed = String::new();
        let wait = async {
            // Its CRD comes a moment after the program has started.
            loop {
                let output = run(self.kubeconfig, &["list", "-A"]).await;
                listed = String::from_utf8_lossy(&output.stdout).into_owned();
                let mut rows = listed
                    .lines()
                    .map(|line| line.split_whitespace().collect::<Vec<_>>());
                let (kind, name) = self.object;
                let is_there = |row: &Vec<&str>| row.contains(&kind) && row.contains(&name);
                if rows.any(|row| is_there(&row) && row.windows(words.len()).any(|it| it == words))
                {
                    return;
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        let in_time = timeout(PATIENCE, wait).await;
        assert!(
            in_time.is_ok(),
            "{:?} has no {words:?}: {listed}",
            self.object
        );
    }

    /// Looks at the object with `get` and `why`, which print these texts, and finds it on the map.
    async fn looks(&self, of_get: &str, of_why: &str) {
        let (kind, name) = self.object;
        let path = format!("{}/{name}", kind.to_lowercase());
        let got = self.prints(&["get", &path]).await;
        println!("{got}");
        assert!(got.contains(of_get), "{got}");
        let why = self.prints(&["why", &path]).await;
        println!("{why}");
        assert!(why.contains(of_why), "{why}");
        assert!(self.map_has(name).await, "the map does not have {name}");
    }

    /// Returns whether the events of the map name the object.
    async fn map_has(&self, name: &str) -> bool {
        let mut map = Command::new(env!("CARGO_BIN_EXE_kubectl-okt"))
            .arg("--kubeconfig")
            .arg(self.kubeconfig)
            .args(["map", "-A"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let (line, _) = line_with(&mut map, "the map is at http://").await;
        let (_, at) = line.split_once("http://").expect("an address");
        let (host, _) = at.split_once('/').expect("a path");
        let mut stream = TcpStream::connect(host).await.expect("a connection");
        let request = format!("GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it is sent");
        let mut answer = Vec::new();
        let read = async {
            while stream
                .read_buf(&mut answer)
                .await
                .is_ok_and(|read| read > 0)
            {
                if String::from_utf8_lossy(&answer).contains(&format!("\"{name}\"")) {
                    return true;
                }
            }
            false
        };
        timeout(PATIENCE, read).await.unwrap_or(false)
    }
}

/// Interrupts a program, and waits until it has ended.
async fn interrupted(mut program: Child) -> ExitStatus {
    let pid = program.id().expect("it runs").to_string();
    let signal = Command::new("kill").args(["-INT", &pid]).status().await;
    assert!(signal.expect("kill runs").success());
    let ended = timeout(PATIENCE, program.wait()).await.expect("it ends");
    ended.expect("it can be waited for")
}

/// Waits for a line of a program that has this text. Returns it, and what was printed before.
async fn line_with(program: &mut Child, text: &str) -> (String, String) {
    let out = program.stdout.as_mut().expect("it is piped");
    let mut lines = BufReader::new(out).lines();
    let mut printed = String::new();
    let wait = async {
        while let Some(line) = lines.next_line().await.expect("text") {
            if line.contains(text) {
                return Some(line);
            }
            printed += &format!("{line}\n");
        }
        None
    };
    let found = timeout(PATIENCE, wait).await.ok().flatten();
    match found {
        Some(line) => (line, printed),
        None => panic!("no line has {text:?}: {printed}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute; run with --include-ignored"]
async fn the_tour() {
    let Some(tour) = program("tour") else { return };
    let mut tour = Command::new(tour)
        .arg("--serve")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    // The tour checks all that it shows, and ends where something is wrong.
    let (line, said) = line_with(&mut tour, " get notes -w").await;
    let (_, rest) = line.split_once("--kubeconfig ").expect("a kubeconfig");
    let (kubeconfig, _) = rest.split_once(" get ").expect("a command");
    let terminal = Terminal {
        kubeconfig: Path::new(kubeconfig),
        object: ("Notes", "red"),
    };
    terminal.until_listed(&["red", "Running"]).await;
    terminal.looks("Servicing", "Nothing is wrong").await;

    let ended = interrupted(tour).await;
    assert!(ended.success(), "{ended}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL; run with --include-ignored"]
async fn a_real_postgresql_while_its_lifecycle_is_shown() {
    let Some(postgres) = program("postgres") else {
        return;
    };
    let shell = Shell::of(&ApiServer::new()).await;
    let kubeconfig = shell.kubeconfig();
    let show = Command::new(postgres)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let terminal = Terminal {
        kubeconfig: &kubeconfig,
        object: ("Postgres", "orders"),
    };
    terminal.until_listed(&["orders", "Running"]).await;
    terminal
        .looks("Hibernated", "Postgres default/orders is in")
        .await;
    interrupted(show).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memcached_that_waits_for_its_servers() {
    let Some(memcached) = program("memcached") else {
        return;
    };
    let server = ApiServer::new();
    let shell = Shell::of(&server).await;
    let client = server.client();
    let output = Command::new(&memcached).arg("crd").output().await;
    let printed = output.expect("it runs").stdout;
    let crd: CustomResourceDefinition = serde_saphyr::from_slice(&printed).expect("a definition");
    let resource = ApiResource {
        group: crd.spec.group.clone(),
        version: crd.spec.versions[0].name.clone(),
        api_version: format!("{}/{}", crd.spec.group, crd.spec.versions[0].name),
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
    };
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let now = PostParams::default();
    crds.create(&now, &crd).await.expect("it is defined");
    let _operator = Command::new(&memcached)
        .args(["run", "--metrics-address=", "--health-address="])
        .env("KUBECONFIG", shell.kubeconfig())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let example = include_str!("../../../examples/memcached/cache.yaml");
    let example: Value = serde_saphyr::from_str(example).expect("an object");
    let example: DynamicObject = serde_json::from_value(example).expect("an object");
    let caches: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    caches.create(&now, &example).await.expect("it is created");

    let kubeconfig = shell.kubeconfig();
    let terminal = Terminal {
        kubeconfig: &kubeconfig,
        object: ("Memcached", "cache"),
    };
    terminal.until_listed(&["WaitingForResources"]).await;
    let waits = "It waits for a resource: Deployment cache";
    terminal.looks("runs a pass", waits).await;
}
