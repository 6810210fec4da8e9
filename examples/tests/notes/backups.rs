//! Backups: complete while documents are written, and made once per id across kills and cancellations.

use std::time::Duration;

use okt_agent::client::Carried;
use okt_agent::wire::Phase;
use okt_examples::notes::{Settings, open_backup};

use crate::scene::{Scene, backup, backups, order};

#[tokio::test]
async fn a_backup_taken_while_a_writer_writes_is_whole() {
    let scene = Scene::started(600).await;
    scene.add(50).await;
    let writer = scene.writer();
    writer.reaches(5).await;

    let before = scene.instance.count().await.expect("a count");
    let order = backup(7);
    scene.ask(&order).await;
    writer.reaches(writer.kept() + 1).await;
    let meanwhile = scene.report(&order).await;
    assert!(!meanwhile.phase.is_final(), "the writer was blocked");
    let report = scene.done(&order).await;
    let after = scene.instance.count().await.expect("a count");
    writer.stop().await;

    let saved = open_backup(&scene.backup(&order)).expect("a good backup");
    assert_eq!(
        (report.phase, report.message),
        (Phase::Succeeded, format!("{saved} documents are safe"))
    );
    assert!(
        (before..=after).contains(&saved),
        "{before} <= {saved} <= {after}"
    );
}

#[tokio::test]
async fn a_repeated_id_works_once_also_after_a_restart() {
    let scene = Scene::started(0).await;
    scene.add(3).await;
    let order = backup(7);
    let first = scene.done(&order).await;
    scene.add(2).await;

    let again = scene.done(&order).await;
    assert_eq!((again.attempt, again.ended_at), (1, first.ended_at));
    scene.instance.kill().await.expect("a kill");
    scene.instance.start().await.expect("a restart");
    let again = scene.done(&order).await;
    assert_eq!((again.attempt, again.ended_at), (1, first.ended_at));
    assert!(!scene.ask(&order).await, "it is begun again");

    assert_eq!(backups(&scene), ["uid.7.db"]);
    assert_eq!(scene.made(&order), 1);
    let saved = open_backup(&scene.backup(&order));
    assert_eq!(saved.expect("a good backup"), 3);
    assert_eq!(scene.done(&backup(8)).await.message, "5 documents are safe");
}

#[tokio::test]
async fn a_backup_whose_process_was_killed_is_finished_by_the_next_one() {
    let scene = Scene::started(400).await;
    scene.add(60).await;
    let order = backup(7);
    assert!(scene.ask(&order).await);
    while !backups(&scene).iter().any(|file| file.contains("partial")) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    scene.instance.kill().await.expect("a kill in the middle");
    assert!(!backups(&scene).contains(&"uid.7.db".to_owned()));

    scene.instance.start().await.expect("a restart");
    scene.resumed(&order).await;
    let report = scene.done(&order).await;

    assert_eq!(
        (report.phase, report.attempt, scene.made(&order)),
        (Phase::Succeeded, 1, 1)
    );
    assert_eq!(backups(&scene), ["uid.7.db"]);
    let saved = open_backup(&scene.backup(&order));
    assert_eq!(saved.expect("a good backup"), 60);
}

#[tokio::test]
async fn an_existing_backup_without_a_record_is_found() {
    let scene = Scene::started(0).await;
    scene.add(3).await;
    let order = backup(7);
    scene.done(&order).await;
    scene.instance.stop().await.expect("an end");
    // As after a kill between the backup and its record.
    let journal = scene.instance.data().join("agent");
    std::fs::remove_dir_all(journal).expect("a journal");
    scene.instance.start().await.expect("a restart");
    scene.add(1).await;

    let report = scene.done(&order).await;

    assert_eq!(report.message, "3 documents are safe");
    assert_eq!(scene.made(&order), 1);
}

#[tokio::test]
async fn a_dropped_backup_goes_on_and_is_found() {
    let scene = Scene::started(1_500).await;
    scene.add(20).await;
    let order = backup(7);
    assert!(scene.ask(&order).await);

    let dropped = tokio::time::timeout(Duration::from_millis(50), scene.done(&order)).await;

    assert!(dropped.is_err(), "the backup was quicker than the test");
    let action = scene.answering().await.action.expect("an action");
    assert_eq!(action.id, order.id);
    let report = scene.done(&order).await;
    assert_eq!(
        (report.message.as_str(), report.attempt),
        ("20 documents are safe", 1)
    );
}

#[tokio::test]
async fn a_cancelled_backup_leaves_no_file_and_its_next_attempt_makes_one() {
    let scene = Scene::started(3_600_000).await;
    scene.add(20).await;
    let mut order = backup(7);
    let cancelled = async {
        while !backups(&scene).iter().any(|file| file.contains("partial")) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let agent = scene.instance.agent();
    let carried = agent.carry(&order, cancelled, |_| {}).await;
    let Ok(Carried::Withdrawn(Some(report))) = carried else {
        panic!("it was not cancelled: {carried:?}");
    };
    assert_eq!(report.phase, Phase::Cancelled);
    assert_eq!(backups(&scene), [""; 0]);

    let quick = Settings {
        backup_pause_ms: Some(0),
        ..Settings::default()
    };
    let configured = scene.done(&self::order("Running", 8, &quick)).await;
    assert_eq!(configured.phase, Phase::Succeeded);
    order = backup(9);
    assert_eq!(scene.done(&order).await.message, "20 documents are safe");
}
