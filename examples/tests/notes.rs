//! This file tests `notes` with real processes: they are killed, restarted, drained and archived.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use okt_examples::notes::{
    ActionState, Door, Error, Instance, Observed, Program, Settings, Status, Store, StoreError,
    open_backup,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// An instance in a directory of its own, whose process does not outlive the test, however that ends.
struct Scene {
    instance: Instance,
    root: TempDir,
}

impl Scene {
    /// A prepared instance that is not started; `pause` is the pause between the steps of its backups.
    async fn prepared(pause: u64) -> Self {
        let scene = Self::empty(pause);
        scene
            .instance
            .prepare("prepare")
            .await
            .expect("a directory with a schema");
        scene
    }

    fn empty(pause: u64) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let program = Program {
            exe: env!("CARGO_BIN_EXE_notes").into(),
            args: ["serve", "--backup-pause-ms", &pause.to_string()]
                .map(Into::into)
                .into(),
        };
        let instance =
            Instance::new("team", root.path().join("data"), program).expect("an instance");
        Self { instance, root }
    }

    async fn started(pause: u64) -> Self {
        let scene = Self::prepared(pause).await;
        scene
            .instance
            .start()
            .await
            .expect("a process that answers");
        scene
    }

    async fn add(&self, documents: u64) {
        for number in 0..documents {
            self.instance
                .add(&format!("title {number}"), &"text ".repeat(400))
                .await
                .expect("a kept document");
        }
    }

    /// Documents that are handed in one after the other until a server refuses or is gone.
    fn writer(&self) -> Writer {
        let kept = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn({
            let (instance, kept, stop) =
                (self.instance.clone(), Arc::clone(&kept), Arc::clone(&stop));
            async move {
                while !stop.load(Ordering::SeqCst) {
                    instance.add("meanwhile", &"more ".repeat(400)).await?;
                    kept.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            }
        });
        Writer { task, kept, stop }
    }

    async fn answering(&self) -> Status {
        match self.instance.status().await.expect("a readable directory") {
            Observed::Answering(status) => status,
            other => panic!("the server does not answer: {other:?}"),
        }
    }

    /// A request as no well-behaved client makes it.
    async fn put(&self, id: &str, body: &Value) -> (u16, Value) {
        let response = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client")
            .put(format!(
                "http://{}/actions/{id}",
                announced(self.instance.data())
            ))
            .json(body)
            .send()
            .await
            .expect("an answer");
        (
            response.status().as_u16(),
            response.json().await.expect("JSON"),
        )
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let instance = self.instance.clone();
        // A thread of its own, since this one may be in the middle of an unwinding runtime.
        let kill = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(instance.kill())
        });
        let killed = kill.join().expect("no panic");
        if !std::thread::panicking() {
            killed.expect("no process is left behind");
        }
    }
}

struct Writer {
    task: JoinHandle<Result<(), Error>>,
    kept: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Writer {
    fn kept(&self) -> u64 {
        self.kept.load(Ordering::SeqCst)
    }

    async fn reaches(&self, documents: u64) {
        while self.kept() < documents {
            assert!(
                !self.task.is_finished(),
                "the writer ended after {} documents",
                self.kept()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.task
            .await
            .expect("no panic")
            .expect("every document was kept");
        self.kept.load(Ordering::SeqCst)
    }
}

fn announced(data: &Path) -> String {
    let content = std::fs::read(data.join("notes.json")).expect("notes.json");
    let announcement: Value = serde_json::from_slice(&content).expect("JSON");
    announcement["address"]
        .as_str()
        .expect("an address")
        .to_owned()
}

fn backups(scene: &Scene) -> Vec<String> {
    let entries = std::fs::read_dir(scene.instance.data().join("backups")).expect("a listing");
    entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[tokio::test]
async fn documents_survive_a_kill_and_a_restart() {
    let scene = Scene::started(0).await;
    let first = scene.answering().await;
    let writer = scene.writer();
    writer.reaches(20).await;

    assert!(scene.instance.kill().await.expect("a kill"));
    writer
        .task
        .await
        .expect("no panic")
        .expect_err("a killed server answers nobody");
    assert_eq!(
        scene.instance.status().await.expect("a status"),
        Observed::NotRunning { prepared: true }
    );

    let second = scene.instance.start().await.expect("a restart");
    assert_ne!(first.boot_id, second.boot_id);
    // One may have been kept without its client having been told.
    let kept = writer.kept.load(Ordering::SeqCst);
    assert!(
        (kept..=kept + 1).contains(&second.documents),
        "{} after {kept} were kept",
        second.documents
    );
}

#[tokio::test]
async fn starting_twice_is_one_process() {
    let scene = Scene::prepared(0).await;
    let (one, two) = tokio::join!(scene.instance.start(), scene.instance.start());
    let (one, two) = (one.expect("a process"), two.expect("a process"));
    assert_eq!((&one.boot_id, one.pid), (&two.boot_id, two.pid));
    assert_eq!(
        scene.instance.start().await.expect("the same").boot_id,
        one.boot_id
    );
}

#[tokio::test]
async fn a_backup_taken_while_a_writer_writes_is_whole() {
    let scene = Scene::started(5).await;
    scene.add(50).await;
    let writer = scene.writer();
    writer.reaches(5).await;

    let before = scene.instance.count().await.expect("a count");
    let backup = scene.instance.backup("uid/7").await.expect("a backup");
    let after = scene.instance.count().await.expect("a count");
    writer.stop().await;

    assert_eq!(
        open_backup(&backup.path).expect("a good backup"),
        backup.documents
    );
    assert!(
        (before..=after).contains(&backup.documents),
        "{before} <= {} <= {after}",
        backup.documents
    );
    assert!(
        after > before + 2,
        "the writer was blocked: {before} before and {after} after"
    );
}

#[tokio::test]
async fn a_repeated_id_works_once_also_after_a_restart() {
    let scene = Scene::started(0).await;
    scene.add(3).await;
    let backup = scene.instance.backup("uid/7").await.expect("a backup");
    scene.add(2).await;

    assert_eq!(
        scene.instance.backup("uid/7").await.expect("the same"),
        backup
    );
    scene.instance.kill().await.expect("a kill");
    assert_eq!(
        scene
            .instance
            .backup("uid/7")
            .await
            .expect("the same, without a server"),
        backup
    );
    scene.instance.start().await.expect("a restart");
    assert_eq!(
        scene.instance.backup("uid/7").await.expect("the same"),
        backup
    );
    assert_eq!(
        scene.put("uid%2F7", &json!({"kind": "backup"})).await.0,
        200
    );

    assert_eq!(
        (backup.documents, backups(&scene)),
        (3, vec!["uid_2f7.db".to_owned()])
    );
    let again = scene.instance.backup("uid/8").await.expect("another");
    assert_eq!(again.documents, 5);
}

#[tokio::test]
async fn a_backup_whose_process_was_killed_is_unknown_and_is_taken_by_its_next_order() {
    let scene = Scene::started(200).await;
    scene.add(60).await;
    assert_eq!(scene.put("b", &json!({"kind": "backup"})).await.0, 201);
    scene.instance.kill().await.expect("a kill in the middle");
    scene.instance.start().await.expect("a restart");

    let state = scene.instance.action("b").await.expect("an action").state;
    assert_eq!(state, ActionState::Unknown);
    assert_eq!(backups(&scene), [""; 0], "what was unfinished is gone");

    let settings = Settings {
        backup_pause_ms: Some(0),
        ..Settings::default()
    };
    scene
        .instance
        .configure("faster", settings)
        .await
        .expect("settings");
    assert_eq!(
        scene
            .instance
            .backup("b")
            .await
            .expect("a backup")
            .documents,
        60
    );
}

#[tokio::test]
async fn a_second_action_waits_for_the_end_of_the_first() {
    let scene = Scene::started(100).await;
    scene.add(20).await;

    assert_eq!(scene.put("one", &json!({"kind": "backup"})).await.0, 201);
    assert_eq!(scene.put("one", &json!({"kind": "backup"})).await.0, 200);
    let (status, problem) = scene.put("two", &json!({"kind": "drain"})).await;

    assert_eq!(
        (status, problem["error"].as_str()),
        (409, Some("backup one is under way; wait for its end"))
    );
    assert_eq!(scene.answering().await.action.expect("an action").id, "one");
    let error = scene
        .instance
        .drain("two")
        .await
        .expect_err("a busy server");
    assert!(
        matches!(error, Error::Busy { .. }) && error.is_transient(),
        "{error}"
    );
}

#[tokio::test]
async fn a_dropped_backup_goes_on_and_is_found() {
    let scene = Scene::started(20).await;
    scene.add(20).await;

    let dropped = tokio::time::timeout(Duration::from_millis(50), scene.instance.backup("b")).await;

    assert!(dropped.is_err(), "the backup was quicker than the test");
    assert_eq!(scene.answering().await.action.expect("an action").id, "b");
    assert_eq!(
        scene
            .instance
            .backup("b")
            .await
            .expect("a backup")
            .documents,
        20
    );
}

#[tokio::test]
async fn nonsense_is_refused_with_422_and_a_sentence() {
    let scene = Scene::started(0).await;
    scene.instance.backup("done").await.expect("a backup");
    for (id, body) in [
        ("a", json!({"kind": "restore"})),
        ("a", json!({"kind": "backup", "to": "the moon"})),
        (
            "a",
            json!({"kind": "configure", "maximumBodyBytes": 1_u64 << 40}),
        ),
        ("a", json!("backup")),
        ("done", json!({"kind": "drain"})),
        ("..", json!({"kind": "backup"})),
        (&"x".repeat(200), json!({"kind": "backup"})),
    ] {
        // A client resolves two dots in a path, and the server finds nothing there.
        let expected = if id == ".." { 404 } else { 422 };
        let (status, problem) = scene.put(id, &body).await;
        assert_eq!(status, expected, "{id} {body}: {problem}");
        assert!(problem["error"].is_string(), "{id} {body}: {problem}");
    }
    assert_eq!(scene.answering().await.state, Door::Accepting);
}

#[tokio::test]
async fn settings_outlive_a_restart() {
    let scene = Scene::started(0).await;
    let settings = Settings {
        maximum_body_bytes: Some(10),
        ..Settings::default()
    };
    scene
        .instance
        .configure("c", settings)
        .await
        .expect("settings");
    scene.instance.kill().await.expect("a kill");
    scene.instance.start().await.expect("a restart");

    let error = scene
        .instance
        .add("title", "longer than ten bytes")
        .await
        .expect_err("a long body");

    assert!(
        matches!(error, Error::Refused { status: 413, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_drain_refuses_new_documents_and_loses_none() {
    let scene = Scene::started(0).await;
    let writers = [scene.writer(), scene.writer(), scene.writer()];
    for writer in &writers {
        writer.reaches(10).await;
    }

    let drained = scene.instance.drain("uid/9").await.expect("a drain");

    let mut kept = 0;
    for writer in writers {
        let error = writer
            .task
            .await
            .expect("no panic")
            .expect_err("a drained server takes nothing");
        match error {
            Error::Refused { status, .. } => assert_eq!(status, 503),
            Error::NotRunning { .. } => {}
            other => panic!("a client was cut off: {other}"),
        }
        kept += writer.kept.load(Ordering::SeqCst);
    }
    assert_eq!(drained.documents, kept);
    assert_eq!(
        scene.instance.status().await.expect("a status"),
        Observed::NotRunning { prepared: true }
    );
    let left = |name: &str| {
        std::fs::metadata(scene.instance.data().join(name)).map_or(0, |file| file.len())
    };
    assert_eq!(
        (left("notes.db-wal"), left("notes.json")),
        (0, 0),
        "everything is in the database"
    );
    assert_eq!(
        scene.instance.drain("uid/9").await.expect("the same"),
        drained
    );
}

#[tokio::test]
async fn a_drain_of_an_earlier_process_does_not_end_a_later_one() {
    let scene = Scene::started(0).await;
    scene.instance.drain("d").await.expect("a drain");
    let later = scene.instance.start().await.expect("a restart");

    scene.instance.drain("d").await.expect("it is done");

    assert_eq!(scene.answering().await.boot_id, later.boot_id);
}

#[tokio::test]
async fn a_drain_settles_what_a_killed_process_left() {
    let scene = Scene::started(0).await;
    scene.add(4).await;
    scene.instance.kill().await.expect("a kill");

    assert_eq!(
        scene.instance.drain("d").await.expect("a drain").documents,
        4
    );

    let log =
        std::fs::metadata(scene.instance.data().join("notes.db-wal")).map_or(0, |file| file.len());
    assert_eq!(log, 0);
}

#[tokio::test]
async fn a_terminate_signal_stops_a_backup_and_drains() {
    let scene = Scene::started(500).await;
    scene.add(20).await;
    assert_eq!(scene.put("b", &json!({"kind": "backup"})).await.0, 201);
    let pid = scene.answering().await.pid;

    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    while scene.instance.status().await.expect("a status")
        != (Observed::NotRunning { prepared: true })
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    assert_eq!(backups(&scene), [""; 0]);
    scene.instance.start().await.expect("a restart");
    let state = scene.instance.action("b").await.expect("an action").state;
    assert!(matches!(state, ActionState::Failed { .. }), "{state:?}");
}

#[tokio::test]
async fn an_archive_has_documents_and_backups_and_leaves_no_directory() {
    let scene = Scene::started(0).await;
    scene.add(3).await;
    let backup = scene.instance.backup("uid/1").await.expect("a backup");
    let archive = scene.root.path().join("archive");
    let error = scene
        .instance
        .archive("uid/3", &archive)
        .await
        .expect_err("a served directory");
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    scene.instance.drain("uid/2").await.expect("a drain");

    let first = scene
        .instance
        .archive("uid/3", &archive)
        .await
        .expect("an archive");
    let second = scene
        .instance
        .archive("uid/3", &archive)
        .await
        .expect("the same archive");

    assert_eq!(first, second);
    assert_eq!(
        (first.documents, &first.path),
        (3, &archive.join("team-uid_2f3"))
    );
    let moved = first
        .path
        .join("backups")
        .join(backup.path.file_name().expect("a name"));
    assert_eq!(open_backup(&moved).expect("a backup"), 3);
    assert!(!scene.instance.data().exists());
    assert_eq!(
        scene.instance.status().await.expect("a status"),
        Observed::NotRunning { prepared: false }
    );
}

#[tokio::test]
async fn a_second_server_on_a_directory_fails_and_names_the_first() {
    let scene = Scene::started(0).await;
    let first = scene.answering().await;

    let second = tokio::process::Command::new(env!("CARGO_BIN_EXE_notes"))
        .arg("serve")
        .arg("--data")
        .arg(scene.instance.data())
        .kill_on_drop(true)
        .output()
        .await
        .expect("a process");

    let message = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        message.contains(&format!("process {} serves it already", first.pid)),
        "{message}"
    );
    assert_eq!(scene.answering().await.boot_id, first.boot_id);
}

#[tokio::test]
async fn a_corrupt_database_is_named_by_prepare_and_by_start() {
    let scene = Scene::prepared(0).await;
    let database = scene.instance.data().join("notes.db");
    std::fs::write(&database, "not a database ".repeat(1000)).expect("damage");

    let prepare = scene.instance.prepare("again").await.expect_err("damage");
    let start = scene.instance.start().await.expect_err("damage");

    assert!(
        matches!(prepare, Error::Store(StoreError::Corrupt { .. })),
        "{prepare}"
    );
    assert!(
        matches!(start, Error::Ended { .. }) && !start.is_transient(),
        "{start}"
    );
    assert!(
        start
            .to_string()
            .contains("it is damaged or no database of notes"),
        "{start}"
    );
}

#[tokio::test]
async fn a_server_that_is_killed_while_it_starts_may_be_started_again() {
    let scene = Scene::prepared(0).await;
    let killed = Program {
        exe: "sh".into(),
        args: ["-c", "kill -9 $$"].map(Into::into).into(),
    };
    let instance = Instance::new("team", scene.instance.data(), killed).expect("an instance");

    let error = instance.start().await.expect_err("it was killed");

    assert!(
        matches!(error, Error::Ended { .. }) && error.is_transient(),
        "{error}"
    );
}

#[tokio::test]
async fn a_damaged_page_is_found_before_it_is_served() {
    let scene = Scene::prepared(0).await;
    let database = scene.instance.data().join("notes.db");
    let store = Store::open(&database).expect("a database");
    for _ in 0..20 {
        store
            .insert("title", &"text ".repeat(400))
            .expect("a document");
    }
    store.fold().expect("one file");
    drop(store);
    let mut bytes = std::fs::read(&database).expect("the file");
    let end = bytes.len();
    bytes[end - 4096..].fill(0x5a);
    std::fs::write(&database, bytes).expect("damage");

    let error = scene.instance.start().await.expect_err("damage");

    assert!(error.to_string().contains("it is damaged"), "{error}");
}

#[tokio::test]
async fn an_unprepared_directory_is_not_started() {
    let scene = Scene::empty(0);
    let error = scene.instance.start().await.expect_err("nothing to serve");
    assert!(matches!(error, Error::NotPrepared { .. }), "{error}");
    let error = scene
        .instance
        .archive("a", scene.root.path())
        .await
        .expect_err("nothing to archive");
    assert!(matches!(error, Error::NotPrepared { .. }), "{error}");
}

#[tokio::test]
async fn a_request_for_a_killed_process_is_not_answered_by_another_on_its_port() {
    let killed = Scene::started(0).await;
    let other = Scene::started(0).await;
    // What the port of the killed one looks like once the system gave it to the other.
    let place = |scene: &Scene| scene.instance.data().join("notes.json");
    let content = std::fs::read_to_string(place(&killed)).expect("notes.json");
    let moved = content.replace(
        &announced(killed.instance.data()),
        &announced(other.instance.data()),
    );
    std::fs::write(place(&killed), moved).expect("another address");

    let error = killed
        .instance
        .add("title", "body")
        .await
        .expect_err("another process");

    assert!(
        matches!(error, Error::Refused { status: 421, .. }),
        "{error}"
    );
    assert!(matches!(
        killed.instance.status().await.expect("a status"),
        Observed::NotAnswering { .. }
    ));
    assert_eq!(other.instance.count().await.expect("a count"), 0);
}
