//! The end of a server by a drain, a signal or a kill, and its archive.

use std::sync::atomic::Ordering;

use okt_examples::notes::{Error, Observed, Settings, open_backup};

use crate::scene::{Scene, backup, backups, order};

#[tokio::test]
async fn a_drain_refuses_new_documents_and_loses_none() {
    let scene = Scene::started(0).await;
    let writers = [scene.writer(), scene.writer(), scene.writer()];
    for writer in &writers {
        writer.reaches(10).await;
    }

    let drained = scene
        .done(&order("Stopping", 9, &Settings::default()))
        .await;
    let readable = scene.instance.count().await;

    let mut kept = 0;
    for writer in writers {
        let error = writer
            .task
            .await
            .expect("no panic")
            .expect_err("a drained server takes nothing");
        match error {
            Error::Refused { status, .. } => assert_eq!(status, 503),
            other => panic!("a client was cut off: {other}"),
        }
        kept += writer.kept.load(Ordering::SeqCst);
    }
    scene.instance.stop().await.expect("an end");
    assert_eq!(drained.message, format!("{kept} documents are on the disk"));
    assert_eq!(readable.expect("documents can be read"), kept);
    assert_eq!(
        scene.instance.status().await.expect("a status"),
        Observed::NotRunning { prepared: true }
    );
    let left = |name: &str| {
        std::fs::metadata(scene.instance.data().join(name)).map_or(0, |file| file.len())
    };
    assert_eq!(
        (left("notes.db-wal"), left("notes.json"), left("agent.sock")),
        (0, 0, 0),
        "everything is in the database"
    );
}

#[tokio::test]
async fn a_drain_of_an_earlier_process_does_not_close_a_later_one() {
    let scene = Scene::started(0).await;
    let drain = order("Stopping", 9, &Settings::default());
    scene.done(&drain).await;
    scene.instance.stop().await.expect("an end");
    scene.instance.start().await.expect("a restart");

    assert_eq!(scene.done(&drain).await.attempt, 1);

    scene.add(1).await;
}

#[tokio::test]
async fn the_data_of_a_killed_process_is_archived_completely() {
    let scene = Scene::started(0).await;
    scene.add(4).await;
    scene.instance.kill().await.expect("a kill");
    assert!(!scene.instance.stop().await.expect("no process"));

    let archive = scene.root.path().join("archive");
    let archived = scene.instance.archive("uid.3", &archive).await;

    let archived = archived.expect("an archive");
    assert_eq!(archived.documents, 4);
    let mut left: Vec<_> = std::fs::read_dir(archived.path)
        .expect("a listing")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["backups", "notes.db", "notes.log"]);
}

#[tokio::test]
async fn a_server_that_gets_sigterm_during_a_backup_ends_and_the_next_one_resumes_it() {
    let scene = Scene::started(3_600_000).await;
    scene.add(20).await;
    let order = backup(7);
    assert!(scene.ask(&order).await);

    scene
        .instance
        .stop()
        .await
        .expect("it does not wait for the backup");

    assert_eq!(
        scene.instance.status().await.expect("a status"),
        Observed::NotRunning { prepared: true }
    );
    assert_eq!(backups(&scene), [""; 0]);
    scene.instance.start().await.expect("a restart");
    scene.resumed(&order).await;
}

#[tokio::test]
async fn an_archive_has_documents_and_backups_and_leaves_no_directory() {
    let scene = Scene::started(0).await;
    scene.add(3).await;
    scene.done(&backup(1)).await;
    let archive = scene.root.path().join("archive");
    let error = scene
        .instance
        .archive("uid.3", &archive)
        .await
        .expect_err("a served directory");
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    scene.instance.stop().await.expect("an end");

    let first = scene
        .instance
        .archive("uid.3", &archive)
        .await
        .expect("an archive");
    let second = scene
        .instance
        .archive("uid.3", &archive)
        .await
        .expect("the same archive");

    assert_eq!(first, second);
    assert_eq!(
        (first.documents, &first.path),
        (3, &archive.join("team-uid.3"))
    );
    let moved = first.path.join("backups").join("uid.1.db");
    assert_eq!(open_backup(&moved).expect("a backup"), 3);
    assert!(!scene.instance.data().exists());
    assert_eq!(
        scene.instance.status().await.expect("a status"),
        Observed::NotRunning { prepared: false }
    );
}
