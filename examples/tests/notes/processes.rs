//! The process of a server: killed, started twice or in vain, never mistaken for another one.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use okt_examples::notes::{Error, Instance, Observed, Program, Store, StoreError};
use okt_examples::processes;

use crate::scene::{Scene, announced};

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

    scene.instance.start().await.expect("a restart");
    assert_ne!(first.boot_id, scene.answering().await.boot_id);
    let documents = scene.instance.count().await.expect("a count");
    // One document may have been stored without an answer to its client.
    let kept = writer.kept.load(Ordering::SeqCst);
    assert!(
        (kept..=kept + 1).contains(&documents),
        "{documents} after {kept} were kept"
    );
}

#[tokio::test]
async fn starting_twice_is_one_process() {
    let scene = Scene::prepared(0).await;
    let (one, two) = tokio::join!(scene.instance.start(), scene.instance.start());
    one.and(two).expect("a process");
    let first = scene.answering().await;
    scene.instance.start().await.expect("the same");
    assert_eq!(scene.answering().await.boot_id, first.boot_id);
    assert_eq!(processes::of(scene.root.path()).len(), 1);
}

#[tokio::test]
async fn a_second_server_on_a_directory_fails_and_names_the_first() {
    let scene = Scene::started(0).await;
    let first = scene.answering().await;

    let pid = std::fs::read_to_string(scene.instance.data().join("notes.lock")).expect("a pid");

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
        message.contains(&format!("process {pid} serves it already")),
        "{message}"
    );
    assert_eq!(scene.answering().await.boot_id, first.boot_id);
}

#[tokio::test]
async fn a_corrupt_database_is_reported_by_prepare_and_by_start() {
    let scene = Scene::prepared(0).await;
    let database = scene.instance.data().join("notes.db");
    std::fs::write(&database, "not a database ".repeat(1000)).expect("damage");

    let prepare = scene.instance.prepare().await.expect_err("damage");
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
async fn a_directory_path_too_long_for_a_socket_is_refused_at_once() {
    let program = Program {
        exe: "notes".into(),
        args: Vec::new(),
    };
    let far = PathBuf::from("/").join("d".repeat(100));
    let error = Instance::new("team", far, program).expect_err("a long path");
    assert!(matches!(error, Error::Path { .. }), "{error}");
}

#[tokio::test]
async fn a_request_for_a_killed_process_is_not_answered_by_another_on_its_port() {
    let killed = Scene::started(0).await;
    let other = Scene::started(0).await;
    // The port of the killed process, as if the system had given it to the other one.
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
    // Its agent is in its own directory, whatever the address of its documents.
    let (own, others) = (killed.answering().await, other.answering().await);
    assert_ne!(own.boot_id, others.boot_id);
    assert_eq!(other.instance.count().await.expect("a count"), 0);
}
